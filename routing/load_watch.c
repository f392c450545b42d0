/* Load watch: requests over time and choices of experts, by worker. */
#include "routing/load_watch.h"

#include <math.h>
#include <stdlib.h>

#define US_PER_S 1e6
#define FIRST_BIN_US UINT64_C(1000)
/* Their product, summed over a bin, stays below 2^63. */
#define MAX_US ((UINT64_C(1) << 43) - 1)
#define MAX_REQUESTS ((UINT32_C(1) << 20) - 1)

typedef struct worker {
    uint64_t since_us;
    uint32_t n_requests;                  /* since then */
    uint64_t areas[AKIN_LOAD_WATCH_BINS]; /* requests x us */
    uint64_t *choices;                    /* [n_layers][n_experts] */
} worker_t;

struct akin_load_watch {
    worker_t *workers; /* [n_watched] */
    uint64_t *choices; /* of all of them */
    uint32_t n_workers;
    uint32_t n_watched;
    uint32_t n_layers;
    uint32_t n_experts;
    uint64_t bin_us;
    uint64_t end_us;
    akin_load_watch_batch_t batches[AKIN_LOAD_WATCH_BATCHES + 1];
};

akin_status_t akin_load_watch_create(uint32_t n_workers, uint32_t n_layers,
                                     uint32_t n_experts,
                                     akin_load_watch_t **watch_p)
{
    const size_t n_cells = (size_t)n_layers * n_experts;
    *watch_p = NULL;
    akin_load_watch_t *watch = calloc(1, sizeof(*watch));
    if (watch == NULL)
        return AKIN_ERR_NOMEM;
    watch->n_workers = n_workers;
    watch->n_watched = n_workers < AKIN_LOAD_WATCH_WORKERS
                           ? n_workers
                           : AKIN_LOAD_WATCH_WORKERS;
    watch->n_layers = n_cells > 0 ? n_layers : 0;
    watch->n_experts = n_cells > 0 ? n_experts : 0;
    watch->bin_us = FIRST_BIN_US;
    watch->workers =
        calloc((size_t)watch->n_watched + 1, sizeof(*watch->workers));
    watch->choices =
        calloc((size_t)watch->n_watched * n_cells + 1, sizeof(*watch->choices));
    if (watch->workers == NULL || watch->choices == NULL) {
        akin_load_watch_destroy(watch);
        return AKIN_ERR_NOMEM;
    }
    for (uint32_t w = 0; w < watch->n_watched; w++)
        watch->workers[w].choices = watch->choices + w * n_cells;
    *watch_p = watch;
    return AKIN_OK;
}

void akin_load_watch_destroy(akin_load_watch_t *watch)
{
    if (watch == NULL)
        return;
    free(watch->workers);
    free(watch->choices);
    free(watch);
}

static uint64_t microseconds(double time_s)
{
    if (!(time_s > 0.0))
        return 0;
    const double us = round(time_s * US_PER_S);
    return us < (double)MAX_US ? (uint64_t)us : MAX_US;
}

/* Two bins become one. */
static void widen(akin_load_watch_t *watch)
{
    const uint32_t half = AKIN_LOAD_WATCH_BINS / 2;
    for (uint32_t w = 0; w < watch->n_watched; w++) {
        uint64_t *areas = watch->workers[w].areas;
        for (uint32_t i = 0; i < half; i++)
            areas[i] = areas[2 * i] + areas[2 * i + 1];
        for (uint32_t i = half; i < AKIN_LOAD_WATCH_BINS; i++)
            areas[i] = 0;
    }
    watch->bin_us *= 2;
}

static void reach(akin_load_watch_t *watch, uint64_t time_us)
{
    while (time_us > AKIN_LOAD_WATCH_BINS * watch->bin_us)
        widen(watch);
    if (time_us > watch->end_us)
        watch->end_us = time_us;
}

/* What the worker has, it had until now. */
static void keep(const akin_load_watch_t *watch, worker_t *worker,
                 uint64_t time_us)
{
    uint64_t begin = worker->since_us;
    if (time_us <= begin)
        return;
    worker->since_us = time_us;
    while (worker->n_requests > 0 && begin < time_us) {
        const uint64_t bin = begin / watch->bin_us;
        const uint64_t bin_end = (bin + 1) * watch->bin_us;
        const uint64_t end = bin_end < time_us ? bin_end : time_us;
        worker->areas[bin] += worker->n_requests * (end - begin);
        begin = end;
    }
}

void akin_load_watch_set(akin_load_watch_t *watch, uint32_t worker,
                         double time_s, uint32_t n_requests)
{
    if (worker >= watch->n_watched)
        return;
    const uint64_t time_us = microseconds(time_s);
    reach(watch, time_us);
    keep(watch, &watch->workers[worker], time_us);
    watch->workers[worker].n_requests =
        n_requests < MAX_REQUESTS ? n_requests : MAX_REQUESTS;
}

void akin_load_watch_end(akin_load_watch_t *watch, double time_s)
{
    reach(watch, microseconds(time_s));
    for (uint32_t w = 0; w < watch->n_watched; w++)
        keep(watch, &watch->workers[w], watch->end_us);
}

void akin_load_watch_add(akin_load_watch_t *watch, uint32_t worker,
                         const uint16_t *counts)
{
    if (worker >= watch->n_watched)
        return;
    const size_t n_cells = (size_t)watch->n_layers * watch->n_experts;
    uint64_t *choices = watch->workers[worker].choices;
    for (size_t i = 0; i < n_cells; i++)
        choices[i] += counts[i];
}

/* Larger batches share the last place. */
static uint32_t place_of(uint32_t batch)
{
    return batch <= AKIN_LOAD_WATCH_BATCHES ? batch - 1
                                            : AKIN_LOAD_WATCH_BATCHES;
}

void akin_load_watch_step(akin_load_watch_t *watch, uint32_t batch,
                          uint64_t distinct)
{
    akin_load_watch_batch_t *of = &watch->batches[place_of(batch)];
    of->n_steps++;
    of->n_requests += batch;
    of->distinct += distinct;
}

akin_load_watch_batch_t akin_load_watch_batch(const akin_load_watch_t *watch,
                                              uint32_t batch)
{
    return watch->batches[place_of(batch)];
}

akin_load_watch_sizes_t akin_load_watch_sizes(const akin_load_watch_t *watch)
{
    return (akin_load_watch_sizes_t){
        .n_workers = watch->n_workers,
        .n_watched = watch->n_watched,
        .n_layers = watch->n_layers,
        .n_experts = watch->n_experts,
        .n_bins =
            (uint32_t)((watch->end_us + watch->bin_us - 1) / watch->bin_us),
        .bin_s = (double)watch->bin_us / US_PER_S,
        .end_s = (double)watch->end_us / US_PER_S,
    };
}

double akin_load_watch_load(const akin_load_watch_t *watch, uint32_t worker,
                            uint32_t bin)
{
    const uint64_t begin = bin * watch->bin_us;
    uint64_t width = watch->bin_us;
    if (begin >= watch->end_us)
        return 0.0;
    if (watch->end_us - begin < width)
        width = watch->end_us - begin;
    return (double)watch->workers[worker].areas[bin] / (double)width;
}

uint64_t akin_load_watch_choices(const akin_load_watch_t *watch,
                                 uint32_t worker, uint32_t layer,
                                 uint32_t expert)
{
    return watch->workers[worker]
        .choices[(size_t)layer * watch->n_experts + expert];
}

/* Choices of a worker in a layer. */
static double total_of(const akin_load_watch_t *watch, uint32_t worker,
                       uint32_t layer)
{
    uint64_t total = 0;
    for (uint32_t e = 0; e < watch->n_experts; e++)
        total += akin_load_watch_choices(watch, worker, layer, e);
    return (double)total;
}

static double entropy_part(double share)
{
    return share > 0.0 ? -share * log2(share) : 0.0;
}

double akin_load_watch_difference(const akin_load_watch_t *watch,
                                  uint32_t layer)
{
    double totals[AKIN_LOAD_WATCH_WORKERS];
    double of_mean = 0.0, mean_of = 0.0;
    double n = 0.0;
    for (uint32_t w = 0; w < watch->n_watched; w++) {
        totals[w] = total_of(watch, w, layer);
        n += totals[w] > 0.0 ? 1.0 : 0.0;
    }
    if (n < 2.0)
        return 0.0;
    for (uint32_t e = 0; e < watch->n_experts; e++) {
        double mean = 0.0;
        for (uint32_t w = 0; w < watch->n_watched; w++) {
            if (!(totals[w] > 0.0))
                continue;
            const double share =
                (double)akin_load_watch_choices(watch, w, layer, e) / totals[w];
            mean += share / n;
            mean_of += entropy_part(share) / n;
        }
        of_mean += entropy_part(mean);
    }
    return fmax(of_mean - mean_of, 0.0);
}
