/* Prefill bed: prompts as the router and the readers of a prefill rank know
 * them. */
#ifndef AKIN_TESTS_UNIT_PREFILL_BED_H
#define AKIN_TESTS_UNIT_PREFILL_BED_H

#include "role_bed.h"

#define N_SLOTS 40u
#define MAX_BLOCKS 5u
#define MAX_TOKENS (MAX_BLOCKS * BLOCK)
#define N_PROMPTS 600u

/* A prompt as router and readers know it. */
typedef struct prompt {
    uint32_t tokens[MAX_TOKENS];
    uint32_t n_tokens;
    int is_answered; /* with blocks */
    akin_status_t status;
    int is_pinned; /* as far as this side has heard or said */
    int64_t lease_ns;
    akin_kv_descriptor_t blocks[MAX_BLOCKS];
    uint32_t n_blocks;
    uint32_t n_cached;
} prompt_t;

typedef struct test {
    prompt_t prompts[N_PROMPTS]; /* by id */
    uint32_t n;                  /* the next id */
    uint32_t n_answered;
    uint32_t n_leases; /* LEASES that came */
    akin_message_leases_t leases;
    int64_t leases_ns;
    akin_message_stats_t stats;
    uint32_t n_stats;
    uint32_t n_cached; /* blocks that were found in the cache */
    uint32_t phase;    /* of the script */
    int is_in_doubt;   /* damage that no fresh PREFILL has followed yet */
} test_t;

static test_t test;

static inline void tell_prefill(const uint32_t *tokens, uint32_t n_tokens,
                                int fresh)
{
    CU_ASSERT_FATAL(test.n < N_PROMPTS);
    prompt_t *prompt = &test.prompts[test.n];
    prompt->n_tokens = n_tokens;
    memcpy(prompt->tokens, tokens, n_tokens * sizeof(*tokens));
    const akin_message_prefill_t m = {.id = test.n++,
                                      .how = {.max_tokens = 2},
                                      .fresh = (uint8_t)fresh,
                                      .tokens = prompt->tokens,
                                      .n_tokens = n_tokens};
    akin_packer_t p = {0};
    akin_message_pack_prefill(&p, &m);
    bed_tell(AKIN_ROUTER_RANK, AKIN_MESSAGE_PREFILL, &p);
}

/* Whether a block that a reader takes is the prompt's, to the last token. */
static inline int is_exact(const prompt_t *prompt, uint32_t b)
{
    unsigned char *slot = akin_kv_slot(&bed.view, prompt->blocks[b].slot);
    for (uint32_t t = 0; t < prompt->blocks[b].n_tokens; t++)
        if (bed_read(&bed.layout, slot, t) !=
            bed_state_of(prompt->tokens, b * BLOCK + t + 1))
            return 0;
    return 1;
}

static inline akin_kv_refusal_t check_block(const prompt_t *prompt, uint32_t b)
{
    return akin_kv_block_check(&bed.layout,
                               akin_kv_slot(&bed.view, prompt->blocks[b].slot),
                               &prompt->blocks[b]);
}

static inline void on_prefilled(const said_t *said)
{
    akin_message_prefilled_t m;
    CU_ASSERT_EQUAL_FATAL(
        akin_message_unpack_prefilled(said->data, said->bytes, &m), AKIN_OK);
    CU_ASSERT_FATAL(m.id < test.n);
    prompt_t *prompt = &test.prompts[m.id];
    CU_ASSERT_EQUAL_FATAL(prompt->is_answered, 0);
    prompt->is_answered = 1;
    prompt->status = (akin_status_t)m.status;
    test.n_answered++;
    if (m.status == AKIN_OK) {
        CU_ASSERT_EQUAL_FATAL(m.n_blocks, (prompt->n_tokens - 1) / BLOCK + 1);
        prompt->is_pinned = 1;
        prompt->lease_ns = akin_clock_now_ns() + bed.job.lease_ns;
        prompt->n_blocks = (uint32_t)m.n_blocks;
        prompt->n_cached = m.n_cached_blocks;
        test.n_cached += m.n_cached_blocks;
        memcpy(prompt->blocks, m.blocks, m.n_blocks * sizeof(*m.blocks));
        if (!test.is_in_doubt) {
            CU_ASSERT_EQUAL(m.token,
                            bed_state_of(prompt->tokens, prompt->n_tokens) %
                                VOCAB);
            for (uint32_t b = 0; b < m.n_blocks; b++)
                CU_ASSERT_EQUAL(check_block(prompt, b), AKIN_KV_REFUSAL_NONE);
        }
    }
    free(m.blocks);
    free(m.counts);
}

static inline void on_said(bed_t *b, const said_t *said)
{
    (void)b;
    CU_ASSERT_EQUAL(said->to, AKIN_ROUTER_RANK);
    switch (said->type) {
    case AKIN_MESSAGE_PREFILLED:
        on_prefilled(said);
        break;
    case AKIN_MESSAGE_LEASES:
        /* Changes come at most once in a second, but for the last word. */
        CU_ASSERT(bed.worker.stopping || test.n_leases == 0 ||
                  akin_clock_now_ns() >= test.leases_ns + AKIN_NS_PER_S);
        CU_ASSERT_EQUAL(
            akin_message_unpack_leases(said->data, said->bytes, &test.leases),
            AKIN_OK);
        test.leases_ns = akin_clock_now_ns();
        test.n_leases++;
        break;
    case AKIN_MESSAGE_STATS:
        CU_ASSERT_EQUAL(
            akin_message_unpack_stats(said->data, said->bytes, &test.stats),
            AKIN_OK);
        test.n_stats++;
        break;
    default:
        CU_ASSERT_EQUAL(said->type, AKIN_MESSAGE_STEP);
    }
}

static inline void end(uint16_t type, uint32_t id)
{
    test.prompts[id].is_pinned = 0;
    bed_tell_id(type == AKIN_MESSAGE_RELEASE ? READER : AKIN_ROUTER_RANK, type,
                id);
}

static inline void run(void (*script)(bed_t *b))
{
    memset(&test, 0, sizeof(test));
    bed.script = script;
    bed.said = on_said;
    CU_ASSERT_EQUAL(akin_prefill_run(&bed.worker), AKIN_OK);
    CU_ASSERT_EQUAL(test.n_stats, 1);
}

static inline void fill_tokens(uint32_t *tokens, uint32_t n, uint32_t first)
{
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = (first + i) % VOCAB;
}

/* Damage in the owner's memory. */
static inline void flip(const akin_kv_descriptor_t *block, uint32_t bit)
{
    unsigned char *slot = akin_kv_slot(&bed.view, block->slot);
    bit %= (uint32_t)bed.layout.kv_bytes * 8;
    slot[bed.layout.kv_offset + bit / 8] ^= (unsigned char)(1u << bit % 8);
}

#endif
