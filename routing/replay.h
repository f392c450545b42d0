/* Replay: a pool of decode workers that serve recorded requests, event by
 * event, under a policy and a model of the step time. */
#ifndef AKIN_ROUTING_REPLAY_H
#define AKIN_ROUTING_REPLAY_H

#include "routing/cost.h"
#include "routing/load_watch.h"
#include "routing/policy.h"
#include "routing/replay_set.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_replay_params {
    const akin_replay_set_t *set;
    const uint32_t *requests; /* [n_requests] of the set, those to replay */
    uint32_t n_requests;
    const char *policy;
    const akin_fit_t *fit; /* or NULL */
    double tau;
    double pull;
    const akin_placement_t *placements; /* [n_workers] of workers of several
                                           ranks; NULL: one rank each */
    uint32_t n_workers;
    uint32_t in_flight;    /* closed loop: requests per worker, on average */
    double rate;           /* open loop: requests per second; 0: closed loop */
    uint32_t max_batch;    /* most requests of a worker; 0: no limit */
    uint32_t n_measured;   /* requests that are measured */
    uint32_t n_warmup;     /* requests before them */
    akin_cost_line_t cost; /* of a step; with R ranks the experts are R times
                              those of the busiest rank of each layer */
    uint64_t seed;         /* order and arrivals of the requests, draws of the
                              policy */
    akin_load_watch_t *watch; /* of n_workers; told of the whole replay, and of
                                 the decode of the requests that ended; NULL:
                                 none */
} akin_replay_params_t;

/** Every fifth percentile, from the least value to the largest. */
#define AKIN_REPLAY_PERCENTILES 21u

/** What the measured requests saw, and the steps that ended meanwhile. */
typedef struct akin_replay_result {
    double tpot_p50_s; /* over requests: time per decode token */
    double tpot_mean_s;
    double tpot_p95_s;
    double tpot_p99_s;
    double tpot_percentiles_s[AKIN_REPLAY_PERCENTILES];
    double distinct;    /* distinct experts per layer, mean over steps */
    double busiest;     /* of the busiest rank, likewise; one rank: the same */
    double predicted;   /* what the policy expected of it; 0: it expects nothing
                         */
    double correlation; /* of expected and observed, over the steps */
    double batch;       /* requests per step, mean over steps */
    double spread;      /* most in flight on a worker over the mean, mean over
                           decisions */
    double wait_s;      /* open loop: mean wait for a worker with room */
    double seconds;     /* of replayed time */
    double n_band;      /* workers in the band, mean; 0: no band */
    double similarity;  /* cosine with the chosen centroid, mean */
    uint64_t n_steps;
    uint64_t n_tokens;
} akin_replay_result_t;

/**
 * Closed loop: n_workers x in_flight requests run at any time; the end of one
 * brings the next. Open loop: Poisson arrivals. Requests come in seeded random
 * order, pass after pass, but never while a copy of themselves runs. A request
 * is decided when it comes, joins its worker at the worker's next step, takes
 * one token per step, and its time per token counts from the decision. Prefill
 * and transfer take no time. Equal parameters give equal results.
 *
 * \param[in]  params
 * \param[out] result_p
 * \param[out] err      names what is wrong.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: too few requests to keep the pool busy without
 *         copies, sizes of 0, a request outside the set, the errors of
 *         akin_policy_create().
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_replay_run(const akin_replay_params_t *params,
                              akin_replay_result_t *result_p,
                              akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
