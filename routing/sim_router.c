/* Sim router: who prefills a request, who decodes it, and when. */
#include "routing/sim_state.h"

#include <math.h>
#include <string.h>

/* Prompts per prefill worker that are in work or wait for a decode worker, as
 * in a job's router. */
#define PREFILL_AHEAD 16u

#define NS_PER_S 1e9
/* The policy's clock stops before its 64 bits end; simulated time goes on. */
#define MAX_NS 9e18

static akin_status_t start_prefill(akini_sim_t *s, uint32_t w)
{
    double seconds;
    if (!akini_sim_prefill_start(&s->prefill, w, &seconds))
        return AKIN_OK;
    const akini_sim_prefiller_t *worker = &s->prefill.workers[w];
    uint32_t slot = worker->queue.head;
    for (uint32_t i = 0; i < worker->n_running; i++) {
        akini_sim_request_t *request = &s->requests.slots[slot];
        if (!request->has_begun && akini_sim_is_measured(s, request->index))
            s->statistics.queue_s += s->now_s - request->arrival_s;
        request->has_begun = true;
        slot = request->next;
    }
    return akini_sim_heap_put(&s->heap, s->now_s + seconds, AKINI_SIM_PREFILLED,
                              w, worker->epoch);
}

/* Sender and receiver are busy with the bytes, one after another; the latency
 * is on top. */
static akin_status_t move(akini_sim_t *s, uint32_t slot, uint32_t to)
{
    akini_sim_request_t *request = &s->requests.slots[slot];
    const akin_sim_params_t *params = s->params;
    const akin_machine_link_t *nic = &params->cost.machine->nic;
    akini_sim_prefiller_t *from = &s->prefill.workers[request->prefill];
    double *from_s = &from->nic_s;
    double *to_s = &s->decode.workers[to].nic_s;
    const double begin_s = fmax(s->now_s, fmax(*from_s, *to_s));
    request->decode = to;
    request->state = AKINI_SIM_TRANSFER;
    /* The KV died with its worker: nothing comes until the router knows. */
    if (from->is_dead)
        return AKIN_OK;
    /* Every rank of a worker sends its heads over its own NIC. */
    const uint64_t bytes =
        akin_model_kv_bytes(params->cost.shape, request->n_start) /
        (params->n_ranks > 1 ? params->n_ranks : 1);
    const double end_s = begin_s + akin_cost_model_transfer(nic, bytes);
    *from_s = *to_s = end_s - nic->latency_s;
    return akini_sim_heap_put(&s->heap, end_s, AKINI_SIM_MOVED, slot,
                              request->epoch);
}

static int64_t clock_ns(const akini_sim_t *s)
{
    return s->params->clock_ns != NULL ? s->params->clock_ns() : 0;
}

/* Counts of all that was prefilled, generated tokens too. */
static const uint16_t *find_counts(akini_sim_t *s,
                                   const akini_sim_request_t *request,
                                   uint32_t *n_tokens_p)
{
    const akin_route_pool_t *pool = s->params->pool;
    const size_t cells = akin_route_pool_cells(pool);
    const uint32_t n_generated = request->n_start - request->n_prompt;
    *n_tokens_p = pool->entries[request->entry].n_counted;
    if (pool->prompt_counts == NULL)
        return NULL;
    const uint16_t *counts = pool->prompt_counts + request->entry * cells;
    if (n_generated == 0)
        return counts;
    *n_tokens_p += n_generated;
    memcpy(s->counts, counts, cells * sizeof(*counts));
    akin_route_pool_count(pool, request->entry, 0, n_generated, s->counts);
    return s->counts;
}

static akin_status_t decide(akini_sim_t *s, uint32_t slot,
                            const uint8_t *eligible)
{
    akini_sim_request_t *request = &s->requests.slots[slot];
    const akin_route_pool_t *pool = s->params->pool;
    akin_policy_request_t asked = {
        .id = s->n_decisions,
        .domain = pool->domains[pool->entries[request->entry].domain],
        .now_ns = (int64_t)fmin(s->now_s * NS_PER_S, MAX_NS),
    };
    uint32_t w;
    asked.counts = find_counts(s, request, &asked.n_tokens);
    const int64_t begin_ns = clock_ns(s);
    const akin_status_t status =
        akin_policy_decide(s->policy, &asked, eligible, &w);
    s->decision_ns += clock_ns(s) - begin_ns;
    if (status != AKIN_OK || w == AKIN_ROUTING_NO_WORKER)
        return status != AKIN_OK ? status : AKIN_ERR_INTERNAL;
    request->id = s->n_decisions++;
    s->n_ahead--;
    akini_sim_decode_assign(&s->decode, w,
                            (uint64_t)request->n_prompt + request->n_output);
    return move(s, slot, w);
}

static akin_status_t decide_backlog(akini_sim_t *s)
{
    akin_status_t status = AKIN_OK;
    while (status == AKIN_OK && s->backlog.head != AKINI_SIM_NONE) {
        const akini_sim_request_t *first = &s->requests.slots[s->backlog.head];
        const uint8_t *eligible = akini_sim_decode_find_room(
            &s->decode, (uint64_t)first->n_prompt + first->n_output);
        if (eligible == NULL)
            break;
        status = decide(s, akini_sim_queue_take(&s->backlog, &s->requests),
                        eligible);
    }
    return status;
}

akin_status_t akini_sim_dispatch(akini_sim_t *s)
{
    akin_status_t status = decide_backlog(s);
    while (status == AKIN_OK && s->queued.head != AKINI_SIM_NONE &&
           s->n_ahead < PREFILL_AHEAD * s->prefill.n_eligible) {
        const uint32_t slot = akini_sim_queue_take(&s->queued, &s->requests);
        s->n_ahead++;
        status = start_prefill(s, akini_sim_prefill_assign(&s->prefill, slot));
    }
    return status;
}

/* The token that comes with a prefill: the first one, or that after those which
 * a lost worker gave. */
static void add_token(akini_sim_t *s, akini_sim_request_t *request)
{
    const bool is_measured = akini_sim_is_measured(s, request->index);
    if (request->n_done++ > 0) {
        if (is_measured)
            akini_sim_statistics_gap(&s->statistics,
                                     s->now_s - request->token_s);
    } else {
        request->first_s = s->now_s;
        if (is_measured)
            s->statistics.ttft[s->statistics.n_ttft++] =
                s->now_s - request->arrival_s;
    }
    request->token_s = s->now_s;
    request->n_fruitless = 0;
    s->n_deaths_before = s->n_deaths;
    if (request->n_attempts > 0) {
        s->n_reprefilled += request->n_start - request->n_cached;
    } else if (is_measured) {
        s->n_prompted += request->n_start;
        s->n_cached += request->n_cached;
    }
}

/* A prompt is done. */
static akin_status_t end_prompt(akini_sim_t *s, uint32_t slot)
{
    akini_sim_request_t *request = &s->requests.slots[slot];
    add_token(s, request);
    if (request->n_done == request->n_output) {
        s->n_ahead--;
        return akini_sim_end(s, slot);
    }
    request->state = AKINI_SIM_ROUTED;
    akini_sim_queue_put(&s->backlog, &s->requests, slot);
    return AKIN_OK;
}

akin_status_t akini_sim_end_prefill(akini_sim_t *s, uint32_t w)
{
    uint32_t slot = AKINI_SIM_NONE;
    akini_sim_prefill_end(&s->prefill, w);
    akin_status_t status = akini_sim_prefill_take(&s->prefill, w, &slot);
    while (status == AKIN_OK && slot != AKINI_SIM_NONE) {
        status = end_prompt(s, slot);
        if (status == AKIN_OK)
            status = akini_sim_prefill_take(&s->prefill, w, &slot);
    }
    if (status == AKIN_OK)
        status = akini_sim_dispatch(s);
    return status == AKIN_OK ? start_prefill(s, w) : status;
}

void akini_sim_restart(akini_sim_t *s, uint32_t slot)
{
    akini_sim_request_t *request = &s->requests.slots[slot];
    if (request->state == AKINI_SIM_PREFILL)
        s->prefill.loads[request->prefill] -= request->n_start;
    if (request->state == AKINI_SIM_PREFILL ||
        request->state == AKINI_SIM_ROUTED) {
        s->n_ahead--;
    } else {
        akini_sim_decode_release(&s->decode, request->decode,
                                 (uint64_t)request->n_prompt +
                                     request->n_output);
        akin_policy_finish(s->policy, request->id);
    }
    request->state = AKINI_SIM_QUEUED;
    request->n_start = request->n_prompt + request->n_done;
    request->n_attempts++;
    request->n_fruitless++;
    request->epoch++;
    s->n_rerun++;
    akini_sim_queue_push(&s->queued, &s->requests, slot);
}
