/* Sim steps: requests join the batches of their workers and take tokens. */
#include "routing/sim_state.h"

#include <string.h>

enum { LINE_BYTES = 64, SLOTS_AHEAD = 6 };

static akin_status_t start_step(akini_sim_t *s, uint32_t w)
{
    akini_sim_worker_t *worker = &s->decode.workers[w];
    const int is_stepping = akini_sim_decode_start(&s->decode, w);
    if (s->params->watch != NULL)
        akin_load_watch_set(s->params->watch, w, s->now_s, worker->n_running);
    if (!is_stepping)
        return AKIN_OK;
    return akini_sim_heap_put(&s->heap, s->now_s + worker->seconds,
                              AKINI_SIM_STEP, w, worker->epoch);
}

akin_status_t akini_sim_join(akini_sim_t *s, uint32_t slot)
{
    akini_sim_request_t *request = &s->requests.slots[slot];
    const akin_route_pool_t *pool = s->params->pool;
    const uint32_t w = request->decode;
    /* Its sender died meanwhile: it waits to be found lost. */
    if (s->prefill.workers[request->prefill].is_dead)
        return AKIN_OK;
    const size_t row = pool->entries[request->entry].row + request->n_done - 1;
    request->row = pool->ids + row * akin_route_pool_row_bytes(pool);
    request->state = AKINI_SIM_DECODE;
    const akin_status_t status = akini_sim_decode_join(&s->decode, w, slot);
    const akini_sim_worker_t *worker = &s->decode.workers[w];
    if (status != AKIN_OK || worker->is_stepping || worker->is_dead)
        return status;
    return start_step(s, w);
}

/* What the request chose on this worker. */
static void watch_experts(akini_sim_t *s, const akini_sim_request_t *request)
{
    const akin_route_pool_t *pool = s->params->pool;
    const size_t cells = akin_route_pool_cells(pool);
    const uint32_t from = request->n_start - request->n_prompt;
    const uint16_t *counts = s->counts;
    if (s->params->watch == NULL || request->decode >= AKIN_LOAD_WATCH_WORKERS)
        return;
    if (from == 0 && pool->decode_counts != NULL) {
        counts = pool->decode_counts + request->entry * cells;
    } else {
        memset(s->counts, 0, cells * sizeof(*s->counts));
        akin_route_pool_count(pool, request->entry, from,
                              request->n_output - 1 - from, s->counts);
    }
    akin_load_watch_add(s->params->watch, request->decode, counts);
}

static akin_status_t leave(akini_sim_t *s, uint32_t slot)
{
    const akini_sim_request_t *request = &s->requests.slots[slot];
    const akin_route_pool_t *pool = s->params->pool;
    akin_policy_finish(s->policy, request->id);
    if (pool->decode_counts != NULL)
        akin_policy_observe_counts(
            s->policy,
            pool->decode_counts + request->entry * akin_route_pool_cells(pool),
            request->n_output - 1);
    watch_experts(s, request);
    akini_sim_decode_release(&s->decode, request->decode,
                             (uint64_t)request->n_prompt + request->n_output);
    return akini_sim_end(s, slot);
}

static void observe_step(akini_sim_t *s, uint32_t w)
{
    const akini_sim_worker_t *worker = &s->decode.workers[w];
    const akin_policy_step_t step = {.batch = worker->n_running,
                                     .distinct = worker->busiest,
                                     .seconds = worker->seconds};
    akin_policy_observe(s->policy, w, &step);
    if (akini_sim_is_counting(s) && s->params->watch != NULL)
        akin_load_watch_step(s->params->watch, worker->n_running,
                             (uint64_t)worker->distinct);
    if (akini_sim_is_counting(s))
        akini_sim_statistics_step(
            &s->statistics, worker,
            akini_sim_mix_phase(s->params, s->n_arrived - 1));
}

/* Requests, and rows of the pool, lie anywhere in memory: they come while
 * others are worked on. Rows are wanted by the step that begins next. */
static void fetch_row(const uint8_t *row, size_t row_bytes)
{
    for (size_t at = 0; at < row_bytes; at += LINE_BYTES)
        __builtin_prefetch(row + at);
}

static void fetch_slot(const akini_sim_t *s, const akini_sim_worker_t *worker,
                       uint32_t i)
{
    if (i < worker->n_running)
        __builtin_prefetch(&s->requests.slots[worker->members[i]]);
}

akin_status_t akini_sim_end_step(akini_sim_t *s, uint32_t w)
{
    akini_sim_worker_t *worker = &s->decode.workers[w];
    const size_t row_bytes = akin_route_pool_row_bytes(s->params->pool);
    akin_status_t status = AKIN_OK;
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < SLOTS_AHEAD; i++)
        fetch_slot(s, worker, i);
    observe_step(s, w);
    s->n_deaths_before = s->n_deaths;
    for (uint32_t i = 0; i < worker->n_running && status == AKIN_OK; i++) {
        const uint32_t slot = worker->members[i];
        akini_sim_request_t *request = &s->requests.slots[slot];
        fetch_slot(s, worker, i + SLOTS_AHEAD);
        if (akini_sim_is_measured(s, request->index))
            akini_sim_statistics_gap(&s->statistics,
                                     s->now_s - request->token_s);
        request->token_s = s->now_s;
        request->row += row_bytes;
        fetch_row(request->row, row_bytes);
        if (++request->n_done == request->n_output)
            status = leave(s, slot);
        else
            worker->members[n_kept++] = slot;
    }
    const bool has_left = n_kept < worker->n_running;
    memmove(worker->members + n_kept, worker->members + worker->n_running,
            worker->n_waiting * sizeof(*worker->members));
    worker->n_running = n_kept;
    if (status == AKIN_OK && has_left)
        status = akini_sim_dispatch(s);
    return status == AKIN_OK ? start_step(s, w) : status;
}
