/* Load watch: how many requests ran on every worker over time, which experts
 * its tokens chose, and how many experts steps activate, in a memory that does
 * not grow. */
#ifndef AKIN_ROUTING_LOAD_WATCH_H
#define AKIN_ROUTING_LOAD_WATCH_H

#include "base/status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    AKIN_LOAD_WATCH_WORKERS = 64, /* the first ones; others are left out */
    AKIN_LOAD_WATCH_BINS = 120,   /* of time, at most */
    AKIN_LOAD_WATCH_BATCHES = 256 /* larger ones are counted as one */
};

/**
 * Time is cut into bins of equal width. It begins at 1 ms and doubles whenever
 * the time outgrows the bins, so that nobody has to know the end beforehand.
 * Sums are of whole numbers: equal calls give equal figures, to the bit.
 */
typedef struct akin_load_watch akin_load_watch_t;

/**
 * \param[in]  n_workers  any number; calls for those left out do nothing.
 * \param[in]  n_layers   0: experts are not counted.
 * \param[in]  n_experts  of a layer; 0: experts are not counted.
 * \param[out] watch_p    owned by the caller. All workers are empty at time 0.
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t
akin_load_watch_create(uint32_t n_workers, uint32_t n_layers,
                       uint32_t n_experts,
                       akin_load_watch_t **watch_p) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akin_load_watch_destroy(akin_load_watch_t *watch);

/**
 * From now on a worker has so many requests.
 *
 * \param[in] worker
 * \param[in] time_s      since the start; counted in whole microseconds up to
 *                        100 days. A time before the worker's last one is
 *                        taken for that.
 * \param[in] n_requests  counted up to 2^20 - 1.
 */
void akin_load_watch_set(akin_load_watch_t *watch, uint32_t worker,
                         double time_s, uint32_t n_requests);

/** All workers had what they have until now. To be called before figures are
 * read; the watch goes on. */
void akin_load_watch_end(akin_load_watch_t *watch, double time_s);

/** Tokens of a worker chose experts.
 * \param[in] counts  [n_layers][n_experts] */
void akin_load_watch_add(akin_load_watch_t *watch, uint32_t worker,
                         const uint16_t *counts);

/** A worker, whichever, made a step.
 * \param[in] batch     requests in it, at least 1.
 * \param[in] distinct  experts that it activated, over the layers. */
void akin_load_watch_step(akin_load_watch_t *watch, uint32_t batch,
                          uint64_t distinct);

/** Steps of one batch size. */
typedef struct akin_load_watch_batch {
    uint64_t n_steps;
    uint64_t n_requests; /* in all of them */
    uint64_t distinct;   /* over steps and layers */
} akin_load_watch_batch_t;

/** \param[in] batch  1 .. AKIN_LOAD_WATCH_BATCHES; one more: all larger ones.
 */
akin_load_watch_batch_t akin_load_watch_batch(const akin_load_watch_t *watch,
                                              uint32_t batch);

typedef struct akin_load_watch_sizes {
    uint32_t n_workers; /* all of them */
    uint32_t n_watched; /* at most AKIN_LOAD_WATCH_WORKERS */
    uint32_t n_layers;  /* 0: experts are not counted */
    uint32_t n_experts;
    uint32_t n_bins; /* up to the latest time; the last one may be short */
    double bin_s;
    double end_s; /* the latest time */
} akin_load_watch_sizes_t;

akin_load_watch_sizes_t akin_load_watch_sizes(const akin_load_watch_t *watch);

/** Requests of a watched worker, mean over that part of the bin which is
 * past. */
double akin_load_watch_load(const akin_load_watch_t *watch, uint32_t worker,
                            uint32_t bin);

/** How often the tokens of a watched worker chose an expert. */
uint64_t akin_load_watch_choices(const akin_load_watch_t *watch,
                                 uint32_t worker, uint32_t layer,
                                 uint32_t expert);

/**
 * By how much the workers differ in a layer: the Jensen-Shannon divergence of
 * their shares of experts, all workers with tokens alike, in bits. With H the
 * entropy it is H(mean of the shares) - mean of H(shares): 0 if all choose the
 * same, log2 of the number of workers if no two share an expert. Few tokens
 * make workers differ by chance alone.
 */
double akin_load_watch_difference(const akin_load_watch_t *watch,
                                  uint32_t layer);

struct json_t;

/**
 * The figures, to be merged into those of a run:
 *
 * "load": {"bin_s", "end_s", "n_workers": all, "workers": [watched][bins]},
 * "experts": {"difference_bits": [n_layers], "layer": that with the largest,
 * "choices": [watched][n_experts] in that layer}; null if none was counted.
 * If steps were counted, the batch sizes that there were:
 * "distinct_experts_by_batch": [{"batch": mean, "steps", "distinct_experts":
 * per step and layer}].
 *
 * \return a new object; NULL: out of memory.
 */
struct json_t *akin_load_watch_json(const akin_load_watch_t *watch);

#ifdef __cplusplus
}
#endif

#endif
