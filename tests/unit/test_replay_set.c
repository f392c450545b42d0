/* Tests of the replay set: counts and cells of a trace's requests. */
#include "replay_bed.h"
#include "runner.h"

#include <string.h>

/* 96 cells, and a word for each layer. */
static const akin_trace_shape_t shape = {
    .n_layers = 3, .n_experts = 32, .top_k = 4};

enum { LAYERS = 3, CELLS = 96, TOP = 3 * 4 };

/* Check a request of the set against the rows that the trace gives. */
static void check_request(const replay_bed_t *bed,
                          const akin_replay_request_t *r, uint32_t n_prompt)
{
    uint32_t n;
    const akin_trace_record_t *record =
        &akin_trace_records(bed->trace, &n)[r->record];
    uint16_t counts[2][CELLS] = {{0}};
    CU_ASSERT_EQUAL(r->n_prompt, n_prompt);
    CU_ASSERT_EQUAL_FATAL(r->n_prompt + r->n_decode, record->n_tokens);
    for (uint32_t t = 0; t < record->n_tokens; t++) {
        uint16_t row[TOP];
        /* A layer begins with a word of its own. */
        uint64_t words[LAYERS] = {0};
        akin_trace_routes(bed->trace, r->record, t, 1, row);
        for (uint32_t i = 0; i < TOP; i++) {
            uint32_t cell = i / shape.top_k * shape.n_experts + row[i];
            counts[t >= n_prompt][cell]++;
            words[i / shape.top_k] |= (uint64_t)1 << row[i];
        }
        if (t >= n_prompt)
            CU_ASSERT_EQUAL(memcmp(words,
                                   r->active + (size_t)LAYERS * (t - n_prompt),
                                   sizeof(words)),
                            0);
    }
    CU_ASSERT_EQUAL(memcmp(counts[0], r->prompt_counts, sizeof(counts[0])), 0);
    CU_ASSERT_EQUAL(memcmp(counts[1], r->decode_counts, sizeof(counts[1])), 0);
}

/* Lengths around the number of rows that are read at a time. */
static void test_counts(void)
{
    static const replay_bed_request_t requests[] = {
        {.n_prompt = 1, .n_decode = 1, .key = 1},
        {.n_prompt = 5, .n_decode = 63, .key = 2, .domain = "law"},
        {.n_prompt = 70, .n_decode = 64, .key = 3},
        {.n_prompt = 3, .n_decode = 65, .key = 4},
        {.n_prompt = 1, .n_decode = 300, .key = 5},
        {.n_prompt = 200, .n_decode = 2, .first = 31},
    };
    replay_bed_t bed;
    replay_bed_init_set(&bed, &shape, requests, 6);
    CU_ASSERT_EQUAL(bed.set->n_words, LAYERS);
    CU_ASSERT_EQUAL(bed.set->n_layer_words, 1);
    CU_ASSERT_EQUAL(bed.set->n_short, 0);
    for (uint32_t i = 0; i < 6; i++) {
        CU_ASSERT_EQUAL_FATAL(bed.set->requests[i].record, i);
        check_request(&bed, &bed.set->requests[i], requests[i].n_prompt);
        CU_ASSERT_STRING_EQUAL(bed.set->requests[i].domain,
                               i == 1 ? "law" : "");
        CU_ASSERT(bed.set->requests[i].arrival_s < 0.0);
    }
    replay_bed_cleanup(&bed);
}

static void test_short(void)
{
    static const replay_bed_request_t requests[] = {
        {.n_prompt = 5, .n_decode = 4, .key = 1}, /* 9 rows */
        {.n_prompt = 5, .n_decode = 5, .key = 2}, /* 10 rows */
        {.n_prompt = 20, .n_decode = 0, .key = 3},
        {.n_prompt = 1, .n_decode = 19, .key = 4},
    };
    replay_bed_t bed;
    akin_error_t err = {{0}};
    replay_bed_init(&bed, &shape, requests, 4);
    CU_ASSERT_EQUAL_FATAL(
        akin_replay_set_create(bed.trace, 0, 10, &bed.set, &err), AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(bed.set->n_requests, 2);
    CU_ASSERT_EQUAL(bed.set->n_short, 2);
    CU_ASSERT_EQUAL(bed.set->requests[0].record, 1);
    CU_ASSERT_EQUAL(bed.set->requests[1].record, 3);
    akin_replay_set_destroy(bed.set);
    CU_ASSERT_EQUAL(akin_replay_set_create(bed.trace, 0, 21, &bed.set, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NULL(bed.set);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "of 4 records none has 21 rows"));
    replay_bed_cleanup(&bed);
}

/* Rows stand in where a record does not know its prompt, and only there. */
static void test_stand_in(void)
{
    static const replay_bed_request_t requests[] = {
        {.n_prompt = 3, .n_decode = 9, .key = 1},
        {.n_prompt = 0, .n_decode = 12, .key = 2},
        {.n_prompt = 0, .n_decode = 7, .key = 3},
        {.n_prompt = 0, .n_decode = 8, .key = 4},
    };
    replay_bed_t bed;
    akin_error_t err = {{0}};
    replay_bed_init(&bed, &shape, requests, 4);
    CU_ASSERT_EQUAL(akin_replay_set_create(bed.trace, 0, 0, &bed.set, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "record \"0001\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--prompt-tokens"));
    CU_ASSERT_EQUAL_FATAL(
        akin_replay_set_create(bed.trace, 7, 0, &bed.set, &err), AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(bed.set->n_requests, 3);
    CU_ASSERT_EQUAL(bed.set->n_short, 1);
    check_request(&bed, &bed.set->requests[0], 3);
    check_request(&bed, &bed.set->requests[1], 7);
    check_request(&bed, &bed.set->requests[2], 7);
    CU_ASSERT_EQUAL(bed.set->requests[2].record, 3);
    replay_bed_cleanup(&bed);
}

static const runner_test_t tests[] = {
    {"counts and cells", test_counts},
    {"short records", test_short},
    {"rows that stand in", test_stand_in},
};

RUNNER_MAIN("replay set", tests)
