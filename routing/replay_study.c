/* Replay study: several policies over the same recorded requests. */
#include "routing/replay_study.h"

#include "base/rng.h"
#include "routing/replay_placement.h"

#include <math.h>
#include <stdlib.h>

enum { STREAM_SPLIT = 103 };

/* Batch that a placement is made for where nothing says how many run. */
#define OPEN_BATCH 16.0

/* Passes over the measured requests, and warm-up in multiples of the requests
 * in flight, where nothing else is asked for. */
#define PASSES 4u
#define WARMUP_FILLS 3u

static int needs_fit(const akin_replay_study_params_t *params)
{
    for (uint32_t c = 0; c < params->n_cases; c++)
        if (akin_policy_needs_fit(params->cases[c].policy) ||
            (params->cases[c].placement != NULL &&
             akin_replay_placement_needs_fit(params->cases[c].placement)))
            return 1;
    return 0;
}

static void shuffle(uint32_t *order, uint32_t n, uint64_t seed)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = (uint32_t)akin_rng_below(seed, STREAM_SPLIT, i, i);
        uint32_t kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
}

static akin_status_t make_fit(const akin_replay_study_params_t *params,
                              const uint32_t *requests, uint64_t seed,
                              akin_fit_t *fit, akin_error_t *err)
{
    uint32_t *records = malloc(params->n_fit * sizeof(*records));
    if (records == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "fit: out of memory");
    for (uint32_t i = 0; i < params->n_fit; i++)
        records[i] = params->set->requests[requests[i]].record;
    const akin_calibration_params_t which = {
        .records = records,
        .n_records = params->n_fit,
        .prompt_tokens = params->prompt_tokens,
    };
    akin_calibration_t *calibration = NULL;
    akin_status_t status =
        akin_calibration_create(params->trace, &which, &calibration, err);
    if (status == AKIN_OK) {
        const akin_fit_make_params_t make = {
            .calibration = calibration,
            .n_clusters = params->replay.n_workers,
            .variant = params->variant,
            .seed = seed,
        };
        status = akin_fit_make(&make, fit, NULL, err);
    }
    akin_calibration_destroy(calibration);
    free(records);
    return status;
}

/* In an open loop nothing says how many are in flight, but never more than
 * there are. */
void akin_replay_study_set_sizes(akin_replay_study_params_t *params)
{
    akin_replay_params_t *replay = &params->replay;
    const uint32_t n =
        params->of != NULL ? params->n_of : params->set->n_requests;
    const uint32_t n_fit = params->fit == NULL ? params->n_fit : 0;
    const uint32_t n_left = n > n_fit ? n - n_fit : 0;
    if (replay->n_measured == 0)
        replay->n_measured = PASSES * n_left;
    if (replay->n_warmup == 0)
        replay->n_warmup =
            WARMUP_FILLS * (replay->rate > 0.0
                                ? n_left
                                : replay->n_workers * replay->in_flight);
}

static akin_status_t replay_case(const akin_replay_study_params_t *params,
                                 const akin_replay_case_t *which,
                                 const akin_fit_t *fit,
                                 akin_replay_params_t *replay,
                                 akin_replay_result_t *result_p,
                                 akin_error_t *err)
{
    akin_placement_t *placements = NULL;
    akin_status_t status = AKIN_OK;
    if (which->placement != NULL) {
        const akin_replay_placement_params_t place = {
            .name = which->placement,
            .fit = fit,
            .n_workers = replay->n_workers,
            .n_layers = params->set->shape.n_layers,
            .n_experts = params->set->shape.n_experts,
            .n_ranks = params->n_ranks,
            .n_replicas = params->n_replicas,
            .batch = replay->rate > 0.0 ? OPEN_BATCH : replay->in_flight,
        };
        status = akin_replay_placement_create(&place, &placements, err);
    }
    replay->policy = which->policy;
    replay->tau = which->tau;
    replay->pull = which->pull;
    replay->fit = akin_policy_needs_fit(which->policy) ? fit : NULL;
    replay->placements = placements;
    if (status == AKIN_OK)
        status = akin_replay_run(replay, result_p, err);
    akin_replay_placement_destroy(placements, replay->n_workers);
    return status;
}

static akin_status_t replay_cases(const akin_replay_study_params_t *params,
                                  const uint32_t *requests, uint32_t n_requests,
                                  const akin_fit_t *fit, uint32_t s,
                                  akin_replay_result_t *results,
                                  akin_error_t *err)
{
    akin_replay_params_t replay = params->replay;
    replay.set = params->set;
    replay.requests = requests;
    replay.n_requests = n_requests;
    replay.seed = params->seed + s;
    for (uint32_t c = 0; c < params->n_cases; c++) {
        replay.watch =
            params->watches != NULL && s == 0 ? params->watches[c] : NULL;
        akin_status_t status =
            replay_case(params, &params->cases[c], fit, &replay,
                        &results[(size_t)c * params->n_seeds + s], err);
        if (status != AKIN_OK)
            return status;
        if (params->progress != NULL &&
            params->progress(params->arg, s * params->n_cases + c + 1,
                             params->n_seeds * params->n_cases))
            return akin_error_set(err, AKIN_ERR_CANCELED, "stopped");
    }
    return AKIN_OK;
}

static akin_status_t run_split(const akin_replay_study_params_t *params,
                               uint32_t *order, uint32_t n, uint32_t s,
                               akin_replay_result_t *results, double *rho,
                               akin_error_t *err)
{
    const int fits = params->fit == NULL && needs_fit(params);
    const uint32_t n_fit = params->fit == NULL ? params->n_fit : 0;
    for (uint32_t i = 0; i < n; i++)
        order[i] = params->of != NULL ? params->of[i] : i;
    shuffle(order, n, params->seed + s);
    akin_fit_t fit = {0};
    akin_status_t status = AKIN_OK;
    if (fits)
        status = make_fit(params, order, params->seed + s, &fit, err);
    if (status == AKIN_OK) {
        if (rho != NULL)
            rho[s] = fits ? fit.rho : NAN;
        status = replay_cases(params, order + n_fit, n - n_fit,
                              fits ? &fit : params->fit, s, results, err);
    }
    akin_fit_cleanup(&fit);
    return status;
}

akin_status_t akin_replay_study_run(const akin_replay_study_params_t *given,
                                    akin_replay_result_t *results, double *rho,
                                    akin_error_t *err)
{
    akin_replay_study_params_t sized = *given;
    const akin_replay_study_params_t *params = &sized;
    akin_replay_study_set_sizes(&sized);
    const uint32_t n =
        params->of != NULL ? params->n_of : params->set->n_requests;
    if (params->fit == NULL && params->n_fit == 0 && needs_fit(params))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "no requests for fitting, but a policy needs a "
                              "fit");
    if (params->fit == NULL && params->n_fit >= n)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%u of %u requests for fitting leave none to "
                              "measure",
                              params->n_fit, n);
    uint32_t *order = calloc(n, sizeof(*order));
    if (order == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "replay: out of memory");
    akin_status_t status = AKIN_OK;
    for (uint32_t s = 0; s < params->n_seeds && status == AKIN_OK; s++)
        status = run_split(params, order, n, s, results, rho, err);
    free(order);
    return status;
}
