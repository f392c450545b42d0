/* Tests of the KV cache: a random walk beside a naive model, and the rules
 * about order, generations, collisions and adoption one by one. */
#include "base/rng.h"
#include "kv/cache.h"

#include "kv_model.h"
#include "runner.h"

#include <stdlib.h>

#define BLOCK 8
#define MAX_BLOCKS 7
#define N_SEQUENCES 6
#define N_WORDS 3 /* different blocks per position */

static akin_kv_layout_t layout;

static akin_kv_view_t create_view(uint32_t n_slots)
{
    const akin_kv_shape_t shape = {.n_layers = 1,
                                   .n_kv_heads = 1,
                                   .head_dim = 2,
                                   .n_experts = 2,
                                   .top_k = 1,
                                   .block_tokens = BLOCK};
    CU_ASSERT_EQUAL_FATAL(akin_kv_layout_init(&shape, &layout, NULL), AKIN_OK);
    akin_kv_view_t view = {.layout = &layout, .n_slots = n_slots};
    view.base = calloc(n_slots, layout.stride_bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(view.base);
    return view;
}

static akin_kv_cache_t *create_cache(const akin_kv_view_t *view)
{
    akin_kv_cache_t *cache = NULL;
    CU_ASSERT_EQUAL_FATAL(akin_kv_cache_create(view, 1, &cache), AKIN_OK);
    return cache;
}

static void check_audit(const akin_kv_cache_t *cache)
{
    akin_error_t err = {{0}};
    if (akin_kv_cache_audit(cache, &err) != AKIN_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        CU_FAIL_FATAL("audit");
    }
}

/* A request of the random walk: its words, and the slots of its blocks. */
typedef struct sequence {
    uint32_t words[MAX_BLOCKS];
    uint32_t slots[MAX_BLOCKS]; /* MODEL_NONE: given back early */
    uint32_t n;
} sequence_t;

typedef struct walk {
    akin_kv_view_t view;
    akin_kv_cache_t *cache;
    model_t model;
    sequence_t sequences[N_SEQUENCES];
    uint64_t key, draws;
    uint64_t queries, hits, orphans, strangers, full;
} walk_t;

static uint32_t draw(walk_t *w, uint32_t below)
{
    return (uint32_t)akin_rng_below(w->key, 0, w->draws++, below);
}

static void fill_tokens(const uint32_t *words, uint32_t n, uint32_t *tokens)
{
    for (uint32_t i = 0; i < n * BLOCK; i++)
        tokens[i] = words[i / BLOCK] * 1000 + i % BLOCK;
}

/* The words up to a block as one number, never 0. */
static uint32_t history_of(const uint32_t *words, uint32_t n)
{
    uint32_t history = 0;
    for (uint32_t i = 0; i < n; i++)
        history = history * (N_WORDS + 1) + words[i] + 1;
    return history;
}

static uint64_t chain_of(const uint32_t *words, uint32_t n)
{
    uint32_t tokens[MAX_BLOCKS * BLOCK];
    fill_tokens(words, n, tokens);
    uint64_t hash = AKIN_KV_ROOT_HASH;
    for (uint32_t i = 0; i < n; i++)
        hash = akin_kv_chain_hash(hash, tokens + i * BLOCK, BLOCK);
    return hash;
}

static void begin_sequence(walk_t *w, sequence_t *s)
{
    uint32_t n = 1 + draw(w, MAX_BLOCKS - 1);
    for (uint32_t i = 0; i < n; i++)
        s->words[i] = draw(w, N_WORDS);
    uint32_t tokens[MAX_BLOCKS * BLOCK];
    fill_tokens(s->words, n, tokens);
    uint32_t found =
        akin_kv_cache_match(w->cache, tokens, n * BLOCK, n, s->slots);
    uint32_t expected = 0, node = MODEL_ROOT;
    for (; expected < n; expected++) {
        uint32_t slot =
            model_find(&w->model, history_of(s->words, expected + 1), node);
        if (slot == MODEL_NONE)
            break;
        if (expected < found)
            CU_ASSERT_EQUAL_FATAL(s->slots[expected], slot);
        node = w->model.slots[slot].node;
        model_ref(&w->model, slot);
    }
    CU_ASSERT_EQUAL_FATAL(found, expected);
    w->queries += n;
    w->hits += found;
    s->n = found;
}

static void extend_sequence(walk_t *w, sequence_t *s)
{
    uint32_t n = 1 + draw(w, 3), slots[3];
    if (s->n + n > MAX_BLOCKS)
        return;
    akin_status_t status = n == 1 ? akin_kv_cache_take(w->cache, slots)
                                  : akin_kv_cache_take_run(w->cache, n, slots);
    int has_room = model_make_room(&w->model, n);
    CU_ASSERT_EQUAL_FATAL(status, has_room ? AKIN_OK : AKIN_ERR_FULL);
    w->full += !has_room;
    for (uint32_t i = 0; has_room && i < n; i++) {
        CU_ASSERT_FATAL(model_is_free(&w->model, slots[i]));
        model_take(&w->model, slots[i]);
    }
    for (uint32_t i = 0; has_room && i < n; i++) {
        uint32_t last = s->n++;
        s->slots[last] = slots[i];
        s->words[last] = draw(w, N_WORDS);
        if (last > 0 && s->slots[last - 1] == MODEL_NONE) {
            /* Its parent was given back, so it may not be sealed. */
            continue;
        }
        uint32_t tokens[BLOCK];
        fill_tokens(&s->words[last], 1, tokens);
        /* A partial block does not enter the index. */
        (void)akin_kv_cache_seal(w->cache, slots[i], chain_of(s->words, last),
                                 tokens, 1 + draw(w, BLOCK - 1));
        uint64_t hash = akin_kv_cache_seal(
            w->cache, slots[i], chain_of(s->words, last), tokens, BLOCK);
        CU_ASSERT_EQUAL_FATAL(hash, chain_of(s->words, last + 1));
        model_seal(&w->model, slots[i], history_of(s->words, last + 1),
                   history_of(s->words, last));
        w->strangers += (uint64_t)w->model.slots[slots[i]].is_stranger;
    }
}

static void give_back(walk_t *w, sequence_t *s, uint32_t i)
{
    if (s->slots[i] == MODEL_NONE)
        return;
    akin_kv_cache_unref(w->cache, s->slots[i]);
    model_unref(&w->model, s->slots[i]);
    s->slots[i] = MODEL_NONE;
}

static void end_sequence(walk_t *w, sequence_t *s)
{
    uint32_t order = draw(w, 3);
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t at = order == 0 ? i : s->n - 1 - i;
        give_back(w, s, order == 2 ? draw(w, s->n) : at);
    }
    for (uint32_t i = 0; i < s->n; i++)
        give_back(w, s, i);
    s->n = 0;
}

static void compare(walk_t *w)
{
    akin_kv_cache_stats_t stats;
    akin_kv_cache_stats(w->cache, &stats);
    CU_ASSERT_EQUAL_FATAL(stats.n_referenced, model_count(&w->model, 0));
    CU_ASSERT_EQUAL_FATAL(stats.n_cached, model_count(&w->model, 1));
    CU_ASSERT_EQUAL_FATAL(stats.evictions, w->model.evictions);
    CU_ASSERT_EQUAL_FATAL(stats.queries_blocks, w->queries);
    CU_ASSERT_EQUAL_FATAL(stats.hits_blocks, w->hits);
    CU_ASSERT_EQUAL_FATAL(akin_kv_cache_available(w->cache),
                          MODEL_SLOTS - model_count(&w->model, 0));
    for (uint32_t i = 0; i < MODEL_SLOTS; i++)
        CU_ASSERT_EQUAL_FATAL(akin_kv_cache_generation(w->cache, i),
                              w->model.slots[i].generation);
    for (uint32_t i = 0; i < MODEL_SLOTS; i++)
        w->orphans += w->model.slots[i].history != 0 &&
                      !model_is_live(&w->model, w->model.slots[i].parent_node);
    check_audit(w->cache);
}

static void run_walk(walk_t *w, uint64_t key, int n_steps)
{
    memset(w, 0, sizeof(*w));
    w->key = key;
    w->view = create_view(MODEL_SLOTS);
    w->cache = create_cache(&w->view);
    model_init(&w->model);
    for (int step = 0; step < n_steps; step++) {
        sequence_t *s = &w->sequences[draw(w, N_SEQUENCES)];
        uint32_t what = draw(w, 16);
        if (s->n == 0)
            begin_sequence(w, s);
        if (what < 7)
            extend_sequence(w, s);
        else if (what < 9 && s->n > 0)
            give_back(w, s, draw(w, s->n));
        else if (what < 11)
            end_sequence(w, s);
        compare(w);
    }
    for (int i = 0; i < N_SEQUENCES; i++)
        end_sequence(w, &w->sequences[i]);
    compare(w);
    akin_kv_cache_destroy(w->cache);
    free(w->view.base);
}

static void test_model(void)
{
    static walk_t w;
    uint64_t orphans = 0, strangers = 0, hits = 0, full = 0, evictions = 0;
    for (uint64_t key = 1; key <= 20; key++) {
        run_walk(&w, key, 2000);
        orphans += w.orphans;
        strangers += w.strangers;
        hits += w.hits;
        full += w.full;
        evictions += w.model.evictions;
    }
    /* The walk has been everywhere that it was made for. */
    CU_ASSERT(hits > 1000);
    CU_ASSERT(evictions > 1000);
    CU_ASSERT(full > 100);
    CU_ASSERT(orphans > 10);
    CU_ASSERT(strangers > 10);
}

static uint32_t take(akin_kv_cache_t *cache)
{
    uint32_t slot = MODEL_NONE;
    CU_ASSERT_EQUAL_FATAL(akin_kv_cache_take(cache, &slot), AKIN_OK);
    return slot;
}

/* Enters a block of one repeated token after a parent and lets go of it. */
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
    CU_ASSERT_EQUAL(d.generation, 2);
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

static void test_without_prefix(void)
{
    akin_kv_view_t view = create_view(2);
    akin_kv_cache_t *cache = NULL;
    CU_ASSERT_EQUAL_FATAL(akin_kv_cache_create(&view, 0, &cache), AKIN_OK);
    uint32_t tokens[BLOCK] = {1}, slot = take(cache), found;
    (void)akin_kv_cache_seal(cache, slot, AKIN_KV_ROOT_HASH, tokens, BLOCK);
    CU_ASSERT_EQUAL(akin_kv_cache_match(cache, tokens, BLOCK, 1, &found), 0);
    akin_kv_cache_unref(cache, slot);
    akin_kv_cache_stats_t stats;
    akin_kv_cache_stats(cache, &stats);
    CU_ASSERT_EQUAL(stats.n_cached, 0);
    CU_ASSERT_EQUAL(akin_kv_cache_generation(cache, slot), 3);
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
    {"random walk beside a naive model", test_model},
    {"eviction order", test_eviction_order},
    {"late readers are refused", test_late_reader},
    {"colliding hashes are told apart", test_collision},
    {"runs of slots", test_runs},
    {"adoption of a received block", test_adopt},
    {"no prefix index", test_without_prefix},
    {"audit sees damage", test_audit},
};

RUNNER_MAIN("kv cache", tests)
