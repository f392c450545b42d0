/* bench: what the measurements share. Each puts its time beside a reference
 * measured in the same run, the two taking turns. */
#ifndef AKIN_LAUNCH_BENCH_H
#define AKIN_LAUNCH_BENCH_H

#include "base/error.h"
#include "math/kernels.h"

#include <stddef.h>
#include <stdint.h>

struct json_t;

#define AKIN_BENCH_MAX_ROUNDS 1000u

/** Times of rounds, ours and the reference's in turn. */
typedef struct akin_bench_rounds {
    double seconds[AKIN_BENCH_MAX_ROUNDS];
    double reference[AKIN_BENCH_MAX_ROUNDS];
    uint32_t n;
} akin_bench_rounds_t;

/** Medians over the rounds: of the times, and of the ratios round by round. */
typedef struct akin_bench_medians {
    double seconds;
    double reference_seconds;
    double reference_over_ours; /* > 1: ours is faster */
} akin_bench_medians_t;

void akin_bench_medians(const akin_bench_rounds_t *rounds,
                        akin_bench_medians_t *medians_p);

/** The value that a share `q` of the others is below; n is 1 to
 * AKIN_BENCH_MAX_ROUNDS. */
double akin_bench_quantile(const double *values, uint32_t n, double q);

/** A piece of memory. */
typedef struct akin_bench_piece {
    const void *data;
    size_t bytes;
} akin_bench_piece_t;

/**
 * Time a plain read of pieces of memory, laid end to end, by a team of threads
 * that take 256 KiB at a time, with the best kernels of this CPU.
 *
 * \return seconds.
 */
double akin_bench_read(const akin_bench_piece_t *pieces, size_t n_pieces,
                       int n_threads);

/**
 * Parse "1,2,4".
 *
 * \param[out] values    [max]
 * \return how many; 0: not a list of whole numbers from 1 to `limit`.
 */
size_t akin_bench_parse_list(const char *text, uint32_t limit, uint32_t *values,
                             size_t max);

/* The measurements; argv[0] is the full name, "akin bench step". */
int akin_bench_experts_command(int argc, char **argv);
int akin_bench_step_command(int argc, char **argv);
int akin_bench_kv_command(int argc, char **argv);
int akin_bench_ep_command(int argc, char **argv);
int akin_bench_route_command(int argc, char **argv);
int akin_bench_fit_command(int argc, char **argv);

#endif
