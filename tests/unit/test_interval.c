/* Tests of the interval: means with Student's t. */
#include "runner.h"

#include "routing/interval.h"

#include <math.h>

/* Values whose mean is 0 and whose sample variance is n: the standard error is
 * 1 and the half width is the quantile itself. */
static double half_width_of(uint32_t n)
{
    double values[200] = {0};
    const double size = sqrt((double)n * (double)(n - 1) / 2.0);
    values[0] = size;
    values[n - 1] = -size;
    akin_interval_t of = akin_interval_of(values, n);
    CU_ASSERT_DOUBLE_EQUAL(of.mean, 0.0, 1e-12);
    return of.half_width;
}

static void test_quantiles(void)
{
    /* Two-sided 95 %, from a printed table of Student's t. */
    static const struct {
        uint32_t n_free;
        double t;
    } table[] = {{1, 12.706}, {2, 4.303},  {4, 2.776},  {9, 2.262},
                 {19, 2.093}, {29, 2.045}, {30, 2.042}, {31, 2.040},
                 {40, 2.021}, {60, 2.000}, {80, 1.990}, {120, 1.980}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        CU_ASSERT_DOUBLE_EQUAL(half_width_of(table[i].n_free + 1), table[i].t,
                               0.0006);
}

static void test_falling(void)
{
    double last = INFINITY;
    for (uint32_t n = 2; n <= 200; n++) {
        double now = half_width_of(n);
        CU_ASSERT(now < last + 1e-9);
        CU_ASSERT(now > 1.96);
        last = now;
    }
}

static void test_by_hand(void)
{
    /* 1 .. 10: sample variance 55 / 6, standard error sqrt(11 / 12). */
    const double values[] = {10, 1, 9, 2, 8, 3, 7, 4, 6, 5};
    akin_interval_t of = akin_interval_of(values, 10);
    CU_ASSERT_DOUBLE_EQUAL(of.mean, 5.5, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(of.half_width, 2.262 * 0.957427, 1e-5);
    const double two[] = {10, 14};
    of = akin_interval_of(two, 2);
    CU_ASSERT_DOUBLE_EQUAL(of.mean, 12.0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(of.half_width, 25.412, 1e-9);
}

static void test_edges(void)
{
    const double values[] = {-3.25, -3.25, -3.25};
    akin_interval_t of = akin_interval_of(values, 3);
    CU_ASSERT_EQUAL(of.mean, -3.25);
    CU_ASSERT_EQUAL(of.half_width, 0.0);
    of = akin_interval_of(values, 1);
    CU_ASSERT_EQUAL(of.mean, -3.25);
    CU_ASSERT(isnan(of.half_width));
}

static const runner_test_t tests[] = {
    {"quantiles of t", test_quantiles},
    {"more values, narrower", test_falling},
    {"by hand", test_by_hand},
    {"one value, equal values", test_edges},
};

RUNNER_MAIN("interval", tests)
