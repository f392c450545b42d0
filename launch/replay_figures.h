/* replay: figures of a study, over its seeds. */
#ifndef AKIN_LAUNCH_REPLAY_FIGURES_H
#define AKIN_LAUNCH_REPLAY_FIGURES_H

#include "launch/replay.h"
#include "routing/interval.h"

typedef enum akin_replay_metric {
    AKIN_REPLAY_P50, /* times per output token, ms */
    AKIN_REPLAY_MEAN,
    AKIN_REPLAY_P95,
    AKIN_REPLAY_P99,
    AKIN_REPLAY_DISTINCT,  /* experts per layer and step */
    AKIN_REPLAY_BUSIEST,   /* of them on the busiest rank */
    AKIN_REPLAY_PREDICTED, /* what the policy expected of that */
    AKIN_REPLAY_CORRELATION,
    AKIN_REPLAY_BATCH,
    AKIN_REPLAY_SPREAD,
    AKIN_REPLAY_BAND,
    AKIN_REPLAY_SIMILARITY,
    AKIN_REPLAY_WAIT, /* ms */
    AKIN_REPLAY_RATE, /* tokens per second of the pool */
    AKIN_REPLAY_N_METRICS
} akin_replay_metric_t;

/** No policy was replayed that changes can be against. */
#define AKIN_REPLAY_NO_CASE UINT32_MAX

/** Key of a metric in JSON. */
const char *akin_replay_metric_key(akin_replay_metric_t metric);

/** Times are told against the best load balancer as well. */
int akin_replay_metric_is_time(akin_replay_metric_t metric);

/** \param[out] values  [n_seeds] */
void akin_replay_values(const akin_replay_job_t *job, uint32_t which,
                        akin_replay_metric_t metric, double *values);

/**
 * Changes against another case, in percent, seed by seed: both replayed the
 * same requests in the same order.
 *
 * \param[out] values  [n_seeds]
 */
void akin_replay_changes(const akin_replay_job_t *job, uint32_t which,
                         uint32_t against, akin_replay_metric_t metric,
                         double *values);

/** Of random, rr, jsq and p2c, those replayed, the one with the least mean
 * P50; AKIN_REPLAY_NO_CASE if there is none. */
uint32_t akin_replay_best_balancer(const akin_replay_job_t *job);

/** Mean rho of the fits; NaN: none has one. */
double akin_replay_mean_rho(const akin_replay_job_t *job);

/** Variant of the fits; NULL: no policy needs one. */
const char *akin_replay_variant(const akin_replay_job_t *job);

/** What a reader must know to trust the figures: the i-th such text, or NULL
 * after the last. */
const char *akin_replay_caveat(const akin_replay_job_t *job, uint32_t i,
                               char *text, size_t bytes);

#endif
