/* Ranking against a quadratic count, and rho by hand. */
#include "runner.h"

#include "base/rng.h"
#include "routing/ranking.h"

#include <math.h>

enum { N = 700 };

static void test_against_counting(void)
{
    static double values[N], ranks[N];
    akin_ranking_t *ranking = NULL;
    CU_ASSERT_EQUAL_FATAL(akin_ranking_create(N, &ranking), AKIN_OK);
    for (uint64_t seed = 0; seed < 4; seed++) {
        /* Both signs, ties, zeros of both signs, all magnitudes. */
        for (uint64_t i = 0; i < N; i++) {
            double x = akin_rng_uniform(seed, 0, i) - 0.5;
            values[i] = seed % 2 == 0 ? round(x * 40.0) : exp(60.0 * x) * x;
        }
        akin_ranking_centred(ranking, values, ranks);
        double worst = 0.0, sum = 0.0;
        for (int i = 0; i < N; i++) {
            double below = 0.0, equal = 0.0;
            for (int j = 0; j < N; j++) {
                below += values[j] < values[i];
                equal += values[j] == values[i];
            }
            double expected = below + (equal - 1.0) / 2.0 - (N - 1.0) / 2.0;
            worst = fmax(worst, fabs(ranks[i] - expected));
            sum += ranks[i];
        }
        CU_ASSERT_EQUAL(worst, 0.0);
        CU_ASSERT_EQUAL(sum, 0.0);
    }
    akin_ranking_destroy(ranking);
    akin_ranking_destroy(NULL);
}

/* d = 1, 1, 1, 1, 0: rho = 1 - 6 * 4 / (5 * 24) = 0.8. */
static void test_rho(void)
{
    const double a[5] = {10, 20, 30, 40, 50}, b[5] = {2, 1, 4, 3, 5};
    const double flat[5] = {7, 7, 7, 7, 7};
    double ranks_a[5], ranks_b[5];
    akin_ranking_t *ranking = NULL;
    CU_ASSERT_EQUAL_FATAL(akin_ranking_create(5, &ranking), AKIN_OK);
    akin_ranking_centred(ranking, a, ranks_a);
    akin_ranking_centred(ranking, b, ranks_b);
    CU_ASSERT_DOUBLE_EQUAL(akin_ranking_correlate(ranks_a, ranks_b, 5), 0.8,
                           1e-15);
    akin_ranking_centred(ranking, flat, ranks_b);
    CU_ASSERT_EQUAL(akin_ranking_correlate(ranks_a, ranks_b, 5), 0.0);
    akin_ranking_destroy(ranking);
}

static const runner_test_t tests[] = {
    {"against counting", test_against_counting},
    {"rho", test_rho},
};

RUNNER_MAIN("ranking", tests)
