/* Signature rows against the signature and the dot products one by one. */
#include "runner.h"

#include "base/rng.h"
#include "routing/dot.h"
#include "routing/signature_rows.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_LAYERS = 40, MAX_EXPERTS = 136, MAX_ROWS = 41 };

typedef struct shape {
    uint32_t n_layers;
    uint32_t n_experts;
    uint32_t every; /* the mask leaves out every such layer; 0: no mask */
    int has_idf;
} shape_t;

static uint16_t counts[MAX_LAYERS * MAX_EXPERTS];
static float idf[MAX_LAYERS * MAX_EXPERTS];
static uint32_t layers[MAX_LAYERS];

static akin_signature_form_t draw_form(const shape_t *shape)
{
    akin_signature_form_t form = {
        .n_layers = shape->n_layers,
        .n_experts = shape->n_experts,
        .n_masked = shape->n_layers,
    };
    for (size_t i = 0; i < (size_t)shape->n_layers * shape->n_experts; i++) {
        counts[i] = (uint16_t)(akin_rng_below(5, 0, i, 3) != 0
                                   ? 0
                                   : akin_rng_below(5, 1, i, 65536));
        idf[i] = (float)(3.0 * akin_rng_uniform(5, 2, i));
    }
    if (shape->has_idf)
        form.idf = idf;
    if (shape->every != 0) {
        form.layers = layers;
        form.n_masked = 0;
        for (uint32_t l = 0; l < shape->n_layers; l++)
            if (l % shape->every != 0)
                layers[form.n_masked++] = l;
    }
    return form;
}

static void check_shape(const shape_t *shape)
{
    akin_signature_form_t form = draw_form(shape);
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_signature_form_check(&form, &err), AKIN_OK);
    size_t n = akin_signature_size(&form);
    /* Arrays of their exact size, so that a sanitizer sees a step too far. */
    float *rows = calloc(MAX_ROWS * n, sizeof(*rows));
    float *weighted = calloc(n, sizeof(*weighted));
    float *signature = calloc(n, sizeof(*signature));
    CU_ASSERT_FATAL(rows != NULL && weighted != NULL && signature != NULL);
    double squares = 0.0;
    for (size_t i = 0; i < n; i++) {
        uint32_t row = (uint32_t)(i / shape->n_experts);
        size_t cell = (size_t)(form.layers != NULL ? layers[row] : row) *
                          shape->n_experts +
                      i % shape->n_experts;
        float value = (float)counts[cell] * (shape->has_idf ? idf[cell] : 1.0f);
        signature[i] = value;
        squares += (double)value * (double)value;
    }
    for (size_t i = 0; i < MAX_ROWS * n; i++)
        rows[i] = (float)(akin_rng_uniform(6, 0, i) - 0.4);
    for (uint32_t n_rows = 0; n_rows <= MAX_ROWS; n_rows++) {
        double sums[MAX_ROWS], again[MAX_ROWS];
        float scale = akini_signature_dot_rows(&form, counts, weighted, 1, rows,
                                               n_rows, sums);
        CU_ASSERT_DOUBLE_EQUAL(scale, 1.0 / sqrt(squares),
                               1e-6 / sqrt(squares));
        for (uint32_t r = 0; r < n_rows; r++)
            CU_ASSERT_EQUAL(sums[r], akini_dot(signature, rows + r * n, n));
        int differs = 0;
        for (size_t i = 0; i < n; i++)
            differs += weighted[i] != signature[i];
        CU_ASSERT_EQUAL(differs, 0);
        CU_ASSERT_EQUAL(akini_signature_dot_rows(&form, counts, weighted, 0,
                                                 rows, n_rows, again),
                        scale);
        for (uint32_t r = 0; r < n_rows; r++)
            CU_ASSERT_EQUAL(again[r], sums[r]);
    }
    akin_signature_compute(&form, counts, weighted);
    double worst = 0.0;
    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, fabs((double)weighted[i] -
                                 (double)signature[i] / sqrt(squares)));
    CU_ASSERT(worst < 1e-6);
    free(signature);
    free(weighted);
    free(rows);
}

static void test_shapes(void)
{
    static const shape_t shapes[] = {
        {1, 3, 0, 1},   {4, 8, 2, 1},    {40, 128, 0, 1}, {40, 128, 3, 1},
        {17, 60, 4, 0}, {40, 136, 0, 0}, {33, 64, 5, 1},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        check_shape(&shapes[i]);
}

/* Counts of zero have no direction: no row is nearer than another. */
static void test_zero(void)
{
    const shape_t shape = {4, 8, 0, 0};
    akin_signature_form_t form = draw_form(&shape);
    const uint16_t none[4 * 8] = {0};
    float weighted[4 * 8], rows[2 * 4 * 8];
    double sums[2];
    for (size_t i = 0; i < 2 * 4 * 8; i++)
        rows[i] = 0.5f;
    float scale =
        akini_signature_dot_rows(&form, none, weighted, 1, rows, 2, sums);
    CU_ASSERT(isfinite(scale));
    CU_ASSERT_EQUAL(sums[0], 0.0);
    CU_ASSERT_EQUAL(sums[1], 0.0);
}

static const runner_test_t tests[] = {
    {"shapes", test_shapes},
    {"zero", test_zero},
};

RUNNER_MAIN("signature_rows", tests)
