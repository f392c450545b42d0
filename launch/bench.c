/* bench: finds the measurement; what the measurements share. */
#include "launch/bench.h"

#include "base/clock.h"
#include "launch/command.h"

#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART_BYTES ((size_t)256 << 10)

static const akin_command_t benches[] = {
    {"experts", "the expert step beside a plain read of its weights",
     akin_bench_experts_command},
    {"step", "decode of a model beside a plain read of what a token touches",
     akin_bench_step_command},
    {"kv", "reads of KV blocks from another rank beside bare UCX",
     akin_bench_kv_command},
    {"ep", "dispatch and combine of a layer beside the bare exchange",
     akin_bench_ep_command},
    {"route", "routing decisions beside a plain read of the workers' arrays",
     akin_bench_route_command},
    {"fit", "rounds of k-means beside a bare matrix product",
     akin_bench_fit_command},
};

#define N_BENCHES (sizeof(benches) / sizeof(benches[0]))

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, uint32_t n)
{
    double sorted[AKIN_BENCH_MAX_ROUNDS];
    memcpy(sorted, values, n * sizeof(*values));
    qsort(sorted, n, sizeof(*sorted), compare_doubles);
    return n % 2 != 0 ? sorted[n / 2]
                      : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

double akin_bench_quantile(const double *values, uint32_t n, double q)
{
    double sorted[AKIN_BENCH_MAX_ROUNDS];
    memcpy(sorted, values, n * sizeof(*values));
    qsort(sorted, n, sizeof(*sorted), compare_doubles);
    uint32_t rank = (uint32_t)(q * n);
    return sorted[rank < n ? rank : n - 1];
}

void akin_bench_medians(const akin_bench_rounds_t *rounds,
                        akin_bench_medians_t *medians_p)
{
    double ratios[AKIN_BENCH_MAX_ROUNDS];
    for (uint32_t i = 0; i < rounds->n; i++)
        ratios[i] = rounds->reference[i] / rounds->seconds[i];
    *medians_p = (akin_bench_medians_t){
        .seconds = median(rounds->seconds, rounds->n),
        .reference_seconds = median(rounds->reference, rounds->n),
        .reference_over_ours = median(ratios, rounds->n),
    };
}

/* Read bytes [from, to) of the pieces laid end to end. */
static uint64_t read_range(const akin_kernels_t *kernels,
                           const akin_bench_piece_t *pieces, size_t from,
                           size_t to)
{
    uint64_t sum = 0;
    for (size_t start = 0; start < to; start += pieces++->bytes) {
        size_t end = start + pieces->bytes;
        if (end <= from)
            continue;
        size_t first = from > start ? from - start : 0;
        size_t last = (to < end ? to : end) - start;
        sum += kernels->read((const char *)pieces->data + first, last - first);
    }
    return sum;
}

double akin_bench_read(const akin_bench_piece_t *pieces, size_t n_pieces,
                       int n_threads)
{
    const akin_kernels_t *kernels = akin_kernels_of(akin_kernels_best());
    /* The sum is used, so that no read can be left out. */
    static volatile uint64_t sink;
    uint64_t sum = 0;
    size_t total = 0;
    for (size_t i = 0; i < n_pieces; i++)
        total += pieces[i].bytes;
    int64_t begin = akin_clock_now_ns();
#pragma omp parallel for num_threads(n_threads) schedule(dynamic, 1)           \
    reduction(+ : sum)
    for (size_t at = 0; at < total; at += PART_BYTES)
        sum += read_range(kernels, pieces, at,
                          total - at < PART_BYTES ? total : at + PART_BYTES);
    int64_t end = akin_clock_now_ns();
    sink = sum;
    (void)sink;
    return (double)(end - begin) / (double)AKIN_NS_PER_S;
}

size_t akin_bench_parse_list(const char *text, uint32_t limit, uint32_t *values,
                             size_t max)
{
    size_t n = 0;
    for (const char *at = text; n < max; n++) {
        char *end;
        errno = 0;
        unsigned long value = strtoul(at, &end, 10);
        if (errno != 0 || end == at || *at == '-' || value < 1 || value > limit)
            return 0;
        values[n] = (uint32_t)value;
        if (*end == '\0')
            return n + 1;
        if (*end != ',')
            return 0;
        at = end + 1;
    }
    return 0;
}

int akin_command_bench(int argc, char **argv)
{
    if (argc >= 2)
        for (size_t i = 0; i < N_BENCHES; i++) {
            if (strcmp(argv[1], benches[i].name) != 0)
                continue;
            char name[64];
            (void)snprintf(name, sizeof(name), "akin bench %s",
                           benches[i].name);
            argv[1] = name;
            return benches[i].run(argc - 1, argv + 1);
        }
    int help = argc >= 2 && strcmp(argv[1], "--help") == 0;
    FILE *stream = help ? stdout : stderr;
    if (argc >= 2 && !help)
        (void)fprintf(stream, "akin: unknown measurement \"%s\"\n", argv[1]);
    (void)fprintf(stream, "Usage: akin bench MEASUREMENT [OPTION...]\n\n");
    for (size_t i = 0; i < N_BENCHES; i++)
        (void)fprintf(stream, "  %-8s %s\n", benches[i].name,
                      benches[i].summary);
    return help ? AKIN_EXIT_OK : AKIN_EXIT_USAGE;
}
