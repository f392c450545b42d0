/* Nearest name: distances against a plain recursion, and what is too far. */
#include "base/nearest.h"
#include "base/rng.h"
#include "runner.h"

#include <stdint.h>
#include <string.h>

/* The definition, without a table: what the first n and m letters cost. */
static size_t definition(const char *a, size_t n, const char *b, size_t m)
{
    if (n == 0 || m == 0)
        return n + m;
    size_t best =
        definition(a, n - 1, b, m - 1) + (size_t)(a[n - 1] != b[m - 1]);
    size_t removed = definition(a, n - 1, b, m) + 1;
    size_t added = definition(a, n, b, m - 1) + 1;
    best = removed < best ? removed : best;
    best = added < best ? added : best;
    if (n > 1 && m > 1 && a[n - 1] == b[m - 2] && a[n - 2] == b[m - 1]) {
        size_t swapped = definition(a, n - 2, b, m - 2) + 1;
        best = swapped < best ? swapped : best;
    }
    return best;
}

static void test_known_distances(void)
{
    CU_ASSERT_EQUAL(akin_nearest_distance("kitten", "sitting"), 3);
    CU_ASSERT_EQUAL(akin_nearest_distance("ab", "ba"), 1);
    /* 2 if a substring could be edited twice. */
    CU_ASSERT_EQUAL(akin_nearest_distance("ca", "abc"), 3);
    CU_ASSERT_EQUAL(akin_nearest_distance("", "abc"), 3);
    CU_ASSERT_EQUAL(akin_nearest_distance("KV.Slab", "kv.slab"), 0);
}

static void test_against_definition(void)
{
    for (uint64_t i = 0; i < 300; i++) {
        char words[2][8] = {"", ""};
        for (uint64_t w = 0; w < 2; w++) {
            size_t length = akin_rng_below(1, w, i, 7);
            for (size_t c = 0; c < length; c++)
                words[w][c] = (char)('a' + akin_rng_below(2 + c, w, i, 3));
        }
        size_t want =
            definition(words[0], strlen(words[0]), words[1], strlen(words[1]));
        CU_ASSERT_EQUAL(akin_nearest_distance(words[0], words[1]), want);
        CU_ASSERT_EQUAL(akin_nearest_distance(words[1], words[0]), want);
    }
}

static const char *const keys[] = {"model.path", "kv.slab", "kv.block_tokens",
                                   "routing.decode", "ep"};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

static void test_names(void)
{
    CU_ASSERT_PTR_EQUAL(akin_nearest_name("kv.block_token", keys, N_KEYS),
                        keys[2]);
    CU_ASSERT_PTR_EQUAL(akin_nearest_name("KV.SLAB", keys, N_KEYS), keys[1]);
    CU_ASSERT_PTR_EQUAL(akin_nearest_name("mdoel.path", keys, N_KEYS), keys[0]);
    CU_ASSERT_PTR_EQUAL(akin_nearest_name("ep", keys, N_KEYS), keys[4]);
    CU_ASSERT_PTR_NULL(akin_nearest_name("kv.capacity", keys, N_KEYS));
    CU_ASSERT_PTR_NULL(akin_nearest_name("", keys, N_KEYS));
    /* No letter agrees: any short name would be as near. */
    CU_ASSERT_PTR_NULL(akin_nearest_name("x", keys, N_KEYS));
    CU_ASSERT_PTR_NULL(akin_nearest_name("kv.slab", keys, 0));
}

static void test_first_of_equals(void)
{
    const char *const names[] = {"bat", "cat", "rat"};
    CU_ASSERT_PTR_EQUAL(akin_nearest_name("hat", names, 3), names[0]);
}

static void test_too_long(void)
{
    char word[2 * AKIN_NEAREST_BYTES];
    memset(word, 'a', sizeof(word));
    word[AKIN_NEAREST_BYTES] = '\0';
    const char *const names[] = {word};
    CU_ASSERT_EQUAL(akin_nearest_distance(word, "a"), SIZE_MAX);
    CU_ASSERT_PTR_NULL(akin_nearest_name("aaaa", names, 1));
    CU_ASSERT_PTR_NULL(akin_nearest_name(word, names, 1));
    word[AKIN_NEAREST_BYTES - 1] = '\0';
    CU_ASSERT_EQUAL(akin_nearest_distance(word, word), 0);
    CU_ASSERT_PTR_EQUAL(akin_nearest_name(word, names, 1), word);
}

static void test_part_of_a_text(void)
{
    akin_nearest_t nearest;
    akin_nearest_init(&nearest, "unoin");
    akin_nearest_offer(&nearest, "union|random", 5);
    CU_ASSERT_STRING_EQUAL(nearest.name, "union");
    CU_ASSERT_EQUAL(nearest.distance, 1);
}

static const runner_test_t tests[] = {
    {"known distances", test_known_distances},
    {"against the definition", test_against_definition},
    {"names", test_names},
    {"first of equals", test_first_of_equals},
    {"too long", test_too_long},
    {"part of a text", test_part_of_a_text},
};
RUNNER_MAIN("nearest", tests)
