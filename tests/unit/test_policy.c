/* Policy: what holds for every policy. */
#include "planted_fit.h"
#include "runner.h"

#include "routing/policy.h"

#include <string.h>

enum {
    N_WORKERS = 6,
    N_LAYERS = 3,
    N_EXPERTS = 16,
    TOP_K = 2,
    N_CELLS = N_LAYERS * N_EXPERTS
};

static const akin_policy_params_t params = {
    .n_workers = N_WORKERS,
    .n_layers = N_LAYERS,
    .n_experts = N_EXPERTS,
    .top_k = TOP_K,
    .seed = 42,
};

static const planted_shape_t shape = {N_LAYERS, N_EXPERTS, TOP_K, 4};

/* Of the policies that need one; made when one is first made, freed by the
 * last test. */
static akin_fit_t fit;

static akin_policy_t *make_policy(const char *name)
{
    akin_policy_t *policy = NULL;
    akin_error_t err = {{0}};
    akin_policy_params_t with_fit = params;
    if (akin_policy_needs_fit(name)) {
        if (fit.n_clusters == 0)
            fit = planted_fit(&shape, N_WORKERS);
        with_fit.fit = &fit;
        with_fit.tau = 0.1;
        with_fit.pull = 0.16;
    }
    CU_ASSERT_EQUAL_FATAL(akin_policy_create(name, &with_fit, &policy, &err),
                          AKIN_OK);
    return policy;
}

static void test_names(void)
{
    const char *const expected[] = {
        "random",      "rr",   "jsq",   "p2c",        "domain",
        "eldr-static", "eldr", "union", "union-band", "union-pull"};
    enum { N_EXPECTED = sizeof(expected) / sizeof(expected[0]) };
    for (int i = 0; i < N_EXPECTED; i++) {
        CU_ASSERT_STRING_EQUAL(akin_policy_names[i], expected[i]);
        akin_policy_destroy(make_policy(akin_policy_names[i]));
    }
    CU_ASSERT_PTR_NULL(akin_policy_names[N_EXPECTED]);
    akin_policy_destroy(NULL);
}

static void test_unknown_name(void)
{
    akin_policy_t *policy = (akin_policy_t *)&policy;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_policy_create("unoin", &params, &policy, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NULL(policy);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "unoin"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "did you mean \"union\""));
    CU_ASSERT_EQUAL(akin_policy_create("", &params, &policy, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "jsq"));
    CU_ASSERT_EQUAL(akin_policy_create("zzzzzzzz", &params, &policy, NULL),
                    AKIN_ERR_INVALID);
}

/* Parameters of which the sizes alone are told. */
#define SIZES(workers, layers, experts, k)                                     \
    {                                                                          \
        .n_workers = workers, .n_layers = layers, .n_experts = experts,        \
        .top_k = k                                                             \
    }

static void test_params(void)
{
    const struct {
        akin_policy_params_t params;
        const char *field;
    } bad[] = {
        {SIZES(0, 1, 8, 2), "n_workers"},
        {SIZES(1, 0, 8, 2), "n_layers"},
        {SIZES(1, 1, 0, 2), "n_experts"},
        {SIZES(1, 1, 8, 0), "top_k"},
        {SIZES(1, 1, 8, 9), "top_k"},
        {SIZES(65537, 1, 8, 2), "n_workers"},
        {SIZES(1, UINT32_MAX, 8, 2), "n_layers"},
        {SIZES(1, 1u << 20, 1u << 20, 2), "layers"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        for (int p = 0; akin_policy_names[p] != NULL; p++) {
            akin_policy_t *policy = NULL;
            akin_error_t err = {{0}};
            CU_ASSERT_EQUAL(akin_policy_create(akin_policy_names[p],
                                               &bad[i].params, &policy, &err),
                            AKIN_ERR_INVALID);
            CU_ASSERT_PTR_NULL(policy);
            CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].field));
        }
}

/* A random life of a policy beside a ledger of its own. */
static void run_ledger(const char *name)
{
    enum { MAX_LIVE = 40 };
    akin_policy_t *policy = make_policy(name);
    uint32_t expected[N_WORKERS] = {0};
    struct {
        uint64_t id;
        uint32_t worker;
    } live[MAX_LIVE];
    uint32_t n_live = 0;
    uint16_t counts[N_CELLS];
    int chosen_ineligible = 0;
    int wrong_none = 0;
    int wrong_in_flight = 0;
    for (uint64_t i = 0; i < 3000; i++) {
        uint64_t bits = akin_rng_u64(7, 0, i);
        if (n_live == MAX_LIVE || (n_live > 0 && bits % 5 < 2)) {
            uint32_t victim = (uint32_t)(bits >> 32) % n_live;
            akin_policy_finish(policy, live[victim].id);
            expected[live[victim].worker]--;
            live[victim] = live[--n_live];
        } else {
            uint8_t eligible[N_WORKERS];
            int any = 0;
            for (int w = 0; w < N_WORKERS; w++) {
                eligible[w] = (uint8_t)(bits >> (8 + w) & 1);
                any |= eligible[w];
            }
            planted_counts(&shape, 3, i, 20, counts);
            akin_policy_request_t request = {
                .id = i << 32 | i, .counts = counts, .n_tokens = 20};
            uint32_t worker = 0;
            CU_ASSERT_EQUAL(
                akin_policy_decide(policy, &request, eligible, &worker),
                AKIN_OK);
            if (worker == AKIN_ROUTING_NO_WORKER) {
                wrong_none += any;
            } else if (worker >= N_WORKERS || !eligible[worker]) {
                chosen_ineligible++;
            } else {
                expected[worker]++;
                live[n_live].id = request.id;
                live[n_live++].worker = worker;
            }
        }
        for (uint32_t w = 0; w < N_WORKERS; w++)
            wrong_in_flight += akin_policy_in_flight(policy, w) != expected[w];
    }
    CU_ASSERT_EQUAL(chosen_ineligible, 0);
    CU_ASSERT_EQUAL(wrong_none, 0);
    CU_ASSERT_EQUAL(wrong_in_flight, 0);
    akin_policy_destroy(policy);
}

static void test_ledger(void)
{
    for (int p = 0; akin_policy_names[p] != NULL; p++)
        run_ledger(akin_policy_names[p]);
}

static void test_no_worker(void)
{
    static const uint8_t none[N_WORKERS] = {0};
    static const uint8_t only_4[N_WORKERS] = {0, 0, 0, 0, 1, 0};
    uint16_t counts[N_CELLS];
    planted_counts(&shape, 3, 0, 20, counts);
    const akin_policy_request_t request = {
        .id = 9, .counts = counts, .n_tokens = 20};
    for (int p = 0; akin_policy_names[p] != NULL; p++) {
        akin_policy_t *policy = make_policy(akin_policy_names[p]);
        uint32_t worker = 0;
        CU_ASSERT_EQUAL(akin_policy_decide(policy, &request, none, &worker),
                        AKIN_OK);
        CU_ASSERT_EQUAL(worker, AKIN_ROUTING_NO_WORKER);
        for (uint32_t w = 0; w < N_WORKERS; w++)
            CU_ASSERT_EQUAL(akin_policy_in_flight(policy, w), 0);
        /* Nothing was counted, so the same id may come again. */
        CU_ASSERT_EQUAL(akin_policy_decide(policy, &request, only_4, &worker),
                        AKIN_OK);
        CU_ASSERT_EQUAL(worker, 4);
        akin_policy_destroy(policy);
    }
}

static void test_duplicate_id(void)
{
    static const uint8_t all[N_WORKERS] = {1, 1, 1, 1, 1, 1};
    uint16_t counts[N_CELLS];
    planted_counts(&shape, 3, 0, 20, counts);
    const akin_policy_request_t request = {
        .id = UINT64_MAX, .counts = counts, .n_tokens = 20};
    for (int p = 0; akin_policy_names[p] != NULL; p++) {
        akin_policy_t *policy = make_policy(akin_policy_names[p]);
        uint32_t worker = 0;
        CU_ASSERT_EQUAL(akin_policy_decide(policy, &request, all, &worker),
                        AKIN_OK);
        uint32_t first = worker;
        double distinct = akin_policy_expected_distinct(policy, first);
        CU_ASSERT_EQUAL(akin_policy_decide(policy, &request, all, &worker),
                        AKIN_ERR_EXISTS);
        CU_ASSERT_EQUAL(worker, AKIN_ROUTING_NO_WORKER);
        CU_ASSERT_EQUAL(akin_policy_in_flight(policy, first), 1);
        CU_ASSERT_EQUAL(akin_policy_expected_distinct(policy, first), distinct);
        akin_policy_finish(policy, 1);
        CU_ASSERT_EQUAL(akin_policy_in_flight(policy, first), 1);
        akin_policy_finish(policy, UINT64_MAX);
        akin_policy_finish(policy, UINT64_MAX);
        CU_ASSERT_EQUAL(akin_policy_in_flight(policy, first), 0);
        CU_ASSERT_EQUAL(akin_policy_expected_distinct(policy, first), 0.0);
        CU_ASSERT_EQUAL(akin_policy_decide(policy, &request, all, &worker),
                        AKIN_OK);
        akin_policy_destroy(policy);
    }
}

/* Reports and questions about workers that there are not. */
static void test_out_of_range(void)
{
    const akin_policy_step_t step = {4, 20.0, 0.01};
    for (int p = 0; akin_policy_names[p] != NULL; p++) {
        akin_policy_t *policy = make_policy(akin_policy_names[p]);
        akin_policy_observe(policy, N_WORKERS, &step);
        akin_policy_observe(policy, UINT32_MAX, &step);
        CU_ASSERT_EQUAL(akin_policy_in_flight(policy, N_WORKERS), 0);
        CU_ASSERT_EQUAL(akin_policy_expected_distinct(policy, UINT32_MAX), 0.0);
        akin_policy_destroy(policy);
    }
}

static void test_fit(void)
{
    akin_policy_t *policy = NULL;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_policy_create("union-band", &params, &policy, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "routing.fit"));
    if (fit.n_clusters == 0)
        fit = planted_fit(&shape, N_WORKERS);
    akin_policy_params_t other = params;
    other.fit = &fit;
    other.n_workers = N_WORKERS - 1;
    CU_ASSERT_EQUAL(akin_policy_create("union", &other, &policy, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "decode workers"));
    other.n_workers = N_WORKERS;
    other.tau = NAN;
    CU_ASSERT_EQUAL(akin_policy_create("eldr-static", &other, &policy, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "tau"));
    other.tau = 0.1;
    other.pull = -1.0;
    CU_ASSERT_EQUAL(akin_policy_create("union-pull", &other, &policy, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "pull"));
    CU_ASSERT_PTR_NULL(policy);
    akin_fit_cleanup(&fit);
    CU_ASSERT_EQUAL(fit.n_clusters, 0);
}

static const runner_test_t tests[] = {
    {"names", test_names},
    {"unknown name", test_unknown_name},
    {"params", test_params},
    {"ledger and eligibility", test_ledger},
    {"no worker", test_no_worker},
    {"duplicate id", test_duplicate_id},
    {"out of range", test_out_of_range},
    {"fit", test_fit},
};

RUNNER_MAIN("policy", tests)
