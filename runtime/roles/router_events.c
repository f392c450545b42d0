/* What the workers tell the router. */
#include "roles/router_state.h"

#include "base/clock.h"
#include "base/fault_point.h"
#include "base/log.h"

#include <stdlib.h>
#include <utlist.h>

/* Wait before a decode worker that had no room is asked again. */
#define RETRY_NS (5 * AKIN_NS_PER_MS)

/* What a worker said cannot be read. Its requests would wait for it in vain, so
 * others get them. */
static void give_up(akin_router_t *r, uint32_t from, akin_status_t status)
{
    AKIN_LOG(ROLES, ERROR, "message of rank %u cannot be read: %s", from,
             akin_status_string(status));
    akin_net_drop_peer(r->net, from);
}

/* Index in the summary of the worker that a rank is of. */
static uint32_t index_of(const akin_router_t *r, uint32_t rank)
{
    return akini_router_rank(r, rank)->worker;
}

static size_t n_counts(const akin_router_t *r)
{
    const akin_kv_shape_t *shape = &r->params.layout->shape;
    return (size_t)shape->n_layers * shape->n_experts;
}

static int is_sound(const akin_router_t *r, const akini_flight_t *f,
                    const akin_message_prefilled_t *m)
{
    const uint32_t block_tokens = r->params.layout->shape.block_tokens;
    return m->n_counts == n_counts(r) &&
           m->token < r->params.model->vocab_size &&
           m->n_blocks == (f->n_start - 1) / block_tokens + 1 &&
           m->n_cached_blocks <= m->n_queried_blocks &&
           m->n_queried_blocks <= m->n_blocks;
}

static void on_prefilled(akin_router_t *r, uint32_t from, const void *payload,
                         size_t bytes)
{
    const uint32_t block_tokens = r->params.layout->shape.block_tokens;
    akin_message_prefilled_t m;
    akin_status_t status = akin_message_unpack_prefilled(payload, bytes, &m);
    if (status != AKIN_OK) {
        give_up(r, from, status);
        return;
    }
    akini_flight_t *f = akini_flight_find(r, m.id);
    if (f == NULL || f->state != AKINI_FLIGHT_PREFILL ||
        r->prefill[f->prefill].rank != from) {
        if (m.status == AKIN_OK)
            akini_router_send_id(r, from, AKIN_MESSAGE_RELEASE, m.id);
        free(m.blocks);
        free(m.counts);
        return;
    }
    const char *why = NULL;
    if (m.status != AKIN_OK)
        why = akin_status_string((akin_status_t)m.status);
    else if (!is_sound(r, f, &m))
        why = "the prefill worker's answer makes no sense";
    else if (r->params.job->record_routes &&
             !akini_router_routes_agree(r, f, m.counts))
        why = "the experts told of its tokens do not add up to its counts";
    if (why != NULL) {
        free(m.blocks);
        free(m.counts);
        akini_router_fail(r, f, 500, "prefill_failed", why);
        return;
    }
    int64_t now = akin_clock_now_ns();
    r->prefill[f->prefill].n_flights--;
    r->prefill[f->prefill].load -= f->n_start;
    akini_flight_move(r, f, AKINI_FLIGHT_ROUTED);
    f->blocks = m.blocks;
    f->n_blocks = m.n_blocks;
    f->counts = m.counts;
    const uint32_t n_cached = m.n_cached_blocks * block_tokens;
    /* What is prefilled again says nothing of the prompt. */
    if (f->n_tokens == 0)
        f->n_cached = n_cached;
    f->keep_ns = now + r->params.job->lease_ns / 3;
    f->retry_ns = 0;
    f->routed_ns = now;
    akin_summary_add_prefix(r->summary, index_of(r, from),
                            (uint64_t)m.n_queried_blocks * block_tokens,
                            n_cached);
    (void)akini_flight_token(r, f, m.token, &m.logprob, now);
}

/* The worker had no room after all: back to those that wait. */
static void wait_again(akin_router_t *r, akini_flight_t *f)
{
    int64_t now = akin_clock_now_ns();
    r->decode[f->decode].n_flights--;
    r->decode[f->decode].n_reserved -= f->n_slots;
    akin_policy_finish(r->policy, f->id);
    akini_flight_tell_load(r, f, now);
    akini_flight_move(r, f, AKINI_FLIGHT_ROUTED);
    f->retry_ns = now + RETRY_NS;
    f->keep_ns = now;
}

static void on_transferred(akin_router_t *r, uint32_t from, const void *payload,
                           size_t bytes)
{
    akin_message_transferred_t m;
    akin_status_t status = akin_message_unpack_transferred(payload, bytes, &m);
    if (status != AKIN_OK) {
        give_up(r, from, status);
        return;
    }
    akini_flight_t *f = akini_flight_find(r, m.id);
    if (f == NULL || f->state != AKINI_FLIGHT_TRANSFER ||
        r->decode[f->decode].rank != from)
        return;
    const akin_summary_transfer_t transfer = {
        .n_blocks = m.n_blocks,
        .n_bytes = m.bytes,
        .n_shared = m.n_shared,
        .ns = m.ns,
    };
    switch (m.status) {
    case AKIN_OK:
        akin_summary_add_transfer(r->summary, index_of(r, from), &transfer);
        akini_flight_move(r, f, AKINI_FLIGHT_DECODE);
        break;
    case AKIN_ERR_FULL:
        wait_again(r, f);
        break;
    case AKIN_ERR_REFUSED:
        akin_summary_add_refused(r->summary, index_of(r, from),
                                 (akin_kv_refusal_t)m.refusal, 1);
        f->fresh = 1;
        akini_flight_restart(
            r, f, akin_kv_refusal_string((akin_kv_refusal_t)m.refusal));
        break;
    case AKIN_ERR_PEER:
    case AKIN_ERR_TIMEOUT:
    case AKIN_ERR_CANCELED:
        akini_flight_restart(r, f, akin_status_string((akin_status_t)m.status));
        break;
    default:
        akini_router_fail(r, f, 500, "decode_failed",
                          akin_status_string((akin_status_t)m.status));
    }
}

static void on_tokens(akin_router_t *r, uint32_t from, const void *payload,
                      size_t bytes)
{
    akin_message_tokens_t m;
    akin_status_t status = akin_message_unpack_tokens(payload, bytes, &m);
    if (status != AKIN_OK) {
        give_up(r, from, status);
        return;
    }
    status = akini_router_on_step(r, from, &m.step);
    if (status != AKIN_OK) {
        akin_message_tokens_cleanup(&m);
        give_up(r, from, status);
        return;
    }
    int64_t now = akin_clock_now_ns();
    for (size_t i = 0; i < m.n_tokens && !r->is_closing; i++) {
        akini_flight_t *f = akini_flight_find(r, m.tokens[i].id);
        if (f == NULL || f->state != AKINI_FLIGHT_DECODE ||
            r->decode[f->decode].rank != from)
            continue; /* it ended at a stop string, or began again */
        if (m.tokens[i].token >= r->params.model->vocab_size)
            akini_router_fail(r, f, 500, "decode_failed",
                              "the decode worker's token is out of range");
        else
            (void)akini_flight_token(r, f, m.tokens[i].token,
                                     &m.tokens[i].logprob, now);
    }
    akin_message_tokens_cleanup(&m);
}

static void on_step(akin_router_t *r, uint32_t from, const void *payload,
                    size_t bytes)
{
    akin_message_step_t m;
    akin_status_t status = akin_message_unpack_step(payload, bytes, &m);
    if (status == AKIN_OK) {
        status = akini_router_on_step(r, from, &m);
        free(m.served);
    }
    if (status != AKIN_OK)
        give_up(r, from, status);
}

static void on_counts(akin_router_t *r, uint32_t from, const void *payload,
                      size_t bytes)
{
    akin_message_counts_t m;
    if (akin_message_unpack_counts(payload, bytes, &m) != AKIN_OK)
        return;
    if (m.n_counts == n_counts(r) && m.n_tokens > 0) {
        akin_policy_observe_counts(r->policy, m.counts, m.n_tokens);
        akin_summary_add_choices(r->summary, index_of(r, from), m.counts);
        akini_router_replace_counts(r, from, &m);
    }
    free(m.counts);
}

static void on_stats(akin_router_t *r, uint32_t from, const void *payload,
                     size_t bytes)
{
    akin_message_stats_t m;
    r->processes[from].has_stats = 1;
    if (akin_message_unpack_stats(payload, bytes, &m) != AKIN_OK)
        return;
    akin_summary_add_late(r->summary, m.messages_late);
    if (akini_router_rank(r, from) == NULL)
        return;
    const akin_summary_reads_t reads = {
        .n_one_sided = m.reads_one_sided,
        .n_rendezvous = m.reads_rendezvous,
        .n_bytes = m.read_bytes,
    };
    akin_summary_add_reads(r->summary, index_of(r, from), &reads);
    AKIN_LOG(
        ROLES, INFO,
        "rank %u: %llu steps, busy %.1f %%, %llu one-sided and %llu "
        "rendezvous reads, %llu evictions, %llu leases ended, %llu blocks "
        "pinned at the end",
        from, (unsigned long long)m.steps,
        m.total_ns > 0 ? 100.0 * (double)m.busy_ns / (double)m.total_ns : 0.0,
        (unsigned long long)m.reads_one_sided,
        (unsigned long long)m.reads_rendezvous, (unsigned long long)m.evictions,
        (unsigned long long)m.leases_expired,
        (unsigned long long)m.pinned_blocks);
}

/* Gauges of all prefill ranks together. */
static void on_leases(akin_router_t *r, uint32_t from, const void *payload,
                      size_t bytes)
{
    akin_message_leases_t m;
    akin_summary_leases_t all = {0};
    akin_status_t status = akin_message_unpack_leases(payload, bytes, &m);
    if (status != AKIN_OK) {
        give_up(r, from, status);
        return;
    }
    r->processes[from].leases = m;
    for (uint32_t i = 1; i < akin_job_n_ranks(r->params.job); i++) {
        const akin_message_leases_t *l = &r->processes[i].leases;
        all.n_blocks += l->n_blocks;
        all.n_expired += l->n_expired;
        all.oldest_ns =
            l->oldest_ns > all.oldest_ns ? l->oldest_ns : all.oldest_ns;
    }
    akin_summary_set_leases(r->summary, &all);
}

static void take_message(akin_router_t *r, uint32_t from, uint16_t type,
                         const void *payload, size_t bytes)
{
    /* The output is closed: what comes now is too late for it. The last step is
     * known only when all ranks of its worker have reported. */
    if (r->is_closing && type != AKIN_MESSAGE_STATS &&
        type != AKIN_MESSAGE_TOKENS && type != AKIN_MESSAGE_STEP &&
        type != AKIN_MESSAGE_LEASES && type != AKIN_MESSAGE_JOIN)
        return;
    if (from >= akin_job_n_ranks(r->params.job) || from == 0)
        return;
    if (akini_router_on_group_message(r, from, type, payload, bytes))
        return;
    if (akini_router_is_prefill(r, from) && type == AKIN_MESSAGE_PREFILLED) {
        on_prefilled(r, from, payload, bytes);
    } else if (akini_router_is_prefill(r, from) && type == AKIN_MESSAGE_STEP) {
        on_step(r, from, payload, bytes);
    } else if (akini_router_is_decode(r, from) &&
               type == AKIN_MESSAGE_TRANSFERRED) {
        on_transferred(r, from, payload, bytes);
    } else if (akini_router_is_decode(r, from) && type == AKIN_MESSAGE_TOKENS) {
        on_tokens(r, from, payload, bytes);
    } else if (akini_router_is_decode(r, from) && type == AKIN_MESSAGE_COUNTS) {
        on_counts(r, from, payload, bytes);
    } else if (akini_router_is_decode(r, from) && type == AKIN_MESSAGE_PLACED) {
        akin_status_t status = akini_router_on_placed(r, from, payload, bytes);
        if (status != AKIN_OK)
            give_up(r, from, status);
    } else if (type == AKIN_MESSAGE_ROUTES && r->params.job->record_routes) {
        akin_status_t status = akini_router_on_routes(r, from, payload, bytes);
        if (status != AKIN_OK)
            give_up(r, from, status);
    } else if (type == AKIN_MESSAGE_STATS) {
        on_stats(r, from, payload, bytes);
    } else if (type == AKIN_MESSAGE_LEASES) {
        on_leases(r, from, payload, bytes);
    } else if (akini_router_rank(r, from) == NULL) {
        AKIN_LOG(ROLES, DEBUG, "%s of rank %u, which is lost, dropped",
                 akin_message_name(type), from);
    } else {
        AKIN_LOG(ROLES, ERROR,
                 "message %u from rank %u dropped: not its to "
                 "send",
                 type, from);
    }
}

void akin_router_on_message(void *arg, uint32_t from, uint16_t type,
                            const void *payload, size_t bytes)
{
    AKIN_FAULT_POINT("before-receive", akin_message_name(type));
    take_message(arg, from, type, payload, bytes);
    AKIN_FAULT_POINT("after-receive", akin_message_name(type));
}

void akin_router_on_peer_lost(void *arg, uint32_t rank, akin_status_t status)
{
    akini_router_lose_rank(arg, rank, status);
}
