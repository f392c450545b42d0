/* Kernels of the policy `union` against the C library in double precision. */
#include "runner.h"

#include "base/rng.h"
#include "routing/union_kernel.h"

#include <math.h>
#include <string.h>

enum {
    /* More than one flush of the sums, and a tail of whole lanes. */
    N = 2000
};

/* Rates of all magnitudes: uniform, and uniform in the logarithm. */
static float draw_rate(uint64_t i)
{
    double x = akin_rng_uniform(1, 0, i);
    double rate = i % 2 == 0 ? x : pow(10.0, -9.0 * x);
    return (float)fmin(rate, 1.0 - 1e-6);
}

static void test_padded(void)
{
    CU_ASSERT_EQUAL(akini_union_padded(1), 16);
    CU_ASSERT_EQUAL(akini_union_padded(16), 16);
    CU_ASSERT_EQUAL(akini_union_padded(17), 32);
    CU_ASSERT_EQUAL(akini_union_padded(48 * 128), 48 * 128);
}

/* (c + 8 m) / (T + 8) by hand. */
static void test_rates(void)
{
    const uint16_t counts[4] = {0, 10, 40, 50};
    const float prior[4] = {0.5f, 0.25f, 0.0f, 1.0f};
    float rates[4];
    const akini_union_mixture_t alone = {
        .rows = {prior}, .weights = {1.0f}, .n_rows = 1, .scale = 1.0f};
    akini_union_rates(counts, &alone, rates, 4, 42.0f, 8.0f);
    CU_ASSERT_DOUBLE_EQUAL(rates[0], 0.08, 1e-7);
    CU_ASSERT_DOUBLE_EQUAL(rates[1], 0.24, 1e-7);
    CU_ASSERT_DOUBLE_EQUAL(rates[2], 0.80, 1e-7);
    CU_ASSERT_EQUAL(rates[3], 1.0f - 1e-6f);
    akini_union_rates(NULL, &alone, rates, 4, 42.0f, 8.0f);
    CU_ASSERT_EQUAL(rates[0], 0.5f);
    CU_ASSERT_EQUAL(rates[3], 1.0f - 1e-6f);
}

static void test_surprise(void)
{
    static float rates[N], surprise[N];
    for (int i = 0; i < N; i++)
        rates[i] = draw_rate((uint64_t)i);
    rates[0] = 0.0f;
    rates[1] = 1.0f - 1e-6f;
    rates[2] = 1e-30f;
    akini_union_surprise(rates, surprise, N);
    double worst = 0.0;
    for (int i = 1; i < N; i++) {
        double exact = -log1p(-(double)rates[i]);
        worst = fmax(worst, fabs((double)surprise[i] - exact) / exact);
    }
    CU_ASSERT(worst < 4e-7);
    CU_ASSERT_EQUAL(surprise[0], 0.0f);
}

static void test_refresh(void)
{
    static float sum[N], idle[N];
    double distinct = 0.0;
    for (int i = 0; i < N; i++) {
        double x = akin_rng_uniform(2, 0, (uint64_t)i);
        sum[i] = (float)(x * x * x * 200.0);
        distinct += 1.0 - exp(-(double)sum[i]);
    }
    double expected_0 = 1.0 - exp(-(double)sum[0]);
    sum[0] = 0.0f;
    distinct -= expected_0;
    double got = akini_union_refresh(sum, idle, N);
    double worst = 0.0;
    for (int i = 0; i < N; i++) {
        double exact = exp(-(double)sum[i]);
        double gap = fabs((double)idle[i] - exact);
        worst = fmax(worst, sum[i] < 87.0f ? gap / exact : gap);
        CU_ASSERT(idle[i] >= 0.0f && idle[i] <= 1.0f);
    }
    CU_ASSERT(worst < 3e-7);
    CU_ASSERT_EQUAL(idle[0], 1.0f);
    CU_ASSERT_DOUBLE_EQUAL(got, distinct, 1e-3);
    float huge[16], none[16];
    for (int i = 0; i < 16; i++)
        huge[i] = 1e30f;
    CU_ASSERT_EQUAL(akini_union_refresh(huge, none, 16), 16.0);
}

static void test_add_and_subtract(void)
{
    static float sum[N], part[N], before[N];
    for (int i = 0; i < N; i++) {
        sum[i] = (float)akin_rng_uniform(4, 0, (uint64_t)i);
        part[i] = (float)akin_rng_uniform(4, 1, (uint64_t)i);
    }
    memcpy(before, sum, sizeof(sum));
    akini_union_add(sum, part, N);
    for (int i = 0; i < N; i++)
        CU_ASSERT_EQUAL(sum[i], before[i] + part[i]);
    memcpy(sum, before, sizeof(sum));
    akini_union_subtract(sum, part, N);
    for (int i = 0; i < N; i++)
        CU_ASSERT_EQUAL(sum[i], fmaxf(before[i] - part[i], 0.0f));
}

/* Rows together give what they give one after the other, in rates, too. */
static void test_mix(void)
{
    enum { ROWS = AKINI_UNION_MIX_ROWS };
    static float values[ROWS][N], start[N], sum[N], expected[N], rates[N];
    static uint16_t counts[N];
    akini_union_mixture_t m = {.weights = {0.7f, 1.0f, 1e-3f, 0.31f}};
    for (uint64_t i = 0; i < N; i++) {
        for (uint64_t r = 0; r < ROWS; r++)
            values[r][i] = (float)akin_rng_uniform(9, r, i);
        start[i] = (float)akin_rng_uniform(9, 7, i);
        counts[i] = (uint16_t)akin_rng_below(9, 8, i, 65536);
    }
    for (int r = 0; r < ROWS; r++)
        m.rows[r] = values[r];
    for (m.n_rows = 1; m.n_rows <= ROWS; m.n_rows++)
        for (size_t n = N - 17; n <= N; n++) {
            m.sum = n % 2 == 0 ? start : NULL;
            m.scale = n % 3 == 0 ? 1.0f : 0.37f;
            memset(sum, 0, sizeof(sum));
            memset(rates, 0, sizeof(rates));
            size_t differ = 0;
            akini_union_mix(&m, sum, n);
            akini_union_rates(counts, &m, rates, n, 30000.0f, 64.0f);
            for (size_t i = 0; i < n; i++) {
                volatile float value = m.sum != NULL ? start[i] : 0.0f;
                for (uint32_t r = 0; r < m.n_rows; r++) {
                    volatile float product = m.weights[r] * values[r][i];
                    value += product;
                }
                expected[i] = value * m.scale;
                volatile float rate = 64.0f * expected[i];
                rate = ((float)counts[i] + rate) * (1.0f / 30064.0f);
                differ += rates[i] != fminf(rate, 1.0f - 1e-6f);
                differ += sum[i] != expected[i];
            }
            CU_ASSERT_EQUAL(differ, 0);
            CU_ASSERT(n == N || (sum[n] == 0.0f && rates[n] == 0.0f));
        }
    /* Into the sum that it starts from. */
    m.n_rows = 2;
    m.sum = start;
    akini_union_mix(&m, sum, N);
    akini_union_mix(&m, start, N);
    CU_ASSERT_EQUAL(memcmp(sum, start, sizeof(sum)), 0);
}

static const runner_test_t tests[] = {
    {"padded", test_padded},
    {"rates", test_rates},
    {"surprise", test_surprise},
    {"refresh", test_refresh},
    {"add and subtract", test_add_and_subtract},
    {"mix", test_mix},
};

RUNNER_MAIN("union_kernel", tests)
