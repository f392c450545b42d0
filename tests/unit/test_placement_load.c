/* Placement load: the formula by hand, and against the replica choice on
 * independent activations. */
#include "runner.h"

#include "ep/placement_choice.h"
#include "ep/placement_load.h"
#include "placement_draw.h"

static void test_factor(void)
{
    CU_ASSERT_EQUAL(akin_placement_load_factor(1), 0.0);
    CU_ASSERT_EQUAL(akin_placement_load_factor(2), .564);
    CU_ASSERT_EQUAL(akin_placement_load_factor(4), 1.029);
    CU_ASSERT_EQUAL(akin_placement_load_factor(8), 1.424);
    CU_ASSERT_EQUAL(akin_placement_load_factor(16), 1.766);
    /* 3 / (2 sqrt(pi)) */
    CU_ASSERT_DOUBLE_EQUAL(akin_placement_load_factor(3), 0.846284, 5e-4);
    for (uint32_t r = 1; r < 64; r++)
        CU_ASSERT(akin_placement_load_factor(r + 1) >
                  akin_placement_load_factor(r));
    CU_ASSERT_EQUAL(akin_placement_load_factor(1000),
                    akin_placement_load_factor(64));
}

/* Without replicas and far below a full rank it is ALGORITHMS.md 6 to the
 * letter. */
static void test_formula(void)
{
    enum { N = 128 };
    for (uint64_t i = 0; i < 20; i++) {
        const uint32_t n_ranks = i % 2 == 0 ? 4 : 8;
        float rates[N], idle[N];
        uint64_t holders[N];
        placement_draw_rates(rates, N, 8.0, 0, i);
        akin_placement_idle(rates, N, 8.0, idle);
        CU_ASSERT_FATAL(placement_draw_holders(holders, N, n_ranks, 0, i));
        double mu[8] = {0}, var = 0.0, mean = 0.0, spread = 0.0, sum = 0.0;
        for (uint32_t e = 0; e < N; e++) {
            const double u = (double)idle[e];
            mu[__builtin_ctzll(holders[e])] += 1.0 - u;
            var += u * (1.0 - u) / n_ranks;
            mean += (1.0 - u) / n_ranks;
            sum += 1.0 - u;
        }
        for (uint32_t r = 0; r < n_ranks; r++)
            spread += (mu[r] - mean) * (mu[r] - mean) / n_ranks;
        const double expected =
            mean + (n_ranks == 4 ? 1.029 : 1.424) * sqrt(var + spread);
        CU_ASSERT_DOUBLE_EQUAL(
            akin_placement_load_layer(idle, holders, N, n_ranks), expected,
            1e-9);
        for (uint32_t e = 0; e < N; e++)
            holders[e] = 1;
        CU_ASSERT_DOUBLE_EQUAL(akin_placement_load_layer(idle, holders, N, 1),
                               sum, 1e-9);
    }
}

/* No chance in it: the value is that of the choice. */
static void test_certain(void)
{
    static const uint64_t holders[] = {1, 1, 1, 2, 2, 2, 4, 4, 4};
    float idle[9] = {0};
    CU_ASSERT_DOUBLE_EQUAL(akin_placement_load_layer(idle, holders, 9, 3), 3.0,
                           1e-9);
    /* Rank 0 serves all it holds, the others nothing. */
    for (uint32_t e = 3; e < 9; e++)
        idle[e] = 1.0f;
    CU_ASSERT_DOUBLE_EQUAL(akin_placement_load_layer(idle, holders, 9, 3), 3.0,
                           1e-9);
    for (uint32_t e = 0; e < 3; e++)
        idle[e] = 1.0f;
    CU_ASSERT_EQUAL(akin_placement_load_layer(idle, holders, 9, 3), 0.0);
}

/* Mean largest load of the choice over independent steps. */
static double observe(const float *idle, const uint64_t *holders, uint32_t n,
                      uint32_t n_ranks, uint64_t seed)
{
    enum { N_STEPS = 1000 };
    uint64_t active[2], sum = 0;
    uint8_t rank_of[128];
    uint32_t loads[64];
    for (uint64_t step = 0; step < N_STEPS; step++) {
        placement_draw_active(active, idle, n, seed, step);
        sum +=
            akin_placement_choose(holders, active, n, n_ranks, rank_of, loads);
    }
    return (double)sum / N_STEPS;
}

/* Random maps and rates, batches of 4, 16 and 48: the mean error is within 3 %
 * of the observed mean, that of a single map is bounded too. */
static void test_against_choice(void)
{
    static const uint32_t shapes[][2] = {{32, 4}, {32, 8}, {128, 4}, {128, 8}};
    static const double batches[] = {4.0, 16.0, 48.0};
    for (uint32_t s = 0; s < 4; s++)
        for (uint32_t n_replicas = 0; n_replicas <= 2; n_replicas++) {
            const uint32_t n = shapes[s][0], n_ranks = shapes[s][1];
            double predicted = 0.0, observed = 0.0, worst = 0.0;
            for (uint64_t i = 0; i < 24; i++) {
                float rates[128], idle[128];
                uint64_t holders[128];
                const uint64_t seed = i + 100 * s;
                placement_draw_rates(rates, n, n == 32 ? 4.0 : 8.0, i % 2 == 1,
                                     seed);
                akin_placement_idle(rates, n, batches[i % 3], idle);
                CU_ASSERT_FATAL(placement_draw_holders(
                    holders, n, n_ranks, n_replicas * n_ranks, seed));
                const double load =
                    akin_placement_load_layer(idle, holders, n, n_ranks);
                const double seen = observe(idle, holders, n, n_ranks, seed);
                predicted += load;
                observed += seen;
                worst = fmax(worst, fabs(load / seen - 1.0));
            }
            printf("%u x %u + %u: %+.1f %%, worst %.1f %%\n    ", n, n_ranks,
                   n_replicas * n_ranks, 100.0 * (predicted / observed - 1.0),
                   100.0 * worst);
            CU_ASSERT(fabs(predicted / observed - 1.0) < 0.03);
            CU_ASSERT(worst < 0.15);
        }
}

/* The chosen map does not live off the errors of the formula that chose it. */
static void test_chosen_map(void)
{
    float rates[128], idle[128];
    for (uint64_t i = 0; i < 6; i++) {
        placement_draw_rates(rates, 128, 8.0, i % 2 == 1, 50 + i);
        akin_placement_idle(rates, 128, 16.0, idle);
        const akin_placement_params_t params = {
            .kind = AKIN_PLACEMENT_ACTIVATION,
            .n_layers = 1,
            .n_experts = 128,
            .n_ranks = 8,
            .n_replicas = 16,
            .rates = rates,
            .batch = 16.0,
        };
        akin_placement_t p;
        CU_ASSERT_EQUAL_FATAL(akin_placement_make(&params, &p, NULL), AKIN_OK);
        const double load = akin_placement_load(&p, idle);
        CU_ASSERT_DOUBLE_EQUAL(load, akin_placement_predict(&p, rates, 16.0),
                               1e-4);
        const double seen = observe(idle, p.holders, 128, 8, i);
        CU_ASSERT(fabs(load / seen - 1.0) < 0.03);
        akin_placement_cleanup(&p);
    }
}

static const runner_test_t tests[] = {
    {"factor", test_factor},
    {"formula", test_formula},
    {"certain", test_certain},
    {"against the choice", test_against_choice},
    {"chosen map", test_chosen_map},
};

RUNNER_MAIN("placement_load", tests)
