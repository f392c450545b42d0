/* Router: what its summary is told of the load of decode workers, and of the
 * experts that their tokens chose. */
#include "router_bed.h"

#include <jansson.h>

#define N_PROMPT 20u

/* A run of two requests, of which decode worker 0 gets both, and a summary that
 * counts experts. */
static void init(bed_t *b)
{
    FILE *file = fopen(scratch_path("in"), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    bed_write_request(file, "one", N_PROMPT, 3);
    bed_write_request(file, "two", N_PROMPT, 3);
    CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
    bed_init(b);
    b->r->prefill[1].is_drained = 1;
    b->r->decode[1].is_drained = 1;
    static const akin_summary_worker_t workers[] = {{.role = "prefill"},
                                                    {.role = "prefill"},
                                                    {.role = "decode"},
                                                    {.role = "decode"}};
    const akin_summary_params_t params = {.workers = workers,
                                          .n_workers = 4,
                                          .n_layers = b->model.n_layers,
                                          .n_experts = b->model.n_experts,
                                          .start_ns = b->now};
    akin_summary_destroy(b->r->summary);
    CU_ASSERT_EQUAL_FATAL(akin_summary_create(&params, &b->r->summary),
                          AKIN_OK);
    bed_turn(b);
    bed_prefilled(b, 1, 0, N_PROMPT);
    bed_prefilled(b, 1, 1, N_PROMPT);
}

/* What a decode worker has at present: the last bin of a run that goes on for
 * hours without any news. */
static double load_of(bed_t *b, size_t worker)
{
    b->now += 10000 * AKIN_NS_PER_S;
    akin_summary_end(b->r->summary, b->now);
    json_t *json = akin_summary_json(b->r->summary);
    const json_t *workers =
        json_object_get(json_object_get(json, "load"), "workers");
    const json_t *bins = json_array_get(workers, worker);
    CU_ASSERT_EQUAL(json_array_size(workers), 2);
    CU_ASSERT_FATAL(json_array_size(bins) > 0);
    const double load =
        json_number_value(json_array_get(bins, json_array_size(bins) - 1));
    json_decref(json);
    return load;
}

/* One is answered; the other has no room, is decided on again and fails. */
static void test_load(void)
{
    bed_t b;
    init(&b);
    CU_ASSERT_EQUAL(load_of(&b, 0), 0.0);
    akini_router_dispatch(b.r, b.now);
    CU_ASSERT_EQUAL(load_of(&b, 0), 2.0);
    CU_ASSERT_EQUAL(load_of(&b, 1), 0.0);
    bed_transferred(&b, 3, 0, AKIN_OK);
    bed_transferred(&b, 3, 1, AKIN_ERR_FULL);
    CU_ASSERT_EQUAL(load_of(&b, 0), 1.0);
    b.r->decode[1].is_drained = 0;
    b.r->decode[0].is_drained = 1;
    akini_router_dispatch(b.r, b.now);
    CU_ASSERT_EQUAL(load_of(&b, 0), 1.0);
    CU_ASSERT_EQUAL(load_of(&b, 1), 1.0);
    bed_token(&b, 3, 0);
    CU_ASSERT_EQUAL(load_of(&b, 0), 1.0);
    bed_token(&b, 3, 0);
    CU_ASSERT_PTR_NULL(akini_flight_find(b.r, 0));
    CU_ASSERT_EQUAL(load_of(&b, 0), 0.0);
    bed_transferred(&b, 4, 1, AKIN_ERR_FORMAT);
    CU_ASSERT_PTR_NULL(akini_flight_find(b.r, 1));
    CU_ASSERT_EQUAL(load_of(&b, 1), 0.0);
    bed_cleanup(&b);
}

/* Counts of both decode workers, in which they share nothing of layer 2. */
static void test_choices(void)
{
    bed_t b;
    init(&b);
    const size_t n_experts = b.model.n_experts;
    const size_t n = b.model.n_layers * n_experts;
    uint16_t *counts = calloc(n, sizeof(*counts));
    CU_ASSERT_PTR_NOT_NULL_FATAL(counts);
    const akin_message_counts_t m = {
        .counts = counts, .n_counts = n, .n_tokens = 5};
    for (uint32_t w = 0; w < 2; w++) {
        for (size_t l = 0; l < b.model.n_layers; l++)
            counts[l * n_experts + 1] = 5;
        counts[2 * n_experts + 1] = 0;
        counts[2 * n_experts + 4 + w] = (uint16_t)(5 + w);
        akin_message_pack_counts(&b.packer, &m);
        bed_say(&b, 3 + w, AKIN_MESSAGE_COUNTS);
        counts[2 * n_experts + 4 + w] = 0;
    }
    akin_summary_end(b.r->summary, b.now + AKIN_NS_PER_S);
    json_t *json = akin_summary_json(b.r->summary);
    const json_t *experts = json_object_get(json, "experts");
    const json_t *choices = json_object_get(experts, "choices");
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(experts, "layer")), 2);
    for (uint32_t w = 0; w < 2; w++)
        CU_ASSERT_EQUAL(json_integer_value(
                            json_array_get(json_array_get(choices, w), 4 + w)),
                        5 + w);
    CU_ASSERT_EQUAL(json_real_value(json_array_get(
                        json_object_get(experts, "difference_bits"), 2)),
                    1.0);
    json_decref(json);
    free(counts);
    bed_cleanup(&b);
}

static const runner_test_t tests[] = {
    {"load", test_load},
    {"choices", test_choices},
};

RUNNER_MAIN("router_load", tests)
