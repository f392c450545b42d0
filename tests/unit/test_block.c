/* Tests of the KV block: sizes, wire format, checksum and conservation. */
#include "base/rng.h"
#include "kv/block.h"
#include "kv/cache.h"

#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const akin_kv_shape_t small_shape = {.n_layers = 2,
                                            .n_kv_heads = 1,
                                            .head_dim = 4,
                                            .n_experts = 4,
                                            .top_k = 2,
                                            .block_tokens = 8};

static akin_kv_layout_t layout_of(const akin_kv_shape_t *shape)
{
    akin_kv_layout_t layout = {0};
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_kv_layout_init(shape, &layout, &err), AKIN_OK);
    return layout;
}

/* MODELS.md section 5: KV bytes per token. */
static void test_sizes(void)
{
    akin_kv_shape_t shape = {.n_layers = 48,
                             .n_kv_heads = 4,
                             .head_dim = 128,
                             .n_experts = 128,
                             .top_k = 8,
                             .block_tokens = 16};
    akin_kv_layout_t l = layout_of(&shape);
    CU_ASSERT_EQUAL(l.kv_bytes, 16 * 98304u);
    CU_ASSERT_EQUAL(l.sidecar_bytes, 6144);
    CU_ASSERT_EQUAL(l.sidecar_offset, 64 + 16 * 98304u);
    CU_ASSERT_EQUAL(l.payload_bytes, 1579072);
    CU_ASSERT_EQUAL(l.stride_bytes, 1581056);
    shape.n_layers = 94;
    shape.block_tokens = 64;
    l = layout_of(&shape);
    CU_ASSERT_EQUAL(l.kv_bytes, 64 * 192512u);
    CU_ASSERT_EQUAL(l.sidecar_bytes, 12032);
    CU_ASSERT_EQUAL(l.stride_bytes % 4096, 0);
    CU_ASSERT(l.stride_bytes - l.payload_bytes < 4096);
}

/* The heads tile the KV part: keys and values of every head, in order. */
static void test_heads(void)
{
    akin_kv_shape_t shape = small_shape;
    shape.n_kv_heads = 3;
    akin_kv_layout_t l = layout_of(&shape);
    unsigned char *slot = calloc(1, l.stride_bytes);
    unsigned char *next = slot + l.kv_offset;
    for (uint32_t layer = 0; layer < shape.n_layers; layer++) {
        for (uint32_t h = 0; h < shape.n_kv_heads; h++, next += 8 * 4 * 2)
            CU_ASSERT_PTR_EQUAL(akin_kv_keys(&l, slot, layer, h), next);
        for (uint32_t h = 0; h < shape.n_kv_heads; h++, next += 8 * 4 * 2)
            CU_ASSERT_PTR_EQUAL(akin_kv_values(&l, slot, layer, h), next);
    }
    CU_ASSERT_PTR_EQUAL(akin_kv_sidecar(&l, slot), next);
    free(slot);
}

static void check_bad_shape(akin_kv_shape_t shape, const char *field)
{
    akin_kv_layout_t layout;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_kv_layout_init(&shape, &layout, &err), AKIN_ERR_RANGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, field));
}

static void test_bad_shapes(void)
{
    akin_kv_shape_t s = small_shape;
    s.n_layers = 0;
    check_bad_shape(s, "n_layers");
    s = small_shape;
    s.n_kv_heads = UINT32_MAX;
    check_bad_shape(s, "n_kv_heads");
    s = small_shape;
    s.head_dim = 0;
    check_bad_shape(s, "head_dim");
    s = small_shape;
    s.n_experts = 0;
    check_bad_shape(s, "n_experts");
    s = small_shape;
    s.top_k = 5;
    check_bad_shape(s, "top_k");
    s = small_shape;
    for (uint32_t t = 0; t < 140; t++) {
        s.block_tokens = t;
        if (t != 8 && t != 16 && t != 32 && t != 64)
            check_bad_shape(s, "block_tokens");
    }
}

/* The block of fixtures/kv/README.md, built by the code under test. */
static void build_golden(const akin_kv_layout_t *l, unsigned char *slot)
{
    static const uint8_t sidecar[8] = {8, 4, 3, 1, 0, 8, 0, 8};
    const uint32_t tokens[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    akin_kv_block_clear(slot, 5);
    for (size_t i = 0; i < l->kv_bytes; i++)
        slot[l->kv_offset + i] = (unsigned char)(i * 7);
    memcpy(akin_kv_sidecar(l, slot), sidecar, sizeof(sidecar));
    akin_kv_block_seal(l, slot,
                       akin_kv_chain_hash(AKIN_KV_ROOT_HASH, tokens, 8), 8);
}

static akin_kv_descriptor_t golden_descriptor(const unsigned char *slot)
{
    akin_kv_header_t header;
    memcpy(&header, slot, sizeof(header));
    return (akin_kv_descriptor_t){
        .n_tokens = 8, .generation = 5, .chain_hash = header.chain_hash};
}

static void test_golden(void)
{
    akin_kv_layout_t l = layout_of(&small_shape);
    CU_ASSERT_EQUAL_FATAL(l.payload_bytes, 328);
    unsigned char golden[329];
    FILE *file = fopen(AKIN_FIXTURES "/kv/block.bin", "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL_FATAL(fread(golden, 1, sizeof(golden), file), 328);
    (void)fclose(file);
    unsigned char *slot = calloc(1, l.stride_bytes);
    build_golden(&l, slot);
    CU_ASSERT_EQUAL(memcmp(slot, golden, 328), 0);
    free(slot);
}

/* The first field that a flipped bit of a byte is in decides the refusal. */
static akin_kv_refusal_t refusal_at(size_t byte)
{
    if (byte < 4)
        return AKIN_KV_REFUSAL_MAGIC;
    if (byte < 6 || (byte >= 32 && byte < 64))
        return AKIN_KV_REFUSAL_VERSION;
    if (byte < 8)
        return AKIN_KV_REFUSAL_TOKENS;
    if (byte < 16)
        return AKIN_KV_REFUSAL_GENERATION;
    if (byte < 24)
        return AKIN_KV_REFUSAL_CHAIN;
    return AKIN_KV_REFUSAL_CHECKSUM;
}

static void test_every_bit(void)
{
    akin_kv_layout_t l = layout_of(&small_shape);
    unsigned char *slot = calloc(1, l.stride_bytes);
    build_golden(&l, slot);
    akin_kv_descriptor_t d = golden_descriptor(slot);
    CU_ASSERT_EQUAL(akin_kv_block_check(&l, slot, &d), AKIN_KV_REFUSAL_NONE);
    unsigned wrong = 0;
    for (size_t bit = 0; bit < l.stride_bytes * 8; bit++) {
        unsigned char flip = (unsigned char)(1u << bit % 8);
        slot[bit / 8] ^= flip;
        /* The padding is not part of the block. */
        akin_kv_refusal_t expected = bit / 8 < l.payload_bytes
                                         ? refusal_at(bit / 8)
                                         : AKIN_KV_REFUSAL_NONE;
        wrong += akin_kv_block_check(&l, slot, &d) != expected;
        slot[bit / 8] ^= flip;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    free(slot);
}

/* Whether a reader takes a block whose first bytes are of one owner of the
 * slot and whose others are of the next, although they are not all `whole`. */
static unsigned takes_torn(const akin_kv_layout_t *l,
                           const unsigned char *first,
                           const unsigned char *then, size_t seam,
                           const unsigned char *whole, uint64_t generation)
{
    static unsigned char torn[512];
    akin_kv_descriptor_t d = golden_descriptor(whole);
    d.generation = generation;
    memcpy(torn, then, l->payload_bytes);
    memcpy(torn, first, seam);
    return akin_kv_block_check(l, torn, &d) == AKIN_KV_REFUSAL_NONE &&
           memcmp(torn, whole, l->payload_bytes) != 0;
}

/* A slot that gets its next owner while it is read, wherever the seam is and
 * whichever of the two the reader wants: other tokens with all bytes different,
 * or with one bit. The same tokens would mean the same bytes. */
static void test_torn(void)
{
    akin_kv_layout_t l = layout_of(&small_shape);
    unsigned char *old = calloc(1, l.stride_bytes);
    unsigned char *next = calloc(1, l.stride_bytes);
    build_golden(&l, old);
    unsigned wrong = 0;
    for (int i = 0; i < 2; i++) {
        memcpy(next, old, l.payload_bytes);
        for (size_t at = 0; i == 0 && at < l.kv_bytes; at++)
            next[l.kv_offset + at] ^= 0x55;
        next[l.kv_offset + l.kv_bytes / 2] ^= 0x80;
        akin_kv_header(next)->generation = 6;
        akin_kv_block_seal(&l, next, akin_kv_header(old)->chain_hash ^ 1, 8);
        for (size_t seam = 0; seam <= l.payload_bytes; seam++) {
            wrong += takes_torn(&l, old, next, seam, old, 5);
            wrong += takes_torn(&l, old, next, seam, next, 6);
            wrong += takes_torn(&l, next, old, seam, old, 5);
            wrong += takes_torn(&l, next, old, seam, next, 6);
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    free(old);
    free(next);
}

/* Descriptors that ask for another block, and blocks that lie about tokens. */
static void test_descriptors(void)
{
    akin_kv_layout_t l = layout_of(&small_shape);
    unsigned char *slot = calloc(1, l.stride_bytes);
    build_golden(&l, slot);
    const akin_kv_descriptor_t good = golden_descriptor(slot);
    akin_kv_descriptor_t d = good;
    d.generation++;
    CU_ASSERT_EQUAL(akin_kv_block_check(&l, slot, &d),
                    AKIN_KV_REFUSAL_GENERATION);
    d = good;
    d.n_tokens = 7;
    CU_ASSERT_EQUAL(akin_kv_block_check(&l, slot, &d), AKIN_KV_REFUSAL_TOKENS);
    d = good;
    d.chain_hash ^= 1;
    CU_ASSERT_EQUAL(akin_kv_block_check(&l, slot, &d), AKIN_KV_REFUSAL_CHAIN);
    for (uint32_t n = 0; n < 70000; n += n < 100 ? 1 : 4999) {
        if (n == 8 || n > UINT16_MAX)
            continue;
        akin_kv_header(slot)->n_tokens = (uint16_t)n;
        akin_kv_header(slot)->checksum = akin_kv_block_checksum(&l, slot);
        d = good;
        d.n_tokens = n;
        CU_ASSERT_EQUAL(akin_kv_block_check(&l, slot, &d),
                        n == 0 || n > 8 ? AKIN_KV_REFUSAL_TOKENS
                                        : AKIN_KV_REFUSAL_CONSERVATION);
    }
    akin_kv_block_clear(slot, 5);
    d = (akin_kv_descriptor_t){.generation = 5};
    CU_ASSERT_EQUAL(akin_kv_block_check(&l, slot, &d), AKIN_KV_REFUSAL_TOKENS);
    free(slot);
}

/* A new owner changes the generation alone, and the block stays whole. */
static void test_generation_is_not_hashed(void)
{
    akin_kv_layout_t l = layout_of(&small_shape);
    unsigned char *slot = calloc(1, l.stride_bytes);
    build_golden(&l, slot);
    akin_kv_descriptor_t d = golden_descriptor(slot);
    d.generation = 77;
    akin_kv_header(slot)->generation = 77;
    CU_ASSERT_EQUAL(akin_kv_block_check(&l, slot, &d), AKIN_KV_REFUSAL_NONE);
    free(slot);
}

/* One cell at a time, in plain arithmetic. */
static int is_conserved_plainly(const akin_kv_shape_t *s,
                                const uint8_t *sidecar, uint32_t n_tokens)
{
    for (uint32_t l = 0; l < s->n_layers; l++) {
        uint32_t sum = 0;
        for (uint32_t e = 0; e < s->n_experts; e++) {
            sum += sidecar[l * s->n_experts + e];
            if (sidecar[l * s->n_experts + e] > n_tokens)
                return 0;
        }
        if (sum != n_tokens * s->top_k)
            return 0;
    }
    return 1;
}

/* Sidecars as a gate writes them, then with one or two cells changed. */
static void check_conservation(const akin_kv_shape_t *s, uint64_t key)
{
    akin_kv_layout_t l = layout_of(s);
    unsigned char *slot = calloc(1, l.stride_bytes);
    uint8_t *sidecar = akin_kv_sidecar(&l, slot);
    uint64_t draw = 0;
    uint32_t n = 1 + (uint32_t)akin_rng_below(key, 0, draw++, s->block_tokens);
    for (uint32_t layer = 0; layer < s->n_layers; layer++)
        for (uint32_t t = 0; t < n; t++) {
            uint32_t e = (uint32_t)akin_rng_below(key, 0, draw++, s->n_experts);
            for (uint32_t k = 0; k < s->top_k; k++)
                sidecar[layer * s->n_experts + (e + k) % s->n_experts]++;
        }
    akin_kv_descriptor_t d = {.n_tokens = n, .chain_hash = key};
    unsigned wrong = 0, refused = 0;
    for (int round = 0; round < 40; round++) {
        uint8_t before[2];
        size_t cell[2];
        for (int i = 0; round > 0 && i < 2; i++) {
            cell[i] = akin_rng_below(key, 1, draw++, l.sidecar_bytes);
            before[i] = sidecar[cell[i]];
        }
        if (round > 0) {
            uint8_t by = (uint8_t)akin_rng_u64(key, 2, draw++);
            if (round % 2 == 0)
                by = (uint8_t)(1u << by % 8);
            sidecar[cell[0]] = (uint8_t)(sidecar[cell[0]] + by);
            sidecar[cell[1]] = (uint8_t)(sidecar[cell[1]] - by);
        }
        akin_kv_block_clear(slot, 0);
        akin_kv_block_seal(&l, slot, key, n);
        int is_good = akin_kv_block_check(&l, slot, &d) == AKIN_KV_REFUSAL_NONE;
        wrong += is_good != is_conserved_plainly(s, sidecar, n);
        wrong += round == 0 && !is_good;
        refused += !is_good;
        for (int i = 1; round > 0 && i >= 0; i--)
            sidecar[cell[i]] = before[i];
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT(refused > 0);
    free(slot);
}

static void test_conservation(void)
{
    const uint32_t experts[] = {2, 5, 8, 13, 64, 128, 1023, 1032, 2500};
    for (size_t i = 0; i < sizeof(experts) / sizeof(experts[0]); i++)
        for (uint32_t tokens = 8; tokens <= 64; tokens *= 2) {
            akin_kv_shape_t s = small_shape;
            s.n_experts = experts[i];
            s.block_tokens = tokens;
            check_conservation(&s, experts[i] * 100 + tokens);
        }
    /* All counts in one byte's upper half: 64 tokens that agree. */
    akin_kv_shape_t s = small_shape;
    s.n_layers = 1;
    s.n_experts = 2048;
    s.top_k = 2048;
    s.block_tokens = 64;
    akin_kv_layout_t l = layout_of(&s);
    unsigned char *slot = calloc(1, l.stride_bytes);
    memset(akin_kv_sidecar(&l, slot), 64, 2048);
    akin_kv_block_clear(slot, 0);
    akin_kv_block_seal(&l, slot, 9, 64);
    akin_kv_descriptor_t d = {.n_tokens = 64, .chain_hash = 9};
    CU_ASSERT_EQUAL(akin_kv_block_check(&l, slot, &d), AKIN_KV_REFUSAL_NONE);
    /* The sum is right, but one expert has more tokens than there are. */
    akin_kv_sidecar(&l, slot)[0] = 65;
    akin_kv_sidecar(&l, slot)[1] = 63;
    akin_kv_block_seal(&l, slot, 9, 64);
    CU_ASSERT_EQUAL(akin_kv_block_check(&l, slot, &d),
                    AKIN_KV_REFUSAL_CONSERVATION);
    free(slot);
}

static void test_sidecar_add(void)
{
    akin_kv_layout_t l = layout_of(&small_shape);
    unsigned char *slot = calloc(1, l.stride_bytes);
    build_golden(&l, slot);
    uint16_t counts[8] = {0, 65535, 65533, 65532, 7, 0, 3, 65527};
    const uint16_t expected[8] = {8, 65535, 65535, 65533, 7, 8, 3, 65535};
    akin_kv_sidecar_add(&l, slot, counts);
    CU_ASSERT_EQUAL(memcmp(counts, expected, sizeof(counts)), 0);
    free(slot);
}

static void test_strings(void)
{
    CU_ASSERT_STRING_EQUAL(akin_kv_refusal_string(AKIN_KV_REFUSAL_GENERATION),
                           "generation");
    CU_ASSERT_STRING_EQUAL(akin_kv_refusal_string(AKIN_KV_REFUSAL_COUNT),
                           "unknown");
    CU_ASSERT_STRING_EQUAL(akin_kv_refusal_string((akin_kv_refusal_t)-1),
                           "unknown");
    for (int i = 0; i < AKIN_KV_REFUSAL_COUNT; i++)
        CU_ASSERT_STRING_NOT_EQUAL(akin_kv_refusal_string((akin_kv_refusal_t)i),
                                   "unknown");
}

static const runner_test_t tests[] = {
    {"sizes of published models", test_sizes},
    {"heads tile the block", test_heads},
    {"bad shapes name their field", test_bad_shapes},
    {"golden bytes", test_golden},
    {"every flipped bit is refused", test_every_bit},
    {"torn blocks are refused", test_torn},
    {"wrong descriptors are refused", test_descriptors},
    {"generation is outside the checksum", test_generation_is_not_hashed},
    {"conservation against plain sums", test_conservation},
    {"sidecar sums saturate", test_sidecar_add},
    {"refusal words", test_strings},
};

RUNNER_MAIN("kv block", tests)
