/* The router's decisions: which worker, and what is due when. */
#include "roles/router_state.h"

#include "base/clock.h"
#include "base/fault_point.h"
#include <string.h>
#include <utlist.h>

/* Prompts per prefill rank that are in work or wait for a decode worker:
 * enough to fill chunks, few enough that a decision is not made long before
 * its request can run. */
#define PREFILL_AHEAD 16u

/* How long a request lets others pass that need less room. */
#define PATIENCE_NS AKIN_NS_PER_S

/* A decode worker ends a transfer in time, whoever the owner; one that still
 * says nothing this much later does not run any more. */
#define TRANSFER_MARGIN_NS (10 * AKIN_NS_PER_S)

void akini_router_send(akin_router_t *r, uint32_t rank,
                       akin_message_type_t type)
{
    akin_status_t status = r->packer.status;
    AKIN_FAULT_POINT("before-send", akin_message_name((uint16_t)type));
    if (status == AKIN_OK)
        status = akin_net_send(r->net, rank, (uint16_t)type, r->packer.data,
                               r->packer.bytes);
    akin_packer_reset(&r->packer);
    AKIN_FAULT_POINT("after-send", akin_message_name((uint16_t)type));
    /* A worker that takes nothing any more is as good as lost. */
    if (status == AKIN_ERR_FULL) {
        akin_net_drop_peer(r->net, rank);
        status = AKIN_ERR_PEER;
    }
    /* What a lost peer was to do is begun again when its loss is told. */
    if (status != AKIN_OK && status != AKIN_ERR_PEER && r->failure == AKIN_OK)
        r->failure =
            akin_error_set(&r->error, status, "cannot send to rank %u: %s",
                           rank, akin_status_string(status));
}

void akini_router_send_id(akin_router_t *r, uint32_t rank,
                          akin_message_type_t type, uint64_t id)
{
    akin_message_pack_id(&r->packer, id);
    akini_router_send(r, rank, type);
}

static akin_message_sampling_t how(const akini_flight_t *f)
{
    const akin_request_t *request = f->request;
    return (akin_message_sampling_t){
        .sampling = request->sampling,
        .max_tokens = request->max_tokens - (f->n_start - request->n_prompt),
        .ignore_eos = request->ignore_eos != 0,
        .want_logprobs = request->want_logprobs != 0,
        .n_top = (uint8_t)request->n_top,
    };
}

static uint32_t choose_prefill(akin_router_t *r, const akini_flight_t *f)
{
    const uint32_t n = r->n_prefill;
    uint32_t best = AKIN_ROUTING_NO_WORKER;
    for (uint32_t i = 0; i < n; i++) {
        r->eligible[i] = !r->prefill[i].is_lost && !r->prefill[i].is_drained;
        r->loads[i] = r->prefill[i].load;
        if (r->eligible[i] &&
            (best == AKIN_ROUTING_NO_WORKER || r->loads[i] < r->loads[best]))
            best = i;
    }
    if (r->prefix != NULL)
        akin_prefix_router_decide(r->prefix, f->context, f->n_start, r->loads,
                                  r->eligible, &best);
    return best;
}

/* A batch may wait in the queue for as long as the others need, of which each
 * has its time. */
static void dispatch_prefill(akin_router_t *r, int64_t now_ns)
{
    const uint32_t limit =
        PREFILL_AHEAD * akini_router_alive(r->prefill, r->n_prefill);
    akini_flight_t *f, *next;
    DL_FOREACH_SAFE(r->lists[AKINI_FLIGHT_QUEUED], f, next)
    {
        if (r->n_in[AKINI_FLIGHT_PREFILL] + r->n_in[AKINI_FLIGHT_ROUTED] >=
            limit)
            return;
        uint32_t w = choose_prefill(r, f);
        if (w == AKIN_ROUTING_NO_WORKER)
            return;
        const akin_message_prefill_t m = {
            .id = f->id,
            .how = how(f),
            .fresh = f->fresh != 0,
            .tokens = f->context,
            .n_tokens = f->n_start,
        };
        akin_message_pack_prefill(&r->packer, &m);
        akini_router_send(r, r->prefill[w].rank, AKIN_MESSAGE_PREFILL);
        f->prefill = w;
        if (f->deadline_ns == INT64_MAX)
            f->deadline_ns = now_ns + r->params.job->request_timeout_ns;
        r->prefill[w].n_flights++;
        r->prefill[w].load += f->n_start;
        akini_flight_move(r, f, AKINI_FLIGHT_PREFILL);
    }
}

static void send_decode(akin_router_t *r, akini_flight_t *f)
{
    akin_message_decode_t m = {
        .id = f->id,
        .how = how(f),
        .owner = r->prefill[f->prefill].rank,
        .tokens = f->context,
        .n_tokens = f->n_start + 1u,
        .blocks = f->blocks,
        .n_blocks = f->n_blocks,
    };
    akin_message_pack_decode(&r->packer, &m);
    akini_router_send(r, r->decode[f->decode].rank, AKIN_MESSAGE_DECODE);
}

static int has_room(const akin_router_t *r, const akini_rank_t *rank,
                    const akini_flight_t *f)
{
    return !rank->is_lost && !rank->is_drained &&
           rank->n_flights < r->params.job->max_batch &&
           rank->n_reserved + f->n_slots <= r->params.n_slots;
}

/* The workers that have a rank with room; says whether there is one. */
static int find_eligible(akin_router_t *r, const akini_flight_t *f)
{
    int any = 0;
    memset(r->eligible, 0, r->params.job->n_decode);
    for (uint32_t i = 0; i < r->n_decode; i++)
        if (has_room(r, &r->decode[i], f)) {
            r->eligible[akini_router_decode_worker(r, i)] = 1;
            any = 1;
        }
    return any;
}

/* The rank of a worker with room that has the fewest requests. */
static uint32_t choose_rank(const akin_router_t *r, const akini_flight_t *f,
                            uint32_t worker)
{
    const uint32_t first = worker * r->params.job->ep;
    uint32_t best = AKIN_ROUTING_NO_WORKER;
    for (uint32_t i = first; i < first + r->params.job->ep; i++)
        if (has_room(r, &r->decode[i], f) &&
            (best == AKIN_ROUTING_NO_WORKER ||
             r->decode[i].n_flights < r->decode[best].n_flights))
            best = i;
    return best;
}

/* A request that finds no worker with room lets those behind it pass, for a
 * while: else a big one might wait for ever among small ones. */
static void dispatch_decode(akin_router_t *r, int64_t now_ns)
{
    const akin_job_t *job = r->params.job;
    akini_flight_t *f, *next;
    DL_FOREACH_SAFE(r->lists[AKINI_FLIGHT_ROUTED], f, next)
    {
        const int any = find_eligible(r, f);
        if (!any && now_ns - f->routed_ns >= PATIENCE_NS)
            return;
        if (!any || now_ns < f->retry_ns)
            continue;
        const akin_policy_request_t request = {
            .id = f->id,
            .counts = f->counts,
            .n_tokens = f->n_start,
            .domain = f->request->domain,
            .now_ns = now_ns,
        };
        uint32_t worker;
        int64_t begin = akin_clock_now_ns();
        akin_status_t status =
            akin_policy_decide(r->policy, &request, r->eligible, &worker);
        int64_t end = akin_clock_now_ns();
        if (status != AKIN_OK) {
            r->failure = akin_error_set(&r->error, status, "routing: %s",
                                        akin_status_string(status));
            return;
        }
        if (worker == AKIN_ROUTING_NO_WORKER)
            continue;
        akin_summary_add_routing(r->summary, job->n_prefill + worker,
                                 end - begin);
        akin_policy_choice_t choice = akin_policy_last_choice(r->policy);
        akin_summary_add_choice(r->summary, choice.n_band, choice.similarity);
        f->decode = choose_rank(r, f, worker);
        r->decode[f->decode].n_flights++;
        r->decode[f->decode].n_reserved += f->n_slots;
        akini_flight_tell_load(r, f, now_ns);
        f->give_up_ns =
            now_ns + 2 * job->transfer_timeout_ns + TRANSFER_MARGIN_NS;
        akini_flight_move(r, f, AKINI_FLIGHT_TRANSFER);
        send_decode(r, f);
    }
}

void akini_router_dispatch(akin_router_t *r, int64_t now_ns)
{
    if (r->stop_ns == 0)
        dispatch_prefill(r, now_ns);
    dispatch_decode(r, now_ns);
}

int64_t akini_router_expire(akin_router_t *r, int64_t now_ns)
{
    int64_t next_ns = INT64_MAX;
    akini_flight_t *f, *next;
    DL_FOREACH(r->lists[AKINI_FLIGHT_ROUTED], f)
    {
        if (f->keep_ns <= now_ns) {
            akini_router_send_id(r, r->prefill[f->prefill].rank,
                                 AKIN_MESSAGE_KEEP, f->id);
            f->keep_ns = now_ns + r->params.job->lease_ns / 3;
        }
        next_ns = f->keep_ns < next_ns ? f->keep_ns : next_ns;
        if (f->retry_ns > now_ns && f->retry_ns < next_ns)
            next_ns = f->retry_ns;
    }
    DL_FOREACH(r->lists[AKINI_FLIGHT_TRANSFER], f)
    {
        if (f->give_up_ns <= now_ns)
            akin_net_drop_peer(r->net, r->decode[f->decode].rank);
        else if (f->give_up_ns < next_ns)
            next_ns = f->give_up_ns;
    }
    for (int state = 0; state < AKINI_FLIGHT_STATES; state++) {
        DL_FOREACH_SAFE(r->lists[state], f, next)
        {
            if (f->deadline_ns > now_ns)
                next_ns = f->deadline_ns < next_ns ? f->deadline_ns : next_ns;
            else
                akini_router_fail(r, f, 504, "request_timeout",
                                  "the request took longer than "
                                  "router.request_timeout");
        }
    }
    return next_ns;
}
