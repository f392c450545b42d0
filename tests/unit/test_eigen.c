/* Eigen: matrices whose eigenvalues are known, of full and of low rank. */
#include "runner.h"

#include "base/rng.h"
#include "routing/eigen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

/* The second difference on a line of n points has the eigenvalues
 * 2 - 2 cos(k pi / (n + 1)) and the vectors sin(i k pi / (n + 1)). */
static void test_line(void)
{
    static double matrix[MOST * MOST], vectors[MOST * MOST];
    double values[MOST];
    const double pi = acos(-1);
    for (uint32_t n = 1; n <= 20; n += 3) {
        uint32_t stride = n + 5, n_found = 0;
        memset(matrix, 0, sizeof(matrix));
        for (uint32_t i = 0; i < n; i++) {
            matrix[i * stride + i] = 2;
            if (i + 1 < n)
                matrix[i * stride + i + 1] = matrix[(i + 1) * stride + i] = -1;
        }
        const akini_eigen_params_t params = {.matrix = matrix,
                                             .stride = stride,
                                             .n = n,
                                             .n_wanted = n + 3,
                                             .seed = n};
        CU_ASSERT_EQUAL_FATAL(
            akini_eigen_find(&params, values, vectors, &n_found), AKIN_OK);
        CU_ASSERT_EQUAL_FATAL(n_found, n);
        for (uint32_t k = 0; k < n; k++) {
            double angle = (n - k) * pi / (n + 1), dot = 0, norm = 0;
            CU_ASSERT_DOUBLE_EQUAL(values[k], 2 - 2 * cos(angle), 1e-12);
            for (uint32_t i = 0; i < n; i++) {
                dot += vectors[k * n + i] * sin((i + 1) * angle);
                norm += pow(sin((i + 1) * angle), 2);
            }
            CU_ASSERT_DOUBLE_EQUAL(fabs(dot) / sqrt(norm), 1, 1e-10);
        }
    }
}

/* Directions at right angles with falling weights, in more dimensions than the
 * iteration holds vectors. */
static void test_low_rank(void)
{
    enum { N = 60, RANK = 5 };
    static double matrix[N * N], vectors[12 * N];
    double directions[RANK][N], values[12];
    static const double weights[RANK] = {50, 20, 19, 1, 0.01};
    for (uint32_t r = 0; r < RANK; r++) {
        for (uint32_t i = 0; i < N; i++)
            directions[r][i] = akin_rng_uniform(7, r, i) - 0.5;
        for (uint32_t before = 0; before <= r; before++) {
            double dot = 0;
            for (uint32_t i = 0; i < N; i++)
                dot += directions[r][i] * directions[before][i];
            for (uint32_t i = 0; i < N; i++)
                directions[r][i] =
                    before == r
                        ? directions[r][i] / sqrt(dot)
                        : directions[r][i] - dot * directions[before][i];
        }
        for (uint32_t i = 0; i < N; i++)
            for (uint32_t j = 0; j < N; j++)
                matrix[i * N + j] +=
                    weights[r] * directions[r][i] * directions[r][j];
    }
    const akini_eigen_params_t params = {
        .matrix = matrix, .stride = N, .n = N, .n_wanted = 12, .seed = 3};
    uint32_t n_found = 0;
    CU_ASSERT_EQUAL_FATAL(akini_eigen_find(&params, values, vectors, &n_found),
                          AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(n_found, RANK);
    for (uint32_t r = 0; r < RANK; r++) {
        double dot = 0;
        for (uint32_t i = 0; i < N; i++)
            dot += vectors[r * N + i] * directions[r][i];
        CU_ASSERT_DOUBLE_EQUAL(values[r], weights[r], 1e-9);
        CU_ASSERT_DOUBLE_EQUAL(fabs(dot), 1, 1e-9);
    }
}

static void test_zero(void)
{
    static const double matrix[9] = {0};
    double values[2], vectors[6];
    const akini_eigen_params_t params = {
        .matrix = matrix, .stride = 3, .n = 3, .n_wanted = 2};
    uint32_t n_found = 9;
    CU_ASSERT_EQUAL(akini_eigen_find(&params, values, vectors, &n_found),
                    AKIN_OK);
    CU_ASSERT_EQUAL(n_found, 0);
}

static const runner_test_t tests[] = {
    {"line", test_line},
    {"low rank", test_low_rank},
    {"zero", test_zero},
};

RUNNER_MAIN("eigen", tests)
