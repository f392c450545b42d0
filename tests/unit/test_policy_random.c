/* Policies random and rr. */
#include "policy_driver.h"

enum { N_WORKERS = 8, N_DRAWS = 8000 };

static const uint8_t all[N_WORKERS] = {1, 1, 1, 1, 1, 1, 1, 1};

static void test_rr_counts_from_zero(void)
{
    akin_policy_t *policy = driver_create("rr", N_WORKERS, 1);
    for (uint32_t i = 0; i < 3 * N_WORKERS; i++)
        CU_ASSERT_EQUAL(driver_decide(policy, i, all), i % N_WORKERS);
    akin_policy_destroy(policy);
}

static void test_rr_passes_over(void)
{
    static const uint8_t some[N_WORKERS] = {0, 1, 0, 0, 1, 1, 0, 0};
    static const uint8_t none[N_WORKERS] = {0};
    const uint32_t expected[] = {1, 4, 5, 1, 4};
    akin_policy_t *policy = driver_create("rr", N_WORKERS, 1);
    for (uint32_t i = 0; i < 5; i++) {
        CU_ASSERT_EQUAL(driver_decide(policy, 100 + i, none),
                        AKIN_ROUTING_NO_WORKER);
        CU_ASSERT_EQUAL(driver_decide(policy, i, some), expected[i]);
    }
    CU_ASSERT_EQUAL(driver_decide(policy, 5, all), 5);
    CU_ASSERT_EQUAL(driver_decide(policy, 6, all), 6);
    akin_policy_destroy(policy);
}

/* 29.88 is the 99.99 % point of chi-square with 7 degrees of freedom, 23.51
 * that with 4. */
static void test_random_is_uniform(void)
{
    akin_policy_t *policy = driver_create("random", N_WORKERS, 5);
    uint32_t hits[N_WORKERS] = {0};
    double expected[N_WORKERS];
    for (uint32_t w = 0; w < N_WORKERS; w++)
        expected[w] = (double)N_DRAWS / N_WORKERS;
    for (uint32_t i = 0; i < N_DRAWS; i++)
        hits[driver_decide(policy, i, all)]++;
    CU_ASSERT(driver_chi_square(hits, expected, N_WORKERS) < 29.88);
    akin_policy_destroy(policy);
}

static void test_random_is_uniform_over_eligible(void)
{
    static const uint8_t some[N_WORKERS] = {1, 0, 1, 1, 0, 1, 0, 1};
    akin_policy_t *policy = driver_create("random", N_WORKERS, 6);
    uint32_t hits[N_WORKERS] = {0};
    for (uint32_t i = 0; i < N_DRAWS; i++)
        hits[driver_decide(policy, i, some)]++;
    uint32_t eligible_hits[5];
    double expected[5];
    uint32_t n = 0;
    for (uint32_t w = 0; w < N_WORKERS; w++)
        if (some[w]) {
            expected[n] = N_DRAWS / 5.0;
            eligible_hits[n++] = hits[w];
        } else {
            CU_ASSERT_EQUAL(hits[w], 0);
        }
    CU_ASSERT(driver_chi_square(eligible_hits, expected, 5) < 23.51);
    akin_policy_destroy(policy);
}

/* The seed alone decides, and it does decide. */
static void test_random_follows_seed(void)
{
    akin_policy_t *a = driver_create("random", N_WORKERS, 77);
    akin_policy_t *b = driver_create("random", N_WORKERS, 77);
    akin_policy_t *c = driver_create("random", N_WORKERS, 78);
    int equal_c = 0;
    for (uint32_t i = 0; i < 400; i++) {
        uint32_t worker = driver_decide(a, i, all);
        CU_ASSERT_EQUAL(driver_decide(b, i, all), worker);
        equal_c += driver_decide(c, i, all) == worker;
        akin_policy_finish(b, i);
    }
    /* 50 are expected, with a standard deviation of 6.6. */
    CU_ASSERT(equal_c > 20 && equal_c < 80);
    akin_policy_destroy(a);
    akin_policy_destroy(b);
    akin_policy_destroy(c);
}

static const runner_test_t tests[] = {
    {"rr counts from zero", test_rr_counts_from_zero},
    {"rr passes over the ineligible", test_rr_passes_over},
    {"random is uniform", test_random_is_uniform},
    {"random over the eligible", test_random_is_uniform_over_eligible},
    {"random follows the seed", test_random_follows_seed},
};

RUNNER_MAIN("policy_random", tests)
