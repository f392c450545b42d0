/* Dot product against double precision, and its order of summation. */
#include "runner.h"

#include "base/rng.h"
#include "routing/dot.h"

#include <math.h>
#include <stdint.h>

enum { N = 2000 };

static float a[N], b[N];

static void draw(void)
{
    for (uint64_t i = 0; i < N; i++) {
        a[i] = (float)akin_rng_uniform(3, 0, i);
        b[i] = (float)(akin_rng_uniform(3, 1, i) - 0.3);
    }
}

static void test_against_double(void)
{
    const size_t lengths[] = {0, 1, 15, 16, 17, 511, 512, 513, 1000, N};
    draw();
    for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
        double exact = 0.0;
        for (size_t i = 0; i < lengths[k]; i++)
            exact += (double)a[i] * (double)b[i];
        CU_ASSERT_DOUBLE_EQUAL(akini_dot(a, b, lengths[k]), exact,
                               1e-6 * (1.0 + fabs(exact)));
    }
    /* An array that no vector load would take as aligned. */
    CU_ASSERT_EQUAL(akini_dot(a + 1, b + 3, 1), (double)(a[1] * b[3]));
}

/* Lanes in the order that the header promises, so any two machines agree to
 * the bit. */
static double in_order(const float *x, const float *y, int n)
{
    double wide[16] = {0.0};
    for (int from = 0; from < n; from += 512) {
        int to = from + 512 < n ? from + 512 : n;
        int whole = to - (to - from) % 16;
        int pairs = to - (to - from) % 32;
        float lanes[2][16] = {{0.0f}};
        for (int i = from; i < to; i++) {
            volatile float product = x[i] * y[i];
            int odd = i < whole && i >= pairs ? 0
                      : i >= whole            ? 1
                                              : (i - from) / 16 % 2;
            lanes[odd][i % 16] += product;
        }
        for (int lane = 0; lane < 16; lane++) {
            volatile float both = lanes[0][lane] + lanes[1][lane];
            wide[lane] += (double)both;
        }
    }
    for (int half = 8; half > 0; half /= 2)
        for (int lane = 0; lane < half; lane++)
            wide[lane] += wide[lane + half];
    return wide[0];
}

static void test_order(void)
{
    draw();
    for (int n = 1960; n <= N; n++)
        CU_ASSERT_EQUAL(akini_dot(a, b, (size_t)n), in_order(a, b, n));
    for (int n = 0; n <= 70; n++)
        CU_ASSERT_EQUAL(akini_dot(a, b, (size_t)n), in_order(a, b, n));
}

/* Rows by number and in their order, in every size of the last block. */
static void test_rows(void)
{
    enum { STRIDE = 150, MAX_ROWS = 11 };
    const uint32_t picked[MAX_ROWS] = {3, 0, 9, 9, 10, 1, 5, 2, 7, 8, 4};
    draw();
    for (uint32_t n_rows = 0; n_rows <= MAX_ROWS; n_rows++)
        for (size_t n = 140; n <= STRIDE; n++) {
            double sums[MAX_ROWS + 1];
            for (uint32_t r = 0; r <= MAX_ROWS; r++)
                sums[r] = -7.0;
            akini_dot_rows(a, b, STRIDE, NULL, n_rows, n, sums);
            for (uint32_t r = 0; r < n_rows; r++)
                CU_ASSERT_EQUAL(sums[r], akini_dot(a, b + r * STRIDE, n));
            CU_ASSERT_EQUAL(sums[n_rows], -7.0);
            akini_dot_rows(a, b, STRIDE, picked, n_rows, n, sums);
            for (uint32_t r = 0; r < n_rows; r++)
                CU_ASSERT_EQUAL(sums[r],
                                akini_dot(a, b + picked[r] * STRIDE, n));
        }
}

static const runner_test_t tests[] = {
    {"against double", test_against_double},
    {"order", test_order},
    {"rows", test_rows},
};

RUNNER_MAIN("dot", tests)
