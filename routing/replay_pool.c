/* Replay pool: decode workers and the recorded requests that run on them. */
#include "routing/replay_pool.h"

#include "ep/placement_choice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

akin_status_t akini_replay_pool_init(akini_replay_pool_t *pool,
                                     const akin_replay_params_t *params)
{
    *pool = (akini_replay_pool_t){.params = params};
    pool->workers = calloc(params->n_workers, sizeof(*pool->workers));
    pool->eligible = calloc(params->n_workers, sizeof(*pool->eligible));
    pool->active = calloc(params->set->n_words, sizeof(*pool->active));
    pool->rank_of =
        calloc(params->set->shape.n_experts, sizeof(*pool->rank_of));
    if (pool->workers == NULL || pool->eligible == NULL ||
        pool->active == NULL || pool->rank_of == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t w = 0; w < params->n_workers; w++)
        pool->workers[w].end_s = INFINITY;
    return AKIN_OK;
}

void akini_replay_pool_cleanup(akini_replay_pool_t *pool)
{
    for (uint32_t w = 0; pool->workers != NULL && w < pool->params->n_workers;
         w++)
        free(pool->workers[w].members);
    free(pool->workers);
    free(pool->eligible);
    free(pool->active);
    free(pool->rank_of);
    free(pool->ended);
}

const akin_replay_request_t *
akini_replay_pool_request(const akini_replay_pool_t *pool,
                          const akini_replay_member_t *member)
{
    const akin_replay_params_t *params = pool->params;
    return &params->set->requests[params->requests[member->request]];
}

int akini_replay_pool_find_room(akini_replay_pool_t *pool)
{
    const uint32_t max_batch = pool->params->max_batch;
    int has_room = 0;
    for (uint32_t w = 0; w < pool->params->n_workers; w++) {
        const akini_replay_worker_t *worker = &pool->workers[w];
        pool->eligible[w] =
            max_batch == 0 || worker->n_running + worker->n_waiting < max_batch;
        has_room |= pool->eligible[w];
    }
    return has_room;
}

/* Room for n members. */
static akin_status_t reserve(akini_replay_member_t **members_p,
                             uint32_t *capacity_p, uint32_t n)
{
    if (n <= *capacity_p)
        return AKIN_OK;
    const uint32_t capacity = 2 * n + 16;
    akini_replay_member_t *members =
        realloc(*members_p, capacity * sizeof(*members));
    if (members == NULL)
        return AKIN_ERR_NOMEM;
    *members_p = members;
    *capacity_p = capacity;
    return AKIN_OK;
}

akin_status_t akini_replay_pool_join(akini_replay_pool_t *pool, uint32_t w,
                                     const akini_replay_member_t *member,
                                     double now_s)
{
    akini_replay_worker_t *worker = &pool->workers[w];
    const uint32_t n = worker->n_running + worker->n_waiting;
    akin_status_t status = reserve(&worker->members, &worker->capacity, n + 1);
    /* All of them may end with one step. */
    if (status == AKIN_OK)
        status = reserve(&pool->ended, &pool->ended_capacity, n + 1);
    if (status != AKIN_OK)
        return status;
    worker->members[n] = *member;
    worker->n_waiting++;
    pool->n_in_flight++;
    if (isinf(worker->end_s))
        akini_replay_pool_start_step(pool, w, now_s);
    return AKIN_OK;
}

uint32_t akini_replay_pool_first(const akini_replay_pool_t *pool)
{
    uint32_t first = 0;
    for (uint32_t w = 1; w < pool->params->n_workers; w++)
        if (pool->workers[w].end_s < pool->workers[first].end_s)
            first = w;
    return first;
}

/* Experts of the busiest rank of each layer of the step, over the layers. */
static uint32_t count_busiest(const akini_replay_pool_t *pool, uint32_t w)
{
    const akin_replay_set_t *set = pool->params->set;
    const akin_placement_t *placement = &pool->params->placements[w];
    uint32_t loads[AKIN_PLACEMENT_MAX_RANKS];
    uint32_t busiest = 0;
    for (uint32_t l = 0; l < set->shape.n_layers; l++)
        busiest += akin_placement_choose(
            akin_placement_layer(placement, l),
            pool->active + (size_t)l * set->n_layer_words, set->shape.n_experts,
            placement->n_ranks, pool->rank_of, loads);
    return busiest;
}

void akini_replay_pool_start_step(akini_replay_pool_t *pool, uint32_t w,
                                  double now_s)
{
    akini_replay_worker_t *worker = &pool->workers[w];
    worker->n_running += worker->n_waiting;
    worker->n_waiting = 0;
    if (worker->n_running == 0) {
        worker->end_s = INFINITY;
        return;
    }
    const uint32_t n_words = pool->params->set->n_words;
    memset(pool->active, 0, n_words * sizeof(*pool->active));
    for (uint32_t i = 0; i < worker->n_running; i++) {
        const akini_replay_member_t *member = &worker->members[i];
        const uint64_t *token =
            akini_replay_pool_request(pool, member)->active +
            (size_t)member->n_done * n_words;
        for (uint32_t j = 0; j < n_words; j++)
            pool->active[j] |= token[j];
    }
    uint32_t distinct = 0;
    for (uint32_t j = 0; j < n_words; j++)
        distinct += (uint32_t)__builtin_popcountll(pool->active[j]);
    worker->distinct = distinct;
    worker->busiest =
        pool->params->placements == NULL ? distinct : count_busiest(pool, w);
    worker->end_s = now_s + akini_replay_pool_step_seconds(pool, w);
}

void akini_replay_pool_end_step(akini_replay_pool_t *pool, uint32_t w)
{
    akini_replay_worker_t *worker = &pool->workers[w];
    const uint32_t n_running = worker->n_running;
    uint32_t n_kept = 0;
    pool->n_ended = 0;
    for (uint32_t i = 0; i < n_running; i++) {
        akini_replay_member_t member = worker->members[i];
        if (++member.n_done ==
            akini_replay_pool_request(pool, &member)->n_decode)
            pool->ended[pool->n_ended++] = member;
        else
            worker->members[n_kept++] = member;
    }
    memmove(worker->members + n_kept, worker->members + n_running,
            worker->n_waiting * sizeof(*worker->members));
    worker->n_running = n_kept;
    pool->n_in_flight -= pool->n_ended;
}

double akini_replay_pool_step_seconds(const akini_replay_pool_t *pool,
                                      uint32_t w)
{
    const akini_replay_worker_t *worker = &pool->workers[w];
    const akin_placement_t *placements = pool->params->placements;
    const uint32_t n_ranks = placements != NULL ? placements->n_ranks : 1;
    return akin_cost_seconds(&pool->params->cost, n_ranks * worker->busiest,
                             worker->n_running);
}
