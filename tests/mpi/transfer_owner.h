/* Transfer owner: a rank that damages, recycles and takes back its blocks when
 * it is told to. */
#ifndef AKIN_TESTS_MPI_TRANSFER_OWNER_H
#define AKIN_TESTS_MPI_TRANSFER_OWNER_H

#include "base/rng.h"
#include "transfer_fixture.h"

#define N_SLOTS 40u
#define N_SIDES 2
#define MAX_BLOCKS 12u
#define N_STALE_PROMPTS 4u
#define STALE_BLOCKS 3u
#define RACE_BLOCKS 8u

enum {
    TYPE_CASE = 1, /* to the owner: damage a prompt in this way */
    TYPE_BLOCKS,   /* to the reader: prompt_t */
    TYPE_STALE,    /* to the reader: prompt_t, of which others are kept */
    TYPE_RACE,     /* to the owner: recycle from now on */
    TYPE_ENOUGH,   /* to the owner: no more of that */
    TYPE_DIE,      /* to the owner */
    TYPE_HELLO,    /* to the reader: the identity of the next life */
    TYPE_BYE       /* to the owner's last life */
};

typedef enum fault {
    KV_BIT,
    SIDECAR_BIT,
    MAGIC_BIT,
    VERSION_BIT,
    RESERVED_BIT,
    TOKENS_BIT,
    GENERATION_BIT,
    CHAIN_BIT,
    CHECKSUM_BIT,
    LOST_CHOICE,  /* a sidecar that does not sum up, under a good checksum */
    OTHER_TOKENS, /* the slot was reused between descriptor and read */
    SAME_TOKENS,  /* likewise, for the same block */
    KV_ON_THE_WAY,
    SIDECAR_ON_THE_WAY,
    HEADER_ON_THE_WAY,
    GENERATION_ON_THE_WAY,
    N_FAULTS
} fault_t;

/* What is damaged at the owner: bytes of the header, bits in them, and the
 * check that finds it. On the way any byte may be hit. */
typedef struct damage {
    uint32_t first, n_bytes;
    akin_kv_refusal_t refusal;
    const char *on_the_way; /* the switch of a test build */
} damage_t;

static const damage_t damages[N_FAULTS] = {
    [KV_BIT] = {.refusal = AKIN_KV_REFUSAL_CHECKSUM},
    [SIDECAR_BIT] = {.refusal = AKIN_KV_REFUSAL_CHECKSUM},
    [MAGIC_BIT] = {0, 4, AKIN_KV_REFUSAL_MAGIC, NULL},
    [VERSION_BIT] = {4, 2, AKIN_KV_REFUSAL_VERSION, NULL},
    [RESERVED_BIT] = {32, 32, AKIN_KV_REFUSAL_VERSION, NULL},
    [TOKENS_BIT] = {6, 2, AKIN_KV_REFUSAL_TOKENS, NULL},
    [GENERATION_BIT] = {8, 8, AKIN_KV_REFUSAL_GENERATION, NULL},
    [CHAIN_BIT] = {16, 8, AKIN_KV_REFUSAL_CHAIN, NULL},
    [CHECKSUM_BIT] = {24, 8, AKIN_KV_REFUSAL_CHECKSUM, NULL},
    [LOST_CHOICE] = {.refusal = AKIN_KV_REFUSAL_CONSERVATION},
    [OTHER_TOKENS] = {.refusal = AKIN_KV_REFUSAL_GENERATION},
    [SAME_TOKENS] = {.refusal = AKIN_KV_REFUSAL_GENERATION},
    [KV_ON_THE_WAY] = {.refusal = AKIN_KV_REFUSAL_CHECKSUM,
                       .on_the_way = "flip-kv:1"},
    [SIDECAR_ON_THE_WAY] = {.refusal = AKIN_KV_REFUSAL_CHECKSUM,
                            .on_the_way = "flip-sidecar:1"},
    [HEADER_ON_THE_WAY] = {.refusal = AKIN_KV_REFUSAL_COUNT, /* any */
                           .on_the_way = "flip-header:1"},
    [GENERATION_ON_THE_WAY] = {.refusal = AKIN_KV_REFUSAL_GENERATION,
                               .on_the_way = "stale-generation:1"},
};

/* TYPE_CASE */
typedef struct order {
    uint32_t number; /* of the case: content and tokens follow from it */
    uint32_t fault;
    uint32_t n_tokens;
    uint32_t block; /* the one that is damaged */
    uint32_t bit;   /* of what is damaged, modulo its size */
} order_t;

/* TYPE_BLOCKS, TYPE_STALE */
typedef struct prompt {
    uint32_t n_blocks;
    uint32_t newest;               /* the block that was sealed last */
    uint32_t contents[MAX_BLOCKS]; /* what the bytes of a block follow from */
    akin_kv_descriptor_t blocks[MAX_BLOCKS];
} prompt_t;

/* What a side knows. */
typedef struct known {
    prompt_t prompt; /* reader: the last one; owner: the one it holds */
    int n_prompts;   /* that were received */
    prompt_t stale[N_STALE_PROMPTS];
    uint32_t n_stale;
    int is_racing;
    int is_bye;
    int n_lost;
    int n_hello;
} known_t;

static uint64_t seed = 1;
static uint64_t n_draws;
static uint32_t draw(uint32_t below)
{
    return (uint32_t)akin_rng_below(seed, 0, n_draws++, below);
}

/* Different for all cases and blocks. */
static uint32_t content_of(uint32_t number, uint32_t block)
{
    return number * MAX_BLOCKS + block;
}

static uint32_t blocks_of(uint32_t n_tokens)
{
    return (n_tokens - 1) / BLOCK + 1;
}

/* Owner: a block of a prompt, sealed in that slot. */
static void seal_block(side_t *s, prompt_t *p, uint32_t i, uint32_t slot,
                       uint32_t content, uint32_t n_tokens)
{
    uint32_t tokens[BLOCK];
    for (uint32_t t = 0; t < BLOCK; t++)
        tokens[t] = content * BLOCK + t;
    p->newest = i;
    p->contents[i] = content;
    p->blocks[i] =
        side_seal(s, slot, content,
                  i > 0 ? p->blocks[i - 1].chain_hash : AKIN_KV_ROOT_HASH,
                  tokens, n_tokens);
}

static void hold_prompt(side_t *s, prompt_t *p, uint32_t number,
                        uint32_t n_tokens)
{
    uint32_t slots[MAX_BLOCKS];
    p->n_blocks = blocks_of(n_tokens);
    CHECK_FATAL(akin_kv_cache_take_run(s->cache, p->n_blocks, slots) ==
                AKIN_OK);
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        uint32_t left = n_tokens - i * BLOCK;
        seal_block(s, p, i, slots[i], content_of(number, i),
                   left < BLOCK ? left : BLOCK);
    }
}

static void release_prompt(side_t *s, prompt_t *p)
{
    for (uint32_t i = 0; i < p->n_blocks; i++)
        akin_kv_cache_unref(s->cache, p->blocks[i].slot);
    p->n_blocks = 0;
}

/* Owner: gives a slot up and takes it anew, for other tokens or the same. */
static void recycle(side_t *s, prompt_t *p, uint32_t i, uint32_t content)
{
    const akin_kv_descriptor_t block = p->blocks[i];
    uint32_t others[N_SLOTS], n = 0, slot;
    akin_kv_cache_unref(s->cache, block.slot);
    for (;;) {
        CHECK_FATAL(akin_kv_cache_take(s->cache, &slot) == AKIN_OK);
        if (slot == block.slot)
            break;
        others[n++] = slot;
    }
    side_unref(s, others, n);
    seal_block(s, p, i, slot, content, block.n_tokens);
}

static void flip(unsigned char *bytes, size_t n_bytes, uint32_t bit)
{
    const size_t at = bit % (n_bytes * 8);
    bytes[at / 8] = (unsigned char)(bytes[at / 8] ^ 1u << at % 8);
}

static void damage_block(side_t *s, const prompt_t *p, const order_t *order)
{
    const damage_t *d = &damages[order->fault];
    const akin_kv_descriptor_t *block = &p->blocks[order->block];
    unsigned char *slot = akin_kv_slot(&s->view, block->slot);
    uint8_t *sidecar = akin_kv_sidecar(&s->layout, slot);
    uint32_t expert = order->bit % (uint32_t)s->layout.sidecar_bytes;
    prompt_t now = *p;
    switch (order->fault) {
    case KV_BIT:
        flip(slot + s->layout.kv_offset, s->layout.kv_bytes, order->bit);
        break;
    case SIDECAR_BIT:
        flip(sidecar, s->layout.sidecar_bytes, order->bit);
        break;
    case LOST_CHOICE:
        sidecar[expert] = (uint8_t)(sidecar[expert] - 1);
        akin_kv_block_seal(&s->layout, slot, block->chain_hash,
                           block->n_tokens);
        break;
    case OTHER_TOKENS:
        recycle(s, &now, order->block, content_of(order->number + 1, 0));
        break;
    case SAME_TOKENS:
        recycle(s, &now, order->block, now.contents[order->block]);
        break;
    default:
        if (d->n_bytes > 0)
            flip(slot + d->first, d->n_bytes, order->bit);
    }
}

static void make_case(side_t *s, const order_t *order)
{
    known_t *known = s->test;
    release_prompt(s, &known->prompt);
    hold_prompt(s, &known->prompt, order->number, order->n_tokens);
    damage_block(s, &known->prompt, order);
    CHECK(akin_net_send(s->net, 0, TYPE_BLOCKS, &known->prompt,
                        sizeof(known->prompt)) == AKIN_OK);
}

/* Owner: the first prompts of each life, the same in the same slots. */
static void hold_stale(side_t *s)
{
    known_t *known = s->test;
    for (uint32_t i = 0; i < N_STALE_PROMPTS; i++) {
        prompt_t *p = &known->stale[i];
        hold_prompt(s, p, 1 + i, (i + 1) * STALE_BLOCKS * BLOCK / 4 + 3);
        CHECK(akin_net_send(s->net, 0, TYPE_STALE, p, sizeof(*p)) == AKIN_OK);
    }
}

/* Owner: gives slots up and fills them anew, one after another in any order.
 * None other is at hand, so a reader may be in the midst of the block. */
static void recycle_all(side_t *s)
{
    known_t *known = s->test;
    uint32_t held[N_SLOTS];
    release_prompt(s, &known->prompt);
    hold_prompt(s, &known->prompt, 1000, RACE_BLOCKS * BLOCK - 5);
    const uint32_t n = akin_kv_cache_available(s->cache);
    CHECK_FATAL(akin_kv_cache_take_run(s->cache, n, held) == AKIN_OK);
    int64_t limit_ns = akin_clock_now_ns() + FIXTURE_LIMIT_NS;
    for (uint32_t content = 1 << 20; known->is_racing; content++) {
        CHECK_FATAL(akin_clock_now_ns() < limit_ns);
        uint32_t newest = known->prompt.newest;
        recycle(s, &known->prompt, draw(2) == 0 ? newest : draw(RACE_BLOCKS),
                content);
        if (!akin_net_has_unsent(s->net, 0))
            CHECK(akin_net_send(s->net, 0, TYPE_BLOCKS, &known->prompt,
                                sizeof(known->prompt)) == AKIN_OK);
        /* Now and then a reader has the time for all of them. */
        uint32_t rest_us = draw(draw(4) == 0 ? 2000 : 200);
        int64_t rest_ns = akin_clock_now_ns() + rest_us * AKIN_NS_PER_US;
        do
            (void)akin_net_poll(s->net);
        while (known->is_racing && akin_clock_now_ns() < rest_ns);
    }
    side_unref(s, held, n);
    CHECK(akin_net_send(s->net, 0, TYPE_BLOCKS, &known->prompt,
                        sizeof(known->prompt)) == AKIN_OK);
}

#endif
