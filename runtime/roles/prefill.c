/* Prefill: computes prompts in chunks and keeps their blocks until a decode
 * worker has read them. */
#include "roles/prefill_state.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* How long a prompt lets others pass that need fewer slots. */
#define PATIENCE_NS AKIN_NS_PER_S

static void fail(akin_worker_t *w, uint64_t id, akin_status_t status)
{
    const akin_message_prefilled_t m = {.id = id, .status = status};
    akin_message_pack_prefilled(&w->packer, &m);
    akin_worker_send(w, AKIN_ROUTER_RANK, AKIN_MESSAGE_PREFILLED);
}

static void take_prompt(akin_worker_t *w, const void *payload, size_t bytes)
{
    akini_prefill_t *p = w->state;
    akin_message_prefill_t m;
    akin_status_t status = akin_message_unpack_prefill(payload, bytes, &m);
    if (status != AKIN_OK) {
        /* Nobody knows whose it was: its request goes on with another worker
         * only when this one is lost. */
        akin_worker_fail(w, status, "a PREFILL cannot be read: %s",
                         akin_status_string(status));
        return;
    }
    const uint32_t block_tokens = w->view->layout->shape.block_tokens;
    const uint64_t n_blocks = (m.n_tokens - 1) / block_tokens + 1;
    if (akini_prompt_find(p, m.id) != NULL) {
        status = AKIN_ERR_EXISTS;
    } else if (m.n_tokens >= w->model->max_positions ||
               n_blocks > w->view->n_slots) {
        status = AKIN_ERR_RANGE;
    } else {
        if (m.fresh)
            akini_prefill_doubt(w, &m);
        status = akini_prompt_create(w, &m, (uint32_t)n_blocks);
    }
    if (status != AKIN_OK) {
        free(m.tokens);
        fail(w, m.id, status);
    }
}

static void on_message(akin_worker_t *w, uint32_t from, uint16_t type,
                       const void *payload, size_t bytes)
{
    uint64_t id;
    if (type == AKIN_MESSAGE_PREFILL) {
        take_prompt(w, payload, bytes);
        return;
    }
    akin_status_t status = akin_message_unpack_id(payload, bytes, &id);
    if (status != AKIN_OK) {
        akin_worker_refuse(from, type, status);
        return;
    }
    akini_prompt_t *prompt = akini_prompt_find(w->state, id);
    if (prompt == NULL)
        return; /* released, expired or canceled before */
    if (type == AKIN_MESSAGE_KEEP) {
        prompt->lease_ns = akin_clock_now_ns() + w->job->lease_ns;
    } else if (type == AKIN_MESSAGE_RELEASE || type == AKIN_MESSAGE_CANCEL) {
        if (prompt->in_job > 0)
            prompt->is_canceled = 1;
        else
            akini_prompt_forget(w, prompt);
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
static int admit(akin_worker_t *w, akini_prompt_t *prompt)
{
    akini_prefill_t *p = w->state;
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
    akini_prompt_move(p, prompt, AKINI_PROMPT_RUNNING);
    return 1;
}

static uint32_t add_row(akin_stepper_job_t *job, akini_prompt_t *prompt,
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
    akini_prefill_t *p = w->state;
    const int64_t now = akin_clock_now_ns();
    uint32_t budget = w->job->chunk_tokens;
    akini_prompt_t *prompt, *next;
    DL_FOREACH(p->lists[AKINI_PROMPT_RUNNING], prompt)
    {
        if (budget == 0 || job->n_rows == w->max_rows)
            return;
        budget -= add_row(job, prompt, budget);
    }
    DL_FOREACH_SAFE(p->lists[AKINI_PROMPT_WAITING], prompt, next)
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
    akini_prefill_t *p = w->state;
    const int64_t now = akin_clock_now_ns();
    akini_prompt_t *prompt, *next;
    if (p->lists[AKINI_PROMPT_RUNNING] != NULL)
        return 1;
    DL_FOREACH_SAFE(p->lists[AKINI_PROMPT_WAITING], prompt, next)
    {
        if (admit(w, prompt))
            return 1;
        if (now - prompt->arrival_ns >= PATIENCE_NS)
            return 0;
    }
    return 0;
}

/* Blocks that are complete now; the last one of the prompt may be partial. */
static void seal(akin_worker_t *w, akini_prompt_t *prompt)
{
    const uint32_t block_tokens = w->view->layout->shape.block_tokens;
    const uint32_t n_tokens = (uint32_t)prompt->request.n_tokens;
    while (prompt->n_sealed < prompt->n_blocks) {
        uint32_t first = prompt->n_sealed * block_tokens;
        uint32_t n = n_tokens - first;
        n = n < block_tokens ? n : block_tokens;
        if (first + n > prompt->n_done)
            return;
        uint32_t slot = prompt->slots[prompt->n_sealed++];
        prompt->chain = akin_kv_cache_seal(w->cache, slot, prompt->chain,
                                           prompt->request.tokens + first, n);
#ifdef AKIN_FAULTS
        akini_prefill_t *p = w->state;
        akini_kv_faults_damage_owned(&p->faults, w->view->layout,
                                     akin_kv_slot(w->view, slot));
#endif
    }
}

static void answer(akin_worker_t *w, akini_prompt_t *prompt,
                   const akin_stepper_row_t *row)
{
    akini_prefill_t *p = w->state;
    const akin_kv_layout_t *layout = w->view->layout;
    const uint32_t block_tokens = layout->shape.block_tokens;
    const size_t n_counts =
        (size_t)layout->shape.n_layers * layout->shape.n_experts;
    akin_kv_descriptor_t *blocks = calloc(prompt->n_blocks, sizeof(*blocks));
    if (blocks == NULL) {
        fail(w, prompt->id, AKIN_ERR_NOMEM);
        akini_prompt_forget(w, prompt);
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
    akini_prefill_pin(w, prompt);
}

static void on_finished(akin_worker_t *w, akin_stepper_job_t *job)
{
    akin_message_step_t step;
    akin_worker_report(w, job, &step);
    /* The router starts the prompts again elsewhere. */
    if (job->status != AKIN_OK) {
        akin_worker_fail_step(w, job->status);
        return;
    }
    akin_message_pack_step(&w->packer, &step);
    akin_worker_send(w, AKIN_ROUTER_RANK, AKIN_MESSAGE_STEP);
    for (uint32_t i = 0; i < job->n_rows; i++) {
        const akin_stepper_row_t *row = &job->rows[i];
        akini_prompt_t *prompt = row->owner;
        prompt->n_done += prompt->in_job;
        prompt->in_job = 0;
        if (prompt->is_canceled) {
            akini_prompt_forget(w, prompt);
        } else if (prompt->is_doubted) {
            akini_prompt_restart(w, prompt);
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

/* Nothing comes of what is not computed by now. */
static void drop_unfinished(akin_worker_t *w)
{
    akini_prefill_t *p = w->state;
    akini_prompt_t *prompt, *next;
    HASH_ITER(hh, p->by_id, prompt, next)
    if (prompt->state != AKINI_PROMPT_PINNED)
        akini_prompt_forget(w, prompt);
}

static void stats(akin_worker_t *w, akin_message_stats_t *m)
{
    akin_kv_cache_stats_t cache;
    drop_unfinished(w);
    akini_prefill_end_leases(w, m);
    akin_kv_cache_stats(w->cache, &cache);
    m->pinned_blocks = cache.n_referenced;
}

static const akin_worker_role_t role = {
    .message = on_message,
    .peer_lost = on_peer_lost,
    .finished = on_finished,
    .fill = fill,
    .has_work = has_work,
    .expire = akini_prefill_expire,
    .stats = stats,
};

akin_status_t akin_prefill_run(akin_worker_t *worker)
{
    const akin_kv_shape_t *shape = &worker->view->layout->shape;
    akini_prefill_t state = {0};
#ifdef AKIN_FAULTS
    akin_error_t err = {{0}};
    if (akini_kv_faults_init(&state.faults, &err) != AKIN_OK) {
        AKIN_LOG(ROLES, ERROR, "%s", err.text);
        return AKIN_ERR_CONFIG;
    }
#endif
    state.counts =
        calloc((size_t)shape->n_layers * shape->n_experts, sizeof(uint16_t));
    if (state.counts == NULL)
        return AKIN_ERR_NOMEM;
    worker->role = &role;
    worker->state = &state;
    akin_status_t status = akin_worker_run(worker);
    akini_prompt_t *prompt, *next;
    HASH_ITER(hh, state.by_id, prompt, next)
    akini_prompt_forget(worker, prompt);
    free(state.counts);
    return status;
}
