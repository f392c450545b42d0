/* Prefill: computes prompts in chunks and keeps their blocks until a decode
 * worker has read them. */
#include "roles/worker.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

/* How long a prompt lets others pass that need fewer slots. */
#define PATIENCE_NS AKIN_NS_PER_S

typedef enum prompt_state {
    PROMPT_WAITING, /* has no slots yet */
    PROMPT_RUNNING, /* is being computed */
    PROMPT_PINNED   /* computed; blocks are kept under a lease */
} prompt_state_t;

typedef struct prompt {
    uint64_t id;
    akin_message_prefill_t request; /* its tokens are the prompt's own */
    prompt_state_t state;
    uint32_t *slots; /* [n_blocks] */
    uint32_t n_blocks;
    uint32_t n_cached; /* blocks found in the cache */
    uint32_t n_done;   /* tokens computed or cached */
    uint32_t n_sealed; /* blocks sealed or cached */
    uint64_t chain;    /* hash of the last sealed block */
    uint32_t in_job;   /* tokens that the engine is computing now */
    int canceled;      /* forget it when the job is back */
    int64_t lease_ns;  /* pinned: until then */
    int64_t arrival_ns;
    UT_hash_handle hh;
    struct prompt *prev, *next; /* list of its state */
} prompt_t;

typedef struct prefill {
    prompt_t *by_id;
    prompt_t *waiting, *running, *pinned;
    uint16_t *counts; /* [n_layers][n_experts] scratch */
    uint64_t n_expired;
} prefill_t;

static prompt_t **list_of(prefill_t *p, const prompt_t *prompt)
{
    switch (prompt->state) {
    case PROMPT_WAITING:
        return &p->waiting;
    case PROMPT_RUNNING:
        return &p->running;
    default:
        return &p->pinned;
    }
}

static void move(prefill_t *p, prompt_t *prompt, prompt_state_t state)
{
    prompt_t **list = list_of(p, prompt);
    DL_DELETE(*list, prompt);
    prompt->state = state;
    list = list_of(p, prompt);
    DL_APPEND(*list, prompt);
}

static void forget(akin_worker_t *w, prompt_t *prompt)
{
    prefill_t *p = w->state;
    prompt_t **list = list_of(p, prompt);
    DL_DELETE(*list, prompt);
    HASH_DEL(p->by_id, prompt);
    /* From the end, so that the cache evicts a chain from its end. */
    if (prompt->state != PROMPT_WAITING)
        for (uint32_t b = prompt->n_blocks; b-- > 0;)
            akin_kv_cache_unref(w->cache, prompt->slots[b]);
    free(prompt->request.tokens);
    free(prompt->slots);
    free(prompt);
}

static void fail(akin_worker_t *w, uint64_t id, akin_status_t status)
{
    const akin_message_prefilled_t m = {.id = id, .status = status};
    akin_message_pack_prefilled(&w->packer, &m);
    akin_worker_send(w, AKIN_ROUTER_RANK, AKIN_MESSAGE_PREFILLED);
}

static void take_prompt(akin_worker_t *w, const void *payload, size_t bytes)
{
    prefill_t *p = w->state;
    akin_message_prefill_t m;
    akin_status_t status = akin_message_unpack_prefill(payload, bytes, &m);
    if (status != AKIN_OK) {
        akin_worker_refuse(AKIN_ROUTER_RANK, AKIN_MESSAGE_PREFILL, status);
        return;
    }
    const uint32_t block_tokens = w->view->layout->shape.block_tokens;
    prompt_t *old;
    HASH_FIND(hh, p->by_id, &m.id, sizeof(m.id), old);
    uint64_t n_blocks = (m.n_tokens - 1) / block_tokens + 1;
    prompt_t *prompt = calloc(1, sizeof(*prompt));
    uint32_t *slots = calloc(n_blocks, sizeof(*slots));
    if (prompt == NULL || slots == NULL)
        status = AKIN_ERR_NOMEM;
    else if (old != NULL)
        status = AKIN_ERR_EXISTS;
    else if (m.n_tokens >= w->model->max_positions ||
             n_blocks > w->view->n_slots)
        status = AKIN_ERR_RANGE;
    if (status != AKIN_OK) {
        free(prompt);
        free(slots);
        free(m.tokens);
        fail(w, m.id, status);
        return;
    }
    prompt->id = m.id;
    prompt->request = m;
    prompt->slots = slots;
    prompt->arrival_ns = akin_clock_now_ns();
    prompt->n_blocks = (uint32_t)n_blocks;
    HASH_ADD(hh, p->by_id, id, sizeof(prompt->id), prompt);
    DL_APPEND(p->waiting, prompt);
}

static void on_message(akin_worker_t *w, uint32_t from, uint16_t type,
                       const void *payload, size_t bytes)
{
    prefill_t *p = w->state;
    uint64_t id;
    prompt_t *prompt;
    if (type == AKIN_MESSAGE_PREFILL) {
        take_prompt(w, payload, bytes);
        return;
    }
    akin_status_t status = akin_message_unpack_id(payload, bytes, &id);
    if (status != AKIN_OK) {
        akin_worker_refuse(from, type, status);
        return;
    }
    HASH_FIND(hh, p->by_id, &id, sizeof(id), prompt);
    if (prompt == NULL)
        return; /* released, expired or canceled before */
    if (type == AKIN_MESSAGE_KEEP) {
        prompt->lease_ns = akin_clock_now_ns() + w->job->lease_ns;
    } else if (type == AKIN_MESSAGE_RELEASE || type == AKIN_MESSAGE_CANCEL) {
        if (prompt->in_job > 0)
            prompt->canceled = 1;
        else
            forget(w, prompt);
    } else {
        akin_worker_refuse(from, type, AKIN_ERR_UNSUPPORTED);
    }
}

static void on_peer_lost(akin_worker_t *w, uint32_t rank)
{
    /* Its blocks stay under their leases: the router sends the requests to
     * another decode worker, or releases them. */
    (void)w;
    AKIN_LOG(ROLES, INFO, "decode rank %u is lost", rank);
}

/* Slots for a prompt: cached blocks first, except the one that holds the last
 * token, which must be computed for its logits. */
static int admit(akin_worker_t *w, prompt_t *prompt)
{
    prefill_t *p = w->state;
    const uint32_t block_tokens = w->view->layout->shape.block_tokens;
    const uint32_t n_tokens = (uint32_t)prompt->request.n_tokens;
    uint32_t n = 0;
    if (!prompt->request.fresh)
        n = akin_kv_cache_match(w->cache, prompt->request.tokens, n_tokens,
                                (n_tokens - 1) / block_tokens, prompt->slots);
    if (akin_kv_cache_take_run(w->cache, prompt->n_blocks - n,
                               prompt->slots + n) != AKIN_OK) {
        while (n > 0)
            akin_kv_cache_unref(w->cache, prompt->slots[--n]);
        return 0;
    }
    prompt->n_cached = n;
    prompt->n_sealed = n;
    prompt->n_done = n * block_tokens;
    prompt->chain = AKIN_KV_ROOT_HASH;
    if (n > 0) {
        akin_kv_header_t header;
        memcpy(&header, akin_kv_slot(w->view, prompt->slots[n - 1]),
               sizeof(header));
        prompt->chain = header.chain_hash;
    }
    move(p, prompt, PROMPT_RUNNING);
    return 1;
}

static uint32_t add_row(akin_stepper_job_t *job, prompt_t *prompt,
                        uint32_t budget)
{
    const uint32_t n_tokens = (uint32_t)prompt->request.n_tokens;
    uint32_t n = n_tokens - prompt->n_done;
    n = n < budget ? n : budget;
    job->rows[job->n_rows++] = (akin_stepper_row_t){
        .owner = prompt,
        .tokens = prompt->request.tokens + prompt->n_done,
        .n_tokens = n,
        .position = prompt->n_done,
        .slots = prompt->slots,
        .how = prompt->n_done + n == n_tokens ? &prompt->request.how : NULL,
        .history = prompt->request.tokens,
    };
    prompt->in_job = n;
    return n;
}

/* A chunk: the prompts that run, in the order in which they came, then those
 * that wait and for which there is room, unless one has waited for it too long
 * to be passed. */
static void fill(akin_worker_t *w, akin_stepper_job_t *job)
{
    prefill_t *p = w->state;
    const int64_t now = akin_clock_now_ns();
    uint32_t budget = w->job->chunk_tokens;
    prompt_t *prompt, *next;
    DL_FOREACH(p->running, prompt)
    {
        if (budget == 0 || job->n_rows == w->max_rows)
            return;
        budget -= add_row(job, prompt, budget);
    }
    DL_FOREACH_SAFE(p->waiting, prompt, next)
    {
        if (budget == 0 || job->n_rows == w->max_rows)
            return;
        if (admit(w, prompt))
            budget -= add_row(job, prompt, budget);
        else if (now - prompt->arrival_ns >= PATIENCE_NS)
            return;
    }
}

/* A waiting prompt without room is no work: a worker of several ranks would
 * step in vain. */
static int has_work(akin_worker_t *w)
{
    prefill_t *p = w->state;
    const int64_t now = akin_clock_now_ns();
    prompt_t *prompt, *next;
    if (p->running != NULL)
        return 1;
    DL_FOREACH_SAFE(p->waiting, prompt, next)
    {
        if (admit(w, prompt))
            return 1;
        if (now - prompt->arrival_ns >= PATIENCE_NS)
            return 0;
    }
    return 0;
}

/* Blocks that are complete now; the last one of the prompt may be partial. */
static void seal(akin_worker_t *w, prompt_t *prompt)
{
    const uint32_t block_tokens = w->view->layout->shape.block_tokens;
    const uint32_t n_tokens = (uint32_t)prompt->request.n_tokens;
    while (prompt->n_sealed < prompt->n_blocks) {
        uint32_t first = prompt->n_sealed * block_tokens;
        uint32_t n = n_tokens - first;
        n = n < block_tokens ? n : block_tokens;
        if (first + n > prompt->n_done)
            return;
        prompt->chain = akin_kv_cache_seal(
            w->cache, prompt->slots[prompt->n_sealed++], prompt->chain,
            prompt->request.tokens + first, n);
    }
}

static void answer(akin_worker_t *w, prompt_t *prompt,
                   const akin_stepper_row_t *row)
{
    prefill_t *p = w->state;
    const akin_kv_layout_t *layout = w->view->layout;
    const uint32_t block_tokens = layout->shape.block_tokens;
    const size_t n_counts =
        (size_t)layout->shape.n_layers * layout->shape.n_experts;
    akin_kv_descriptor_t *blocks = calloc(prompt->n_blocks, sizeof(*blocks));
    if (blocks == NULL) {
        fail(w, prompt->id, AKIN_ERR_NOMEM);
        forget(w, prompt);
        return;
    }
    memset(p->counts, 0, n_counts * sizeof(*p->counts));
    for (uint32_t b = 0; b < prompt->n_blocks; b++) {
        const unsigned char *slot = akin_kv_slot(w->view, prompt->slots[b]);
        akin_kv_header_t header;
        memcpy(&header, slot, sizeof(header));
        blocks[b] = (akin_kv_descriptor_t){
            .slot = prompt->slots[b],
            .n_tokens = header.n_tokens,
            .generation = header.generation,
            .chain_hash = header.chain_hash,
        };
        akin_kv_sidecar_add(layout, slot, p->counts);
    }
    const akin_message_prefilled_t m = {
        .id = prompt->id,
        .token = row->token,
        .logprob = row->logprob,
        .n_cached_blocks = prompt->n_cached,
        .n_queried_blocks =
            (uint32_t)((prompt->request.n_tokens - 1) / block_tokens),
        .blocks = blocks,
        .n_blocks = prompt->n_blocks,
        .counts = p->counts,
        .n_counts = n_counts,
    };
    akin_message_pack_prefilled(&w->packer, &m);
    akin_worker_send(w, AKIN_ROUTER_RANK, AKIN_MESSAGE_PREFILLED);
    free(blocks);
    prompt->lease_ns = akin_clock_now_ns() + w->job->lease_ns;
    move(p, prompt, PROMPT_PINNED);
}

static void on_finished(akin_worker_t *w, akin_stepper_job_t *job)
{
    akin_message_step_t step;
    akin_worker_report(w, job, &step);
    /* The router starts the prompts again elsewhere. */
    if (job->status != AKIN_OK && w->ep_group != NULL) {
        akin_worker_fail_step(w, job->status);
        return;
    }
    akin_message_pack_step(&w->packer, &step);
    akin_worker_send(w, AKIN_ROUTER_RANK, AKIN_MESSAGE_STEP);
    for (uint32_t i = 0; i < job->n_rows; i++) {
        const akin_stepper_row_t *row = &job->rows[i];
        prompt_t *prompt = row->owner;
        prompt->n_done += prompt->in_job;
        prompt->in_job = 0;
        if (prompt->canceled) {
            forget(w, prompt);
        } else if (job->status != AKIN_OK) {
            fail(w, prompt->id, job->status);
            forget(w, prompt);
        } else {
            if (row->routes != NULL)
                akin_worker_send_routes(w, prompt->id, row->position,
                                        row->n_tokens, row->routes);
            seal(w, prompt);
            if (prompt->n_done == prompt->request.n_tokens)
                answer(w, prompt, row);
        }
    }
}

static int64_t expire(akin_worker_t *w, int64_t now_ns)
{
    prefill_t *p = w->state;
    int64_t next_ns = INT64_MAX;
    prompt_t *prompt, *next;
    DL_FOREACH_SAFE(p->pinned, prompt, next)
    {
        if (prompt->lease_ns <= now_ns) {
            AKIN_LOG(ROLES, WARN, "request %llu: its lease has ended",
                     (unsigned long long)prompt->id);
            p->n_expired++;
            forget(w, prompt);
        } else if (prompt->lease_ns < next_ns) {
            next_ns = prompt->lease_ns;
        }
    }
    return next_ns;
}

static void stats(akin_worker_t *w, akin_message_stats_t *m)
{
    const prefill_t *p = w->state;
    m->leases_expired = p->n_expired;
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

akin_status_t akin_prefill_run(akin_worker_t *worker)
{
    const akin_kv_shape_t *shape = &worker->view->layout->shape;
    prefill_t state = {
        .counts = calloc((size_t)shape->n_layers * shape->n_experts,
                         sizeof(uint16_t)),
    };
    if (state.counts == NULL)
        return AKIN_ERR_NOMEM;
    worker->role = &role;
    worker->state = &state;
    akin_status_t status = akin_worker_run(worker);
    prompt_t *prompt, *next;
    HASH_ITER(hh, state.by_id, prompt, next)
    forget(worker, prompt);
    free(state.counts);
    return status;
}
