/* bench ep: dispatch and combine of a layer beside the bare exchange of the
 * same bytes. */
#ifndef AKIN_LAUNCH_BENCH_EP_H
#define AKIN_LAUNCH_BENCH_EP_H

#include "launch/bench.h"

#include <stdio.h>

#define AKIN_BENCH_EP_MAX_RANKS 16u
#define AKIN_BENCH_EP_MAX_ROWS 256u
#define AKIN_BENCH_EP_MAX_CASES 8u

/** Zero is the default. */
typedef struct akin_bench_ep_params {
    uint32_t rows[AKIN_BENCH_EP_MAX_CASES]; /* of each rank */
    uint32_t n_rows;                        /* how many; 0: 1, 16 and 64 rows */
    uint32_t rounds; /* per case, at most AKIN_BENCH_MAX_ROUNDS; 0: 100 */
    int json;        /* print an array of objects, else a table */
} akin_bench_ep_params_t;

/**
 * Measure on all ranks of a job, which are one group with Qwen3-30B-A3B's
 * vectors and experts (which are made small, since computing is not what is
 * measured): one layer by the UCX exchange beside bare UCX puts, and by the MPI
 * exchange beside one MPI_Alltoallv, with the sizes that the layer had.
 * - "dispatch": from the routes to all vectors being in place and checked.
 * - "combine": from the outputs to their sums.
 * Ours and the references take turns and start together; seconds and ratios
 * are rank 0's medians; ratio = bare / ours, 1 is the limit.
 *
 * Call it before MPI and UCX are started, on every rank of the job.
 *
 * \param[in]  out  where rank 0 prints.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: one rank only, too many, or a number that does not
 *         divide the experts.
 * \return the status of the call that failed.
 */
akin_status_t akin_bench_ep(const akin_bench_ep_params_t *params, FILE *out,
                            akin_error_t *err) AKIN_MUST_CHECK;

#endif
