/* Tests of the KV cache: a random walk beside a naive model. */
#include "base/rng.h"

#include "cache_bed.h"
#include "kv_model.h"

#define MAX_BLOCKS 7
#define N_SEQUENCES 6
#define N_WORDS 3 /* different blocks per position */

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
    uint64_t queries, hits, orphans, strangers, full, forgotten, disowned;
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

/* The first block of some words and what builds on it, held or not. */
static void forget(walk_t *w)
{
    uint32_t tokens[MAX_BLOCKS * BLOCK], words[MAX_BLOCKS];
    uint32_t n = 1 + draw(w, MAX_BLOCKS - 1);
    for (uint32_t i = 0; i < n; i++)
        words[i] = draw(w, N_WORDS);
    fill_tokens(words, n, tokens);
    uint32_t n_cached = model_count(&w->model, 1);
    uint32_t expected = model_forget(&w->model, history_of(words, 1));
    CU_ASSERT_EQUAL_FATAL(
        akin_kv_cache_forget(w->cache, tokens, n * BLOCK + draw(w, BLOCK)),
        expected);
    n_cached -= model_count(&w->model, 1);
    w->forgotten += n_cached;
    w->disowned += expected - n_cached;
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
    model_init(&w->model, akin_kv_cache_generation(w->cache, 0));
    for (int step = 0; step < n_steps; step++) {
        sequence_t *s = &w->sequences[draw(w, N_SEQUENCES)];
        uint32_t what = draw(w, 64);
        if (s->n == 0)
            begin_sequence(w, s);
        if (what < 28)
            extend_sequence(w, s);
        else if (what < 36 && s->n > 0)
            give_back(w, s, draw(w, s->n));
        else if (what < 44)
            end_sequence(w, s);
        else if (what == 44)
            forget(w);
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
    uint64_t forgotten = 0, disowned = 0;
    for (uint64_t key = 1; key <= 20; key++) {
        run_walk(&w, key, 2000);
        orphans += w.orphans;
        strangers += w.strangers;
        hits += w.hits;
        full += w.full;
        evictions += w.model.evictions;
        forgotten += w.forgotten;
        disowned += w.disowned;
    }
    /* The walk has been everywhere that it was made for. */
    CU_ASSERT(hits > 1000);
    CU_ASSERT(evictions > 1000);
    CU_ASSERT(full > 100);
    CU_ASSERT(orphans > 10);
    CU_ASSERT(strangers > 10);
    CU_ASSERT(forgotten > 100);
    CU_ASSERT(disowned > 100);
}

static const runner_test_t tests[] = {
    {"random walk beside a naive model", test_model},
};

RUNNER_MAIN("kv cache model", tests)
