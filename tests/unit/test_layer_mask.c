/* Layer mask against the published artifact's search. */
#include "runner.h"
#include "vectors.h"

#include "routing/layer_mask.h"

#include <math.h>
#include <string.h>

enum { N = 32, L = 4, E = 8, CELLS = L * E, PAIRS = 192 };

static uint16_t prefill[N * CELLS], decode[N * CELLS];
static float idf[CELLS];
static uint32_t left[PAIRS], right[PAIRS];

static akin_layer_mask_params_t load(json_t **root_p)
{
    static double wide[N * CELLS];
    json_t *root = vectors_load("calibration.json");
    vectors_get(json_object_get(root, "prefill"), wide, N * CELLS);
    for (int i = 0; i < N * CELLS; i++)
        prefill[i] = (uint16_t)wide[i];
    vectors_get(json_object_get(root, "decode"), wide, N * CELLS);
    for (int i = 0; i < N * CELLS; i++)
        decode[i] = (uint16_t)wide[i];
    vectors_get_floats(json_object_get(root, "idf"), idf, CELLS);
    vectors_get(json_object_get(root, "pair_left"), wide, PAIRS);
    for (int i = 0; i < PAIRS; i++)
        left[i] = (uint32_t)wide[i];
    vectors_get(json_object_get(root, "pair_right"), wide, PAIRS);
    for (int i = 0; i < PAIRS; i++)
        right[i] = (uint32_t)wide[i];
    *root_p = root;
    return (akin_layer_mask_params_t){N,   L,    E,     prefill, decode,
                                      idf, left, right, PAIRS};
}

static void test_artifact(void)
{
    json_t *root;
    akin_layer_mask_params_t params = load(&root);
    uint32_t order[L], mask[L];
    double rho[L], expected_order[L], expected_rho[L], expected_mask[2];
    akin_layer_mask_result_t result;
    CU_ASSERT_EQUAL_FATAL(
        akin_layer_mask_search(&params, order, rho, mask, &result, NULL),
        AKIN_OK);
    vectors_get(json_object_get(root, "greedy_order"), expected_order, L);
    vectors_get(json_object_get(root, "greedy_rho"), expected_rho, L);
    vectors_get(json_object_get(root, "mask"), expected_mask, 2);
    for (int i = 0; i < L; i++) {
        CU_ASSERT_EQUAL(order[i], (uint32_t)expected_order[i]);
        CU_ASSERT_DOUBLE_EQUAL(rho[i], expected_rho[i], 1e-6);
    }
    CU_ASSERT_EQUAL_FATAL(result.n_masked, 2);
    CU_ASSERT_EQUAL(mask[0], (uint32_t)expected_mask[0]);
    CU_ASSERT_EQUAL(mask[1], (uint32_t)expected_mask[1]);
    CU_ASSERT_DOUBLE_EQUAL(
        result.rho, json_number_value(json_object_get(root, "peak_rho")), 1e-6);
    json_decref(root);
}

/* Layers that say the same: the lowest joins first, and adds nothing later. */
static void test_tie_takes_lowest(void)
{
    json_t *root;
    akin_layer_mask_params_t params = load(&root);
    json_decref(root);
    for (int r = 0; r < N; r++)
        for (int l = 1; l < L; l++)
            memcpy(prefill + (r * L + l) * E, prefill + (size_t)r * L * E,
                   E * sizeof(prefill[0]));
    params.idf = NULL;
    uint32_t order[L], mask[L];
    double rho[L];
    akin_layer_mask_result_t result;
    CU_ASSERT_EQUAL_FATAL(
        akin_layer_mask_search(&params, order, rho, mask, &result, NULL),
        AKIN_OK);
    CU_ASSERT_EQUAL(order[0], 0);
    for (int i = 1; i < L; i++)
        CU_ASSERT_DOUBLE_EQUAL(rho[i], rho[0], 1e-3);
}

static void test_refuses(void)
{
    json_t *root;
    akin_layer_mask_params_t params = load(&root);
    json_decref(root);
    uint32_t order[L], mask[L];
    double rho[L];
    akin_layer_mask_result_t result;
    akin_error_t err = {{0}};
    right[7] = N;
    CU_ASSERT_EQUAL(
        akin_layer_mask_search(&params, order, rho, mask, &result, &err),
        AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "pair 7"));
    right[7] = 0;
    memset(decode, 0, sizeof(decode));
    CU_ASSERT_EQUAL(
        akin_layer_mask_search(&params, order, rho, mask, &result, &err),
        AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "equally far apart"));
    params.n_pairs = 0;
    CU_ASSERT_EQUAL(
        akin_layer_mask_search(&params, order, rho, mask, &result, &err),
        AKIN_ERR_INVALID);
}

/* 1,000 draws from 8 requests: one in eight is a pair of equals. */
static void test_draw(void)
{
    static uint32_t l[1000], r[1000];
    uint32_t kept = akin_layer_mask_draw(8, 1000, 3, l, r);
    CU_ASSERT(kept > 825 && kept < 925);
    for (uint32_t i = 0; i < kept; i++)
        CU_ASSERT(l[i] < 8 && r[i] < 8 && l[i] != r[i]);
    CU_ASSERT_EQUAL(akin_layer_mask_draw(1, 1000, 3, l, r), 0);
}

static const runner_test_t tests[] = {
    {"artifact", test_artifact},
    {"tie takes the lowest", test_tie_takes_lowest},
    {"refuses", test_refuses},
    {"draw", test_draw},
};

RUNNER_MAIN("layer_mask", tests)
