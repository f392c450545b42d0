/* Message kinds: a message of every type, its bytes, and whether they say what
 * was packed. */
#ifndef AKIN_TESTS_UNIT_MESSAGE_KINDS_H
#define AKIN_TESTS_UNIT_MESSAGE_KINDS_H

#include "message_join_kinds.h"
#include "roles/message.h"

#include <stdlib.h>
#include <string.h>

/* The values that all messages here carry. */
static uint32_t tokens[] = {0x01020304, 7, 9};
static uint16_t counts[] = {0x0102, 0xfffe};
static akin_kv_descriptor_t blocks[] = {
    {.slot = 5,
     .n_tokens = 16,
     .generation = UINT64_C(0x1122334455667788),
     .chain_hash = UINT64_C(0x99aabbccddeeff00)},
    {.slot = 6, .n_tokens = 3, .generation = 1, .chain_hash = 2}};
static const akin_message_sampling_t how = {
    .sampling = {.temperature = 1.5f,
                 .top_p = 0.5f,
                 .min_p = 0.25f,
                 .repetition_penalty = 2.0f,
                 .top_k = 40,
                 .seed = UINT64_C(0x0123456789abcdef)},
    .max_tokens = 1000,
    .ignore_eos = 1,
    .want_logprobs = 1,
    .n_top = 2,
};
static const akin_token_logprob_t logprob = {
    .logprob = -0.5f, .n_top = 1, .top = {{.id = 8, .logprob = -1.5f}}};

/* IEEE 754: 1.5f is 3fc00000, 0.5f 3f000000, 0.25f 3e800000, 2.0f 40000000,
 * -0.5f bf000000, -1.5f bfc00000. */
#define HOW                                                                    \
    0x00, 0x00, 0xc0, 0x3f, 0x00, 0x00, 0x00, 0x3f, 0x00, 0x00, 0x80, 0x3e,    \
        0x00, 0x00, 0x00, 0x40, 0x28, 0, 0, 0, 0xef, 0xcd, 0xab, 0x89, 0x67,   \
        0x45, 0x23, 0x01, 0xe8, 0x03, 0, 0, 1, 1, 2
#define TOKENS 3, 0, 0, 0, 4, 3, 2, 1, 7, 0, 0, 0, 9, 0, 0, 0
#define COUNTS 2, 0, 0, 0, 0x02, 0x01, 0xfe, 0xff
#define BLOCKS                                                                 \
    2, 0, 0, 0, 5, 0, 0, 0, 16, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33,   \
        0x22, 0x11, 0x00, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 6, 0, 0,   \
        0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0
#define LOGPROB 0x00, 0x00, 0x00, 0xbf, 1, 8, 0, 0, 0, 0x00, 0x00, 0xc0, 0xbf
#define ID 0x0a, 0, 0, 0, 0, 0, 0, 0x80
#define STEP                                                                   \
    0x00, 0xca, 0x9a, 0x3b, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, \
        0, 0, 0x40, 64, 0, 0, 0, COUNTS

static const uint64_t id = UINT64_C(0x800000000000000a);
static const akin_message_step_t step = {.ns = 1000000000,
                                         .idle_ns = 9,
                                         .number = UINT64_C(0x4000000000000003),
                                         .n_rows = 64,
                                         .served = counts,
                                         .n_served = 2};

/* One type of message: its bytes, how they are made, and whether they say what
 * was packed. */
typedef struct kind {
    const char *name;
    const unsigned char *golden;
    size_t bytes;
    void (*pack)(akin_packer_t *p);
    /* Unpacks, frees; with AKIN_OK *same_p says whether all fields are back. */
    akin_status_t (*unpack)(const void *data, size_t bytes, int *same_p);
} kind_t;

static int same_how(const akin_message_sampling_t *h)
{
    return h->sampling.temperature == 1.5f && h->sampling.top_p == 0.5f &&
           h->sampling.min_p == 0.25f &&
           h->sampling.repetition_penalty == 2.0f && h->sampling.top_k == 40 &&
           h->sampling.seed == UINT64_C(0x0123456789abcdef) &&
           h->max_tokens == 1000 && h->ignore_eos == 1 &&
           h->want_logprobs == 1 && h->n_top == 2;
}

static int same_tokens(const uint32_t *t, size_t n)
{
    return n == 3 && memcmp(t, tokens, sizeof(tokens)) == 0;
}

static int same_counts(const uint16_t *c, size_t n)
{
    return n == 2 && memcmp(c, counts, sizeof(counts)) == 0;
}

static int same_blocks(const akin_kv_descriptor_t *b, size_t n)
{
    for (size_t i = 0; n == 2 && i < n; i++)
        if (b[i].slot != blocks[i].slot ||
            b[i].n_tokens != blocks[i].n_tokens ||
            b[i].generation != blocks[i].generation ||
            b[i].chain_hash != blocks[i].chain_hash)
            return 0;
    return n == 2;
}

static int same_logprob(const akin_token_logprob_t *l)
{
    return l->logprob == -0.5f && l->n_top == 1 && l->top[0].id == 8 &&
           l->top[0].logprob == -1.5f;
}

static int same_step(const akin_message_step_t *s)
{
    return s->ns == 1000000000 && s->idle_ns == 9 &&
           s->number == UINT64_C(0x4000000000000003) && s->n_rows == 64 &&
           same_counts(s->served, s->n_served);
}

static const unsigned char prefill_bytes[] = {ID, HOW, 1, TOKENS};

static void pack_prefill(akin_packer_t *p)
{
    const akin_message_prefill_t m = {
        .id = id, .how = how, .fresh = 1, .tokens = tokens, .n_tokens = 3};
    akin_message_pack_prefill(p, &m);
}

static akin_status_t unpack_prefill(const void *data, size_t bytes, int *same_p)
{
    akin_message_prefill_t m;
    akin_status_t status = akin_message_unpack_prefill(data, bytes, &m);
    if (status != AKIN_OK)
        return status;
    *same_p = m.id == id && same_how(&m.how) && m.fresh == 1 &&
              same_tokens(m.tokens, m.n_tokens);
    free(m.tokens);
    return AKIN_OK;
}

static const unsigned char prefilled_bytes[] = {
    ID, 0xfe, 0xff, 0xff, 0xff, 4, 0, 0, 0,      LOGPROB,
    1,  0,    0,    0,    2,    0, 0, 0, BLOCKS, COUNTS};

static void pack_prefilled(akin_packer_t *p)
{
    const akin_message_prefilled_t m = {.id = id,
                                        .status = -2,
                                        .token = 4,
                                        .logprob = logprob,
                                        .n_cached_blocks = 1,
                                        .n_queried_blocks = 2,
                                        .blocks = blocks,
                                        .n_blocks = 2,
                                        .counts = counts,
                                        .n_counts = 2};
    akin_message_pack_prefilled(p, &m);
}

static akin_status_t unpack_prefilled(const void *data, size_t bytes,
                                      int *same_p)
{
    akin_message_prefilled_t m;
    akin_status_t status = akin_message_unpack_prefilled(data, bytes, &m);
    if (status != AKIN_OK)
        return status;
    *same_p = m.id == id && m.status == -2 && m.token == 4 &&
              same_logprob(&m.logprob) && m.n_cached_blocks == 1 &&
              m.n_queried_blocks == 2 && same_blocks(m.blocks, m.n_blocks) &&
              same_counts(m.counts, m.n_counts);
    free(m.blocks);
    free(m.counts);
    return AKIN_OK;
}

static const unsigned char decode_bytes[] = {ID, HOW, 3,      0,
                                             0,  0,   TOKENS, BLOCKS};

static void pack_decode(akin_packer_t *p)
{
    const akin_message_decode_t m = {.id = id,
                                     .how = how,
                                     .owner = 3,
                                     .tokens = tokens,
                                     .n_tokens = 3,
                                     .blocks = blocks,
                                     .n_blocks = 2};
    akin_message_pack_decode(p, &m);
}

static akin_status_t unpack_decode(const void *data, size_t bytes, int *same_p)
{
    akin_message_decode_t m;
    akin_status_t status = akin_message_unpack_decode(data, bytes, &m);
    if (status != AKIN_OK)
        return status;
    *same_p = m.id == id && same_how(&m.how) && m.owner == 3 &&
              same_tokens(m.tokens, m.n_tokens) &&
              same_blocks(m.blocks, m.n_blocks);
    free(m.tokens);
    free(m.blocks);
    return AKIN_OK;
}

static const unsigned char transferred_bytes[] = {
    ID, 0xfd, 0xff, 0xff, 0xff, AKIN_KV_REFUSAL_COUNT - 1,
    7,  0,    0,    0,    2,    0,
    0,  0,    0,    0,    1,    0,
    0,  0,    0,    0,    5,    0,
    0,  0,    0,    0,    0,    0};

static void pack_transferred(akin_packer_t *p)
{
    const akin_message_transferred_t m = {.id = id,
                                          .status = -3,
                                          .refusal = AKIN_KV_REFUSAL_COUNT - 1,
                                          .n_blocks = 7,
                                          .n_shared = 2,
                                          .bytes = 65536,
                                          .ns = 5};
    akin_message_pack_transferred(p, &m);
}

static akin_status_t unpack_transferred(const void *data, size_t bytes,
                                        int *same_p)
{
    akin_message_transferred_t m;
    akin_status_t status = akin_message_unpack_transferred(data, bytes, &m);
    if (status == AKIN_OK)
        *same_p = m.id == id && m.status == -3 &&
                  m.refusal == AKIN_KV_REFUSAL_COUNT - 1 && m.n_blocks == 7 &&
                  m.n_shared == 2 && m.bytes == 65536 && m.ns == 5;
    return status;
}

static const unsigned char tokens_bytes[] = {
    STEP, 2, 0, 0, 0, ID, 4, 0, 0, 0, 0, 1, LOGPROB, ID, 5, 0, 0, 0, 2, 0};

static void pack_tokens(akin_packer_t *p)
{
    akin_message_token_t t[] = {
        {.id = id, .token = 4, .has_logprob = 1, .logprob = logprob},
        {.id = id, .token = 5, .finished = 1 + AKIN_FINISH_LENGTH}};
    const akin_message_tokens_t m = {.step = step, .tokens = t, .n_tokens = 2};
    akin_message_pack_tokens(p, &m);
}

static akin_status_t unpack_tokens(const void *data, size_t bytes, int *same_p)
{
    akin_message_tokens_t m;
    akin_status_t status = akin_message_unpack_tokens(data, bytes, &m);
    if (status != AKIN_OK)
        return status;
    *same_p = same_step(&m.step) && m.n_tokens == 2 && m.tokens[0].id == id &&
              m.tokens[0].token == 4 && m.tokens[0].finished == 0 &&
              same_logprob(&m.tokens[0].logprob) && m.tokens[1].id == id &&
              m.tokens[1].token == 5 && m.tokens[1].finished == 2 &&
              m.tokens[1].has_logprob == 0;
    akin_message_tokens_cleanup(&m);
    return AKIN_OK;
}

static const unsigned char step_bytes[] = {STEP};

static void pack_step(akin_packer_t *p)
{
    akin_message_pack_step(p, &step);
}

static akin_status_t unpack_step(const void *data, size_t bytes, int *same_p)
{
    akin_message_step_t m;
    akin_status_t status = akin_message_unpack_step(data, bytes, &m);
    if (status != AKIN_OK)
        return status;
    *same_p = same_step(&m);
    free(m.served);
    return AKIN_OK;
}

static const unsigned char counts_bytes[] = {32, 0, 0, 0, COUNTS};

static void pack_counts(akin_packer_t *p)
{
    const akin_message_counts_t m = {
        .n_tokens = 32, .counts = counts, .n_counts = 2};
    akin_message_pack_counts(p, &m);
}

static akin_status_t unpack_counts(const void *data, size_t bytes, int *same_p)
{
    akin_message_counts_t m;
    akin_status_t status = akin_message_unpack_counts(data, bytes, &m);
    if (status != AKIN_OK)
        return status;
    *same_p = m.n_tokens == 32 && same_counts(m.counts, m.n_counts);
    free(m.counts);
    return AKIN_OK;
}

static const unsigned char id_bytes[] = {ID};

static void pack_id(akin_packer_t *p)
{
    akin_message_pack_id(p, id);
}

static akin_status_t unpack_id(const void *data, size_t bytes, int *same_p)
{
    uint64_t got;
    akin_status_t status = akin_message_unpack_id(data, bytes, &got);
    if (status == AKIN_OK)
        *same_p = got == id;
    return status;
}

static const unsigned char stats_bytes[] = {
    1, 0, 0, 0,    0, 0, 0, 0, 2, 0, 0, 0, 0,  0, 0, 0, 3, 0, 0, 0,
    0, 0, 0, 0,    4, 0, 0, 0, 0, 0, 0, 0, 5,  0, 0, 0, 0, 0, 0, 0,
    6, 0, 0, 0,    0, 0, 0, 0, 7, 0, 0, 0, 0,  0, 0, 0, 8, 0, 0, 0,
    0, 0, 0, 0x80, 9, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0};

static void pack_stats(akin_packer_t *p)
{
    const akin_message_stats_t m = {
        1, 2, 3, 4, 5, 6, 7, UINT64_C(0x8000000000000008), 9, 10};
    akin_message_pack_stats(p, &m);
}

static akin_status_t unpack_stats(const void *data, size_t bytes, int *same_p)
{
    akin_message_stats_t m;
    akin_status_t status = akin_message_unpack_stats(data, bytes, &m);
    if (status == AKIN_OK)
        *same_p = m.steps == 1 && m.busy_ns == 2 && m.total_ns == 3 &&
                  m.evictions == 4 && m.reads_one_sided == 5 &&
                  m.reads_rendezvous == 6 && m.read_bytes == 7 &&
                  m.leases_expired == UINT64_C(0x8000000000000008) &&
                  m.pinned_blocks == 9 && m.messages_late == 10;
    return status;
}

static const unsigned char routes_bytes[] = {
    ID, 17, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0x7f, 0x01, 1, 0, 0, 0};

static void pack_routes(akin_packer_t *p)
{
    uint16_t experts[] = {3, 383, 1, 0};
    const akin_message_routes_t m = {
        .id = id, .first = 17, .n_tokens = 2, .routes = experts, .n_routes = 4};
    akin_message_pack_routes(p, &m);
}

static akin_status_t unpack_routes(const void *data, size_t bytes, int *same_p)
{
    akin_message_routes_t m;
    akin_status_t status = akin_message_unpack_routes(data, bytes, &m);
    if (status != AKIN_OK)
        return status;
    *same_p = m.id == id && m.first == 17 && m.n_tokens == 2 &&
              m.n_routes == 4 && m.routes[0] == 3 && m.routes[1] == 383 &&
              m.routes[2] == 1 && m.routes[3] == 0;
    free(m.routes);
    return AKIN_OK;
}

static const unsigned char ep_done_bytes[] = {ID, 1};

static void pack_ep_done(akin_packer_t *p)
{
    const akin_message_ep_done_t m = {.number = id, .has_work = 1};
    akin_message_pack_ep_done(p, &m);
}

static akin_status_t unpack_ep_done(const void *data, size_t bytes, int *same_p)
{
    akin_message_ep_done_t m;
    akin_status_t status = akin_message_unpack_ep_done(data, bytes, &m);
    if (status == AKIN_OK)
        *same_p = m.number == id && m.has_work == 1;
    return status;
}

static const unsigned char ep_step_bytes[] = {ID, 9, 0, 0, 0, 0, 0, 0, 1};

static void pack_ep_step(akin_packer_t *p)
{
    const akin_message_ep_step_t m = {.number = id,
                                      .epoch = UINT64_C(0x0100000000000009)};
    akin_message_pack_ep_step(p, &m);
}

static akin_status_t unpack_ep_step(const void *data, size_t bytes, int *same_p)
{
    akin_message_ep_step_t m;
    akin_status_t status = akin_message_unpack_ep_step(data, bytes, &m);
    if (status == AKIN_OK)
        *same_p = m.number == id && m.epoch == UINT64_C(0x0100000000000009);
    return status;
}

static const unsigned char place_bytes[] = {ID, 3, 0, 0, 0, 2, 0, 0,    0,
                                            5,  0, 0, 0, 0, 0, 0, 0x80, 1,
                                            0,  0, 0, 0, 0, 0, 0};

static void pack_place(akin_packer_t *p)
{
    uint64_t holders[] = {UINT64_C(0x8000000000000005), 1};
    const akin_message_place_t m = {
        .epoch = id, .layer = 3, .holders = holders, .n_holders = 2};
    akin_message_pack_place(p, &m);
}

static akin_status_t unpack_place(const void *data, size_t bytes, int *same_p)
{
    akin_message_place_t m;
    akin_status_t status = akin_message_unpack_place(data, bytes, &m);
    if (status != AKIN_OK)
        return status;
    *same_p = m.epoch == id && m.layer == 3 && m.n_holders == 2 &&
              m.holders[0] == UINT64_C(0x8000000000000005) && m.holders[1] == 1;
    free(m.holders);
    return AKIN_OK;
}

static const unsigned char placed_bytes[] = {ID, 0xfe, 0xff, 0xff, 0xff};

static void pack_placed(akin_packer_t *p)
{
    const akin_message_placed_t m = {.epoch = id, .status = -2};
    akin_message_pack_placed(p, &m);
}

static akin_status_t unpack_placed(const void *data, size_t bytes, int *same_p)
{
    akin_message_placed_t m;
    akin_status_t status = akin_message_unpack_placed(data, bytes, &m);
    if (status == AKIN_OK)
        *same_p = m.epoch == id && m.status == -2;
    return status;
}

#define KIND(name)                                                             \
    {                                                                          \
#name, name##_bytes, sizeof(name##_bytes), pack_##name, unpack_##name  \
    }

static const kind_t kinds[] = {
    KIND(prefill), KIND(prefilled), KIND(decode),  KIND(transferred),
    KIND(tokens),  KIND(step),      KIND(counts),  KIND(id),
    KIND(stats),   KIND(routes),    KIND(ep_done), KIND(ep_step),
    KIND(place),   KIND(placed),    KIND(join),    KIND(group),
    KIND(assume),  KIND(rank),      KIND(leases),
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

#endif
