/* Decode: pulls the blocks of its requests and generates, one token of every
 * running request per step. */
#include "roles/decode_state.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

/* Steps after which the router is told which experts were chosen. */
#define COUNTS_STEPS 32u

/* How long a rank that ends waits for reads that it has given up. */
#define LAST_READ_NS (250 * AKIN_NS_PER_MS)

static void send_transferred(akin_worker_t *w, uint64_t id,
                             const akin_kv_transfer_result_t *result,
                             uint32_t n_shared)
{
    const akin_message_transferred_t m = {
        .id = id,
        .status = result->status,
        .refusal = (uint8_t)result->refusal,
        .n_blocks = result->n_blocks,
        .n_shared = n_shared,
        .bytes = result->bytes,
        .ns = result->ns,
    };
    akin_message_pack_transferred(&w->packer, &m);
    akin_worker_send(w, AKIN_ROUTER_RANK, AKIN_MESSAGE_TRANSFERRED);
}

static void release(akin_worker_t *w, uint32_t owner, uint64_t id)
{
    akin_message_pack_id(&w->packer, id);
    akin_worker_send(w, owner, AKIN_MESSAGE_RELEASE);
}

static void transfer_done(void *arg, const akin_kv_transfer_result_t *result)
{
    akini_sequence_t *s = arg;
    akin_worker_t *w = s->worker;
    akin_kv_transfer_result_t r = *result;
    s->has_transfer = 0;
    if (s->canceled) {
        akini_sequence_forget(w, s);
        return;
    }
    if (r.status == AKIN_OK) {
        r.status = akini_sequence_run(w, s);
        if (r.status != AKIN_OK) {
            r.status = AKIN_ERR_REFUSED;
            r.refusal = AKIN_KV_REFUSAL_CHAIN;
        }
    }
    send_transferred(w, s->id, &r, s->n_shared);
    release(w, s->request.owner, s->id);
    if (r.status != AKIN_OK)
        akini_sequence_forget(w, s);
}

static akin_status_t start_transfer(akin_worker_t *w, akini_sequence_t *s)
{
    akini_decode_t *d = w->state;
    const uint32_t n = (uint32_t)s->request.n_blocks - s->n_shared;
    if (n == 0) {
        const akin_kv_transfer_result_t nothing = {.status = AKIN_OK};
        transfer_done(s, &nothing);
        return AKIN_OK;
    }
    const akin_kv_transfer_params_t params = {
        .owner = s->request.owner,
        .blocks = s->request.blocks + s->n_shared,
        .slots = s->slots + s->n_shared,
        .n_blocks = n,
        .deadline_ns = akin_clock_now_ns() + w->job->transfer_timeout_ns,
        .done = transfer_done,
        .arg = s,
    };
    akin_status_t status =
        akin_kv_transfers_start(d->transfers, &params, &s->transfer);
    s->has_transfer = status == AKIN_OK;
    return status;
}

static void take_request(akin_worker_t *w, const void *payload, size_t bytes)
{
    akini_decode_t *d = w->state;
    akin_message_decode_t m;
    akin_status_t status = akin_message_unpack_decode(payload, bytes, &m);
    if (status != AKIN_OK) {
        /* Nobody knows whose it was: its request goes on with another worker
         * only when this one is lost. */
        akin_worker_fail(w, status, "a DECODE cannot be read: %s",
                         akin_status_string(status));
        return;
    }
    akini_sequence_t *s;
    HASH_FIND(hh, d->by_id, &m.id, sizeof(m.id), s);
    status = s != NULL ? AKIN_ERR_EXISTS : akini_sequence_check(w, &m);
    s = NULL;
    if (status == AKIN_OK) {
        s = akini_sequence_create(w, &m);
        status = s != NULL ? AKIN_OK : AKIN_ERR_NOMEM;
    }
    free(m.tokens);
    if (s == NULL) {
        free(m.blocks);
    } else {
        s->request.tokens = NULL;
        HASH_ADD(hh, d->by_id, id, sizeof(s->id), s);
        status = akini_sequence_take_slots(w, s);
        if (status == AKIN_OK)
            status = start_transfer(w, s);
    }
    if (status != AKIN_OK) {
        const akin_kv_transfer_result_t failed = {.status = status};
        send_transferred(w, m.id, &failed, 0);
        if (s != NULL)
            akini_sequence_forget(w, s);
    }
}

static void cancel(akin_worker_t *w, uint64_t id)
{
    akini_decode_t *d = w->state;
    akini_sequence_t *s;
    HASH_FIND(hh, d->by_id, &id, sizeof(id), s);
    if (s == NULL)
        return; /* finished before */
    s->canceled = 1;
    if (s->has_transfer)
        akin_kv_transfers_cancel(d->transfers, s->transfer);
    else if (!s->in_job)
        akini_sequence_forget(w, s);
}

static void on_message(akin_worker_t *w, uint32_t from, uint16_t type,
                       const void *payload, size_t bytes)
{
    uint64_t id;
    if (type == AKIN_MESSAGE_DECODE) {
        take_request(w, payload, bytes);
    } else if (type == AKIN_MESSAGE_CANCEL) {
        akin_status_t status = akin_message_unpack_id(payload, bytes, &id);
        if (status == AKIN_OK)
            cancel(w, id);
        else
            akin_worker_refuse(from, type, status);
    } else {
        akin_worker_refuse(from, type, AKIN_ERR_UNSUPPORTED);
    }
}

static void on_peer_lost(akin_worker_t *w, uint32_t rank)
{
    /* Transfers from it end by themselves, with AKIN_ERR_PEER. */
    (void)w;
    AKIN_LOG(ROLES, INFO, "prefill rank %u is lost", rank);
}

static void fill(akin_worker_t *w, akin_stepper_job_t *job)
{
    akini_decode_t *d = w->state;
    akini_sequence_t *s;
    DL_FOREACH(d->running, s)
    {
        if (job->n_rows == w->max_rows)
            return;
        s->in_job = 1;
        job->rows[job->n_rows++] = (akin_stepper_row_t){
            .owner = s,
            .tokens = s->tokens + s->n_tokens - 1,
            .n_tokens = 1,
            .position = s->n_tokens - 1,
            .slots = s->slots,
            .how = &s->request.how,
            .history = s->tokens,
        };
    }
}

static int has_work(akin_worker_t *w)
{
    const akini_decode_t *d = w->state;
    return d->running != NULL;
}

static void send_counts(akin_worker_t *w)
{
    akini_decode_t *d = w->state;
    const akin_kv_shape_t *shape = &w->view->layout->shape;
    akin_message_counts_t m = {
        .n_counts = (size_t)shape->n_layers * shape->n_experts,
    };
    m.counts = akin_stepper_counts(w->stepper, &m.n_tokens);
    if (++d->n_uncounted_steps < COUNTS_STEPS || m.n_tokens == 0)
        return;
    d->n_uncounted_steps = 0;
    akin_message_pack_counts(&w->packer, &m);
    akin_worker_send(w, AKIN_ROUTER_RANK, AKIN_MESSAGE_COUNTS);
    akin_stepper_clear_counts(w->stepper);
}

static void on_finished(akin_worker_t *w, akin_stepper_job_t *job)
{
    akini_decode_t *d = w->state;
    akin_message_tokens_t m = {.tokens = d->out};
    akin_worker_report(w, job, &m.step);
    if (job->status != AKIN_OK) {
        akin_worker_fail_step(w, job->status);
        return;
    }
    for (uint32_t i = 0; i < job->n_rows; i++) {
        akini_sequence_t *s = job->rows[i].owner;
        s->in_job = 0;
        if (s->canceled)
            continue;
        s->canceled =
            akini_sequence_token(w, s, &job->rows[i], &m.tokens[m.n_tokens++]);
        if (s->canceled)
            akini_sequence_send_routes(w, s);
    }
    akin_message_pack_tokens(&w->packer, &m);
    akin_worker_send(w, AKIN_ROUTER_RANK, AKIN_MESSAGE_TOKENS);
    for (uint32_t i = 0; i < job->n_rows; i++) {
        akini_sequence_t *s = job->rows[i].owner;
        if (s->canceled)
            akini_sequence_forget(w, s);
    }
    send_counts(w);
}

static int64_t expire(akin_worker_t *w, int64_t now_ns)
{
    akini_decode_t *d = w->state;
    return akin_kv_transfers_expire(d->transfers, now_ns);
}

/* What runs no longer matters to anybody; the engine has none of it. */
static void drop_all(akin_worker_t *w)
{
    akini_decode_t *d = w->state;
    akini_sequence_t *s, *next;
    HASH_ITER(hh, d->by_id, s, next)
    {
        s->canceled = 1;
        if (s->has_transfer)
            akin_kv_transfers_cancel(d->transfers, s->transfer);
        else
            akini_sequence_forget(w, s);
    }
}

/* Without requests only a read that was given up holds slots, for a while. */
static void stats(akin_worker_t *w, akin_message_stats_t *m)
{
    const int64_t until_ns = akin_clock_now_ns() + LAST_READ_NS;
    akin_kv_cache_stats_t cache;
    drop_all(w);
    akin_kv_cache_stats(w->cache, &cache);
    while (cache.n_referenced > 0 && akin_clock_now_ns() < until_ns) {
        akin_worker_wait(w, until_ns);
        akin_kv_cache_stats(w->cache, &cache);
    }
    m->pinned_blocks = cache.n_referenced;
}

static const akin_worker_role_t role = {
    .message = on_message,
    .peer_lost = on_peer_lost,
    .finished = on_finished,
    .fill = fill,
    .has_work = has_work,
    .expire = expire,
    .stats = stats,
};

akin_status_t akin_decode_run(akin_worker_t *worker)
{
    akini_decode_t state = {.out =
                                calloc(worker->max_rows, sizeof(*state.out))};
    akin_status_t status = AKIN_ERR_NOMEM;
    if (state.out != NULL)
        status = akin_kv_transfers_create(worker->net, worker->cache,
                                          worker->view, &state.transfers);
    if (status != AKIN_OK) {
        free(state.out);
        return status;
    }
    worker->role = &role;
    worker->state = &state;
    status = akin_worker_run(worker);
    drop_all(worker);
    akin_kv_transfers_destroy(state.transfers);
    free(state.out);
    return status;
}
