/* Decode map making: against a ridge regression by normal equations, on
 * requests that were not seen, and on calibrations that have little to say. */
#include "planted_decode.h"
#include "runner.h"
#include "scratch_file.h"

#include "routing/decode_map_make.h"
#include "routing/fit.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static akin_decode_map_t make(const akin_calibration_t *c, uint64_t seed,
                              akin_decode_map_report_t *report)
{
    akin_decode_map_t map;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_decode_map_make(c, seed, &map, report, &err),
                          AKIN_OK);
    return map;
}

enum { CELLS = 8 }; /* of the dense regression */

/* Solve a x = b for symmetric a without small pivots; b becomes x. */
static void solve(double a[CELLS][CELLS], double b[CELLS][CELLS])
{
    for (size_t k = 0; k < CELLS; k++)
        for (size_t i = 0; i < CELLS; i++) {
            double factor = a[i][k] / a[k][k];
            for (size_t j = 0; i != k && j < CELLS; j++) {
                a[i][j] -= factor * a[k][j];
                b[i][j] -= factor * b[k][j];
            }
        }
    for (size_t i = 0; i < CELLS; i++)
        for (size_t j = 0; j < CELLS; j++)
            b[i][j] /= a[i][i];
}

static double trust(double n_tokens, double mean)
{
    return fmin(1, n_tokens / (n_tokens + 8) * ((mean + 8) / mean));
}

/* The regression of y - carry x on x, cell by cell, and what it predicts. */
static void check_dense(const akin_calibration_t *c,
                        const akin_calibration_t *others,
                        const akin_decode_map_t *map,
                        const akin_decode_map_report_t *report)
{
    double a[CELLS][CELLS] = {{0}}, b[CELLS][CELLS] = {{0}};
    double prompt[CELLS] = {0}, decode[CELLS] = {0};
    double tokens = 0, total = 0, squares = 0;
    const uint32_t n = c->n_requests;
    for (uint32_t i = 0; i < n; i++)
        tokens += c->n_prompt[i] / (double)n;
    CU_ASSERT_DOUBLE_EQUAL(map->prompt_tokens, tokens, 1e-4);
    for (uint32_t i = 0; i < n; i++) {
        double s = trust(c->n_prompt[i], tokens);
        total += s;
        for (size_t j = 0; j < CELLS; j++) {
            prompt[j] += s * c->prefill[i * CELLS + j] / c->n_prompt[i];
            decode[j] += c->decode[i * CELLS + j] / (double)c->n_decode[i] / n;
        }
    }
    for (size_t j = 0; j < CELLS; j++)
        prompt[j] /= total;
    for (uint32_t i = 0; i < n; i++) {
        double x[CELLS], s = trust(c->n_prompt[i], tokens);
        for (size_t j = 0; j < CELLS; j++) {
            x[j] = s * (c->prefill[i * CELLS + j] / (double)c->n_prompt[i] -
                        prompt[j]);
            squares += x[j] * x[j];
        }
        for (size_t j = 0; j < CELLS; j++)
            for (size_t k = 0; k < CELLS; k++) {
                double y = c->decode[i * CELLS + k] / (double)c->n_decode[i] -
                           decode[k];
                a[j][k] += x[j] * x[k];
                b[j][k] += x[j] * (y - report->carry * x[k]);
            }
    }
    for (size_t j = 0; j < CELLS; j++)
        a[j][j] += report->ridge * squares / n;
    solve(a, b);
    for (uint32_t i = 0; i < others->n_requests; i++) {
        float rates[CELLS];
        double x[CELLS], s = trust(others->n_prompt[i], tokens);
        akin_decode_map_apply(map, others->prefill + i * CELLS,
                              others->n_prompt[i], rates);
        for (size_t j = 0; j < CELLS; j++)
            x[j] = s * (others->prefill[i * CELLS + j] /
                            (double)others->n_prompt[i] -
                        prompt[j]);
        for (size_t k = 0; k < CELLS; k++) {
            double rate = decode[k] + report->carry * x[k];
            for (size_t j = 0; j < CELLS; j++)
                rate += x[j] * b[j][k];
            CU_ASSERT_DOUBLE_EQUAL(rates[k], fmin(fmax(rate, 1e-4), 1 - 1e-6),
                                   2e-5);
        }
    }
}

/* Two layers of four experts differ in six directions, so that eight axes
 * leave nothing out. */
static void test_dense(void)
{
    planted_decode_t planted = {.n_layers = 2, .n_experts = 4, .n_decode = 400};
    static const uint32_t sizes[] = {40, 70, 130};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        planted.n_requests = sizes[s];
        planted.seed = s;
        akin_calibration_t *c = planted_decode_create(&planted);
        planted.n_requests = 20;
        planted.seed = 1000;
        akin_calibration_t *others = planted_decode_create(&planted);
        akin_decode_map_report_t report;
        akin_decode_map_t map = make(c, 5, &report);
        CU_ASSERT_EQUAL(report.n_requests, c->n_requests);
        CU_ASSERT_EQUAL(report.n_axes, map.n_axes);
        CU_ASSERT_EQUAL((float)report.carry, map.carry);
        CU_ASSERT_EQUAL(map.n_axes, 6);
        check_dense(c, others, &map, &report);
        akin_decode_map_cleanup(&map);
        akin_calibration_destroy(others);
        akin_calibration_destroy(c);
    }
}

/* Share of the variance about the map's mean that it explains. */
static double explained(const akin_decode_map_t *map,
                        const akin_calibration_t *c)
{
    const size_t cells = (size_t)c->n_layers * c->n_experts;
    float *rates = calloc(cells, sizeof(*rates));
    double errors = 0, variance = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(rates);
    for (uint32_t i = 0; i < c->n_requests; i++) {
        akin_decode_map_apply(map, c->prefill + i * cells, c->n_prompt[i],
                              rates);
        for (size_t j = 0; j < cells; j++) {
            double y = c->decode[i * cells + j] / (double)c->n_decode[i];
            errors += pow(y - (double)rates[j], 2);
            variance += pow(y - (double)map->decode_mean[j], 2);
        }
    }
    free(rates);
    return 1 - errors / variance;
}

/* Requests that were not seen are predicted about as well as the report says.
 * Their prompts show other experts than their decodes, so nothing is carried.
 */
static void test_planted(void)
{
    planted_decode_t planted = {.n_requests = 150,
                                .n_layers = 6,
                                .n_experts = 24,
                                .n_prompt = 300,
                                .n_decode = 3000};
    akin_calibration_t *c = planted_decode_create(&planted);
    planted.seed = 1;
    akin_calibration_t *others = planted_decode_create(&planted);
    akin_decode_map_report_t report;
    akin_decode_map_t map = make(c, 1, &report);
    double found = explained(&map, others);
    CU_ASSERT(found > 0.6);
    CU_ASSERT_DOUBLE_EQUAL(report.r2, found, 0.08);
    CU_ASSERT(report.n_axes >= 8);
    CU_ASSERT_EQUAL(report.carry, 0);
    for (uint32_t l = 0; l < 6; l++) {
        double sums[2] = {0, 0};
        for (uint32_t e = 0; e < 24; e++) {
            sums[0] += (double)map.prompt_mean[l * 24 + e];
            sums[1] += (double)map.decode_mean[l * 24 + e];
        }
        CU_ASSERT_DOUBLE_EQUAL(sums[0], 1, 1e-5);
        CU_ASSERT_DOUBLE_EQUAL(sums[1], 1, 1e-5);
    }
    akin_decode_map_cleanup(&map);

    /* A decode that repeats the prompt is carried whole, or as good as. */
    memcpy(c->decode, c->prefill,
           (size_t)c->n_requests * 6 * 24 * sizeof(*c->decode));
    memcpy(c->n_decode, c->n_prompt, c->n_requests * sizeof(*c->n_decode));
    map = make(c, 1, &report);
    CU_ASSERT_EQUAL(report.carry, 1);
    CU_ASSERT(report.r2 > 0.999);
    akin_decode_map_cleanup(&map);
    akin_calibration_destroy(others);
    akin_calibration_destroy(c);
}

static bool are_equal(const akin_decode_map_t *a, const akin_decode_map_t *b)
{
    size_t row = (size_t)a->n_layers * a->n_experts * sizeof(float);
    return a->n_axes == b->n_axes && a->carry == b->carry &&
           a->prompt_tokens == b->prompt_tokens &&
           memcmp(a->prompt_mean, b->prompt_mean, row) == 0 &&
           memcmp(a->decode_mean, b->decode_mean, row) == 0 &&
           (a->n_axes == 0 ||
            (memcmp(a->axes, b->axes, a->n_axes * row) == 0 &&
             memcmp(a->responses, b->responses, a->n_axes * row) == 0));
}

static void test_repeats(void)
{
    const planted_decode_t planted = {
        .n_requests = 60, .n_layers = 3, .n_experts = 20, .n_decode = 500};
    akin_calibration_t *c = planted_decode_create(&planted);
    akin_decode_map_t map = make(c, 9, NULL);
    akin_decode_map_t again = make(c, 9, NULL);
    CU_ASSERT(map.n_axes > 0);
    CU_ASSERT(are_equal(&map, &again));
    akin_decode_map_cleanup(&again);

    /* Through a file of a fit, bit by bit. */
    akin_fit_t back, fit = {
                         .n_layers = 3,
                         .n_experts = 20,
                         .n_clusters = 1,
                         .n_masked = 3,
                         .dim = 60,
                         .layers = calloc(3, sizeof(*fit.layers)),
                         .centroids = calloc(60, sizeof(*fit.centroids)),
                         .decode_map = map,
                         .rho = NAN,
                         .tau = NAN,
                         .pull = NAN,
                     };
    CU_ASSERT_FATAL(fit.layers != NULL && fit.centroids != NULL);
    fit.layers[1] = 1;
    fit.layers[2] = 2;
    fit.centroids[3] = 1;
    const char *path = scratch_path("fit.json");
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_fit_write(&fit, path, &err), AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(akin_fit_read(path, &back, &err), AKIN_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(back.decode_map.prompt_mean);
    CU_ASSERT(are_equal(&fit.decode_map, &back.decode_map));
    akin_fit_cleanup(&back);
    fit.decode_map.n_axes = 0;
    CU_ASSERT_EQUAL_FATAL(akin_fit_write(&fit, path, &err), AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(akin_fit_read(path, &back, &err), AKIN_OK);
    CU_ASSERT(are_equal(&fit.decode_map, &back.decode_map));
    CU_ASSERT_PTR_NULL(back.decode_map.axes);
    akin_fit_cleanup(&back);
    fit.decode_map.carry = NAN;
    CU_ASSERT_EQUAL(akin_fit_write(&fit, path, &err), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "carry"));
    scratch_remove(path);
    akin_fit_cleanup(&fit);
    akin_calibration_destroy(c);
}

/* The mean, to the bit, whatever the prompt. */
static void check_mean_alone(const akin_calibration_t *c, double r2)
{
    const size_t cells = (size_t)c->n_layers * c->n_experts;
    akin_decode_map_report_t report;
    akin_decode_map_t map = make(c, 1, &report);
    CU_ASSERT_EQUAL(map.n_axes, 0);
    CU_ASSERT_EQUAL(map.carry, 0);
    CU_ASSERT(isnan(r2) ? isnan(report.r2) : report.r2 == r2);
    float rates[64];
    CU_ASSERT_FATAL(cells <= 64);
    akin_decode_map_apply(&map, c->prefill, c->n_prompt[0], rates);
    for (size_t j = 0; j < cells; j++)
        CU_ASSERT_EQUAL(rates[j], fmaxf(map.decode_mean[j], 1e-4f));
    akin_decode_map_cleanup(&map);
}

static void test_little_to_say(void)
{
    const planted_decode_t planted = {.n_requests = 12,
                                      .n_layers = 2,
                                      .n_experts = 8,
                                      .n_prompt = 30,
                                      .n_decode = 100};
    akin_calibration_t *c = planted_decode_create(&planted);
    c->n_requests = 9;
    check_mean_alone(c, NAN);
    c->n_requests = 1;
    check_mean_alone(c, NAN);
    c->n_requests = 12;
    /* Equal prompts tell nothing, equal decodes leave nothing to tell. */
    for (uint32_t i = 1; i < 12; i++)
        memcpy(c->prefill + i * 16, c->prefill, 16 * sizeof(*c->prefill));
    check_mean_alone(c, 0);
    for (uint32_t i = 1; i < 12; i++)
        memcpy(c->decode + i * 16, c->decode, 16 * sizeof(*c->decode));
    check_mean_alone(c, NAN);
    /* Requests without a prompt or without a decode are left out. */
    akin_decode_map_report_t report;
    c->n_prompt[0] = 0;
    c->n_decode[1] = 0;
    akin_decode_map_t map = make(c, 1, &report);
    CU_ASSERT_EQUAL(report.n_requests, 10);
    akin_decode_map_cleanup(&map);
    memset(c->n_prompt, 0, 12 * sizeof(*c->n_prompt));
    map = make(c, 1, &report);
    CU_ASSERT_PTR_NULL(map.prompt_mean);
    akin_calibration_destroy(c);
}

static const runner_test_t tests[] = {
    {"dense", test_dense},
    {"planted", test_planted},
    {"repeats", test_repeats},
    {"little to say", test_little_to_say},
};

RUNNER_MAIN("decode_map_make", tests)
