/* Tests of the KV cache: the rules about order, generations, collisions,
 * adoption and doubt one by one. */
#include "cache_bed.h"

#include <string.h>

static uint32_t take(akin_kv_cache_t *cache)
{
    uint32_t slot = UINT32_MAX;
    CU_ASSERT_EQUAL_FATAL(akin_kv_cache_take(cache, &slot), AKIN_OK);
    return slot;
}

/* Enters a block of one repeated token after a parent. */
static uint32_t put(akin_kv_cache_t *cache, uint64_t parent, uint32_t token,
                    uint64_t *hash_p)
{
    uint32_t tokens[BLOCK], slot = take(cache);
    for (int i = 0; i < BLOCK; i++)
        tokens[i] = token;
    *hash_p = akin_kv_cache_seal(cache, slot, parent, tokens, BLOCK);
    return slot;
}

/* A chain that is released from its head still goes from its end. */
static void test_eviction_order(void)
{
    akin_kv_view_t view = create_view(4);
    akin_kv_cache_t *cache = create_cache(&view);
    uint64_t hash = AKIN_KV_ROOT_HASH, other;
    uint32_t chain[3];
    for (uint32_t i = 0; i < 3; i++)
        chain[i] = put(cache, hash, i, &hash);
    uint32_t single = put(cache, AKIN_KV_ROOT_HASH, 9, &other);
    for (uint32_t i = 0; i < 3; i++)
        akin_kv_cache_unref(cache, chain[i]);
    akin_kv_cache_unref(cache, single);
    CU_ASSERT_EQUAL(akin_kv_cache_available(cache), 4);
    CU_ASSERT_EQUAL(take(cache), chain[2]);
    CU_ASSERT_EQUAL(take(cache), chain[1]);
    CU_ASSERT_EQUAL(take(cache), chain[0]);
    CU_ASSERT_EQUAL(take(cache), single);
    uint32_t slot = 77;
    CU_ASSERT_EQUAL(akin_kv_cache_take(cache, &slot), AKIN_ERR_FULL);
    CU_ASSERT_EQUAL(slot, 77);
    check_audit(cache);
    akin_kv_cache_destroy(cache);
    free(view.base);
}

/* A late reader's descriptor is refused once the slot has moved on. */
static void test_late_reader(void)
{
    akin_kv_view_t view = create_view(2);
    akin_kv_cache_t *cache = create_cache(&view);
    uint32_t tokens[BLOCK] = {5}, slot = take(cache);
    unsigned char *block = akin_kv_slot(&view, slot);
    memset(akin_kv_sidecar(&layout, block), 0, layout.sidecar_bytes);
    akin_kv_sidecar(&layout, block)[1] = 3;
    uint64_t hash =
        akin_kv_cache_seal(cache, slot, AKIN_KV_ROOT_HASH, tokens, 3);
    akin_kv_descriptor_t d = {.slot = slot,
                              .n_tokens = 3,
                              .generation =
                                  akin_kv_cache_generation(cache, slot),
                              .chain_hash = hash};
    CU_ASSERT_EQUAL(akin_kv_block_check(&layout, block, &d),
                    AKIN_KV_REFUSAL_NONE);
    akin_kv_cache_ref(cache, slot);
    akin_kv_cache_unref(cache, slot);
    CU_ASSERT_EQUAL(akin_kv_block_check(&layout, block, &d),
                    AKIN_KV_REFUSAL_NONE);
    akin_kv_cache_unref(cache, slot);
    CU_ASSERT_EQUAL(akin_kv_block_check(&layout, block, &d),
                    AKIN_KV_REFUSAL_GENERATION);
    check_audit(cache);
    akin_kv_cache_destroy(cache);
    free(view.base);
}

/*
 * XXH3 of 32 bytes multiplies (word 0 ^ (secret + seed)) with (word 1 ^ ...),
 * so with the first words of the secret as tokens the product is zero
 * whatever comes next: different blocks after the root with one hash.
 */
static void test_collision(void)
{
    akin_kv_view_t view = create_view(8);
    akin_kv_cache_t *cache = create_cache(&view);
    uint32_t a[2 * BLOCK] = {0x396cfeb8, 0xbe4ba423, 1, 2};
    uint32_t b[2 * BLOCK] = {0x396cfeb8, 0xbe4ba423, 3, 4};
    uint64_t hash = akin_kv_chain_hash(AKIN_KV_ROOT_HASH, a, BLOCK);
    CU_ASSERT_EQUAL_FATAL(akin_kv_chain_hash(AKIN_KV_ROOT_HASH, b, BLOCK),
                          hash);
    uint32_t slot_a = take(cache), slot_b = take(cache), found[2];
    (void)akin_kv_cache_seal(cache, slot_a, AKIN_KV_ROOT_HASH, a, BLOCK);
    CU_ASSERT_EQUAL(akin_kv_cache_match(cache, b, BLOCK, 1, found), 0);
    (void)akin_kv_cache_seal(cache, slot_b, AKIN_KV_ROOT_HASH, b, BLOCK);
    CU_ASSERT_EQUAL(akin_kv_cache_match(cache, b, BLOCK, 1, found), 0);
    /* The second block of b, which has the hash that a's would have. */
    uint32_t second = take(cache);
    (void)akin_kv_cache_seal(cache, second, hash, b + BLOCK, BLOCK);
    CU_ASSERT_EQUAL(akin_kv_cache_match(cache, a, 2 * BLOCK, 2, found), 1);
    CU_ASSERT_EQUAL(found[0], slot_a);
    check_audit(cache);
    /* Nothing of b is left behind, and a goes on as if it had been alone. */
    akin_kv_cache_unref(cache, second);
    akin_kv_cache_unref(cache, slot_b);
    second = take(cache);
    (void)akin_kv_cache_seal(cache, second, hash, a + BLOCK, BLOCK);
    CU_ASSERT_EQUAL(akin_kv_cache_match(cache, a, 2 * BLOCK, 2, found), 2);
    CU_ASSERT_EQUAL(found[1], second);
    CU_ASSERT_EQUAL(akin_kv_cache_match(cache, b, 2 * BLOCK, 2, found), 0);
    check_audit(cache);
    akin_kv_cache_destroy(cache);
    free(view.base);
}

static void test_runs(void)
{
    akin_kv_view_t view = create_view(130);
    akin_kv_cache_t *cache = create_cache(&view);
    uint32_t slots[130];
    CU_ASSERT_EQUAL_FATAL(akin_kv_cache_take_run(cache, 130, slots), AKIN_OK);
    for (uint32_t i = 0; i < 130; i++)
        CU_ASSERT_EQUAL(slots[i], i);
    /* Free: 3, 5, 60 .. 70, 100, 101. */
    for (uint32_t i = 0; i < 130; i++)
        if (i == 3 || i == 5 || (i >= 60 && i <= 70) || i / 2 == 50)
            akin_kv_cache_unref(cache, i);
    CU_ASSERT_EQUAL(akin_kv_cache_take_run(cache, 16, slots), AKIN_ERR_FULL);
    CU_ASSERT_EQUAL_FATAL(akin_kv_cache_take_run(cache, 9, slots), AKIN_OK);
    for (uint32_t i = 0; i < 9; i++)
        CU_ASSERT_EQUAL(slots[i], 60 + i);
    /* No run of five is left: all the same, in ascending order. */
    const uint32_t rest[] = {69, 70, 100, 101, 3};
    CU_ASSERT_EQUAL_FATAL(akin_kv_cache_take_run(cache, 5, slots), AKIN_OK);
    for (uint32_t i = 0; i < 5; i++)
        CU_ASSERT_EQUAL(slots[i], rest[i]);
    CU_ASSERT_EQUAL(akin_kv_cache_available(cache), 1);
    CU_ASSERT_EQUAL(akin_kv_cache_take_run(cache, 0, slots), AKIN_OK);
    check_audit(cache);
    akin_kv_cache_destroy(cache);
    free(view.base);
}

static void test_adopt(void)
{
    akin_kv_view_t theirs = create_view(2), ours = create_view(3);
    akin_kv_cache_t *from = create_cache(&theirs), *to = create_cache(&ours);
    uint32_t tokens[BLOCK] = {1, 2, 3}, source = take(from), found;
    uint64_t hash =
        akin_kv_cache_seal(from, source, AKIN_KV_ROOT_HASH, tokens, BLOCK);
    akin_kv_descriptor_t d = {.slot = source,
                              .n_tokens = BLOCK,
                              .generation =
                                  akin_kv_cache_generation(from, source),
                              .chain_hash = hash};
    uint32_t slot = take(to);
    akin_kv_cache_unref(to, slot);
    slot = take(to);
    unsigned char *block = akin_kv_slot(&ours, slot);
    memcpy(block, akin_kv_slot(&theirs, source), layout.payload_bytes);
    akin_kv_header(block)->generation = akin_kv_cache_generation(to, slot);
    CU_ASSERT_EQUAL(akin_kv_cache_adopt(to, slot, 1, &d, tokens),
                    AKIN_ERR_INVALID);
    tokens[7] = 1;
    CU_ASSERT_EQUAL(
        akin_kv_cache_adopt(to, slot, AKIN_KV_ROOT_HASH, &d, tokens),
        AKIN_ERR_INVALID);
    tokens[7] = 0;
    CU_ASSERT_EQUAL(akin_kv_cache_match(to, tokens, BLOCK, 1, &found), 0);
    CU_ASSERT_EQUAL(
        akin_kv_cache_adopt(to, slot, AKIN_KV_ROOT_HASH, &d, tokens), AKIN_OK);
    akin_kv_cache_unref(to, slot);
    CU_ASSERT_EQUAL(akin_kv_cache_match(to, tokens, BLOCK, 1, &found), 1);
    CU_ASSERT_EQUAL(found, slot);
    CU_ASSERT_EQUAL(akin_kv_header(block)->checksum,
                    akin_kv_block_checksum(&layout, block));
    check_audit(to);
    akin_kv_cache_destroy(from);
    akin_kv_cache_destroy(to);
    free(theirs.base);
    free(ours.base);
}

/* What the prompt a b c left behind is dropped with what builds on its first
 * block; what a holder goes on with is found by nobody, also when the same
 * tokens have been computed anew. */
static void test_forget(void)
{
    akin_kv_view_t view = create_view(12);
    akin_kv_cache_t *cache = create_cache(&view);
    uint64_t a, b, c, d, other, again;
    uint32_t slot_a = put(cache, AKIN_KV_ROOT_HASH, 1, &a);
    uint32_t slot_b = put(cache, a, 2, &b);
    uint32_t slot_c = put(cache, b, 3, &c);
    uint32_t slot_d = put(cache, a, 4, &d);
    uint32_t single = put(cache, AKIN_KV_ROOT_HASH, 9, &other);
    const uint64_t generation = akin_kv_cache_generation(cache, slot_c);
    const uint64_t held = akin_kv_cache_generation(cache, slot_b);
    akin_kv_cache_unref(cache, slot_c);
    akin_kv_cache_unref(cache, slot_d);
    akin_kv_cache_unref(cache, single);
    uint32_t tokens[3 * BLOCK], found[3];
    for (uint32_t i = 0; i < 3 * BLOCK; i++)
        tokens[i] = 1 + i / BLOCK;
    CU_ASSERT_EQUAL(akin_kv_cache_forget(cache, tokens, BLOCK - 1), 0);
    CU_ASSERT_EQUAL(akin_kv_cache_forget(cache, tokens + BLOCK, 2 * BLOCK), 0);
    CU_ASSERT_EQUAL(akin_kv_cache_forget(cache, tokens, 3 * BLOCK), 4);
    CU_ASSERT_EQUAL(akin_kv_cache_match(cache, tokens, 3 * BLOCK, 3, found), 0);
    CU_ASSERT_EQUAL(akin_kv_cache_forget(cache, tokens, 3 * BLOCK), 0);
    CU_ASSERT_EQUAL(akin_kv_cache_generation(cache, slot_c), generation + 1);
    CU_ASSERT_EQUAL(akin_kv_cache_generation(cache, slot_b), held + 1);
    CU_ASSERT_EQUAL(akin_kv_header(akin_kv_slot(&view, slot_b))->generation,
                    held + 1);
    check_audit(cache);
    akin_kv_cache_stats_t stats;
    akin_kv_cache_stats(cache, &stats);
    CU_ASSERT_EQUAL(stats.n_referenced, 2);
    CU_ASSERT_EQUAL(stats.n_cached, 1); /* the single one */
    /* The holder of a and b goes on, and somebody computes a and b again. */
    uint32_t slot_e = put(cache, b, 5, &again);
    uint32_t new_a = put(cache, AKIN_KV_ROOT_HASH, 1, &again);
    CU_ASSERT_EQUAL(again, a);
    uint32_t slot_f = put(cache, b, 3, &again); /* of the holder as well */
    uint32_t new_b = put(cache, a, 2, &again);
    CU_ASSERT_EQUAL_FATAL(
        akin_kv_cache_match(cache, tokens, 3 * BLOCK, 3, found), 1);
    CU_ASSERT_EQUAL(found[0], new_a);
    akin_kv_cache_unref(cache, new_a);
    /* When the holder has gone, the new chain grows as any other. */
    akin_kv_cache_unref(cache, slot_f);
    akin_kv_cache_unref(cache, slot_e);
    akin_kv_cache_unref(cache, slot_b);
    akin_kv_cache_unref(cache, slot_a);
    akin_kv_cache_unref(cache, new_b);
    new_b = put(cache, a, 2, &again);
    CU_ASSERT_EQUAL_FATAL(
        akin_kv_cache_match(cache, tokens, 3 * BLOCK, 3, found), 2);
    CU_ASSERT_EQUAL(found[0], new_a);
    CU_ASSERT_EQUAL(found[1], new_b);
    check_audit(cache);
    akin_kv_cache_destroy(cache);
    free(view.base);
}

/* A rank that starts again does not repeat a generation: a descriptor of its
 * life before fits no block of this one, not even one with the same tokens. */
static void test_lives(void)
{
    akin_kv_view_t view = create_view(4);
    uint64_t newest = 0;
    for (int life = 0; life < 3; life++) {
        akin_kv_cache_t *cache = create_cache(&view);
        for (uint32_t i = 0; i < 4; i++)
            CU_ASSERT(akin_kv_cache_generation(cache, i) > newest);
        for (int i = 0; i < 200; i++) {
            uint64_t hash;
            uint32_t slot = put(cache, AKIN_KV_ROOT_HASH, 1, &hash);
            if (akin_kv_cache_generation(cache, slot) > newest)
                newest = akin_kv_cache_generation(cache, slot);
            akin_kv_cache_unref(cache, slot);
        }
        akin_kv_cache_destroy(cache);
    }
    free(view.base);
}

static void test_without_prefix(void)
{
    akin_kv_view_t view = create_view(2);
    akin_kv_cache_t *cache = NULL;
    CU_ASSERT_EQUAL_FATAL(akin_kv_cache_create(&view, 0, &cache), AKIN_OK);
    const uint64_t generation = akin_kv_cache_generation(cache, 1);
    uint32_t tokens[BLOCK] = {1}, slot = take(cache), found;
    (void)akin_kv_cache_seal(cache, slot, AKIN_KV_ROOT_HASH, tokens, BLOCK);
    CU_ASSERT_EQUAL(akin_kv_cache_match(cache, tokens, BLOCK, 1, &found), 0);
    akin_kv_cache_unref(cache, slot);
    akin_kv_cache_stats_t stats;
    akin_kv_cache_stats(cache, &stats);
    CU_ASSERT_EQUAL(stats.n_cached, 0);
    CU_ASSERT_EQUAL(akin_kv_cache_generation(cache, slot), generation + 2);
    CU_ASSERT_EQUAL(akin_kv_cache_forget(cache, tokens, BLOCK), 0);
    check_audit(cache);
    akin_kv_cache_destroy(cache);
    free(view.base);
}

/* The audit is worth something only if it sees damage. */
static void test_audit(void)
{
    akin_kv_view_t view = create_view(4);
    akin_kv_cache_t *cache = create_cache(&view);
    akin_error_t err = {{0}};
    akin_kv_header(akin_kv_slot(&view, 2))->generation = 0;
    CU_ASSERT_EQUAL(akin_kv_cache_audit(cache, &err), AKIN_ERR_INTERNAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "slot 2"));
    akin_kv_cache_destroy(cache);
    free(view.base);
}

static const runner_test_t tests[] = {
    {"eviction order", test_eviction_order},
    {"late readers are refused", test_late_reader},
    {"colliding hashes are told apart", test_collision},
    {"runs of slots", test_runs},
    {"adoption of a received block", test_adopt},
    {"what is in doubt is forgotten", test_forget},
    {"generations of an earlier life do not come again", test_lives},
    {"no prefix index", test_without_prefix},
    {"audit sees damage", test_audit},
};

RUNNER_MAIN("kv cache", tests)
