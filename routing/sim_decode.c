/* Sim decode: what a step activates and how long it takes. */
#include "routing/sim_decode.h"

#include "ep/placement_choice.h"
#include "routing/worker_cost.h"

#include <stdlib.h>
#include <string.h>

akin_status_t akini_sim_decode_init(akini_sim_decode_t *decode,
                                    const akin_sim_params_t *params,
                                    akini_sim_requests_t *requests)
{
    const uint32_t n = params->n_decode;
    *decode = (akini_sim_decode_t){
        .params = params,
        .requests = requests,
        .workers = calloc(n, sizeof(*decode->workers)),
        .n_assigned = calloc(n, sizeof(*decode->n_assigned)),
        .kv_tokens = calloc(n, sizeof(*decode->kv_tokens)),
        .alive = calloc(n, sizeof(*decode->alive)),
        .open = calloc(n, sizeof(*decode->open)),
        .eligible = calloc(n, sizeof(*decode->eligible)),
        .seen = calloc(params->pool->n_entries, sizeof(*decode->seen)),
        .rank_of = calloc(params->pool->n_experts, sizeof(*decode->rank_of)),
    };
    if (decode->workers == NULL || decode->n_assigned == NULL ||
        decode->kv_tokens == NULL || decode->alive == NULL ||
        decode->open == NULL || decode->eligible == NULL ||
        decode->seen == NULL || decode->rank_of == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t w = 0; w < n; w++)
        akini_sim_decode_allow(decode, w, true);
    return akini_sim_marks_init(&decode->marks, params->pool);
}

void akini_sim_decode_cleanup(akini_sim_decode_t *decode)
{
    for (uint32_t w = 0;
         decode->workers != NULL && w < decode->params->n_decode; w++)
        free(decode->workers[w].members);
    akini_sim_marks_cleanup(&decode->marks);
    free(decode->workers);
    free(decode->n_assigned);
    free(decode->kv_tokens);
    free(decode->alive);
    free(decode->open);
    free(decode->eligible);
    free(decode->seen);
    free(decode->rank_of);
}

static void find_open(akini_sim_decode_t *decode, uint32_t w)
{
    const uint32_t most = decode->params->max_batch;
    const uint8_t is_open =
        decode->alive[w] != 0 && (most == 0 || decode->n_assigned[w] < most);
    decode->n_open += (uint32_t)is_open - decode->open[w];
    decode->open[w] = is_open;
}

const uint8_t *akini_sim_decode_find_room(akini_sim_decode_t *decode,
                                          uint64_t tokens)
{
    const uint32_t n = decode->params->n_decode;
    const uint64_t limit = decode->params->kv_tokens;
    uint8_t has_room = 0;
    if (limit == 0)
        return decode->n_open > 0 ? decode->open : NULL;
    for (uint32_t w = 0; w < n; w++) {
        const uint8_t fits = decode->kv_tokens[w] + tokens <= limit;
        decode->eligible[w] = decode->open[w] & fits;
        has_room |= decode->eligible[w];
    }
    return has_room != 0 ? decode->eligible : NULL;
}

void akini_sim_decode_assign(akini_sim_decode_t *decode, uint32_t w,
                             uint64_t tokens)
{
    decode->n_assigned[w]++;
    decode->kv_tokens[w] += tokens;
    find_open(decode, w);
}

void akini_sim_decode_release(akini_sim_decode_t *decode, uint32_t w,
                              uint64_t tokens)
{
    decode->n_assigned[w]--;
    decode->kv_tokens[w] -= tokens;
    find_open(decode, w);
}

void akini_sim_decode_allow(akini_sim_decode_t *decode, uint32_t w,
                            bool is_allowed)
{
    decode->alive[w] = is_allowed;
    find_open(decode, w);
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

/* Another number for every step. */
static void number_step(akini_sim_decode_t *decode)
{
    if (++decode->n_steps > 0)
        return;
    memset(decode->seen, 0,
           decode->params->pool->n_entries * sizeof(*decode->seen));
    decode->n_steps = 1;
}

/* Was a request of that entry in the step before? */
static bool is_copy(akini_sim_decode_t *decode, uint32_t entry)
{
    const bool was_seen = decode->seen[entry] == decode->n_steps;
    decode->seen[entry] = decode->n_steps;
    return was_seen;
}

/* Marks the experts, and finds copies; gives the tokens of context. */
static uint64_t mark(akini_sim_decode_t *decode, akini_sim_worker_t *worker)
{
    const akin_route_pool_t *pool = decode->params->pool;
    const akini_sim_request_t *slots = decode->requests->slots;
    const bool may_be_twice = decode->requests->n_twice > 0;
    uint64_t context = 0;
    worker->has_copies = false;
    number_step(decode);
    akini_sim_marks_clear(&decode->marks);
    for (uint32_t i = 0; i < worker->n_running; i++) {
        const akini_sim_request_t *request = &slots[worker->members[i]];
        context += request->n_prompt + request->n_done;
        if (may_be_twice)
            worker->has_copies |= is_copy(decode, request->entry);
        akini_sim_marks_add(&decode->marks, pool, request->row);
    }
    return context;
}

static uint32_t find_busiest(akini_sim_decode_t *decode, uint32_t w)
{
    const akin_route_pool_t *pool = decode->params->pool;
    const akin_placement_t *placement = &decode->params->placements[w];
    uint32_t loads[AKIN_PLACEMENT_MAX_RANKS];
    uint32_t busiest = 0;
    for (uint32_t l = 0; l < pool->n_layers; l++)
        busiest += akin_placement_choose(
            akin_placement_layer(placement, l),
            akini_sim_marks_layer(&decode->marks, pool, l), pool->n_experts,
            placement->n_ranks, decode->rank_of, loads);
    return busiest;
}

int akini_sim_decode_start(akini_sim_decode_t *decode, uint32_t w)
{
    akini_sim_worker_t *worker = &decode->workers[w];
    worker->n_running += worker->n_waiting;
    worker->n_waiting = 0;
    worker->is_stepping = worker->n_running > 0;
    if (!worker->is_stepping)
        return 0;
    const uint64_t context = mark(decode, worker);
    const uint32_t distinct = akini_sim_marks_count(&decode->marks);
    const uint32_t busiest =
        decode->params->placements != NULL ? find_busiest(decode, w) : distinct;
    const akin_worker_step_t step = {
        .n_ranks = decode->params->n_ranks,
        .batch = worker->n_running,
        .context_tokens = context,
        .distinct = distinct,
        .busiest = busiest,
    };
    worker->distinct = distinct;
    worker->busiest = busiest;
    worker->seconds = akin_worker_cost_step(&decode->params->cost, &step);
    return 1;
}

void akini_sim_decode_die(akini_sim_decode_t *decode, uint32_t w)
{
    akini_sim_worker_t *worker = &decode->workers[w];
    worker->is_dead = true;
    worker->is_stepping = false;
    worker->epoch++;
    worker->n_running = 0;
    worker->n_waiting = 0;
}
