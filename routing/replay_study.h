/* Replay study: several policies over the same recorded requests, each split
 * anew into those that fit and those that are measured. */
#ifndef AKIN_ROUTING_REPLAY_STUDY_H
#define AKIN_ROUTING_REPLAY_STUDY_H

#include "routing/fit_make.h"
#include "routing/replay.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One policy and what it is set to. */
typedef struct akin_replay_case {
    const char *policy;
    double tau;
    double pull;
    const char *placement; /* of akin_replay_placement_names; NULL: workers of
                              one rank */
} akin_replay_case_t;

typedef struct akin_replay_study_params {
    const akin_trace_t *trace;
    const akin_replay_set_t *set; /* of the trace */
    uint32_t prompt_tokens;       /* that the set was made with */
    const akin_replay_case_t *cases;
    uint32_t n_cases;
    uint32_t n_seeds;
    uint64_t seed;      /* of the first split; the others follow */
    const uint32_t *of; /* [n_of] requests of the set to use; NULL: all */
    uint32_t n_of;
    uint32_t n_fit;        /* requests of a split that fit */
    const akin_fit_t *fit; /* use this one instead and measure all; NULL: fit
                              each split */
    akin_fit_variant_t variant;
    uint32_t n_ranks;            /* of the cases with a placement */
    uint32_t n_replicas;         /* extra slots per layer, likewise */
    akin_replay_params_t replay; /* workers, load, step; the rest is set */
    akin_load_watch_t *const *watches; /* [n_cases] of the first seed's replays;
                                          NULL: none */
    /** Called after every replay; may be NULL. Non-zero: stop. */
    int (*progress)(void *arg, uint32_t n_done, uint32_t n_total);
    void *arg;
} akin_replay_study_params_t;

/** Fill in replay.n_measured (0: four passes over the requests that are
 * measured) and replay.n_warmup (0: three times those in flight, or in an open
 * loop three passes), as akin_replay_study_run() does by itself. */
void akin_replay_study_set_sizes(akin_replay_study_params_t *params);

/**
 * For every seed: draw n_fit requests, fit one cluster per worker with them if
 * a case needs a fit, and replay the other requests under every case, in the
 * same order.
 *
 * \param[in]  params   sizes of 0 as akin_replay_study_set_sizes() has them.
 * \param[out] results  [n_cases][n_seeds]
 * \param[out] rho      [n_seeds] of the fits; NaN: none; NULL is allowed.
 * \param[out] err
 * \return AKIN_OK
 * \return AKIN_ERR_CANCELED: progress() stopped it.
 * \return AKIN_ERR_INVALID: too few requests to fit or to measure, and the
 *         errors of akin_fit_make() and akin_replay_run().
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_replay_study_run(const akin_replay_study_params_t *params,
                                    akin_replay_result_t *results, double *rho,
                                    akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
