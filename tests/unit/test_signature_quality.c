/* Signature quality against the published artifact's figures, and against a
 * plain second way to compute them. */
#include "calibration_fixture.h"
#include "runner.h"

#include "routing/signature_quality.h"

#include <math.h>
#include <string.h>

static uint32_t left[FIXTURE_PAIRS], right[FIXTURE_PAIRS];
static float idf[FIXTURE_CELLS];

static akin_signature_quality_params_t load(akin_calibration_t **calibration_p,
                                            json_t **root_p)
{
    json_t *root = vectors_load("calibration.json");
    akin_calibration_t *c = fixture_calibration(root, 0);
    fixture_pairs(root, left, right);
    vectors_get_floats(json_object_get(root, "idf"), idf, FIXTURE_CELLS);
    *calibration_p = c;
    *root_p = root;
    return (akin_signature_quality_params_t){
        .form = {.n_layers = FIXTURE_L, .n_experts = FIXTURE_E},
        .n_requests = FIXTURE_N,
        .prefill = c->prefill,
        .decode = c->decode,
        .left = left,
        .right = right,
        .n_pairs = FIXTURE_PAIRS,
    };
}

static int compare_layers(const void *a, const void *b)
{
    return (int)*(const uint32_t *)a - (int)*(const uint32_t *)b;
}

/* The artifact's rho after each of its greedy steps. */
static void test_artifact(void)
{
    json_t *root;
    akin_calibration_t *c;
    akin_signature_quality_params_t params = load(&c, &root);
    double order[FIXTURE_L], expected[FIXTURE_L];
    vectors_get(json_object_get(root, "greedy_order"), order, FIXTURE_L);
    vectors_get(json_object_get(root, "greedy_rho"), expected, FIXTURE_L);
    params.form.idf = idf;
    for (uint32_t n = 1; n <= FIXTURE_L; n++) {
        uint32_t mask[FIXTURE_L];
        double rho = 0;
        for (uint32_t i = 0; i < n; i++)
            mask[i] = (uint32_t)order[i];
        qsort(mask, n, sizeof(mask[0]), compare_layers);
        params.form.layers = mask;
        params.form.n_masked = n;
        CU_ASSERT_EQUAL_FATAL(akin_signature_quality_rho(&params, &rho, NULL),
                              AKIN_OK);
        CU_ASSERT_DOUBLE_EQUAL(rho, expected[n - 1], 1e-4);
    }
    akin_calibration_destroy(c);
    json_decref(root);
}

static double cosine(const uint16_t *a, const uint16_t *b)
{
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < FIXTURE_CELLS; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return ab / sqrt(aa * bb);
}

/* Ranks by counting: values below, and half of the equal ones. */
static double rank_of(const double *values, size_t i)
{
    double rank = 0;
    for (size_t j = 0; j < FIXTURE_PAIRS; j++)
        rank += values[j] < values[i] - 1e-12    ? 1.0
                : values[j] <= values[i] + 1e-12 ? 0.5
                                                 : 0.0;
    return rank - FIXTURE_PAIRS / 2.0;
}

static void test_plain_counts(void)
{
    json_t *root;
    akin_calibration_t *c;
    akin_signature_quality_params_t params = load(&c, &root);
    static double near_prompt[FIXTURE_PAIRS], near_decode[FIXTURE_PAIRS];
    for (size_t p = 0; p < FIXTURE_PAIRS; p++) {
        near_prompt[p] = -cosine(c->prefill + left[p] * FIXTURE_CELLS,
                                 c->prefill + right[p] * FIXTURE_CELLS);
        near_decode[p] = -cosine(c->decode + left[p] * FIXTURE_CELLS,
                                 c->decode + right[p] * FIXTURE_CELLS);
    }
    double xy = 0, xx = 0, yy = 0;
    for (size_t p = 0; p < FIXTURE_PAIRS; p++) {
        double x = rank_of(near_prompt, p), y = rank_of(near_decode, p);
        xy += x * y;
        xx += x * x;
        yy += y * y;
    }
    double rho = 0;
    CU_ASSERT_EQUAL_FATAL(akin_signature_quality_rho(&params, &rho, NULL),
                          AKIN_OK);
    CU_ASSERT_DOUBLE_EQUAL(rho, xy / sqrt(xx * yy), 1e-4);

    /* Prompts that are the decode counts tell all. */
    params.prefill = c->decode;
    CU_ASSERT_EQUAL_FATAL(akin_signature_quality_rho(&params, &rho, NULL),
                          AKIN_OK);
    CU_ASSERT_DOUBLE_EQUAL(rho, 1.0, 1e-12);
    akin_calibration_destroy(c);
    json_decref(root);
}

static void test_nothing_to_tell(void)
{
    json_t *root;
    akin_calibration_t *c;
    akin_signature_quality_params_t params = load(&c, &root);
    double rho = 0;
    params.n_pairs = 0;
    CU_ASSERT_EQUAL(akin_signature_quality_rho(&params, &rho, NULL), AKIN_OK);
    CU_ASSERT(isnan(rho));

    /* All prompts alike: one is the others scaled, which rounds otherwise. */
    params.n_pairs = FIXTURE_PAIRS;
    for (size_t i = 1; i < FIXTURE_N; i++)
        for (size_t j = 0; j < FIXTURE_CELLS; j++)
            c->prefill[i * FIXTURE_CELLS + j] =
                (uint16_t)(c->prefill[j] * (i % 3 + 1));
    rho = 0;
    CU_ASSERT_EQUAL(akin_signature_quality_rho(&params, &rho, NULL), AKIN_OK);
    CU_ASSERT(isnan(rho));

    akin_error_t err = {{0}};
    right[5] = FIXTURE_N;
    CU_ASSERT_EQUAL(akin_signature_quality_rho(&params, &rho, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "pair 5"));
    akin_calibration_destroy(c);
    json_decref(root);
}

static const runner_test_t tests[] = {
    {"artifact", test_artifact},
    {"plain counts", test_plain_counts},
    {"nothing to tell", test_nothing_to_tell},
};

RUNNER_MAIN("signature_quality", tests)
