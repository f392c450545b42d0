/* Band against the published artifact's decisions. */
#include "runner.h"
#include "vectors.h"

#include "routing/band.h"

enum { N = 32, MAX_WORKERS = 5 };

static const uint8_t all[MAX_WORKERS] = {1, 1, 1, 1, 1};

static void run_fixture(const char *name, uint32_t n_workers)
{
    static float scores[N * MAX_WORKERS], loads[N * MAX_WORKERS], choice[N];
    json_t *root = vectors_load(name);
    vectors_get_floats(json_object_get(root, "scores"), scores, N * n_workers);
    size_t k;
    json_t *c;
    json_array_foreach(json_object_get(root, "cases"), k, c)
    {
        double tau = json_number_value(json_object_get(c, "tau"));
        vectors_get_floats(json_object_get(c, "loads"), loads, N * n_workers);
        vectors_get_floats(json_object_get(c, "choice"), choice, N);
        for (uint32_t r = 0; r < N; r++) {
            uint32_t in_flight[MAX_WORKERS];
            for (uint32_t w = 0; w < n_workers; w++)
                in_flight[w] = (uint32_t)loads[r * n_workers + w];
            CU_ASSERT_EQUAL(akin_band_choose(scores + r * n_workers, in_flight,
                                             all, n_workers, tau),
                            (uint32_t)choice[r]);
        }
    }
    CU_ASSERT_EQUAL(k, 4);
    json_decref(root);
}

static void test_artifact(void)
{
    run_fixture("routing_k4.json", 4);
    run_fixture("routing_k5.json", 5);
}

static void test_ties_and_eligibility(void)
{
    const float zero[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    const float scores[4] = {0.9f, 0.5f, 0.55f, -0.2f};
    const uint32_t in_flight[4] = {9, 3, 3, 0};
    const uint8_t none[4] = {0}, not_best[4] = {0, 1, 1, 1};
    CU_ASSERT_EQUAL(akin_band_choose(zero, in_flight, all, 4, 0.1), 3);
    CU_ASSERT_EQUAL(akin_band_choose(scores, in_flight, all, 4, 0.1), 0);
    CU_ASSERT_EQUAL(akin_band_choose(scores, in_flight, all, 4, 0.5), 1);
    /* The band hangs on the best score that may be chosen. */
    CU_ASSERT_EQUAL(akin_band_choose(scores, in_flight, not_best, 4, 0.0), 2);
    CU_ASSERT_EQUAL(akin_band_choose(scores, in_flight, not_best, 4, 0.1), 1);
    CU_ASSERT_EQUAL(akin_band_choose(scores, in_flight, none, 4, 0.1),
                    AKIN_ROUTING_NO_WORKER);
}

static const runner_test_t tests[] = {
    {"artifact", test_artifact},
    {"ties and eligibility", test_ties_and_eligibility},
};

RUNNER_MAIN("band", tests)
