/* Align against the published artifact's permutations. */
#include "runner.h"
#include "vectors.h"

#include "routing/align.h"

#include <math.h>
#include <string.h>

enum { DIM = 16, MAX_K = 5 };

static void run_fixture(const char *name, uint32_t k)
{
    static float current[MAX_K * DIM], fitted[MAX_K * DIM],
        aligned[MAX_K * DIM];
    double permutation[MAX_K];
    uint32_t worker_of[MAX_K];
    json_t *root = vectors_load(name);
    vectors_get_floats(json_object_get(root, "current"), current, k * DIM);
    vectors_get_floats(json_object_get(root, "fitted"), fitted, k * DIM);
    vectors_get_floats(json_object_get(root, "aligned"), aligned, k * DIM);
    vectors_get(json_object_get(root, "permutation"), permutation, k);
    json_decref(root);
    CU_ASSERT_EQUAL_FATAL(
        akin_align_centroids(current, fitted, k, DIM, worker_of, NULL),
        AKIN_OK);
    for (uint32_t i = 0; i < k; i++)
        CU_ASSERT_EQUAL(memcmp(fitted + i * DIM, aligned + worker_of[i] * DIM,
                               DIM * sizeof(float)),
                        0);
}

static void test_artifact(void)
{
    run_fixture("align_k4.json", 4);
    run_fixture("align_k5.json", 5);
}

static void test_refuses(void)
{
    const float good[4] = {1, 0, 0, 1}, bad[4] = {1, NAN, 0, 1};
    uint32_t worker_of[2];
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_align_centroids(good, bad, 2, 2, worker_of, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_EQUAL(strncmp(err.text, "alignment of centroids: ", 24), 0);
    CU_ASSERT_EQUAL(akin_align_centroids(good, good, 0, 2, worker_of, &err),
                    AKIN_ERR_INVALID);
}

static const runner_test_t tests[] = {
    {"artifact", test_artifact},
    {"refuses", test_refuses},
};

RUNNER_MAIN("align", tests)
