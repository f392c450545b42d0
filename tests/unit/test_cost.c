/* Cost fit: planted coefficients, drift, uniform traffic and bad reports. */
#include "runner.h"

#include "base/rng.h"
#include "routing/cost.h"

#include <math.h>
#include <string.h>

enum { CELLS = 768 };

/* Step time of GPT-OSS-20B's shape (ALGORITHMS.md 7). */
static const akin_cost_line_t planted = {2.0e-3, 14e-3 / CELLS, 0.2e-3};

/* One step with a batch of 1 to 48: the distinct experts saturate with it and
 * scatter, the time is noisy by a relative standard deviation. */
static bool feed(akin_cost_t *cost, const akin_cost_line_t *line,
                 uint64_t index, double noise)
{
    uint32_t batch = 1 + (uint32_t)akin_rng_below(1, 0, index, 48);
    double share = 1.0 - exp(-0.05 * batch);
    double scatter = 0.8 + 0.2 * akin_rng_uniform(1, 1, index);
    double distinct = CELLS * share * scatter;
    double z = sqrt(-2.0 * log(1.0 - akin_rng_uniform(1, 2, index))) *
               cos(6.283185307179586 * akin_rng_uniform(1, 3, index));
    double seconds = akin_cost_seconds(line, distinct, batch);
    return akin_cost_observe(cost, batch, distinct,
                             seconds * (1.0 + noise * z));
}

static void test_defaults(void)
{
    akin_cost_t cost;
    akin_cost_init(&cost, CELLS, 0.0);
    CU_ASSERT_FALSE(cost.fitted);
    CU_ASSERT_DOUBLE_EQUAL(cost.line.t0_s, 2e-3, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(cost.line.a_s * CELLS, 14e-3, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(cost.line.b_s, 0.1e-3, 1e-12);
    for (uint64_t i = 0; i < 31; i++)
        CU_ASSERT_TRUE(feed(&cost, &planted, i, 0.0));
    CU_ASSERT_FALSE(cost.fitted);
    CU_ASSERT_DOUBLE_EQUAL(cost.line.b_s, 0.1e-3, 1e-12);
}

static void test_exact(void)
{
    akin_cost_t cost;
    akin_cost_init(&cost, CELLS, 0.0);
    for (uint64_t i = 0; i < 100; i++)
        CU_ASSERT_TRUE(feed(&cost, &planted, i, 0.0));
    CU_ASSERT_TRUE(cost.fitted);
    CU_ASSERT_DOUBLE_EQUAL(cost.line.t0_s / planted.t0_s, 1.0, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(cost.line.a_s / planted.a_s, 1.0, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(cost.line.b_s / planted.b_s, 1.0, 1e-6);
}

static void test_noise(void)
{
    akin_cost_t cost;
    akin_cost_init(&cost, CELLS, 0.0);
    for (uint64_t i = 0; i < 4000; i++)
        CU_ASSERT_TRUE(feed(&cost, &planted, i, 0.03));
    CU_ASSERT_DOUBLE_EQUAL(cost.line.t0_s / planted.t0_s, 1.0, 0.15);
    CU_ASSERT_DOUBLE_EQUAL(cost.line.a_s / planted.a_s, 1.0, 0.10);
    CU_ASSERT_DOUBLE_EQUAL(cost.line.b_s / planted.b_s, 1.0, 0.10);
}

/* Ten memories after the machine has changed, the old law is forgotten. */
static void test_drift(void)
{
    const akin_cost_line_t later = {3.0e-3, 7e-3 / CELLS, 0.4e-3};
    akin_cost_t cost;
    akin_cost_init(&cost, CELLS, 0.99);
    for (uint64_t i = 0; i < 1000; i++)
        CU_ASSERT_TRUE(feed(&cost, &planted, i, 0.0));
    for (uint64_t i = 1000; i < 2000; i++)
        CU_ASSERT_TRUE(feed(&cost, &later, i, 0.0));
    CU_ASSERT_DOUBLE_EQUAL(cost.line.t0_s / later.t0_s, 1.0, 0.01);
    CU_ASSERT_DOUBLE_EQUAL(cost.line.a_s / later.a_s, 1.0, 0.01);
    CU_ASSERT_DOUBLE_EQUAL(cost.line.b_s / later.b_s, 1.0, 0.01);
}

/* The same step for ever: nothing can be told apart, whatever the rounding. */
static void test_constant_inputs(void)
{
    akin_cost_t cost;
    akin_cost_init(&cost, CELLS, 0.0);
    for (uint64_t i = 0; i < 20000; i++)
        CU_ASSERT_TRUE(akin_cost_observe(
            &cost, 16, 300.0, 9e-3 + 1e-4 * akin_rng_uniform(2, 0, i)));
    CU_ASSERT_FALSE(cost.fitted);
    CU_ASSERT_DOUBLE_EQUAL(cost.line.b_s, 0.1e-3, 1e-12);
}

/* Distinct experts in lockstep with the batch leave the slopes unknown. */
static void test_lockstep(void)
{
    akin_cost_t cost;
    akin_cost_init(&cost, CELLS, 0.0);
    for (uint64_t i = 0; i < 2000; i++) {
        uint32_t batch = 1 + (uint32_t)(i % 32);
        (void)akin_cost_observe(&cost, batch, 8.0 * batch, 1e-3 * batch);
    }
    CU_ASSERT_FALSE(cost.fitted);
}

/* Inputs that vary a little under noise that hides what they do. */
static void test_noise_hides(void)
{
    akin_cost_t cost;
    akin_cost_init(&cost, CELLS, 0.0);
    for (uint64_t i = 0; i < 60; i++) {
        uint32_t batch = 59 + (uint32_t)akin_rng_below(5, 0, i, 3);
        double distinct = 300.0 + 12.0 * akin_rng_uniform(5, 1, i);
        double noise = 0.7 + 0.6 * akin_rng_uniform(5, 2, i);
        CU_ASSERT_TRUE(akin_cost_observe(&cost, batch, distinct, 0.02 * noise));
    }
    CU_ASSERT_FALSE(cost.fitted);
}

/* What was learned stays when traffic turns uniform. */
static void test_uniform_after_fit(void)
{
    akin_cost_t cost;
    akin_cost_init(&cost, CELLS, 0.99);
    for (uint64_t i = 0; i < 1000; i++)
        (void)feed(&cost, &planted, i, 0.01);
    akin_cost_line_t learned = cost.line;
    double seconds = akin_cost_seconds(&planted, 400.0, 16.0);
    for (uint64_t i = 0; i < 20000; i++)
        (void)akin_cost_observe(&cost, 16, 400.0,
                                seconds *
                                    (0.95 + 0.1 * akin_rng_uniform(3, 0, i)));
    CU_ASSERT_TRUE(cost.fitted);
    CU_ASSERT_DOUBLE_EQUAL(cost.line.a_s / learned.a_s, 1.0, 0.3);
    CU_ASSERT_DOUBLE_EQUAL(cost.line.b_s / learned.b_s, 1.0, 0.3);
}

/* Laws with negative parts: the best line without them. */
static void test_non_negative(void)
{
    const akin_cost_line_t laws[] = {
        {-1e-3, 14e-3 / CELLS, 0.2e-3},
        {20e-3, -10e-3 / CELLS, 0.2e-3},
        {2e-3, 30e-3 / CELLS, -0.1e-3},
        {2e-3, 0.0, 0.0},
    };
    for (size_t k = 0; k < sizeof(laws) / sizeof(laws[0]); k++) {
        akin_cost_t cost;
        akin_cost_init(&cost, CELLS, 0.0);
        double gap = 0.0, mean = 0.0;
        for (uint64_t i = 0; i < 2000; i++) {
            (void)feed(&cost, &laws[k], i, 0.01);
            CU_ASSERT(cost.line.t0_s >= 0.0 && cost.line.a_s >= 0.0 &&
                      cost.line.b_s >= 0.0);
        }
        for (int n = 4; n <= 48; n += 4) {
            double batch = n;
            double distinct = CELLS * 0.9 * (1.0 - exp(-0.05 * batch));
            double exact = akin_cost_seconds(&laws[k], distinct, batch);
            gap += fabs(akin_cost_seconds(&cost.line, distinct, batch) - exact);
            mean += exact;
        }
        CU_ASSERT_TRUE(cost.fitted);
        CU_ASSERT(gap < 0.15 * mean);
    }
}

/* A boundary solution by hand: the reports ask for t0 < 0, and the least
 * squares line through the origin is known. */
static void test_boundary_by_hand(void)
{
    akin_cost_t cost;
    akin_cost_init(&cost, 100, 1.0);
    double dd = 0.0, dn = 0.0, nn = 0.0, dy = 0.0, ny = 0.0;
    for (uint64_t i = 0; i < 200; i++) {
        double n = 1.0 + (double)akin_rng_below(4, 0, i, 20);
        double d = 100.0 * akin_rng_uniform(4, 1, i);
        double y = 1e-3 * n + 1e-4 * d - 0.3e-3;
        if (!akin_cost_observe(&cost, (uint32_t)n, d, y))
            continue;
        dd += d * d;
        dn += d * n;
        nn += n * n;
        dy += d * y;
        ny += n * y;
    }
    double det = dd * nn - dn * dn;
    CU_ASSERT_EQUAL(cost.line.t0_s, 0.0);
    CU_ASSERT_DOUBLE_EQUAL(cost.line.a_s, (dy * nn - ny * dn) / det, 1e-10);
    CU_ASSERT_DOUBLE_EQUAL(cost.line.b_s, (ny * dd - dy * dn) / det, 1e-10);
}

static void test_bad_reports(void)
{
    akin_cost_t cost;
    akin_cost_init(&cost, CELLS, 0.0);
    for (uint64_t i = 0; i < 200; i++)
        (void)feed(&cost, &planted, i, 0.0);
    akin_cost_t before = cost;
    const struct {
        uint32_t batch;
        double distinct, seconds;
    } bad[] = {
        {0, 10.0, 1e-3},      {4, NAN, 1e-3},       {4, INFINITY, 1e-3},
        {4, -1.0, 1e-3},      {4, CELLS + 1, 1e-3}, {4, 10.0, NAN},
        {4, 10.0, INFINITY},  {4, 10.0, -1e-3},     {4, 10.0, 0.0},
        {4, 10.0, -INFINITY}, {4, 10.0, 1e9},       {4, 10.0, 1e300},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CU_ASSERT_FALSE(akin_cost_observe(&cost, bad[i].batch, bad[i].distinct,
                                          bad[i].seconds));
    CU_ASSERT_EQUAL(memcmp(&cost, &before, sizeof(cost)), 0);
    /* A pause of a second between steps of some 15 ms. */
    CU_ASSERT_FALSE(akin_cost_observe(&cost, 16, 300.0, 1.0));
    CU_ASSERT_EQUAL(memcmp(&cost.line, &before.line, sizeof(cost.line)), 0);
}

/* A machine that turns a hundred times slower is believed in the end. */
static void test_new_regime(void)
{
    const akin_cost_line_t slow = {0.2, 1.4 / CELLS, 0.02};
    akin_cost_t cost;
    akin_cost_init(&cost, CELLS, 0.0);
    for (uint64_t i = 0; i < 500; i++)
        (void)feed(&cost, &planted, i, 0.0);
    for (uint64_t i = 0; i < 400; i++)
        (void)feed(&cost, &slow, i, 0.0);
    CU_ASSERT_DOUBLE_EQUAL(cost.line.a_s / slow.a_s, 1.0, 1e-3);
    CU_ASSERT_DOUBLE_EQUAL(cost.line.b_s / slow.b_s, 1.0, 1e-3);
}

static const runner_test_t tests[] = {
    {"defaults", test_defaults},
    {"exact", test_exact},
    {"noise", test_noise},
    {"drift", test_drift},
    {"constant inputs", test_constant_inputs},
    {"lockstep", test_lockstep},
    {"noise hides", test_noise_hides},
    {"uniform after fit", test_uniform_after_fit},
    {"non-negative", test_non_negative},
    {"boundary by hand", test_boundary_by_hand},
    {"bad reports", test_bad_reports},
    {"new regime", test_new_regime},
};

RUNNER_MAIN("cost", tests)
