/* Prefix ring against the published artifact's decisions, and its own laws. */
#include "runner.h"

#include "base/rng.h"
#include "routing/blake2b.h"
#include "routing/prefix_hash.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIXTURE AKIN_FIXTURES "/routing/prefix_hash.json"

enum { P = 8 };

static const uint8_t all[P] = {1, 1, 1, 1, 1, 1, 1, 1};

/* What the fixture's labels stand for. */
static const char *prompt_of(const char *label, size_t *bytes_p)
{
    static char text[1025];
    memset(text, 'x', sizeof(text));
    if (strcmp(label, "empty") == 0)
        *bytes_p = 0;
    else if (strcmp(label, "x*1023") == 0)
        *bytes_p = 1023;
    else if (strcmp(label, "x*1024") == 0)
        *bytes_p = 1024;
    else if (strcmp(label, "x*1024+y") == 0)
        text[1024] = 'y', *bytes_p = 1025;
    else if (strcmp(label, "x*1023+y") == 0)
        text[1023] = 'y', *bytes_p = 1024;
    else {
        const char *word = strncmp(label, "utf8 ", 5) == 0 ? label + 5 : label;
        *bytes_p = strlen(word);
        return word;
    }
    return text;
}

static json_t *load_fixture(void)
{
    json_t *root = json_load_file(FIXTURE, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(root);
    return root;
}

static akin_prefix_router_t *make_router(uint32_t n, const char *const *names)
{
    akin_prefix_router_t *router = NULL;
    CU_ASSERT_EQUAL_FATAL(akin_prefix_router_create(n, names, &router, NULL),
                          AKIN_OK);
    return router;
}

static akin_prefix_router_t *make_artifact_router(json_t *root)
{
    const char *names[P];
    json_t *urls = json_object_get(root, "urls");
    CU_ASSERT_EQUAL_FATAL(json_array_size(urls), P);
    for (size_t i = 0; i < P; i++)
        names[i] = json_string_value(json_array_get(urls, i));
    return make_router(P, names);
}

static void test_artifact_hashes(void)
{
    json_t *root = load_fixture();
    const char *label;
    json_t *value;
    json_object_foreach(json_object_get(root, "hash64"), label, value)
    {
        size_t bytes = 0;
        const char *text = prompt_of(label, &bytes);
        if (bytes > AKIN_PREFIX_HASH_BYTES)
            bytes = AKIN_PREFIX_HASH_BYTES;
        CU_ASSERT_EQUAL(akini_blake2b_64(text, bytes),
                        strtoull(json_string_value(value), NULL, 10));
    }
    json_object_foreach(json_object_get(root, "vnode0"), label, value)
    {
        char key[64];
        int bytes = snprintf(key, sizeof(key), "%s#0", label);
        CU_ASSERT_EQUAL(akini_blake2b_64(key, (size_t)bytes),
                        strtoull(json_string_value(value), NULL, 10));
    }
    json_decref(root);
}

static void test_artifact_decisions(void)
{
    json_t *root = load_fixture();
    akin_prefix_router_t *router = make_artifact_router(root);
    const uint32_t idle[P] = {0};
    const char *label;
    json_t *value;
    int n_seen = 0;
    json_object_foreach(json_object_get(root, "choose_empty_loads"), label,
                        value)
    {
        size_t bytes = 0;
        const char *text = prompt_of(label, &bytes);
        uint32_t worker = P;
        akin_prefix_router_decide_text(router, text, bytes, idle, all, &worker);
        CU_ASSERT_EQUAL(worker, json_integer_value(value));
        n_seen++;
    }
    CU_ASSERT_EQUAL(n_seen, 9);
    size_t i;
    json_array_foreach(json_object_get(root, "loaded"), i, value)
    {
        const char *key = json_string_value(json_object_get(value, "key"));
        json_t *list = json_object_get(value, "loads");
        uint32_t loads[P];
        for (size_t w = 0; w < P; w++)
            loads[w] = (uint32_t)json_integer_value(json_array_get(list, w));
        uint32_t worker = P;
        akin_prefix_router_decide_text(router, key, strlen(key), loads, all,
                                       &worker);
        CU_ASSERT_EQUAL(worker,
                        json_integer_value(json_object_get(value, "choice")));
        n_seen++;
    }
    CU_ASSERT_EQUAL(n_seen, 16);
    akin_prefix_router_destroy(router);
    json_decref(root);
}

/* Token t of prompt s: (7919 s + t^2) mod 50000; owners by another program on
 * a ring of the names "0" to "4". */
static void make_tokens(uint32_t s, uint32_t tokens[300])
{
    for (uint32_t t = 0; t < 300; t++)
        tokens[t] = (s * 7919 + t * t) % 50000;
}

static void test_tokens(void)
{
    static const uint32_t owners[12] = {2, 0, 3, 2, 1, 0, 3, 1, 3, 4, 1, 3};
    static const uint32_t without_1_3[12] = {2, 0, 0, 2, 2, 0,
                                             4, 4, 0, 4, 2, 4};
    static const uint8_t some[5] = {1, 0, 1, 0, 1};
    const uint32_t idle[5] = {0};
    akin_prefix_router_t *router = make_router(5, NULL);
    for (uint32_t s = 0; s < 12; s++) {
        uint32_t tokens[300], worker = 5;
        make_tokens(s, tokens);
        akin_prefix_router_decide(router, tokens, 300, idle, all, &worker);
        CU_ASSERT_EQUAL(worker, owners[s]);
        akin_prefix_router_decide(router, tokens, 300, idle, some, &worker);
        CU_ASSERT_EQUAL(worker, without_1_3[s]);
        /* 256 tokens are the 1,024 bytes that count. */
        tokens[256]++;
        akin_prefix_router_decide(router, tokens, 300, idle, all, &worker);
        CU_ASSERT_EQUAL(worker, owners[s]);
        akin_prefix_router_decide(router, tokens, 256, idle, all, &worker);
        CU_ASSERT_EQUAL(worker, owners[s]);
    }
    akin_prefix_router_destroy(router);
}

/* This hash lies beyond the last of 17 x 160 nodes, which is worker 0's;
 * the first is worker 16's. */
static void test_wrap(void)
{
    static const char key[] = "wrap 6711";
    const uint32_t idle[17] = {0};
    uint8_t eligible[17];
    memset(eligible, 1, sizeof(eligible));
    akin_prefix_router_t *router = make_router(17, NULL);
    uint32_t worker = 17;
    akin_prefix_router_decide_text(router, key, strlen(key), idle, eligible,
                                   &worker);
    CU_ASSERT_EQUAL(worker, 16);
    akin_prefix_router_destroy(router);
}

/* The gate against its formula in floating point, over random loads. */
static void test_gate(void)
{
    akin_prefix_router_t *router = make_router(P, NULL);
    int kept = 0, moved = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        const uint32_t idle[P] = {0};
        uint32_t loads[P], owner = P, worker = P, least = P;
        uint8_t eligible[P];
        double sum = 0.0, n = 0.0;
        for (uint32_t w = 0; w < P; w++) {
            loads[w] = (uint32_t)akin_rng_below(8, w, i, 12);
            eligible[w] = akin_rng_below(9, w, i, 4) != 0 || w == i % P;
            if (!eligible[w])
                continue;
            sum += loads[w];
            n += 1.0;
            if (least == P || loads[w] < loads[least])
                least = w;
        }
        char key[32];
        int bytes = snprintf(key, sizeof(key), "prompt %d", (int)i);
        akin_prefix_router_decide_text(router, key, (size_t)bytes, idle,
                                       eligible, &owner);
        CU_ASSERT(owner < P && eligible[owner]);
        akin_prefix_router_decide_text(router, key, (size_t)bytes, loads,
                                       eligible, &worker);
        int keep = loads[owner] <= 1.25 * (sum + 1.0) / n;
        CU_ASSERT_EQUAL(worker, keep ? owner : least);
        kept += keep;
        moved += !keep;
    }
    CU_ASSERT(kept > 1000 && moved > 1000);
    akin_prefix_router_destroy(router);
}

/* A worker that leaves takes only its own prompts along. */
static void test_consistency(void)
{
    akin_prefix_router_t *router = make_router(P, NULL);
    const uint32_t idle[P] = {0};
    static const uint8_t without_3[P] = {1, 1, 1, 0, 1, 1, 1, 1};
    int hits[P] = {0};
    for (int i = 0; i < 4000; i++) {
        char key[32];
        int bytes = snprintf(key, sizeof(key), "prompt %d", i);
        uint32_t before = P, after = P;
        akin_prefix_router_decide_text(router, key, (size_t)bytes, idle, all,
                                       &before);
        akin_prefix_router_decide_text(router, key, (size_t)bytes, idle,
                                       without_3, &after);
        hits[before]++;
        CU_ASSERT(after != 3 && (before == 3 || after == before));
    }
    /* 160 nodes hold a worker's share within some 8 % (1 / sqrt(160)). */
    for (int w = 0; w < P; w++)
        CU_ASSERT(hits[w] > 350 && hits[w] < 650);
    akin_prefix_router_destroy(router);
}

static void test_edges(void)
{
    static const uint8_t none[P] = {0};
    static const uint8_t late[P] = {0, 0, 1, 1, 1, 1, 1, 1};
    const uint32_t loads[P] = {0, 1, 7, 4, 3, 9, 3, 8};
    const uint32_t full[P] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
                              UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    akin_prefix_router_t *router = make_router(P, NULL);
    uint32_t worker = 0;
    akin_prefix_router_decide_text(router, "a", 1, loads, none, &worker);
    CU_ASSERT_EQUAL(worker, AKIN_ROUTING_NO_WORKER);
    akin_prefix_router_decide_text(router, NULL, 0, loads, late, &worker);
    CU_ASSERT_EQUAL(worker, 4);
    akin_prefix_router_decide(router, NULL, 0, loads, late, &worker);
    CU_ASSERT_EQUAL(worker, 4);
    uint32_t idle_choice = 0, full_choice = 0;
    const uint32_t idle[P] = {0};
    akin_prefix_router_decide_text(router, "a", 1, idle, all, &idle_choice);
    akin_prefix_router_decide_text(router, "a", 1, full, all, &full_choice);
    CU_ASSERT_EQUAL(full_choice, idle_choice);
    akin_prefix_router_destroy(router);
    akin_prefix_router_destroy(NULL);
}

static void test_create_refuses(void)
{
    akin_prefix_router_t *router = NULL;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_prefix_router_create(0, NULL, &router, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NULL(router);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "0 prefill workers"));
    CU_ASSERT_EQUAL(akin_prefix_router_create(65537, NULL, &router, &err),
                    AKIN_ERR_INVALID);
    char name[257];
    memset(name, 'n', sizeof(name));
    name[256] = '\0';
    const char *const names[2] = {"short", name};
    CU_ASSERT_EQUAL(akin_prefix_router_create(2, names, &router, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NULL(router);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "worker 1"));
}

static const runner_test_t tests[] = {
    {"artifact hashes", test_artifact_hashes},
    {"artifact decisions", test_artifact_decisions},
    {"tokens", test_tokens},
    {"wrap", test_wrap},
    {"gate", test_gate},
    {"consistency", test_consistency},
    {"edges", test_edges},
    {"create refuses", test_create_refuses},
};

RUNNER_MAIN("prefix_hash", tests)
