/* Replays of expert-parallel workers: the busiest rank decides how long a step
 * takes. */
#include "replay_bed.h"
#include "runner.h"

#include "routing/replay.h"
#include "routing/replay_placement.h"

#include <math.h>

static const akin_trace_shape_t shape = {
    .n_layers = 2, .n_experts = 16, .top_k = 4};

/* 1 ms, 0.1 ms for an expert, 0.01 ms for a request. */
static const akin_cost_line_t cost = {1e-3, 1e-4, 1e-5};

enum { WORKERS = 1, RANKS = 4 };

/* Every row of the one request in flight takes the experts 0 to 3, of the
 * other one 4 to 7: on contiguous experts all are on one rank, dealt out each
 * is on a rank of its own. */
static const replay_bed_request_t requests[] = {
    {.n_prompt = 2, .n_decode = 8, .first = 0},
    {.n_prompt = 2, .n_decode = 8, .first = 4},
    {.n_prompt = 2, .n_decode = 8, .first = 8},
    {.n_prompt = 2, .n_decode = 8, .first = 12},
};

static akin_replay_result_t replay(const replay_bed_t *bed,
                                   const char *placement, const char *policy,
                                   uint32_t in_flight)
{
    static const uint32_t all[] = {0, 1, 2, 3};
    akin_placement_t *placements = NULL;
    akin_error_t err = {{0}};
    const akin_replay_placement_params_t place = {
        .name = placement,
        .n_workers = WORKERS,
        .n_layers = shape.n_layers,
        .n_experts = shape.n_experts,
        .n_ranks = RANKS,
        .batch = 1.0,
    };
    CU_ASSERT_EQUAL_FATAL(
        akin_replay_placement_create(&place, &placements, &err), AKIN_OK);
    const akin_replay_params_t params = {
        .set = bed->set,
        .requests = all,
        .n_requests = 4,
        .policy = policy,
        .placements = placements,
        .n_workers = WORKERS,
        .in_flight = in_flight,
        .n_measured = 40,
        .n_warmup = 4,
        .cost = cost,
    };
    akin_replay_result_t result = {0};
    CU_ASSERT_EQUAL_FATAL(akin_replay_run(&params, &result, &err), AKIN_OK);
    akin_replay_placement_destroy(placements, WORKERS);
    return result;
}

static void test_busiest(void)
{
    replay_bed_t bed;
    replay_bed_init_set(&bed, &shape, requests, 4);
    /* 2 layers x 4 experts of one rank count for 4 ranks. */
    akin_replay_result_t r = replay(&bed, "linear", "jsq", 1);
    CU_ASSERT_DOUBLE_EQUAL(r.busiest, 4.0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(r.distinct, 4.0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(r.tpot_p50_s, 1e-3 + 4 * 8 * 1e-4 + 1e-5, 1e-9);
    /* One each. */
    r = replay(&bed, "round-robin", "jsq", 1);
    CU_ASSERT_DOUBLE_EQUAL(r.busiest, 1.0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(r.distinct, 4.0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(r.tpot_p50_s, 1e-3 + 4 * 2 * 1e-4 + 1e-5, 1e-9);
    CU_ASSERT_EQUAL(r.predicted, 0.0);
    replay_bed_cleanup(&bed);
}

/* Two of the requests at a time never share an expert: two full ranks, or two
 * experts on each. The prompt tells the policy exactly that, but for what it
 * allows for its shortness. */
static void test_prediction(void)
{
    replay_bed_t bed;
    replay_bed_init_set(&bed, &shape, requests, 4);
    akin_replay_result_t r = replay(&bed, "round-robin", "union", 2);
    CU_ASSERT_DOUBLE_EQUAL(r.busiest, 2.0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(r.distinct, 8.0, 1e-9);
    CU_ASSERT(r.predicted > 1.0 && r.predicted < 4.0);
    replay_bed_cleanup(&bed);
}

static void test_errors(void)
{
    akin_placement_t *placements = NULL;
    akin_error_t err = {{0}};
    akin_replay_placement_params_t params = {
        .name = "activation",
        .n_workers = 2,
        .n_layers = 2,
        .n_experts = 16,
        .n_ranks = 4,
        .batch = 1.0,
    };
    CU_ASSERT(akin_replay_placement_needs_fit("activation"));
    CU_ASSERT(!akin_replay_placement_needs_fit("linear"));
    CU_ASSERT_EQUAL(akin_replay_placement_create(&params, &placements, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "pbar"));
    params.name = "linaer";
    CU_ASSERT_EQUAL(akin_replay_placement_create(&params, &placements, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "round-robin"));
    params.name = "linear";
    params.n_ranks = 3; /* does not divide 16 */
    CU_ASSERT_EQUAL(akin_replay_placement_create(&params, &placements, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NULL(placements);
}

static const runner_test_t tests[] = {
    {"the busiest rank", test_busiest},
    {"prediction", test_prediction},
    {"errors", test_errors},
};

RUNNER_MAIN("replay_ranks", tests)
