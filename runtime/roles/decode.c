/* Decode: pulls the blocks of its requests and generates, one token of every
 * running request per step. */
#include "roles/worker.h"

#include "base/clock.h"
#include "base/log.h"
#include "kv/transfer.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

/* Steps after which the router is told which experts were chosen. */
#define COUNTS_STEPS 32u

typedef struct sequence {
    uint64_t id;
    akin_worker_t *worker;
    akin_message_decode_t request; /* its tokens are in `tokens` */
    uint32_t *tokens;              /* [n_prompt + max_tokens] */
    uint32_t n_tokens;             /* the last one has not been computed */
    uint32_t n_prompt;
    uint32_t *slots; /* [n_slots] for all tokens it may have */
    uint32_t n_slots;
    uint32_t n_shared; /* blocks that were in the cache */
    uint32_t n_sealed; /* full blocks */
    uint64_t chain;    /* hash of the last full block */
    uint16_t *routes;  /* [max_tokens - 1][n_layers][top_k] of the generated
                        * tokens that were computed, or NULL */
    int is_running;
    int has_transfer;
    uint64_t transfer;
    int in_job;
    int canceled; /* or finished: forget it when nothing uses it */
    UT_hash_handle hh;
    struct sequence *prev, *next; /* running ones */
} sequence_t;

typedef struct decode {
    sequence_t *by_id;
    sequence_t *running;
    akin_kv_transfers_t *transfers;
    akin_message_token_t *out; /* [max_rows] */
    uint32_t n_uncounted_steps;
} decode_t;

static void forget(akin_worker_t *w, sequence_t *s)
{
    decode_t *d = w->state;
    if (s->is_running)
        DL_DELETE(d->running, s);
    HASH_DEL(d->by_id, s);
    for (uint32_t b = s->n_slots; b-- > 0;)
        akin_kv_cache_unref(w->cache, s->slots[b]);
    free(s->request.blocks);
    free(s->tokens);
    free(s->slots);
    free(s->routes);
    free(s);
}

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

static uint64_t chain_of(const akin_worker_t *w, uint32_t slot)
{
    akin_kv_header_t header;
    memcpy(&header, akin_kv_slot(w->view, slot), sizeof(header));
    return header.chain_hash;
}

/* All blocks of the prompt are here: those that were read join the prefix
 * index, and the request takes part in the next step. */
static akin_status_t start_running(akin_worker_t *w, sequence_t *s)
{
    decode_t *d = w->state;
    const uint32_t block_tokens = w->view->layout->shape.block_tokens;
    s->chain = s->n_shared > 0 ? chain_of(w, s->slots[s->n_shared - 1])
                               : AKIN_KV_ROOT_HASH;
    for (uint32_t b = s->n_shared; b < s->request.n_blocks; b++) {
        const akin_kv_descriptor_t *block = &s->request.blocks[b];
        akin_status_t status =
            akin_kv_cache_adopt(w->cache, s->slots[b], s->chain, block,
                                s->tokens + (size_t)b * block_tokens);
        if (status != AKIN_OK)
            return status;
        if (block->n_tokens == block_tokens)
            s->chain = block->chain_hash;
    }
    s->n_sealed = s->n_prompt / block_tokens;
    s->is_running = 1;
    DL_APPEND(d->running, s);
    return AKIN_OK;
}

static void transfer_done(void *arg, const akin_kv_transfer_result_t *result)
{
    sequence_t *s = arg;
    akin_worker_t *w = s->worker;
    akin_kv_transfer_result_t r = *result;
    s->has_transfer = 0;
    if (s->canceled) {
        forget(w, s);
        return;
    }
    if (r.status == AKIN_OK) {
        r.status = start_running(w, s);
        if (r.status != AKIN_OK) {
            r.status = AKIN_ERR_REFUSED;
            r.refusal = AKIN_KV_REFUSAL_CHAIN;
        }
    }
    send_transferred(w, s->id, &r, s->n_shared);
    release(w, s->request.owner, s->id);
    if (r.status != AKIN_OK)
        forget(w, s);
}

/* What the router cannot have meant. */
static akin_status_t check(const akin_worker_t *w,
                           const akin_message_decode_t *m)
{
    const uint32_t block_tokens = w->view->layout->shape.block_tokens;
    const size_t n_prompt = m->n_tokens - 1;
    if (n_prompt + m->how.max_tokens > w->model->max_positions ||
        m->how.max_tokens < 2 ||
        m->n_blocks != (n_prompt - 1) / block_tokens + 1 || m->owner == w->rank)
        return AKIN_ERR_RANGE;
    for (size_t b = 0; b < m->n_blocks; b++) {
        size_t left = n_prompt - b * block_tokens;
        if (m->blocks[b].n_tokens !=
            (left < block_tokens ? left : block_tokens))
            return AKIN_ERR_RANGE;
    }
    for (size_t i = 0; i < m->n_tokens; i++)
        if (m->tokens[i] >= w->model->vocab_size)
            return AKIN_ERR_RANGE;
    return AKIN_OK;
}

/* Slots for everything that the request may become, so that it can never run
 * out of them half way: full blocks that are here already, then fresh ones. */
static akin_status_t take_slots(akin_worker_t *w, sequence_t *s)
{
    const uint32_t block_tokens = w->view->layout->shape.block_tokens;
    uint32_t n = akin_kv_cache_match(w->cache, s->tokens, s->n_prompt,
                                     s->n_prompt / block_tokens, s->slots);
    akin_status_t status =
        akin_kv_cache_take_run(w->cache, s->n_slots - n, s->slots + n);
    if (status != AKIN_OK) {
        while (n > 0)
            akin_kv_cache_unref(w->cache, s->slots[--n]);
        s->n_slots = 0;
        return status;
    }
    s->n_shared = n;
    return AKIN_OK;
}

static akin_status_t start_transfer(akin_worker_t *w, sequence_t *s)
{
    decode_t *d = w->state;
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

/* Experts that a token chooses. */
static size_t route_size(const akin_worker_t *w)
{
    return (size_t)w->model->n_layers * w->model->top_k;
}

static sequence_t *create(akin_worker_t *w, const akin_message_decode_t *m)
{
    const uint32_t block_tokens = w->view->layout->shape.block_tokens;
    const uint32_t n_prompt = (uint32_t)m->n_tokens - 1;
    const uint32_t n_all = n_prompt + m->how.max_tokens;
    sequence_t *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return NULL;
    s->id = m->id;
    s->worker = w;
    s->request = *m;
    s->n_prompt = n_prompt;
    s->n_tokens = n_prompt + 1;
    /* The last token is never computed. */
    s->n_slots = (n_all - 2) / block_tokens + 1;
    s->tokens = calloc(n_all, sizeof(*s->tokens));
    s->slots = calloc(s->n_slots, sizeof(*s->slots));
    if (w->job->record_routes)
        s->routes = calloc((size_t)(m->how.max_tokens - 1) * route_size(w),
                           sizeof(*s->routes));
    if (s->tokens == NULL || s->slots == NULL ||
        (w->job->record_routes && s->routes == NULL)) {
        free(s->tokens);
        free(s->slots);
        free(s->routes);
        free(s);
        return NULL;
    }
    memcpy(s->tokens, m->tokens, m->n_tokens * sizeof(*s->tokens));
    return s;
}

static void take_request(akin_worker_t *w, const void *payload, size_t bytes)
{
    decode_t *d = w->state;
    akin_message_decode_t m;
    akin_status_t status = akin_message_unpack_decode(payload, bytes, &m);
    if (status != AKIN_OK) {
        akin_worker_refuse(AKIN_ROUTER_RANK, AKIN_MESSAGE_DECODE, status);
        return;
    }
    sequence_t *s;
    HASH_FIND(hh, d->by_id, &m.id, sizeof(m.id), s);
    status = s != NULL ? AKIN_ERR_EXISTS : check(w, &m);
    s = NULL;
    if (status == AKIN_OK) {
        s = create(w, &m);
        status = s != NULL ? AKIN_OK : AKIN_ERR_NOMEM;
    }
    free(m.tokens);
    if (s == NULL) {
        free(m.blocks);
    } else {
        s->request.tokens = NULL;
        HASH_ADD(hh, d->by_id, id, sizeof(s->id), s);
        status = take_slots(w, s);
        if (status == AKIN_OK)
            status = start_transfer(w, s);
    }
    if (status != AKIN_OK) {
        const akin_kv_transfer_result_t failed = {.status = status};
        send_transferred(w, m.id, &failed, 0);
        if (s != NULL)
            forget(w, s);
    }
}

static void cancel(akin_worker_t *w, uint64_t id)
{
    decode_t *d = w->state;
    sequence_t *s;
    HASH_FIND(hh, d->by_id, &id, sizeof(id), s);
    if (s == NULL)
        return; /* finished before */
    s->canceled = 1;
    if (s->has_transfer)
        akin_kv_transfers_cancel(d->transfers, s->transfer);
    else if (!s->in_job)
        forget(w, s);
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
    decode_t *d = w->state;
    sequence_t *s;
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

static void keep_routes(const akin_worker_t *w, sequence_t *s,
                        const akin_stepper_row_t *row)
{
    const size_t n = route_size(w);
    if (s->routes != NULL)
        memcpy(s->routes + (row->position - s->n_prompt) * n, row->routes,
               n * sizeof(*s->routes));
}

static void send_routes(akin_worker_t *w, const sequence_t *s)
{
    /* The last token is never computed. */
    if (s->routes != NULL)
        akin_worker_send_routes(w, s->id, s->n_prompt,
                                s->n_tokens - 1 - s->n_prompt, s->routes);
}

/* The token that a row gave; says whether it was the last one. */
static int take_token(akin_worker_t *w, sequence_t *s,
                      const akin_stepper_row_t *row, akin_message_token_t *out)
{
    const uint32_t block_tokens = w->view->layout->shape.block_tokens;
    if (s->n_tokens % block_tokens == 0) {
        uint32_t first = s->n_tokens - block_tokens;
        s->chain =
            akin_kv_cache_seal(w->cache, s->slots[s->n_sealed++], s->chain,
                               s->tokens + first, block_tokens);
    }
    s->tokens[s->n_tokens++] = row->token;
    *out = (akin_message_token_t){
        .id = s->id,
        .token = row->token,
        .has_logprob = s->request.how.want_logprobs,
        .logprob = row->logprob,
    };
    if (!s->request.how.ignore_eos &&
        akin_model_config_is_eos(w->model, row->token))
        out->finished = 1 + AKIN_FINISH_STOP;
    else if (s->n_tokens == s->n_prompt + s->request.how.max_tokens)
        out->finished = 1 + AKIN_FINISH_LENGTH;
    return out->finished != 0;
}

static void send_counts(akin_worker_t *w)
{
    decode_t *d = w->state;
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
    decode_t *d = w->state;
    akin_message_tokens_t m = {.tokens = d->out};
    akin_worker_report(w, job, &m.step);
    if (job->status != AKIN_OK) {
        AKIN_LOG(ROLES, ERROR, "decode step failed: %s",
                 akin_status_string(job->status));
        w->failure = job->status;
        return;
    }
    for (uint32_t i = 0; i < job->n_rows; i++) {
        sequence_t *s = job->rows[i].owner;
        s->in_job = 0;
        if (s->canceled)
            continue;
        keep_routes(w, s, &job->rows[i]);
        s->canceled = take_token(w, s, &job->rows[i], &m.tokens[m.n_tokens++]);
        if (s->canceled)
            send_routes(w, s);
    }
    akin_message_pack_tokens(&w->packer, &m);
    akin_worker_send(w, AKIN_ROUTER_RANK, AKIN_MESSAGE_TOKENS);
    for (uint32_t i = 0; i < job->n_rows; i++) {
        sequence_t *s = job->rows[i].owner;
        if (s->canceled)
            forget(w, s);
    }
    send_counts(w);
}

static int64_t expire(akin_worker_t *w, int64_t now_ns)
{
    decode_t *d = w->state;
    return akin_kv_transfers_expire(d->transfers, now_ns);
}

static void stats(akin_worker_t *w, akin_message_stats_t *m)
{
    (void)w;
    (void)m;
}

static const akin_worker_role_t role = {
    .message = on_message,
    .peer_lost = on_peer_lost,
    .finished = on_finished,
    .fill = fill,
    .expire = expire,
    .stats = stats,
};

akin_status_t akin_decode_run(akin_worker_t *worker)
{
    decode_t state = {.out = calloc(worker->max_rows, sizeof(*state.out))};
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
    sequence_t *s, *next;
    HASH_ITER(hh, state.by_id, s, next)
    {
        s->canceled = 1;
        if (s->has_transfer)
            akin_kv_transfers_cancel(state.transfers, s->transfer);
        else
            forget(worker, s);
    }
    akin_kv_transfers_destroy(state.transfers);
    free(state.out);
    return status;
}
