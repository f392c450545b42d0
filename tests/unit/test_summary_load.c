/* Summary: load over time and choices of experts of the decode workers. */
#include "base/clock.h"
#include "roles/summary.h"
#include "runner.h"

#include <jansson.h>

#define MS AKIN_NS_PER_MS
#define START (1000 * MS)

/* A prefill worker between two of decode has no load of its own. */
static akin_summary_t *create(uint32_t n_layers, uint32_t n_experts)
{
    static const akin_summary_worker_t workers[] = {
        {.name = "decode 0", .role = "decode", .rank = 1},
        {.name = "prefill 0", .role = "prefill", .rank = 2},
        {.name = "decode 1", .role = "decode", .rank = 3}};
    const akin_summary_params_t params = {.workers = workers,
                                          .n_workers = 3,
                                          .n_layers = n_layers,
                                          .n_experts = n_experts,
                                          .start_ns = START};
    akin_summary_t *summary;
    CU_ASSERT_EQUAL_FATAL(akin_summary_create(&params, &summary), AKIN_OK);
    return summary;
}

static void test_load(void)
{
    static const uint16_t first[4] = {7, 1, 2, 0}, second[4] = {1, 7, 0, 5};
    akin_summary_t *s = create(2, 2);
    akin_summary_set_load(s, 0, 4, START);
    akin_summary_set_load(s, 2, 1, START + MS);
    akin_summary_set_load(s, 1, 9, START + MS);
    akin_summary_set_load(s, 3, 9, START + MS);
    akin_summary_set_load(s, 0, 2, START + 2 * MS);
    akin_summary_add_choices(s, 0, first);
    akin_summary_add_choices(s, 1, first);
    akin_summary_add_choices(s, 2, second);
    akin_summary_add_choices(s, 2, second);
    akin_summary_add_choices(s, 3, second);
    akin_summary_end(s, START + 3 * MS);
    json_t *json = akin_summary_json(s);
    json_t *load = json_pack("{s:f, s:f, s:i, s:[[f,f,f],[f,f,f]]}", "bin_s",
                             0.001, "end_s", 0.003, "n_workers", 2, "workers",
                             4.0, 4.0, 2.0, 0.0, 1.0, 1.0);
    /* In layer 1 the two share no expert. 1 - H(1/8) bits in layer 0. */
    json_t *experts =
        json_pack("{s:[f,f], s:i, s:[[i,i],[i,i]]}", "difference_bits", 0.4564,
                  1.0, "layer", 1, "choices", 2, 0, 0, 10);
    CU_ASSERT(json_equal(json_object_get(json, "load"), load));
    CU_ASSERT(json_equal(json_object_get(json, "experts"), experts));
    json_decref(load);
    json_decref(experts);
    json_decref(json);
    akin_summary_destroy(s);
}

/* A summary that knows no experts says so. */
static void test_unknown(void)
{
    akin_summary_t *s = create(0, 0);
    akin_summary_end(s, START + MS);
    json_t *json = akin_summary_json(s);
    CU_ASSERT(json_is_null(json_object_get(json, "experts")));
    const json_t *workers =
        json_object_get(json_object_get(json, "load"), "workers");
    CU_ASSERT_EQUAL(json_array_size(workers), 2);
    CU_ASSERT_EQUAL(json_array_size(json_array_get(workers, 0)), 1);
    json_decref(json);
    akin_summary_destroy(s);
}

static const runner_test_t tests[] = {
    {"load and choices", test_load},
    {"unknown", test_unknown},
};

RUNNER_MAIN("summary_load", tests)
