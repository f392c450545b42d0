/* Policy union: a map that changes under it. */
#include "routing/policy.h"

#include "runner.h"

#include <string.h>

#define LAYERS 2u
#define EXPERTS 8u
#define N_REQUESTS 6u

static void make_map(akin_placement_t *map, akin_placement_kind_t kind)
{
    const akin_placement_params_t params = {
        .kind = kind,
        .n_layers = LAYERS,
        .n_experts = EXPERTS,
        .n_ranks = 2,
    };
    CU_ASSERT_EQUAL_FATAL(akin_placement_make(&params, map, NULL), AKIN_OK);
}

static akin_policy_t *create(const akin_placement_t *maps)
{
    akin_policy_t *policy = NULL;
    akin_error_t err = {{0}};
    const akin_policy_params_t params = {
        .n_workers = 2,
        .n_layers = LAYERS,
        .n_experts = EXPERTS,
        .top_k = 2,
        .placements = maps,
    };
    CU_ASSERT_EQUAL_FATAL(akin_policy_create("union", &params, &policy, &err),
                          AKIN_OK);
    return policy;
}

/* Requests of the experts 0 and 1 of every layer, all to worker 1. */
static void fill(akin_policy_t *policy)
{
    static const uint8_t eligible[] = {0, 1};
    uint16_t counts[LAYERS * EXPERTS] = {0};
    for (uint32_t l = 0; l < LAYERS; l++)
        counts[l * EXPERTS] = counts[l * EXPERTS + 1] = 40;
    for (uint64_t id = 1; id <= N_REQUESTS; id++) {
        const akin_policy_request_t request = {
            .id = id, .counts = counts, .n_tokens = 40};
        uint32_t worker;
        CU_ASSERT_EQUAL(akin_policy_decide(policy, &request, eligible, &worker),
                        AKIN_OK);
        CU_ASSERT_EQUAL(worker, 1);
    }
}

static void changed(void)
{
    akin_placement_t maps[2], others[2];
    make_map(&maps[0], AKIN_PLACEMENT_LINEAR);
    make_map(&maps[1], AKIN_PLACEMENT_LINEAR);
    make_map(&others[0], AKIN_PLACEMENT_LINEAR);
    make_map(&others[1], AKIN_PLACEMENT_ROUND_ROBIN);
    akin_policy_t *policy = create(maps), *other = create(others);
    fill(policy);
    fill(other);
    const double linear = akin_policy_expected_distinct(policy, 1);
    const double spread = akin_policy_expected_distinct(other, 1);
    const double idle = akin_policy_expected_distinct(policy, 0);
    CU_ASSERT(linear > spread + 0.5); /* both busy experts on one rank */
    memcpy(maps[1].holders, others[1].holders,
           LAYERS * EXPERTS * sizeof(*maps[1].holders));
    akin_policy_placement_changed(policy, 1);
    CU_ASSERT_EQUAL(akin_policy_expected_distinct(policy, 1), spread);
    CU_ASSERT_EQUAL(akin_policy_expected_distinct(policy, 0), idle);
    akin_policy_placement_changed(policy, 2); /* no worker */
    for (uint64_t id = 1; id <= N_REQUESTS; id++)
        akin_policy_finish(policy, id);
    CU_ASSERT_DOUBLE_EQUAL(akin_policy_expected_distinct(policy, 1), 0.0, 1e-4);
    akin_policy_destroy(policy);
    akin_policy_destroy(other);
    for (uint32_t w = 0; w < 2; w++) {
        akin_placement_cleanup(&maps[w]);
        akin_placement_cleanup(&others[w]);
    }
}

/* Policies that look at no map take the news, too. */
static void others(void)
{
    akin_placement_t maps[2];
    akin_policy_t *policy = NULL;
    make_map(&maps[0], AKIN_PLACEMENT_LINEAR);
    make_map(&maps[1], AKIN_PLACEMENT_LINEAR);
    const akin_policy_params_t params = {
        .n_workers = 2,
        .n_layers = LAYERS,
        .n_experts = EXPERTS,
        .top_k = 2,
        .placements = maps,
    };
    CU_ASSERT_EQUAL_FATAL(akin_policy_create("jsq", &params, &policy, NULL),
                          AKIN_OK);
    akin_policy_placement_changed(policy, 1);
    CU_ASSERT_EQUAL(akin_policy_expected_distinct(policy, 1), 0.0);
    akin_policy_destroy(policy);
    akin_placement_cleanup(&maps[0]);
    akin_placement_cleanup(&maps[1]);
}

static const runner_test_t tests[] = {
    {"a map that changed", changed},
    {"policies without maps", others},
};

RUNNER_MAIN("policy union, placement", tests)
