/* Model shapes against the published sizes of their files and caches. */
#include "runner.h"

#include "routing/model_shape.h"

#include <string.h>

/* Weight bytes that one token reads, and KV bytes of a prompt of 4,096. */
static void test_published(void)
{
    static const struct {
        const char *name;
        uint64_t token_bytes;
        uint64_t prompt_kv_bytes;
        uint64_t all_experts;
        uint32_t ids_per_token;
    } models[] = {
        {"qwen3-30b-a3b", 6083739648, 402653184, 57982058496, 384},
        {"qwen3-235b-a22b", 43136875520, 788529152, 454192791552, 752},
        {"gpt-oss-20b", 3708089088, 103809024, 10165616640, 96},
        {"gpt-oss-120b", 5002907904, 155713536, 60993699840, 144},
        {"gemma-4-26b-a4b", 7645066812, 293601280, 45675970560, 240},
    };
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        const akin_model_shape_t *s = akin_model_shape_find(models[i].name);
        CU_ASSERT_PTR_NOT_NULL_FATAL(s);
        CU_ASSERT_EQUAL(s->n_layers * s->top_k, models[i].ids_per_token);
        CU_ASSERT_EQUAL(s->n_layers * s->n_experts * s->expert_bytes,
                        models[i].all_experts);
        /* A row of the embedding is read, too. */
        CU_ASSERT_EQUAL(s->resident_bytes + s->wire_bytes +
                            (uint64_t)s->n_layers * s->top_k * s->expert_bytes,
                        models[i].token_bytes);
        CU_ASSERT_EQUAL(akin_model_kv_bytes(s, 4096),
                        models[i].prompt_kv_bytes);
        CU_ASSERT_EQUAL(s->wire_bytes, 2 * s->hidden);
    }
    CU_ASSERT_PTR_NULL(akin_model_shape_find("mixtral"));
    CU_ASSERT_PTR_EQUAL(akin_model_shape_at(0),
                        akin_model_shape_find("qwen3-30b-a3b"));
    CU_ASSERT_PTR_NULL(akin_model_shape_at(5));
}

/* By numbers a published shape comes out as it is, but for its norms. */
static void test_derived(void)
{
    const akin_model_dims_t dims = {
        .name = "mine",
        .n_layers = 48,
        .hidden = 2048,
        .n_experts = 128,
        .top_k = 8,
        .moe_intermediate = 768,
        .n_heads = 32,
        .n_kv_heads = 4,
        .head_dim = 128,
        .vocab = 151936,
    };
    const akin_model_shape_t *qwen = akin_model_shape_find("qwen3-30b-a3b");
    akin_model_shape_t s;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_model_shape_derive(&dims, &s, &err), AKIN_OK);
    CU_ASSERT_EQUAL(s.expert_bytes, qwen->expert_bytes);
    CU_ASSERT_EQUAL(s.kv_token_bytes, qwen->kv_token_bytes);
    CU_ASSERT_EQUAL(s.wire_bytes, qwen->wire_bytes);
    CU_ASSERT_FALSE(s.is_packed);
    /* Per layer two norms of 2,048 and two of 128, and a last one. */
    CU_ASSERT_EQUAL(qwen->resident_bytes - s.resident_bytes,
                    2 * (48 * (2 * 2048 + 2 * 128) + 2048));

    akin_model_dims_t packed = dims;
    packed.weight_bytes = 17.0 / 32.0;
    packed.shared_intermediate = 100;
    akin_model_shape_t p;
    CU_ASSERT_EQUAL_FATAL(akin_model_shape_derive(&packed, &p, &err), AKIN_OK);
    CU_ASSERT_TRUE(p.is_packed);
    CU_ASSERT_EQUAL(p.expert_bytes, qwen->expert_bytes * 17 / 64);
    CU_ASSERT_EQUAL(p.resident_bytes - s.resident_bytes,
                    48ull * 3 * 2048 * 100 * 2);
}

static void test_refused(void)
{
    const akin_model_dims_t dims = {NULL, 1, 1, 4, 2, 1, 4, 2, 1, 1, 0, 0.0};
    akin_model_dims_t bad = dims;
    akin_model_shape_t s;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_model_shape_derive(&dims, &s, &err), AKIN_OK);
    bad.hidden = 0;
    CU_ASSERT_EQUAL(akin_model_shape_derive(&bad, &s, &err), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "hidden is 0"));
    bad = dims;
    bad.vocab = UINT32_MAX;
    CU_ASSERT_EQUAL(akin_model_shape_derive(&bad, &s, &err), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "vocab"));
    bad = dims;
    bad.top_k = 5;
    CU_ASSERT_EQUAL(akin_model_shape_derive(&bad, &s, &err), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "top_k 5 of 4 experts"));
    bad = dims;
    bad.weight_bytes = 9.0;
    CU_ASSERT_EQUAL(akin_model_shape_derive(&bad, &s, &err), AKIN_ERR_INVALID);
}

static const runner_test_t tests[] = {
    {"published sizes", test_published},
    {"a shape by numbers", test_derived},
    {"refused numbers", test_refused},
};

RUNNER_MAIN("model shape", tests)
