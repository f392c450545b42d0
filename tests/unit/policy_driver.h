/* Driver of policies that look at no counts: puts requests in flight, takes
 * them back, and tells how far draws are from their law. */
#ifndef AKIN_TESTS_UNIT_POLICY_DRIVER_H
#define AKIN_TESTS_UNIT_POLICY_DRIVER_H

#include "runner.h"

#include "routing/policy.h"

static inline akin_policy_t *driver_create(const char *name, uint32_t n_workers,
                                           uint64_t seed)
{
    const akin_policy_params_t params = {
        .n_workers = n_workers,
        .n_layers = 1,
        .n_experts = 1,
        .top_k = 1,
        .seed = seed,
    };
    akin_policy_t *policy = NULL;
    CU_ASSERT_EQUAL_FATAL(akin_policy_create(name, &params, &policy, NULL),
                          AKIN_OK);
    return policy;
}

static inline uint32_t driver_decide(akin_policy_t *policy, uint64_t id,
                                     const uint8_t *eligible)
{
    static const uint16_t counts[1] = {1};
    const akin_policy_request_t request = {
        .id = id, .counts = counts, .n_tokens = 1};
    uint32_t worker = 0;
    CU_ASSERT_EQUAL_FATAL(
        akin_policy_decide(policy, &request, eligible, &worker), AKIN_OK);
    return worker;
}

/** Put n requests on one worker, ids from first_id on. */
static inline void driver_load(akin_policy_t *policy, uint32_t n_workers,
                               uint32_t worker, uint32_t n, uint64_t first_id)
{
    uint8_t eligible[64] = {0};
    CU_ASSERT_FATAL(n_workers <= 64 && worker < n_workers);
    eligible[worker] = 1;
    for (uint32_t i = 0; i < n; i++)
        CU_ASSERT_EQUAL_FATAL(driver_decide(policy, first_id + i, eligible),
                              worker);
}

/** Pearson's statistic of observed counts against expected ones above 0. */
static inline double driver_chi_square(const uint32_t *observed,
                                       const double *expected, uint32_t n)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        double gap = (double)observed[i] - expected[i];
        sum += gap * gap / expected[i];
    }
    return sum;
}

#endif
