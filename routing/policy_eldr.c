/* Policy `eldr-static`: the least loaded of the workers whose centroids lie
 * near the request's signature (ALGORITHMS.md 4). */
#include "routing/band.h"
#include "routing/locality.h"
#include "routing/policy_impl.h"

#include <stdlib.h>

typedef struct eldr_state {
    akini_locality_t locality;
    uint32_t n_band; /* of the last decision */
} eldr_state_t;

static void destroy_eldr(void *self)
{
    eldr_state_t *state = self;
    if (state == NULL)
        return;
    akini_locality_cleanup(&state->locality);
    free(state);
}

static akin_status_t create_eldr(const akin_policy_params_t *params,
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

static uint32_t choose_eldr(const akin_policy_t *policy,
                            const akin_policy_request_t *request,
                            const uint8_t *eligible)
{
    eldr_state_t *state = policy->self;
    const float *scores = state->locality.scores;
    uint32_t n_workers = policy->params.n_workers;
    akini_locality_score(&state->locality, request->counts);
    double floor_score =
        akin_band_floor(scores, eligible, n_workers, policy->params.tau);
    state->n_band = 0;
    for (uint32_t w = 0; w < n_workers; w++)
        state->n_band += eligible[w] != 0 && (double)scores[w] >= floor_score;
    return akin_band_choose(scores, policy->in_flight, eligible, n_workers,
                            policy->params.tau);
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

const akini_policy_ops_t akini_policy_eldr_static = {
    .name = "eldr-static",
    .needs_fit = 1,
    .create = create_eldr,
    .destroy = destroy_eldr,
    .choose = choose_eldr,
    .last_choice = last_choice,
};
