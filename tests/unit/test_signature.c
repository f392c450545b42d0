/* Signature against the published artifact's numbers. */
#include "runner.h"
#include "vectors.h"

#include "routing/signature.h"

#include <math.h>
#include <string.h>

enum { N = 32, L = 4, E = 8, CELLS = L * E, MASKED = 2 };

typedef struct calibration {
    uint16_t counts[N][CELLS];
    uint32_t df[CELLS];
    float idf[CELLS];
    uint32_t mask[MASKED];
} calibration_t;

static void load_calibration(calibration_t *out)
{
    static double counts[N * CELLS], df[CELLS], mask[MASKED];
    json_t *root = vectors_load("calibration.json");
    vectors_get(json_object_get(root, "prefill"), counts, N * CELLS);
    vectors_get(json_object_get(root, "df"), df, CELLS);
    vectors_get_floats(json_object_get(root, "idf"), out->idf, CELLS);
    vectors_get(json_object_get(root, "mask"), mask, MASKED);
    for (int i = 0; i < N * CELLS; i++)
        out->counts[i / CELLS][i % CELLS] = (uint16_t)counts[i];
    for (int c = 0; c < CELLS; c++)
        out->df[c] = (uint32_t)df[c];
    for (int i = 0; i < MASKED; i++)
        out->mask[i] = (uint32_t)mask[i];
    json_decref(root);
}

static void test_df_and_idf(void)
{
    static calibration_t cal;
    load_calibration(&cal);
    uint32_t df[CELLS] = {0};
    float idf[CELLS];
    for (int r = 0; r < N; r++)
        akin_signature_df_add(cal.counts[r], CELLS, df);
    akin_signature_idf(df, N, CELLS, idf);
    for (int c = 0; c < CELLS; c++) {
        CU_ASSERT_EQUAL(df[c], cal.df[c]);
        CU_ASSERT_DOUBLE_EQUAL(idf[c], cal.idf[c], 2e-7);
    }
}

/* The points of the k-means vectors are the signatures of these requests. */
static void test_count_idf(void)
{
    static calibration_t cal;
    static float expected[N * MASKED * E];
    load_calibration(&cal);
    json_t *root = vectors_load("kmeans_k4.json");
    vectors_get_floats(json_object_get(root, "X"), expected, N * MASKED * E);
    json_decref(root);
    const akin_signature_form_t form = {L, E, cal.mask, MASKED, cal.idf};
    CU_ASSERT_EQUAL(akin_signature_form_check(&form, NULL), AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(akin_signature_size(&form), MASKED * E);
    for (int r = 0; r < N; r++) {
        float signature[MASKED * E];
        akin_signature_compute(&form, cal.counts[r], signature);
        for (int i = 0; i < MASKED * E; i++)
            CU_ASSERT_DOUBLE_EQUAL(signature[i], expected[r * MASKED * E + i],
                                   2e-7);
    }
}

/* Variant count: no mask, no IDF, one norm over all layers. */
static void test_count(void)
{
    const akin_signature_form_t form = {2, 2, NULL, 0, NULL};
    const uint16_t counts[4] = {1, 2, 2, 4};
    const uint16_t zeros[4] = {0};
    float signature[4];
    CU_ASSERT_EQUAL(akin_signature_form_check(&form, NULL), AKIN_OK);
    CU_ASSERT_EQUAL(akin_signature_size(&form), 4);
    akin_signature_compute(&form, counts, signature);
    for (int i = 0; i < 4; i++)
        CU_ASSERT_DOUBLE_EQUAL(signature[i], counts[i] / 5.0, 1e-7);
    akin_signature_compute(&form, zeros, signature);
    for (int i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(signature[i], 0.0f);
}

static void test_bad_forms(void)
{
    static const uint32_t late[2] = {1, 4}, falls[2] = {2, 1},
                          twice[2] = {1, 1};
    float idf[CELLS] = {0.0f};
    idf[17] = NAN;
    const struct {
        akin_signature_form_t form;
        const char *text;
    } bad[] = {
        {{0, E, NULL, 0, NULL}, "0 layers"},
        {{L, 0, NULL, 0, NULL}, "0 experts"},
        {{1u << 20, 1u << 20, NULL, 0, NULL}, "cells"},
        {{L, E, late, 0, NULL}, "no layers"},
        {{L, E, late, 2, NULL}, "layer_mask[1] is layer 4"},
        {{L, E, falls, 2, NULL}, "must rise"},
        {{L, E, twice, 2, NULL}, "must rise"},
        {{L, E, NULL, 0, idf}, "layer 2, expert 1"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL(akin_signature_form_check(&bad[i].form, &err),
                        AKIN_ERR_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].text));
    }
}

static const runner_test_t tests[] = {
    {"df and idf", test_df_and_idf},
    {"count_idf", test_count_idf},
    {"count", test_count},
    {"bad forms", test_bad_forms},
};

RUNNER_MAIN("signature", tests)
