/* Sim decode: what a step activates and how long it takes. */
#include "routing/sim_decode.h"

#include "ep/placement_choice.h"

#include <stdlib.h>
#include <string.h>

akin_status_t akini_sim_decode_init(akini_sim_decode_t *decode,
                                    const akin_sim_params_t *params,
                                    akini_sim_requests_t *requests)
{
    const uint32_t n_experts = params->cost.shape->n_experts;
    *decode = (akini_sim_decode_t){.params = params, .requests = requests};
    decode->workers = calloc(params->n_decode, sizeof(*decode->workers));
    decode->eligible = calloc(params->n_decode, sizeof(*decode->eligible));
    decode->active = calloc((n_experts + 63) / 64, sizeof(*decode->active));
    decode->rank_of = calloc(n_experts, sizeof(*decode->rank_of));
    return decode->workers != NULL && decode->eligible != NULL &&
                   decode->active != NULL && decode->rank_of != NULL
               ? AKIN_OK
               : AKIN_ERR_NOMEM;
}

void akini_sim_decode_cleanup(akini_sim_decode_t *decode)
{
    for (uint32_t w = 0;
         decode->workers != NULL && w < decode->params->n_decode; w++)
        free(decode->workers[w].members);
    free(decode->workers);
    free(decode->eligible);
    free(decode->active);
    free(decode->rank_of);
}

int akini_sim_decode_find_room(akini_sim_decode_t *decode, uint64_t tokens)
{
    const akin_sim_params_t *params = decode->params;
    int has_room = 0;
    for (uint32_t w = 0; w < params->n_decode; w++) {
        const akini_sim_worker_t *worker = &decode->workers[w];
        decode->eligible[w] = (params->max_batch == 0 ||
                               worker->n_assigned < params->max_batch) &&
                              (params->kv_tokens == 0 ||
                               worker->kv_tokens + tokens <= params->kv_tokens);
        has_room |= decode->eligible[w];
    }
    return has_room;
}

akin_status_t akini_sim_decode_join(akini_sim_decode_t *decode, uint32_t w,
                                    uint32_t slot)
{
    akini_sim_worker_t *worker = &decode->workers[w];
    const uint32_t n = worker->n_running + worker->n_waiting;
    if (n == worker->capacity) {
        const uint32_t capacity = 2 * n + 16;
        uint32_t *members =
            realloc(worker->members, capacity * sizeof(*members));
        if (members == NULL)
            return AKIN_ERR_NOMEM;
        worker->members = members;
        worker->capacity = capacity;
    }
    worker->members[n] = slot;
    worker->n_waiting++;
    return AKIN_OK;
}

/* The token of a request in a layer. */
static void draw(akini_sim_decode_t *decode, akini_sim_request_t *request,
                 uint32_t layer)
{
    const akin_model_shape_t *shape = decode->params->cost.shape;
    uint16_t experts[AKIN_ROUTE_MAX_TOP_K];
    uint16_t *counts = request->counts + (size_t)layer * shape->n_experts;
    akin_route_draw(decode->params->generator, &request->route, request->urn,
                    request->route.n_prompt + request->n_done - 1, layer,
                    experts);
    for (uint32_t i = 0; i < shape->top_k; i++) {
        decode->active[experts[i] / 64] |= UINT64_C(1) << experts[i] % 64;
        counts[experts[i]]++;
    }
}

static void activate(akini_sim_decode_t *decode, uint32_t w)
{
    const akin_sim_params_t *params = decode->params;
    const akin_model_shape_t *shape = params->cost.shape;
    const uint32_t n_words = (shape->n_experts + 63) / 64;
    akini_sim_worker_t *worker = &decode->workers[w];
    uint32_t loads[AKIN_PLACEMENT_MAX_RANKS];
    uint32_t distinct = 0, busiest = 0;
    for (uint32_t l = 0; l < shape->n_layers; l++) {
        memset(decode->active, 0, n_words * sizeof(*decode->active));
        for (uint32_t i = 0; i < worker->n_running; i++)
            draw(decode, &decode->requests->slots[worker->members[i]], l);
        for (uint32_t j = 0; j < n_words; j++)
            distinct += (uint32_t)__builtin_popcountll(decode->active[j]);
        if (params->placements != NULL)
            busiest += akin_placement_choose(
                akin_placement_layer(&params->placements[w], l), decode->active,
                shape->n_experts, params->placements[w].n_ranks,
                decode->rank_of, loads);
    }
    worker->distinct = distinct;
    worker->busiest = params->placements != NULL ? busiest : distinct;
}

/* The ranks of a worker share its attention by heads; each adds what its
 * experts give to the hidden vectors of all tokens, there and back. The busiest
 * rank has that part of the choices which it has of the experts. */
static double step_seconds(const akini_sim_decode_t *decode,
                           const akini_sim_worker_t *worker, uint64_t context)
{
    const akin_sim_params_t *params = decode->params;
    const akin_model_shape_t *shape = params->cost.shape;
    const uint32_t n_ranks = params->n_ranks > 1 ? params->n_ranks : 1;
    akin_cost_step_t step = {
        .batch = worker->n_running,
        .context_tokens = context,
        .distinct = worker->busiest / shape->n_layers,
        .choices = (double)worker->n_running * shape->top_k * worker->busiest /
                   worker->distinct,
        .tensor_ranks = n_ranks,
    };
    if (n_ranks > 1)
        step.exchange_bytes = (uint64_t)2 * shape->n_layers *
                              worker->n_running * shape->wire_bytes *
                              (n_ranks - 1) / n_ranks;
    return akin_cost_model_step(&params->cost, &step, NULL);
}

int akini_sim_decode_start(akini_sim_decode_t *decode, uint32_t w)
{
    akini_sim_worker_t *worker = &decode->workers[w];
    uint64_t context = 0;
    worker->n_running += worker->n_waiting;
    worker->n_waiting = 0;
    worker->is_stepping = worker->n_running > 0;
    if (!worker->is_stepping)
        return 0;
    for (uint32_t i = 0; i < worker->n_running; i++) {
        const akini_sim_request_t *request =
            &decode->requests->slots[worker->members[i]];
        context += request->route.n_prompt + request->n_done;
    }
    activate(decode, w);
    worker->seconds = step_seconds(decode, worker, context);
    return 1;
}
