/* Sequence: a request of a decode rank, its slots and its tokens. */
#include "roles/decode_state.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Experts that a token chooses. */
static size_t route_size(const akin_worker_t *w)
{
    return (size_t)w->model->n_layers * w->model->top_k;
}

akin_status_t akini_sequence_check(const akin_worker_t *w,
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

akini_sequence_t *akini_sequence_create(akin_worker_t *w,
                                        const akin_message_decode_t *m)
{
    const uint32_t block_tokens = w->view->layout->shape.block_tokens;
    const uint32_t n_prompt = (uint32_t)m->n_tokens - 1;
    const uint32_t n_all = n_prompt + m->how.max_tokens;
    akini_sequence_t *s = calloc(1, sizeof(*s));
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

void akini_sequence_forget(akin_worker_t *w, akini_sequence_t *s)
{
    akini_decode_t *d = w->state;
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

akin_status_t akini_sequence_take_slots(akin_worker_t *w, akini_sequence_t *s)
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

static uint64_t chain_of(const akin_worker_t *w, uint32_t slot)
{
    akin_kv_header_t header;
    memcpy(&header, akin_kv_slot(w->view, slot), sizeof(header));
    return header.chain_hash;
}

akin_status_t akini_sequence_run(akin_worker_t *w, akini_sequence_t *s)
{
    akini_decode_t *d = w->state;
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

static void keep_routes(const akin_worker_t *w, akini_sequence_t *s,
                        const akin_stepper_row_t *row)
{
    const size_t n = route_size(w);
    if (s->routes != NULL)
        memcpy(s->routes + (row->position - s->n_prompt) * n, row->routes,
               n * sizeof(*s->routes));
}

int akini_sequence_token(akin_worker_t *w, akini_sequence_t *s,
                         const akin_stepper_row_t *row,
                         akin_message_token_t *out)
{
    const uint32_t block_tokens = w->view->layout->shape.block_tokens;
    if (s->n_tokens % block_tokens == 0) {
        uint32_t first = s->n_tokens - block_tokens;
        s->chain =
            akin_kv_cache_seal(w->cache, s->slots[s->n_sealed++], s->chain,
                               s->tokens + first, block_tokens);
    }
    keep_routes(w, s, row);
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

void akini_sequence_send_routes(akin_worker_t *w, const akini_sequence_t *s)
{
    /* The last token is never computed. */
    if (s->routes != NULL)
        akin_worker_send_routes(w, s->id, s->n_prompt,
                                s->n_tokens - 1 - s->n_prompt, s->routes);
}
