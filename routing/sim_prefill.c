/* Sim prefill: who prefills a prompt, and for how long. */
#include "routing/sim_prefill.h"

#include "routing/worker_cost.h"

#include <stdlib.h>

/* A token id has four bytes in the hash of a prompt. */
#define HASHED_TOKENS (AKIN_PREFIX_HASH_BYTES / 4)

/* Prompts of one step at most, as in a job. */
#define MAX_PROMPTS 64u

akin_status_t akini_sim_prefill_init(akini_sim_prefill_t *prefill,
                                     const akin_sim_params_t *params,
                                     akini_sim_requests_t *requests,
                                     akin_error_t *err)
{
    const uint32_t n = params->n_prefill;
    *prefill = (akini_sim_prefill_t){
        .params = params,
        .requests = requests,
        .workers = calloc(n, sizeof(*prefill->workers)),
        .loads = calloc(n, sizeof(*prefill->loads)),
        .eligible = calloc(n, sizeof(*prefill->eligible)),
    };
    if (prefill->workers == NULL || prefill->loads == NULL ||
        prefill->eligible == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t w = 0; w < n; w++) {
        prefill->workers[w].queue.head = AKINI_SIM_NONE;
        prefill->workers[w].cache.max_tokens = params->cache_tokens;
        akini_sim_prefill_allow(prefill, w, true);
    }
    if (params->prefill_router != AKIN_SIM_PREFIX_HASH)
        return AKIN_OK;
    return akin_prefix_router_create(n, NULL, &prefill->prefix, err);
}

void akini_sim_prefill_cleanup(akini_sim_prefill_t *prefill)
{
    for (uint32_t w = 0;
         prefill->workers != NULL && w < prefill->params->n_prefill; w++)
        akini_sim_cache_clear(&prefill->workers[w].cache);
    akin_prefix_router_destroy(prefill->prefix);
    free(prefill->workers);
    free(prefill->loads);
    free(prefill->eligible);
}

/* A domain's number, or behind these an entry's. */
static uint64_t key_of_entry(const akin_route_pool_t *pool, uint32_t entry)
{
    return (uint64_t)pool->n_domains + entry;
}

/* Prompts hash alike if their first tokens are the same: those of an entry, or
 * of a domain that shares so many. A number stands for the tokens. */
static uint32_t find_owner(const akini_sim_prefill_t *prefill, uint32_t entry)
{
    const akin_route_pool_t *pool = prefill->params->pool;
    const uint64_t key = pool->shared_tokens >= HASHED_TOKENS
                             ? pool->entries[entry].domain
                             : key_of_entry(pool, entry);
    uint32_t worker;
    akin_prefix_router_decide_text(prefill->prefix, (const char *)&key,
                                   sizeof(key), prefill->loads,
                                   prefill->eligible, &worker);
    return worker;
}

uint32_t akini_sim_prefill_assign(akini_sim_prefill_t *prefill, uint32_t slot)
{
    akini_sim_request_t *request = &prefill->requests->slots[slot];
    uint32_t best = AKINI_SIM_NONE;
    if (prefill->prefix != NULL) {
        best = find_owner(prefill, request->entry);
    } else {
        for (uint32_t w = 0; w < prefill->params->n_prefill; w++)
            if (prefill->eligible[w] != 0 &&
                (best == AKINI_SIM_NONE ||
                 prefill->loads[w] < prefill->loads[best]))
                best = w;
    }
    akini_sim_queue_put(&prefill->workers[best].queue, prefill->requests, slot);
    prefill->loads[best] += request->n_start;
    request->n_filled = request->n_chunk = 0;
    request->prefill = best;
    request->state = AKINI_SIM_PREFILL;
    return best;
}

/* What a worker need not compute of a prompt; at least one token is. */
static uint32_t find_cached(const akini_sim_prefill_t *prefill,
                            akini_sim_prefiller_t *worker,
                            const akini_sim_request_t *request)
{
    const akin_route_pool_t *pool = prefill->params->pool;
    const uint32_t domain = pool->entries[request->entry].domain;
    if (worker->cache.max_tokens == 0)
        return 0;
    /* The rest of a prompt goes before what others share with it. */
    const uint32_t own =
        akini_sim_cache_use(&worker->cache, key_of_entry(pool, request->entry));
    uint32_t n = akini_sim_cache_use(&worker->cache, domain);
    if (n == pool->shared_tokens)
        n += own;
    return n < request->n_start ? n : request->n_start - 1;
}

int akini_sim_prefill_start(akini_sim_prefill_t *prefill, uint32_t w,
                            double *seconds_p)
{
    akini_sim_prefiller_t *worker = &prefill->workers[w];
    const akin_sim_params_t *params = prefill->params;
    uint32_t left =
        params->chunk_tokens > 0 ? params->chunk_tokens : UINT32_MAX;
    uint32_t n_tokens = 0;
    double context = 0.0;
    if (worker->is_dead || worker->n_running > 0)
        return 0;
    for (uint32_t slot = worker->queue.head;
         slot != AKINI_SIM_NONE && left > 0 && worker->n_running < MAX_PROMPTS;
         slot = prefill->requests->slots[slot].next) {
        akini_sim_request_t *request = &prefill->requests->slots[slot];
        if (request->n_filled == 0)
            request->n_filled = request->n_cached =
                find_cached(prefill, worker, request);
        const uint32_t n = request->n_start - request->n_filled;
        request->n_chunk = n < left ? n : left;
        context += (double)request->n_chunk * request->n_filled;
        left -= request->n_chunk;
        n_tokens += request->n_chunk;
        worker->n_running++;
    }
    if (n_tokens == 0)
        return 0;
    *seconds_p =
        akin_worker_cost_prefill(&params->cost, params->n_ranks, n_tokens,
                                 (uint64_t)(context / n_tokens));
    return 1;
}

void akini_sim_prefill_end(akini_sim_prefill_t *prefill, uint32_t w)
{
    akini_sim_prefiller_t *worker = &prefill->workers[w];
    uint32_t slot = worker->queue.head;
    for (; worker->n_running > 0; worker->n_running--) {
        akini_sim_request_t *request = &prefill->requests->slots[slot];
        request->n_filled += request->n_chunk;
        request->n_chunk = 0;
        slot = request->next;
    }
}

akin_status_t akini_sim_prefill_take(akini_sim_prefill_t *prefill, uint32_t w,
                                     uint32_t *slot_p)
{
    akini_sim_prefiller_t *worker = &prefill->workers[w];
    const akin_route_pool_t *pool = prefill->params->pool;
    const uint32_t slot = worker->queue.head;
    *slot_p = AKINI_SIM_NONE;
    if (slot == AKINI_SIM_NONE || prefill->requests->slots[slot].n_filled <
                                      prefill->requests->slots[slot].n_start)
        return AKIN_OK;
    const akini_sim_request_t *request = &prefill->requests->slots[slot];
    *slot_p = akini_sim_queue_take(&worker->queue, prefill->requests);
    prefill->loads[w] -= request->n_start;
    if (worker->cache.max_tokens == 0)
        return AKIN_OK;
    const akin_route_entry_t *entry = &pool->entries[request->entry];
    const akin_status_t status =
        akini_sim_cache_add(&worker->cache, key_of_entry(pool, request->entry),
                            entry->n_prompt - pool->shared_tokens);
    return status == AKIN_OK
               ? akini_sim_cache_add(&worker->cache, entry->domain,
                                     pool->shared_tokens)
               : status;
}

void akini_sim_prefill_die(akini_sim_prefill_t *prefill, uint32_t w)
{
    akini_sim_prefiller_t *worker = &prefill->workers[w];
    worker->is_dead = true;
    worker->epoch++;
    worker->queue = (akini_sim_queue_t){AKINI_SIM_NONE, AKINI_SIM_NONE};
    worker->n_running = 0;
    akini_sim_cache_clear(&worker->cache);
}

void akini_sim_prefill_allow(akini_sim_prefill_t *prefill, uint32_t w,
                             bool is_allowed)
{
    prefill->n_eligible += (uint32_t)is_allowed - prefill->eligible[w];
    prefill->eligible[w] = is_allowed;
}
