/* Message: packing and unpacking of requests, blocks, tokens and steps. */
#include "roles/message.h"

#include <stdlib.h>

/* Smallest sizes on the wire, which bound a count before memory is taken. */
#define DESCRIPTOR_BYTES 24u
#define TOKEN_BYTES 14u

static void pack_how(akin_packer_t *p, const akin_message_sampling_t *how)
{
    akin_packer_f32(p, how->sampling.temperature);
    akin_packer_f32(p, how->sampling.top_p);
    akin_packer_f32(p, how->sampling.min_p);
    akin_packer_f32(p, how->sampling.repetition_penalty);
    akin_packer_u32(p, how->sampling.top_k);
    akin_packer_u64(p, how->sampling.seed);
    akin_packer_u32(p, how->max_tokens);
    akin_packer_u8(p, how->ignore_eos);
    akin_packer_u8(p, how->want_logprobs);
    akin_packer_u8(p, how->n_top);
}

static void unpack_how(akin_unpacker_t *u, akin_message_sampling_t *how)
{
    how->sampling.temperature = akin_unpacker_f32(u);
    how->sampling.top_p = akin_unpacker_f32(u);
    how->sampling.min_p = akin_unpacker_f32(u);
    how->sampling.repetition_penalty = akin_unpacker_f32(u);
    how->sampling.top_k = akin_unpacker_u32(u);
    how->sampling.seed = akin_unpacker_u64(u);
    how->max_tokens = akin_unpacker_u32(u);
    how->ignore_eos = akin_unpacker_u8(u);
    how->want_logprobs = akin_unpacker_u8(u);
    how->n_top = akin_unpacker_u8(u);
    if (u->status == AKIN_OK &&
        (akin_sampling_check(&how->sampling, NULL) != AKIN_OK ||
         how->max_tokens == 0 || how->n_top > AKIN_REQUEST_MAX_TOP))
        u->status = AKIN_ERR_RANGE;
}

static void pack_blocks(akin_packer_t *p, const akin_kv_descriptor_t *blocks,
                        size_t n)
{
    akin_packer_u32(p, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        akin_packer_u32(p, blocks[i].slot);
        akin_packer_u32(p, blocks[i].n_tokens);
        akin_packer_u64(p, blocks[i].generation);
        akin_packer_u64(p, blocks[i].chain_hash);
    }
}

/* A count, checked against the bytes that are left. */
static size_t unpack_count(akin_unpacker_t *u, size_t element_bytes)
{
    size_t n = akin_unpacker_u32(u);
    if (u->status == AKIN_OK && n > (u->bytes - u->position) / element_bytes)
        u->status = AKIN_ERR_FORMAT;
    return u->status == AKIN_OK ? n : 0;
}

static akin_kv_descriptor_t *unpack_blocks(akin_unpacker_t *u, size_t *n_p)
{
    size_t n = unpack_count(u, DESCRIPTOR_BYTES);
    *n_p = 0;
    if (n == 0)
        return NULL;
    akin_kv_descriptor_t *blocks = calloc(n, sizeof(*blocks));
    if (blocks == NULL) {
        u->status = AKIN_ERR_NOMEM;
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        blocks[i].slot = akin_unpacker_u32(u);
        blocks[i].n_tokens = akin_unpacker_u32(u);
        blocks[i].generation = akin_unpacker_u64(u);
        blocks[i].chain_hash = akin_unpacker_u64(u);
    }
    *n_p = n;
    return blocks;
}

static void pack_logprob(akin_packer_t *p, const akin_token_logprob_t *l)
{
    akin_packer_f32(p, l->logprob);
    akin_packer_u8(p, (uint8_t)l->n_top);
    for (uint32_t i = 0; i < l->n_top; i++) {
        akin_packer_u32(p, l->top[i].id);
        akin_packer_f32(p, l->top[i].logprob);
    }
}

static void unpack_logprob(akin_unpacker_t *u, akin_token_logprob_t *l)
{
    l->logprob = akin_unpacker_f32(u);
    l->n_top = akin_unpacker_u8(u);
    if (l->n_top > AKIN_REQUEST_MAX_TOP) {
        u->status = AKIN_ERR_RANGE;
        l->n_top = 0;
    }
    for (uint32_t i = 0; i < l->n_top; i++) {
        l->top[i].id = akin_unpacker_u32(u);
        l->top[i].logprob = akin_unpacker_f32(u);
    }
}

void akin_message_pack_prefill(akin_packer_t *p,
                               const akin_message_prefill_t *m)
{
    akin_packer_u64(p, m->id);
    pack_how(p, &m->how);
    akin_packer_u8(p, m->fresh);
    akin_packer_u32s(p, m->tokens, m->n_tokens);
}

akin_status_t akin_message_unpack_prefill(const void *data, size_t bytes,
                                          akin_message_prefill_t *m)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    *m = (akin_message_prefill_t){.id = akin_unpacker_u64(&u)};
    unpack_how(&u, &m->how);
    m->fresh = akin_unpacker_u8(&u);
    m->tokens = akin_unpacker_u32s(&u, AKIN_MESSAGE_MAX_TOKENS, &m->n_tokens);
    akin_status_t status = akin_unpacker_finish(&u);
    if (status == AKIN_OK && m->n_tokens == 0)
        status = AKIN_ERR_RANGE;
    if (status != AKIN_OK)
        free(m->tokens);
    return status;
}

void akin_message_pack_prefilled(akin_packer_t *p,
                                 const akin_message_prefilled_t *m)
{
    akin_packer_u64(p, m->id);
    akin_packer_u32(p, (uint32_t)m->status);
    akin_packer_u32(p, m->token);
    pack_logprob(p, &m->logprob);
    akin_packer_u32(p, m->n_cached_blocks);
    akin_packer_u32(p, m->n_queried_blocks);
    pack_blocks(p, m->blocks, m->n_blocks);
    akin_packer_u16s(p, m->counts, m->n_counts);
}

akin_status_t akin_message_unpack_prefilled(const void *data, size_t bytes,
                                            akin_message_prefilled_t *m)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    *m = (akin_message_prefilled_t){.id = akin_unpacker_u64(&u)};
    m->status = (int32_t)akin_unpacker_u32(&u);
    m->token = akin_unpacker_u32(&u);
    unpack_logprob(&u, &m->logprob);
    m->n_cached_blocks = akin_unpacker_u32(&u);
    m->n_queried_blocks = akin_unpacker_u32(&u);
    m->blocks = unpack_blocks(&u, &m->n_blocks);
    m->counts = akin_unpacker_u16s(&u, AKIN_MESSAGE_MAX_TOKENS, &m->n_counts);
    akin_status_t status = akin_unpacker_finish(&u);
    if (status != AKIN_OK) {
        free(m->blocks);
        free(m->counts);
    }
    return status;
}

void akin_message_pack_decode(akin_packer_t *p, const akin_message_decode_t *m)
{
    akin_packer_u64(p, m->id);
    pack_how(p, &m->how);
    akin_packer_u32(p, m->owner);
    akin_packer_u32s(p, m->tokens, m->n_tokens);
    pack_blocks(p, m->blocks, m->n_blocks);
}

akin_status_t akin_message_unpack_decode(const void *data, size_t bytes,
                                         akin_message_decode_t *m)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    *m = (akin_message_decode_t){.id = akin_unpacker_u64(&u)};
    unpack_how(&u, &m->how);
    m->owner = akin_unpacker_u32(&u);
    m->tokens = akin_unpacker_u32s(&u, AKIN_MESSAGE_MAX_TOKENS, &m->n_tokens);
    m->blocks = unpack_blocks(&u, &m->n_blocks);
    akin_status_t status = akin_unpacker_finish(&u);
    if (status == AKIN_OK && (m->n_tokens < 2 || m->n_blocks == 0))
        status = AKIN_ERR_RANGE;
    if (status != AKIN_OK) {
        free(m->tokens);
        free(m->blocks);
    }
    return status;
}

static void pack_step(akin_packer_t *p, const akin_message_step_t *m)
{
    akin_packer_u64(p, (uint64_t)m->ns);
    akin_packer_u64(p, (uint64_t)m->idle_ns);
    akin_packer_u64(p, m->number);
    akin_packer_u32(p, m->n_rows);
    akin_packer_u16s(p, m->served, m->n_served);
}

static void unpack_step(akin_unpacker_t *u, akin_message_step_t *m)
{
    m->ns = (int64_t)akin_unpacker_u64(u);
    m->idle_ns = (int64_t)akin_unpacker_u64(u);
    m->number = akin_unpacker_u64(u);
    m->n_rows = akin_unpacker_u32(u);
    m->served = akin_unpacker_u16s(u, AKIN_MESSAGE_MAX_TOKENS, &m->n_served);
    if (u->status == AKIN_OK && (m->ns < 0 || m->idle_ns < 0))
        u->status = AKIN_ERR_RANGE;
}

void akin_message_pack_tokens(akin_packer_t *p, const akin_message_tokens_t *m)
{
    pack_step(p, &m->step);
    akin_packer_u32(p, (uint32_t)m->n_tokens);
    for (size_t i = 0; i < m->n_tokens; i++) {
        const akin_message_token_t *t = &m->tokens[i];
        akin_packer_u64(p, t->id);
        akin_packer_u32(p, t->token);
        akin_packer_u8(p, t->finished);
        akin_packer_u8(p, t->has_logprob);
        if (t->has_logprob)
            pack_logprob(p, &t->logprob);
    }
}

akin_status_t akin_message_unpack_tokens(const void *data, size_t bytes,
                                         akin_message_tokens_t *m)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    *m = (akin_message_tokens_t){0};
    unpack_step(&u, &m->step);
    size_t n = unpack_count(&u, TOKEN_BYTES);
    if (n > 0) {
        m->tokens = calloc(n, sizeof(*m->tokens));
        if (m->tokens == NULL)
            u.status = AKIN_ERR_NOMEM;
        else
            m->n_tokens = n;
    }
    for (size_t i = 0; m->tokens != NULL && i < m->n_tokens; i++) {
        akin_message_token_t *t = &m->tokens[i];
        t->id = akin_unpacker_u64(&u);
        t->token = akin_unpacker_u32(&u);
        t->finished = akin_unpacker_u8(&u);
        t->has_logprob = akin_unpacker_u8(&u);
        if (t->has_logprob)
            unpack_logprob(&u, &t->logprob);
        if (t->finished > 1 + AKIN_FINISH_LENGTH)
            u.status = AKIN_ERR_RANGE;
    }
    akin_status_t status = akin_unpacker_finish(&u);
    if (status != AKIN_OK)
        akin_message_tokens_cleanup(m);
    return status;
}

void akin_message_tokens_cleanup(akin_message_tokens_t *m)
{
    free(m->step.served);
    free(m->tokens);
}

void akin_message_pack_step(akin_packer_t *p, const akin_message_step_t *m)
{
    pack_step(p, m);
}

akin_status_t akin_message_unpack_step(const void *data, size_t bytes,
                                       akin_message_step_t *m)
{
    akin_unpacker_t u;
    akin_unpacker_init(&u, data, bytes);
    *m = (akin_message_step_t){0};
    unpack_step(&u, m);
    akin_status_t status = akin_unpacker_finish(&u);
    if (status != AKIN_OK)
        free(m->served);
    return status;
}
