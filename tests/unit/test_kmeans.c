/* K-means against the published artifact's rounds, and its own laws. */
#include "runner.h"
#include "vectors.h"

#include "base/rng.h"
#include "routing/dot.h"
#include "routing/kmeans.h"

#include <math.h>
#include <string.h>

enum { N = 32, DIM = 16, MAX_K = 5 };

static void run_fixture(const char *name, uint32_t k)
{
    static float points[N * DIM], initial[MAX_K * DIM], expected[MAX_K * DIM];
    json_t *root = vectors_load(name);
    vectors_get_floats(json_object_get(root, "X"), points, N * DIM);
    vectors_get_floats(json_object_get(root, "C0"), initial, k * DIM);
    vectors_get_floats(json_object_get(root, "C"), expected, k * DIM);
    size_t n_rounds =
        (size_t)json_integer_value(json_object_get(root, "iterations"));
    json_t *history = json_object_get(root, "history");
    CU_ASSERT_EQUAL_FATAL(json_array_size(history), n_rounds);

    akin_kmeans_params_t params = {
        .n_points = N, .n_clusters = k, .dim = DIM, .initial = initial};
    float centroids[MAX_K * DIM];
    uint32_t cluster[N];
    akin_kmeans_result_t result;
    /* Cut short after every round, the cost is the artifact's. */
    for (uint32_t round = 1; round <= n_rounds; round++) {
        params.max_rounds = round;
        CU_ASSERT_EQUAL_FATAL(
            akin_kmeans_fit(&params, points, centroids, cluster, &result, NULL),
            AKIN_OK);
        json_t *row = json_array_get(history, round - 1);
        CU_ASSERT_DOUBLE_EQUAL(
            result.cost, json_number_value(json_object_get(row, "cost")), 1e-5);
    }
    params.max_rounds = 0;
    CU_ASSERT_EQUAL_FATAL(
        akin_kmeans_fit(&params, points, centroids, cluster, &result, NULL),
        AKIN_OK);
    CU_ASSERT_TRUE(result.has_converged);
    CU_ASSERT_EQUAL(result.n_rounds, n_rounds);
    for (uint32_t i = 0; i < k * DIM; i++)
        CU_ASSERT_DOUBLE_EQUAL(centroids[i], expected[i], 1e-5);
    double sizes[MAX_K];
    uint32_t seen[MAX_K] = {0};
    vectors_get(json_object_get(root, "sizes"), sizes, k);
    for (int i = 0; i < N; i++)
        seen[cluster[i]]++;
    for (uint32_t c = 0; c < k; c++)
        CU_ASSERT_EQUAL(seen[c], (uint32_t)sizes[c]);
    json_decref(root);
}

static void test_artifact(void)
{
    run_fixture("kmeans_k4.json", 4);
    run_fixture("kmeans_k5.json", 5);
}

/* Six tight domains far apart: every start finds them, since k-means++ almost
 * surely draws one point of each, and the capacity is just enough. */
static void test_planted_domains(void)
{
    enum { K = 6, EACH = 20, POINTS = K * EACH };
    static float points[POINTS * DIM], centroids[K * DIM];
    static uint32_t cluster[POINTS];
    for (uint32_t i = 0; i < POINTS; i++) {
        float *point = points + (size_t)i * DIM;
        for (uint32_t j = 0; j < DIM; j++)
            point[j] = (float)(0.02 * akin_rng_uniform(1, i, j));
        point[i % K] += 1.0f;
        double norm = sqrt(akini_dot(point, point, DIM));
        for (uint32_t j = 0; j < DIM; j++)
            point[j] = (float)((double)point[j] / norm);
    }
    for (uint64_t seed = 0; seed < 10; seed++) {
        const akin_kmeans_params_t params = {
            .n_points = POINTS, .n_clusters = K, .dim = DIM, .seed = seed};
        akin_kmeans_result_t result;
        CU_ASSERT_EQUAL_FATAL(
            akin_kmeans_fit(&params, points, centroids, cluster, &result, NULL),
            AKIN_OK);
        CU_ASSERT_TRUE(result.has_converged);
        for (uint32_t i = 0; i < POINTS; i++)
            CU_ASSERT_EQUAL(cluster[i], cluster[i % K]);
        for (uint32_t c = 0; c < K; c++)
            CU_ASSERT_DOUBLE_EQUAL(
                akini_dot(centroids + c * DIM, centroids + c * DIM, DIM), 1.0,
                1e-6);
    }
}

/* Ten points about one axis and four about another: balanced, three of the ten
 * have to go to the four; plain clusters follow the points, and cost less. */
static void test_plain(void)
{
    enum { POINTS = 14, MANY = 10 };
    float points[POINTS * DIM] = {0.0f}, centroids[2 * DIM];
    uint32_t cluster[POINTS];
    for (uint32_t i = 0; i < POINTS; i++) {
        points[i * DIM + (i < MANY ? 0 : 1)] = 0.8f;
        points[i * DIM + 2 + i % 2] = 0.6f;
    }
    float initial[2 * DIM];
    memcpy(initial, points, DIM * sizeof(*initial));
    memcpy(initial + DIM, points + (size_t)MANY * DIM, DIM * sizeof(*initial));
    akin_kmeans_params_t params = {
        .n_points = POINTS, .n_clusters = 2, .dim = DIM, .initial = initial};
    akin_kmeans_result_t balanced, plain;
    uint32_t n_first = 0;
    CU_ASSERT_EQUAL(
        akin_kmeans_fit(&params, points, centroids, cluster, &balanced, NULL),
        AKIN_OK);
    for (uint32_t i = 0; i < POINTS; i++)
        n_first += cluster[i] == cluster[0];
    CU_ASSERT_EQUAL(n_first, POINTS / 2);
    params.is_plain = true;
    CU_ASSERT_EQUAL(
        akin_kmeans_fit(&params, points, centroids, cluster, &plain, NULL),
        AKIN_OK);
    CU_ASSERT(plain.cost < balanced.cost);
    for (uint32_t i = 0; i < POINTS; i++)
        CU_ASSERT_EQUAL(cluster[i] == cluster[0], i < MANY);
}

/*
 * Points without any order take many rounds, in which few points move at a
 * time: the centroids are those of the last assignment all the same, and no
 * start ends above the first round's cost.
 */
static void test_rounds(void)
{
    enum { POINTS = 300, K = 7, WIDE = 40 };
    static float points[POINTS * WIDE], centroids[K * WIDE];
    static uint32_t cluster[POINTS];
    for (uint32_t i = 0; i < POINTS; i++) {
        float *point = points + (size_t)i * WIDE;
        for (uint32_t j = 0; j < WIDE; j++)
            point[j] = (float)(akin_rng_uniform(8, i, j) - 0.3);
        double norm = sqrt(akini_dot(point, point, WIDE));
        for (uint32_t j = 0; j < WIDE; j++)
            point[j] = (float)((double)point[j] / norm);
    }
    uint32_t most_rounds = 0;
    for (uint64_t seed = 0; seed < 6; seed++) {
        akin_kmeans_params_t params = {.n_points = POINTS,
                                       .n_clusters = K,
                                       .dim = WIDE,
                                       .seed = seed,
                                       .max_rounds = 1};
        akin_kmeans_result_t first, last;
        CU_ASSERT_EQUAL_FATAL(
            akin_kmeans_fit(&params, points, centroids, cluster, &first, NULL),
            AKIN_OK);
        params.max_rounds = 0;
        CU_ASSERT_EQUAL_FATAL(
            akin_kmeans_fit(&params, points, centroids, cluster, &last, NULL),
            AKIN_OK);
        CU_ASSERT(last.cost <= first.cost);
        if (last.n_rounds > most_rounds)
            most_rounds = last.n_rounds;
        for (uint32_t k = 0; k < K; k++) {
            double sum[WIDE] = {0.0}, squares = 0.0, worst = 0.0;
            for (uint32_t i = 0; i < POINTS; i++)
                for (uint32_t j = 0; cluster[i] == k && j < WIDE; j++)
                    sum[j] += (double)points[i * WIDE + j];
            for (uint32_t j = 0; j < WIDE; j++)
                squares += sum[j] * sum[j];
            for (uint32_t j = 0; j < WIDE; j++)
                worst = fmax(worst, fabs((double)centroids[k * WIDE + j] -
                                         sum[j] / sqrt(squares)));
            CU_ASSERT(worst < 1e-7);
        }
    }
    CU_ASSERT(most_rounds >= 5);
}

/* Points that are all the same, and points without a direction. */
static void test_degenerate(void)
{
    float points[7 * DIM] = {0.0f}, centroids[3 * DIM];
    uint32_t cluster[7], sizes[3] = {0};
    akin_kmeans_result_t result;
    const akin_kmeans_params_t params = {
        .n_points = 7, .n_clusters = 3, .dim = DIM, .seed = 4};
    CU_ASSERT_EQUAL(
        akin_kmeans_fit(&params, points, centroids, cluster, &result, NULL),
        AKIN_OK);
    CU_ASSERT_TRUE(result.has_converged);
    CU_ASSERT_DOUBLE_EQUAL(result.cost, 7.0, 1e-6);
    for (int i = 0; i < 7; i++)
        CU_ASSERT_FATAL(cluster[i] < 3 && ++sizes[cluster[i]] <= 3);
    for (int i = 0; i < 7; i++)
        points[i * DIM] = 1.0f;
    CU_ASSERT_EQUAL(
        akin_kmeans_fit(&params, points, centroids, cluster, &result, NULL),
        AKIN_OK);
    CU_ASSERT_DOUBLE_EQUAL(result.cost, 0.0, 1e-6);
}

static void test_seed(void)
{
    static float points[N * DIM], a[MAX_K * DIM], b[MAX_K * DIM];
    static uint32_t cluster[N];
    json_t *root = vectors_load("kmeans_k5.json");
    vectors_get_floats(json_object_get(root, "X"), points, N * DIM);
    json_decref(root);
    int differs = 0;
    for (uint64_t seed = 0; seed < 8; seed++) {
        akin_kmeans_params_t params = {
            .n_points = N, .n_clusters = 5, .dim = DIM, .seed = seed};
        CU_ASSERT_EQUAL(
            akin_kmeans_fit(&params, points, a, cluster, NULL, NULL), AKIN_OK);
        CU_ASSERT_EQUAL(
            akin_kmeans_fit(&params, points, b, cluster, NULL, NULL), AKIN_OK);
        CU_ASSERT_EQUAL(memcmp(a, b, sizeof(a)), 0);
        params.seed = seed + 100;
        CU_ASSERT_EQUAL(
            akin_kmeans_fit(&params, points, b, cluster, NULL, NULL), AKIN_OK);
        differs += memcmp(a, b, sizeof(a)) != 0;
    }
    CU_ASSERT(differs > 0);
}

static void test_refuses(void)
{
    float points[4 * 2] = {1, 0, 0, 1, 1, 0, 0, NAN};
    float initial[2 * 2] = {1, 0, INFINITY, 1};
    float centroids[4 * 2];
    uint32_t cluster[4];
    const struct {
        akin_kmeans_params_t params;
        const char *text;
    } bad[] = {
        {{3, 0, 2, 0, 0, NULL, false}, "0 clusters"},
        {{3, 1025, 2, 0, 0, NULL, false}, "1025 clusters"},
        {{3, 4, 2, 0, 0, NULL, false}, "too few"},
        {{3, 2, 0, 0, 0, NULL, false}, "too few"},
        {{4, 2, 2, 0, 0, NULL, false}, "element 7 of the signatures"},
        {{3, 2, 2, 0, 0, initial, false}, "element 2 of the first centroids"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL(akin_kmeans_fit(&bad[i].params, points, centroids,
                                        cluster, NULL, &err),
                        AKIN_ERR_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].text));
    }
}

static const runner_test_t tests[] = {
    {"artifact", test_artifact},     {"planted domains", test_planted_domains},
    {"plain", test_plain},           {"rounds", test_rounds},
    {"degenerate", test_degenerate}, {"seed", test_seed},
    {"refuses", test_refuses},
};

RUNNER_MAIN("kmeans", tests)
