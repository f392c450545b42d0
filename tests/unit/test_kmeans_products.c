/* K-means products against sums in their promised order. */
#include "runner.h"

#include "base/rng.h"
#include "routing/kmeans_products.h"

#include <math.h>
#include <stdlib.h>

/* Sums of 128 products in float, those in double. */
static double in_order(const float *x, const float *c, size_t dim)
{
    double lanes = 0.0;
    for (size_t from = 0; from < dim; from += 128) {
        float part = 0.0f;
        for (size_t d = from; d < dim && d < from + 128; d++) {
            volatile float product = x[d] * c[d];
            part += product;
        }
        lanes += (double)part;
    }
    return lanes;
}

static void check_shape(uint32_t n, uint32_t k, size_t dim)
{
    float *points = calloc(n, dim * sizeof(*points));
    float *centroids = calloc(k, dim * sizeof(*centroids));
    float *packed = calloc(akini_kmeans_packed_size(k, dim), sizeof(*packed));
    float *cost = calloc(n, k * sizeof(*cost));
    CU_ASSERT_FATAL(points != NULL && centroids != NULL && packed != NULL &&
                    cost != NULL);
    for (size_t i = 0; i < n * dim; i++)
        points[i] = (float)(akin_rng_uniform(2, 0, i) / (double)dim);
    for (size_t i = 0; i < k * dim; i++)
        centroids[i] = (float)(akin_rng_uniform(2, 1, i) - 0.2);
    akini_kmeans_pack(centroids, k, dim, packed);
    akini_kmeans_costs(points, n, packed, k, dim, cost);
    size_t differ = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < k; j++)
            differ += cost[(size_t)i * k + j] !=
                      (float)(1.0 - in_order(points + i * dim,
                                             centroids + j * dim, dim));
    CU_ASSERT_EQUAL(differ, 0);
    free(cost);
    free(packed);
    free(centroids);
    free(points);
}

static void test_shapes(void)
{
    static const uint32_t points[] = {1, 5, 6, 7, 13};
    static const uint32_t clusters[] = {1, 5, 15, 16, 17, 33};
    static const size_t dims[] = {1, 127, 128, 129, 500};
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
        for (size_t j = 0; j < sizeof(clusters) / sizeof(clusters[0]); j++)
            for (size_t d = 0; d < sizeof(dims) / sizeof(dims[0]); d++)
                check_shape(points[i], clusters[j], dims[d]);
}

static const runner_test_t tests[] = {
    {"shapes", test_shapes},
};

RUNNER_MAIN("kmeans_products", tests)
