/* Report scale: round ticks that hold the values, and their texts. */
#include "launch/report_scale.h"

#include "runner.h"

#include <float.h>
#include <math.h>
#include <string.h>

static void check(akin_report_scale_t scale, double low, double step,
                  double high)
{
    CU_ASSERT_DOUBLE_EQUAL(scale.low, low, 1e-9 * step);
    CU_ASSERT_DOUBLE_EQUAL(scale.step, step, 1e-9 * step);
    CU_ASSERT_DOUBLE_EQUAL(scale.high, high, 1e-9 * step);
    CU_ASSERT_EQUAL(scale.n_ticks, (int)lround((high - low) / step) + 1);
}

static void test_round_steps(void)
{
    check(akin_report_scale(0, 97, 5), 0, 20, 100);
    check(akin_report_scale(0, 100, 5), 0, 20, 100);
    check(akin_report_scale(0, 101, 5), 0, 50, 150);
    check(akin_report_scale(0.013, 0.087, 5), 0, 0.02, 0.1);
    check(akin_report_scale(12.1, 12.9, 4), 12.0, 0.2, 13.0);
    check(akin_report_scale(-3, 7, 5), -4, 2, 8);
    check(akin_report_scale(7, -3, 5), -4, 2, 8);
    /* 0.3 is not a sum of three 0.1; the axis must not get a fourth. */
    check(akin_report_scale(0, 0.1 + 0.2, 3), 0, 0.1, 0.3);
    check(akin_report_scale(0, 1234567, 5), 0, 500000, 1500000);
}

static void test_odd_values(void)
{
    check(akin_report_scale(0, 0, 5), 0, 0.2, 1);
    check(akin_report_scale(NAN, INFINITY, 5), 0, 0.2, 1);
    check(akin_report_scale(5, 5, 5), 2, 1, 8);
    const double values[] = {0,       DBL_MIN, 1e-300,  3e-7,    1,
                             999.999, 1e15,    1e300,   DBL_MAX, NAN,
                             -1e300,  -4,      -1e-300, INFINITY};
    const int n = (int)(sizeof(values) / sizeof(values[0]));
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            for (int target = -1; target < 20; target++) {
                const akin_report_scale_t s =
                    akin_report_scale(values[a], values[b], target);
                CU_ASSERT_FATAL(s.n_ticks >= 2 &&
                                s.n_ticks <= AKIN_REPORT_TICKS_MAX);
                CU_ASSERT_FATAL(s.step > 0 && s.high > s.low);
                char text[64];
                akin_report_scale_text(&s, s.n_ticks - 1, text, sizeof(text));
                CU_ASSERT_FATAL(strlen(text) > 0 && strlen(text) < 32);
            }
}

static void check_text(akin_report_scale_t scale, int i, const char *want)
{
    char text[64];
    akin_report_scale_text(&scale, i, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, want);
}

static void test_texts(void)
{
    check_text(akin_report_scale(0, 97, 5), 0, "0");
    check_text(akin_report_scale(0, 97, 5), 5, "100");
    check_text(akin_report_scale(0, 0.087, 5), 1, "0.02");
    check_text(akin_report_scale(0, 1, 4), 1, "0.5");
    check_text(akin_report_scale(-3, 7, 5), 2, "0");
    check_text(akin_report_scale(-3, 7, 5), 0, "-4");
    check_text(akin_report_scale(0, 7000, 5), 1, "2000");
    check_text(akin_report_scale(0, 12000, 5), 1, "5 k");
    check_text(akin_report_scale(0, 1234567, 5), 1, "0.5 M");
    check_text(akin_report_scale(0, 5e9, 5), 5, "5 G");
}

static void test_places(void)
{
    const akin_report_scale_t s = akin_report_scale(0, 97, 5);
    CU_ASSERT_DOUBLE_EQUAL(akin_report_scale_place(&s, 25), 0.25, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(akin_report_scale_place(&s, 500), 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(akin_report_scale_place(&s, -1), 0, 0);
    CU_ASSERT_DOUBLE_EQUAL(akin_report_scale_place(&s, NAN), 0, 0);
}

static const runner_test_t tests[] = {
    {"steps are 1, 2 or 5 times a power of ten", test_round_steps},
    {"no value breaks an axis", test_odd_values},
    {"ticks are written with the digits they need", test_texts},
    {"values lie in proportion", test_places},
};

RUNNER_MAIN("report scale", tests)
