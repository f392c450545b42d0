/* Decode bed: an owner of blocks, and requests as the router of a decode rank
 * knows them. */
#ifndef AKIN_TESTS_UNIT_DECODE_BED_H
#define AKIN_TESTS_UNIT_DECODE_BED_H

#include "role_bed.h"

#define N_SLOTS 24u
#define OWNER_SLOTS 40u
#define N_PROMPTS 8u
#define MAX_BLOCKS 4u
#define MAX_PROMPT (MAX_BLOCKS * BLOCK)
#define MAX_NEW 6u
#define N_REQUESTS 900u

/* A prompt of which the owner has the blocks. */
typedef struct owned {
    uint32_t tokens[MAX_PROMPT];
    uint32_t n_tokens;
    akin_kv_descriptor_t blocks[MAX_BLOCKS];
    uint32_t n_blocks;
    int is_held;
} owned_t;

typedef struct request {
    uint32_t tokens[MAX_PROMPT + MAX_NEW];
    uint32_t n_tokens;
    uint32_t n_most;
    int is_transferred; /* TRANSFERRED has come */
    akin_status_t status;
    akin_kv_refusal_t refusal;
    int is_released;
    int is_finished; /* or canceled */
} request_t;

typedef struct test {
    akin_kv_view_t theirs;
    akin_kv_cache_t *owner;
    owned_t prompts[N_PROMPTS];
    request_t requests[N_REQUESTS]; /* by id */
    uint32_t n;
    akin_message_stats_t stats;
    uint32_t n_stats;
    uint32_t phase;
    int is_deaf;          /* what was given up does not end */
    uint32_t n_with[256]; /* transfers by -status */
    uint32_t n_tokens, n_finished;
} test_t;

static test_t test;

static inline void own(uint32_t k)
{
    owned_t *p = &test.prompts[k];
    uint32_t slots[MAX_BLOCKS];
    uint64_t state = 0, chain = AKIN_KV_ROOT_HASH;
    p->n_blocks = (p->n_tokens - 1) / BLOCK + 1;
    CU_ASSERT_EQUAL_FATAL(
        akin_kv_cache_take_run(test.owner, p->n_blocks, slots), AKIN_OK);
    for (uint32_t b = 0; b < p->n_blocks; b++) {
        unsigned char *slot = akin_kv_slot(&test.theirs, slots[b]);
        uint32_t n = p->n_tokens - b * BLOCK;
        n = n < BLOCK ? n : BLOCK;
        for (uint32_t t = 0; t < n; t++) {
            state = bed_state(state, p->tokens[b * BLOCK + t]);
            bed_write(&bed.layout, slot, t, state);
        }
        chain = akin_kv_cache_seal(test.owner, slots[b], chain,
                                   p->tokens + b * BLOCK, n);
        p->blocks[b] = (akin_kv_descriptor_t){
            .slot = slots[b],
            .n_tokens = n,
            .generation = akin_kv_cache_generation(test.owner, slots[b]),
            .chain_hash = chain};
    }
    p->is_held = 1;
}

static inline void disown(uint32_t k)
{
    owned_t *p = &test.prompts[k];
    for (uint32_t b = 0; p->is_held && b < p->n_blocks; b++)
        akin_kv_cache_unref(test.owner, p->blocks[b].slot);
    p->is_held = 0;
}

/* The owner's process begins: as long as no other has been there before, its
 * blocks lie where those of the last one lay. */
static inline void begin_owner(void)
{
    CU_ASSERT_EQUAL_FATAL(akin_kv_cache_create(&test.theirs, 0, &test.owner),
                          AKIN_OK);
    for (uint32_t k = 0; k < N_PROMPTS; k++)
        own(k);
    bed.is_lost[OWNER] = 0;
}

static inline void end_owner(void)
{
    for (uint32_t k = 0; k < N_PROMPTS; k++)
        disown(k);
    akin_kv_cache_destroy(test.owner);
}

static inline void tell_decode(uint32_t k, uint32_t n_new)
{
    const owned_t *owned = &test.prompts[k];
    request_t *r = &test.requests[test.n];
    memcpy(r->tokens, owned->tokens, sizeof(owned->tokens));
    r->n_tokens = owned->n_tokens + 1;
    r->n_most = owned->n_tokens + n_new;
    r->tokens[owned->n_tokens] =
        (uint32_t)(bed_state_of(owned->tokens, owned->n_tokens) % VOCAB);
    akin_kv_descriptor_t blocks[MAX_BLOCKS];
    memcpy(blocks, owned->blocks, sizeof(blocks));
    const akin_message_decode_t m = {
        .id = test.n++,
        .how = {.max_tokens = n_new, .ignore_eos = 1},
        .owner = OWNER,
        .tokens = r->tokens,
        .n_tokens = r->n_tokens,
        .blocks = blocks,
        .n_blocks = owned->n_blocks};
    akin_packer_t p = {0};
    akin_message_pack_decode(&p, &m);
    bed_tell(AKIN_ROUTER_RANK, AKIN_MESSAGE_DECODE, &p);
}

static inline void tell_cancel(uint32_t id)
{
    test.requests[id].is_finished = 1;
    bed_tell_id(AKIN_ROUTER_RANK, AKIN_MESSAGE_CANCEL, id);
}

static inline void on_transferred(const said_t *said)
{
    akin_message_transferred_t m;
    CU_ASSERT_EQUAL_FATAL(
        akin_message_unpack_transferred(said->data, said->bytes, &m), AKIN_OK);
    request_t *r = &test.requests[m.id];
    CU_ASSERT_EQUAL(r->is_transferred, 0);
    CU_ASSERT_EQUAL(r->is_finished, 0);
    r->is_transferred = 1;
    r->status = (akin_status_t)m.status;
    r->refusal = (akin_kv_refusal_t)m.refusal;
    r->is_finished = m.status != AKIN_OK;
    CU_ASSERT_EQUAL((m.status == AKIN_ERR_REFUSED),
                    (m.refusal != AKIN_KV_REFUSAL_NONE));
    test.n_with[-m.status]++;
}

/* The next token of a request is a function of what came before it. */
static inline void on_tokens(const said_t *said)
{
    akin_message_tokens_t m;
    CU_ASSERT_EQUAL_FATAL(
        akin_message_unpack_tokens(said->data, said->bytes, &m), AKIN_OK);
    for (size_t i = 0; i < m.n_tokens; i++) {
        request_t *r = &test.requests[m.tokens[i].id];
        CU_ASSERT_EQUAL(r->is_finished, 0);
        CU_ASSERT_EQUAL(m.tokens[i].token,
                        bed_state_of(r->tokens, r->n_tokens) % VOCAB);
        r->tokens[r->n_tokens++] = m.tokens[i].token;
        r->is_finished = m.tokens[i].finished != 0;
        CU_ASSERT_EQUAL(r->is_finished, r->n_tokens == r->n_most);
        test.n_tokens++;
        test.n_finished += (uint32_t)r->is_finished;
    }
    akin_message_tokens_cleanup(&m);
}

static inline void on_said(bed_t *b, const said_t *said)
{
    uint64_t id;
    (void)b;
    CU_ASSERT_EQUAL(said->to, said->type == AKIN_MESSAGE_RELEASE
                                  ? OWNER
                                  : AKIN_ROUTER_RANK);
    switch (said->type) {
    case AKIN_MESSAGE_TRANSFERRED:
        on_transferred(said);
        break;
    case AKIN_MESSAGE_TOKENS:
        on_tokens(said);
        break;
    case AKIN_MESSAGE_RELEASE:
        CU_ASSERT_EQUAL_FATAL(
            akin_message_unpack_id(said->data, said->bytes, &id), AKIN_OK);
        CU_ASSERT(test.requests[id].is_transferred);
        CU_ASSERT_EQUAL(test.requests[id].is_released, 0);
        test.requests[id].is_released = 1;
        break;
    default:
        CU_ASSERT_EQUAL_FATAL(said->type, AKIN_MESSAGE_STATS);
        CU_ASSERT_EQUAL(
            akin_message_unpack_stats(said->data, said->bytes, &test.stats),
            AKIN_OK);
        test.n_stats++;
    }
}

/* Prompts 0 to 3 begin alike, as do 4 and 5; of two lengths each. */
static inline void run(uint64_t key, void (*script)(bed_t *b))
{
    bed_init(READER, N_SLOTS);
    memset(&test, 0, sizeof(test));
    bed.key = key;
    bed.script = script;
    bed.said = on_said;
    test.theirs = (akin_kv_view_t){&bed.layout, NULL, OWNER_SLOTS};
    test.theirs.base = calloc(OWNER_SLOTS, bed.layout.stride_bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(test.theirs.base);
    for (uint32_t k = 0; k < N_PROMPTS; k++) {
        owned_t *p = &test.prompts[k];
        p->n_tokens = k % 2 == 0 ? 21 : 32;
        for (uint32_t i = 0; i < p->n_tokens; i++)
            p->tokens[i] = (i + (i < 16 ? k / 4 * 7 : k * 11)) % VOCAB;
    }
    begin_owner();
    bed.net.remote = test.theirs.base;
    bed.net.remote_bytes = OWNER_SLOTS * bed.layout.stride_bytes;
    CU_ASSERT_EQUAL(akin_decode_run(&bed.worker), AKIN_OK);
    CU_ASSERT_EQUAL(test.n_stats, 1);
    end_owner();
    free(test.theirs.base);
}

static inline void flip(uint32_t k, uint32_t b, uint32_t bit)
{
    unsigned char *slot =
        akin_kv_slot(&test.theirs, test.prompts[k].blocks[b].slot);
    bit %= (uint32_t)bed.layout.payload_bytes * 8;
    slot[bit / 8] ^= (unsigned char)(1u << bit % 8);
}

static inline void complete_all(void)
{
    while (bed.net.n_reads > 0)
        bed_complete(0, AKIN_OK);
}

#endif
