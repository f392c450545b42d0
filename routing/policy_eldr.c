/* Policies `eldr-static` and `eldr`: the least loaded of the workers whose
 * centroids lie near the request's signature (ALGORITHMS.md 4). `eldr` fits
 * the centroids to the traffic again and again. */
#include "routing/band.h"
#include "routing/locality.h"
#include "routing/policy_impl.h"
#include "routing/refit.h"

#include <stdlib.h>

typedef struct eldr_state {
    akini_locality_t locality;
    akini_refit_t *refit; /* NULL: the centroids stay */
    uint32_t n_band;      /* of the last decision */
} eldr_state_t;

static void destroy_eldr(void *self)
{
    eldr_state_t *state = self;
    if (state == NULL)
        return;
    akini_refit_destroy(state->refit);
    akini_locality_cleanup(&state->locality);
    free(state);
}

static akin_status_t create_static(const akin_policy_params_t *params,
                                   void **self_p)
{
    eldr_state_t *state = calloc(1, sizeof(*state));
    if (state == NULL)
        return AKIN_ERR_NOMEM;
    akin_status_t status = akini_locality_init(&state->locality, params->fit);
    if (status != AKIN_OK) {
        free(state);
        return status;
    }
    *self_p = state;
    return AKIN_OK;
}

static akin_status_t create_eldr(const akin_policy_params_t *params,
                                 void **self_p)
{
    const akini_refit_params_t refit = {
        .n_workers = params->n_workers,
        .dim = params->fit->dim,
        .centroids = params->fit->centroids,
        .is_inline = params->refit_inline,
    };
    void *self = NULL;
    akin_status_t status = create_static(params, &self);
    if (status != AKIN_OK)
        return status;
    eldr_state_t *state = self;
    status = akini_refit_create(&refit, &state->refit);
    if (status != AKIN_OK) {
        destroy_eldr(state);
        return status;
    }
    *self_p = state;
    return AKIN_OK;
}

static uint32_t choose_in_band(const akin_policy_t *policy,
                               const uint8_t *eligible)
{
    eldr_state_t *state = policy->self;
    const float *scores = state->locality.scores;
    uint32_t n_workers = policy->params.n_workers;
    double floor_score =
        akin_band_floor(scores, eligible, n_workers, policy->params.tau);
    state->n_band = 0;
    for (uint32_t w = 0; w < n_workers; w++)
        state->n_band += eligible[w] != 0 && (double)scores[w] >= floor_score;
    return akin_band_choose(scores, policy->in_flight, eligible, n_workers,
                            policy->params.tau);
}

static uint32_t choose_static(const akin_policy_t *policy,
                              const akin_policy_request_t *request,
                              const uint8_t *eligible)
{
    eldr_state_t *state = policy->self;
    akini_locality_scores(&state->locality, request->counts);
    return choose_in_band(policy, eligible);
}

/* A request that no worker can take comes again, and is noted then. */
static uint32_t choose_eldr(const akin_policy_t *policy,
                            const akin_policy_request_t *request,
                            const uint8_t *eligible)
{
    eldr_state_t *state = policy->self;
    if (akini_policy_nth_eligible(policy, eligible, 0) ==
        AKIN_ROUTING_NO_WORKER)
        return AKIN_ROUTING_NO_WORKER;
    state->locality.centroids =
        akini_refit_install(state->refit, request->now_ns);
    akini_locality_score(&state->locality, request->counts);
    akini_refit_note(state->refit, request->now_ns, state->locality.signature);
    return choose_in_band(policy, eligible);
}

static akin_policy_choice_t last_choice(const akin_policy_t *policy)
{
    const eldr_state_t *state = policy->self;
    if (policy->last_worker == AKIN_ROUTING_NO_WORKER)
        return (akin_policy_choice_t){0};
    return (akin_policy_choice_t){
        .n_band = state->n_band,
        .similarity = (double)state->locality.scores[policy->last_worker],
    };
}

static akin_policy_refits_t refits(const void *self)
{
    const eldr_state_t *state = self;
    return akini_refit_counts(state->refit);
}

const akini_policy_ops_t akini_policy_eldr_static = {
    .name = "eldr-static",
    .needs_fit = 1,
    .create = create_static,
    .destroy = destroy_eldr,
    .choose = choose_static,
    .last_choice = last_choice,
};

const akini_policy_ops_t akini_policy_eldr = {
    .name = "eldr",
    .needs_fit = 1,
    .create = create_eldr,
    .destroy = destroy_eldr,
    .choose = choose_eldr,
    .last_choice = last_choice,
    .refits = refits,
};
