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
static void test_order(void)
{
    draw();
    for (int n = 1990; n <= N; n++) {
        double expected = 0.0;
        for (int from = 0; from < n; from += 512) {
            float lanes[16] = {0.0f};
            for (int i = from; i < n && i < from + 512; i++) {
                volatile float product = a[i] * b[i];
                lanes[i % 16] += product;
            }
            for (int lane = 0; lane < 16; lane++)
                expected += (double)lanes[lane];
        }
        CU_ASSERT_EQUAL(akini_dot(a, b, (size_t)n), expected);
    }
}

static const runner_test_t tests[] = {
    {"against double", test_against_double},
    {"order", test_order},
};

RUNNER_MAIN("dot", tests)
