/* Policy union where the experts cannot decide: it joins the shortest queue,
 * and the lowest index wins a tie. */
#include "planted_requests.h"
#include "runner.h"

#include "routing/policy_union.h"

enum {
    N_WORKERS = 4,
    N_LAYERS = 3,
    N_EXPERTS = 24,
    TOP_K = 3,
    N_CELLS = N_LAYERS * N_EXPERTS
};

static const planted_shape_t shape = {N_LAYERS, N_EXPERTS, TOP_K, 4};
static const uint8_t all[N_WORKERS] = {1, 1, 1, 1};

static akin_policy_t *make_union(uint32_t n_workers, uint32_t n_layers,
                                 uint32_t n_experts, uint32_t top_k)
{
    const akin_policy_params_t params = {
        .n_workers = n_workers,
        .n_layers = n_layers,
        .n_experts = n_experts,
        .top_k = top_k,
        .seed = 1,
    };
    akin_policy_t *policy = NULL;
    CU_ASSERT_EQUAL_FATAL(akin_policy_create("union", &params, &policy, NULL),
                          AKIN_OK);
    return policy;
}

/* Least in flight with the lowest index on a tie, beside the policy. */
static void run_like_jsq(akin_policy_t *policy, uint32_t n_experts,
                         uint32_t top_k)
{
    uint16_t counts[N_CELLS];
    const planted_shape_t jsq_shape = {N_LAYERS, n_experts, top_k, 1};
    int differs = 0;
    for (uint64_t i = 0; i < 600; i++) {
        uint32_t expected = 0;
        for (uint32_t w = 1; w < N_WORKERS; w++)
            if (akin_policy_in_flight(policy, w) <
                akin_policy_in_flight(policy, expected))
                expected = w;
        planted_counts(&jsq_shape, 51, i, 30, counts);
        akin_policy_request_t request = {
            .id = i, .counts = counts, .n_tokens = 30};
        uint32_t worker = 0;
        CU_ASSERT_EQUAL_FATAL(
            akin_policy_decide(policy, &request, all, &worker), AKIN_OK);
        differs += worker != expected;
        if (akin_rng_below(52, 0, i, 3) != 0)
            akin_policy_finish(policy, akin_rng_below(52, 1, i, i + 1));
    }
    CU_ASSERT_EQUAL(differs, 0);
}

/* Every request uses every expert: the union is constant. */
static void test_constant_union_is_jsq(void)
{
    akin_policy_t *policy = make_union(N_WORKERS, N_LAYERS, 4, 4);
    run_like_jsq(policy, 4, 4);
    akin_policy_destroy(policy);
}

/* Steps whose time follows the batch alone, or nothing, teach the policy to
 * ignore experts. */
static void run_flat_cost(double per_request_s)
{
    akin_policy_t *policy = make_union(N_WORKERS, N_LAYERS, N_EXPERTS, TOP_K);
    for (uint64_t i = 0; i < 400; i++) {
        uint32_t batch = 1 + (uint32_t)akin_rng_below(53, 0, i, 30);
        double distinct = 72.0 * akin_rng_uniform(53, 1, i);
        akin_policy_step_t step = {batch, distinct,
                                   2e-3 + per_request_s * batch};
        akin_policy_observe(policy, 0, &step);
    }
    CU_ASSERT(akini_union_cost(policy)->fitted);
    run_like_jsq(policy, N_EXPERTS, TOP_K);
    akin_policy_destroy(policy);
}

static void test_flat_cost_is_jsq(void)
{
    run_flat_cost(1e-4);
    run_flat_cost(0.0);
}

/* Two workers with the same requests, admitted in opposite orders: their sums
 * differ by rounding, yet it is a tie that the lower index wins. */
static void test_rounding_is_a_tie(void)
{
    static uint16_t counts[N_CELLS];
    int wrong = 0;
    for (uint64_t trial = 0; trial < 60; trial++) {
        akin_policy_t *policy = make_union(2, N_LAYERS, N_EXPERTS, TOP_K);
        uint32_t worker = 2;
        for (uint64_t i = 0; i < 10; i++)
            for (uint64_t w = 0; w < 2; w++) {
                const uint8_t only[2] = {w == 0, w == 1};
                uint64_t kind = w == 0 ? i : 9 - i;
                planted_counts(&shape, trial, kind, 37, counts);
                akin_policy_request_t request = {
                    .id = 2 * i + w, .counts = counts, .n_tokens = 37};
                CU_ASSERT_EQUAL(
                    akin_policy_decide(policy, &request, only, &worker),
                    AKIN_OK);
            }
        planted_counts(&shape, trial, 10, 37, counts);
        akin_policy_request_t request = {
            .id = 99, .counts = counts, .n_tokens = 37};
        CU_ASSERT_EQUAL(akin_policy_decide(policy, &request, all, &worker),
                        AKIN_OK);
        wrong += worker != 0;
        akin_policy_destroy(policy);
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static const runner_test_t tests[] = {
    {"constant union is jsq", test_constant_union_is_jsq},
    {"flat cost is jsq", test_flat_cost_is_jsq},
    {"rounding is a tie", test_rounding_is_a_tie},
};

RUNNER_MAIN("policy_union_ties", tests)
