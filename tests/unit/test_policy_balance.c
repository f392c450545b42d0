/* Policies jsq and p2c. */
#include "policy_driver.h"

#include "base/rng.h"
#include "routing/policy_impl.h"

enum { N_WORKERS = 8, N_DRAWS = 6000 };

static const uint8_t all[N_WORKERS] = {1, 1, 1, 1, 1, 1, 1, 1};

/* Every choice has the least load of a scan that knows no policy. */
static void test_jsq_takes_least(void)
{
    akin_policy_t *policy = driver_create("jsq", N_WORKERS, 3);
    uint64_t oldest = 0;
    for (uint64_t i = 0; i < 2000; i++) {
        uint8_t eligible[N_WORKERS];
        uint64_t bits = akin_rng_u64(11, 0, i) | 1;
        uint32_t least = UINT32_MAX;
        for (uint32_t w = 0; w < N_WORKERS; w++) {
            eligible[w] = (uint8_t)(bits >> w & 1);
            uint32_t load = akin_policy_in_flight(policy, w);
            if (eligible[w] && load < least)
                least = load;
        }
        uint32_t worker = driver_decide(policy, i, eligible);
        CU_ASSERT_EQUAL(akin_policy_in_flight(policy, worker), least + 1);
        if (bits >> 40 & 1)
            akin_policy_finish(policy, oldest++);
    }
    akin_policy_destroy(policy);
}

/* Ties of 5 among 8 workers: 23.51 is the 99.99 % point of chi-square with 4
 * degrees of freedom. */
static void test_jsq_tie_is_uniform(void)
{
    akin_policy_t *policy = driver_create("jsq", N_WORKERS, 4);
    driver_load(policy, N_WORKERS, 1, 1, 1000000);
    driver_load(policy, N_WORKERS, 4, 2, 2000000);
    driver_load(policy, N_WORKERS, 6, 1, 3000000);
    uint32_t hits[N_WORKERS] = {0};
    for (uint32_t i = 0; i < N_DRAWS; i++) {
        hits[driver_decide(policy, i, all)]++;
        akin_policy_finish(policy, i);
    }
    CU_ASSERT_EQUAL(hits[1] + hits[4] + hits[6], 0);
    const uint32_t tied[5] = {hits[0], hits[2], hits[3], hits[5], hits[7]};
    const double each = N_DRAWS / 5.0;
    const double expected[5] = {each, each, each, each, each};
    CU_ASSERT(driver_chi_square(tied, expected, 5) < 23.51);
    akin_policy_destroy(policy);
}

/* With two workers, two distinct draws are both of them: the more loaded one
 * can never win. */
static void test_p2c_is_distinct(void)
{
    akin_policy_t *policy = driver_create("p2c", 2, 5);
    driver_load(policy, 2, 0, 3, 1000000);
    int wrong = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        wrong += driver_decide(policy, i, all) != 1;
        akin_policy_finish(policy, i);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    akin_policy_destroy(policy);
}

/*
 * With loads that rise with the index, the lower index of an unordered pair
 * wins: of the 28 pairs of 8 workers, 7 - w are won by worker w. 27.86 is the
 * 99.99 % point of chi-square with 6 degrees of freedom.
 */
static void test_p2c_pairs_are_uniform(void)
{
    akin_policy_t *policy = driver_create("p2c", N_WORKERS, 6);
    for (uint32_t w = 0; w < N_WORKERS; w++)
        driver_load(policy, N_WORKERS, w, 2 * w, 1000000 + 1000 * w);
    uint32_t hits[N_WORKERS] = {0};
    double expected[N_WORKERS];
    for (uint32_t i = 0; i < N_DRAWS; i++) {
        hits[driver_decide(policy, i, all)]++;
        akin_policy_finish(policy, i);
    }
    for (uint32_t w = 0; w < N_WORKERS - 1; w++)
        expected[w] = N_DRAWS * (7.0 - w) / 28.0;
    CU_ASSERT(driver_chi_square(hits, expected, N_WORKERS - 1) < 27.86);
    CU_ASSERT_EQUAL(hits[N_WORKERS - 1], 0);
    akin_policy_destroy(policy);
}

/* Equal loads: the first draw wins, and it is uniform. A log of decisions can
 * be replayed, so the draw's place in the random stream is part of it. */
static void test_p2c_tie_takes_first(void)
{
    akin_policy_t *policy = driver_create("p2c", N_WORKERS, 7);
    uint32_t hits[N_WORKERS] = {0};
    double expected[N_WORKERS];
    for (uint32_t i = 0; i < N_DRAWS; i++) {
        uint32_t worker = driver_decide(policy, i, all);
        uint64_t first =
            akin_rng_below(7, AKINI_STREAM_P2C_FIRST, i, N_WORKERS);
        CU_ASSERT_EQUAL(worker, first);
        hits[worker]++;
        akin_policy_finish(policy, i);
    }
    for (uint32_t w = 0; w < N_WORKERS; w++)
        expected[w] = (double)N_DRAWS / N_WORKERS;
    CU_ASSERT(driver_chi_square(hits, expected, N_WORKERS) < 29.88);
    akin_policy_destroy(policy);
}

static void test_p2c_single_eligible(void)
{
    static const uint8_t only_3[N_WORKERS] = {0, 0, 0, 1, 0, 0, 0, 0};
    akin_policy_t *policy = driver_create("p2c", N_WORKERS, 8);
    for (uint32_t i = 0; i < 10; i++)
        CU_ASSERT_EQUAL(driver_decide(policy, i, only_3), 3);
    akin_policy_destroy(policy);
}

static const runner_test_t tests[] = {
    {"jsq takes the least", test_jsq_takes_least},
    {"jsq tie is uniform", test_jsq_tie_is_uniform},
    {"p2c draws two different", test_p2c_is_distinct},
    {"p2c pairs are uniform", test_p2c_pairs_are_uniform},
    {"p2c tie takes the first", test_p2c_tie_takes_first},
    {"p2c with one eligible", test_p2c_single_eligible},
};

RUNNER_MAIN("policy_balance", tests)
