/* Fit making on the published artifact's requests: its numbers, conservation,
 * repetition, and inputs that have no fit. */
#include "calibration_fixture.h"
#include "runner.h"
#include "scratch_file.h"

#include "routing/fit_make.h"
#include "routing/layer_mask.h"
#include "routing/signature_quality.h"

#include <math.h>
#include <string.h>

static json_t *root;

static akin_calibration_t *load(uint32_t n_domains)
{
    root = vectors_load("calibration.json");
    return fixture_calibration(root, n_domains);
}

static void unload(akin_calibration_t *c)
{
    akin_calibration_destroy(c);
    json_decref(root);
}

static akin_fit_make_params_t params_of(const akin_calibration_t *c,
                                        uint32_t n_clusters,
                                        akin_fit_variant_t variant)
{
    return (akin_fit_make_params_t){
        .calibration = c,
        .n_clusters = n_clusters,
        .variant = variant,
        .seed = 1,
    };
}

static void make(const akin_fit_make_params_t *params, akin_fit_t *fit,
                 akin_fit_report_t *report)
{
    akin_error_t err = {{0}};
    akin_status_t status = akin_fit_make(params, fit, report, &err);
    if (status != AKIN_OK)
        printf("%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(status, AKIN_OK);
}

/* Rho of a form over the pairs that a fit of that seed draws. */
static double rho_of(const akin_calibration_t *c, akin_signature_form_t form,
                     uint64_t seed)
{
    static uint32_t left[AKIN_LAYER_MASK_PAIRS], right[AKIN_LAYER_MASK_PAIRS];
    const akin_signature_quality_params_t quality = {
        .form = form,
        .n_requests = c->n_requests,
        .prefill = c->prefill,
        .decode = c->decode,
        .left = left,
        .right = right,
        .n_pairs = akin_layer_mask_draw(c->n_requests, AKIN_LAYER_MASK_PAIRS,
                                        seed, left, right),
    };
    double rho = NAN;
    CU_ASSERT_EQUAL(akin_signature_quality_rho(&quality, &rho, NULL), AKIN_OK);
    return rho;
}

/* The artifact's IDF; layers that no other number of layers beats. */
static void test_artifact(void)
{
    akin_calibration_t *c = load(4);
    float idf[FIXTURE_CELLS];
    vectors_get_floats(json_object_get(root, "idf"), idf, FIXTURE_CELLS);
    const akin_fit_make_params_t params = params_of(c, 4, AKIN_FIT_COUNT_IDF);
    akin_fit_t fit;
    akin_fit_report_t report;
    make(&params, &fit, &report);
    CU_ASSERT_EQUAL_FATAL(fit.n_masked, report.n_masked);
    uint32_t next = 0;
    for (uint32_t l = 0; l < FIXTURE_L; l++) {
        bool is_in = next < fit.n_masked && fit.layers[next] == l;
        next += is_in;
        for (uint32_t e = 0; e < FIXTURE_E; e++)
            CU_ASSERT_EQUAL(fit.idf[l * FIXTURE_E + e],
                            is_in ? idf[l * FIXTURE_E + e] : 0.0f);
    }
    CU_ASSERT_EQUAL(next, fit.n_masked);
    CU_ASSERT_DOUBLE_EQUAL(fit.rho, rho_of(c, akin_fit_form(&fit), params.seed),
                           1e-4);
    akin_signature_form_t form = {
        .n_layers = FIXTURE_L, .n_experts = FIXTURE_E, .idf = idf};
    CU_ASSERT(rho_of(c, form, params.seed) <= fit.rho + 1e-4);
    form.n_masked = 1;
    for (uint32_t l = 0; l < FIXTURE_L; l++) {
        form.layers = &l;
        CU_ASSERT(rho_of(c, form, params.seed) <= fit.rho + 1e-4);
    }
    CU_ASSERT_EQUAL(fit.rho, report.rho);
    CU_ASSERT(isnan(fit.tau));
    CU_ASSERT_EQUAL(fit.top_k, FIXTURE_TOP_K);
    CU_ASSERT_EQUAL(fit.n_requests, FIXTURE_N);
    CU_ASSERT_EQUAL(fit.seed, params.seed);

    /* The requests come from four kinds in turn, which the clusters find. */
    CU_ASSERT_EQUAL(report.purity, 1.0);
    for (uint32_t i = 0; i < FIXTURE_N; i++)
        CU_ASSERT_EQUAL(report.cluster[i], report.cluster[i % 4]);
    CU_ASSERT_EQUAL_FATAL(fit.n_domains, 4);
    for (uint32_t d = 0; d < 4; d++) {
        CU_ASSERT_EQUAL(report.sizes[d], 8);
        CU_ASSERT_EQUAL(fit.domains[d].n_requests, 8);
        CU_ASSERT_EQUAL(fit.domains[d].name[1], (char)('0' + d));
    }
    akin_fit_report_cleanup(&report);
    akin_fit_cleanup(&fit);
    unload(c);
}

static double length(const float *vector, size_t n)
{
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += (double)vector[i] * (double)vector[i];
    return sqrt(squares);
}

/* Every cluster activates top_k experts per layer and token, all clusters
 * together what all requests did, whatever the sizes. */
static void test_conservation(void)
{
    akin_calibration_t *c = load(0);
    for (uint32_t k = 1; k <= FIXTURE_N; k += k < 8 ? 1 : 8) {
        const akin_fit_make_params_t params =
            params_of(c, k, k % 2 == 0 ? AKIN_FIT_COUNT_IDF : AKIN_FIT_COUNT);
        akin_fit_t fit;
        akin_fit_report_t report;
        make(&params, &fit, &report);
        uint32_t n = 0;
        for (uint32_t i = 0; i < k; i++) {
            CU_ASSERT(report.sizes[i] <= (FIXTURE_N + k - 1) / k);
            n += report.sizes[i];
            CU_ASSERT_DOUBLE_EQUAL(length(fit.centroids + i * fit.dim, fit.dim),
                                   1.0, 1e-6);
            for (uint32_t l = 0; l < FIXTURE_L; l++) {
                double sum = 0;
                for (uint32_t e = 0; e < FIXTURE_E; e++) {
                    float p = fit.pbar[(i * FIXTURE_L + l) * FIXTURE_E + e];
                    CU_ASSERT(p >= 0 && p <= 1);
                    sum += (double)p;
                }
                CU_ASSERT_DOUBLE_EQUAL(sum, FIXTURE_TOP_K, 1e-5);
            }
        }
        CU_ASSERT_EQUAL(n, FIXTURE_N);
        CU_ASSERT(isnan(report.purity));
        CU_ASSERT(report.cost >= -1e-4 && report.cost < FIXTURE_N);
        /* Rates weighted by their clusters' tokens give the counts back. */
        for (size_t j = 0; j < FIXTURE_CELLS; j++) {
            double found = 0, counted = 0;
            for (uint32_t r = 0; r < FIXTURE_N; r++) {
                counted += c->decode[r * FIXTURE_CELLS + j];
                found +=
                    c->n_decode[r] *
                    (double)fit.pbar[report.cluster[r] * FIXTURE_CELLS + j];
            }
            CU_ASSERT_DOUBLE_EQUAL(found, counted, 1e-2);
        }
        akin_fit_report_cleanup(&report);
        akin_fit_cleanup(&fit);
    }
    unload(c);
}

/* One cluster: the direction of the mean signature. */
static void test_one_cluster(void)
{
    akin_calibration_t *c = load(0);
    const akin_fit_make_params_t params = params_of(c, 1, AKIN_FIT_COUNT);
    akin_fit_t fit;
    make(&params, &fit, NULL);
    double mean[FIXTURE_CELLS] = {0}, squares = 0;
    for (uint32_t r = 0; r < FIXTURE_N; r++) {
        const uint16_t *counts = c->prefill + r * FIXTURE_CELLS;
        double own = 0;
        for (size_t j = 0; j < FIXTURE_CELLS; j++)
            own += (double)counts[j] * counts[j];
        for (size_t j = 0; j < FIXTURE_CELLS; j++)
            mean[j] += counts[j] / sqrt(own);
    }
    for (size_t j = 0; j < FIXTURE_CELLS; j++)
        squares += mean[j] * mean[j];
    CU_ASSERT_PTR_NULL(fit.idf);
    CU_ASSERT_EQUAL(fit.n_masked, FIXTURE_L);
    CU_ASSERT_DOUBLE_EQUAL(fit.rho, rho_of(c, akin_fit_form(&fit), params.seed),
                           1e-12);
    for (size_t j = 0; j < FIXTURE_CELLS; j++)
        CU_ASSERT_DOUBLE_EQUAL(fit.centroids[j], mean[j] / sqrt(squares), 1e-6);
    akin_fit_cleanup(&fit);
    unload(c);
}

static char *written(const akin_fit_make_params_t *params, size_t *bytes_p)
{
    akin_fit_t fit, back;
    akin_error_t err = {{0}};
    const char *path = scratch_path("fit.json");
    make(params, &fit, NULL);
    CU_ASSERT_EQUAL_FATAL(akin_fit_write(&fit, path, &err), AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(akin_fit_read(path, &back, &err), AKIN_OK);
    CU_ASSERT_EQUAL(memcmp(fit.centroids, back.centroids,
                           fit.n_clusters * fit.dim * sizeof(float)),
                    0);
    CU_ASSERT_EQUAL(memcmp(fit.pbar, back.pbar,
                           fit.n_clusters * FIXTURE_CELLS * sizeof(float)),
                    0);
    akin_fit_cleanup(&back);
    akin_fit_cleanup(&fit);
    char *text = scratch_read(path, bytes_p);
    scratch_remove(path);
    return text;
}

static void test_repeats(void)
{
    akin_calibration_t *c = load(3);
    for (int variant = 0; variant < 2; variant++) {
        akin_fit_make_params_t params =
            params_of(c, 5, (akin_fit_variant_t)variant);
        size_t n = 0, n_again = 0, n_other = 0;
        char *text = written(&params, &n);
        char *again = written(&params, &n_again);
        params.seed++;
        char *other = written(&params, &n_other);
        CU_ASSERT(n == n_again && memcmp(text, again, n) == 0);
        CU_ASSERT(n != n_other || memcmp(text, other, n) != 0);
        free(text);
        free(again);
        free(other);
    }
    unload(c);
}

static void refuse(const akin_fit_make_params_t *params, const char *message)
{
    akin_fit_t fit;
    akin_fit_report_t report;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_fit_make(params, &fit, &report, &err),
                    AKIN_ERR_INVALID);
    if (strstr(err.text, message) == NULL) {
        printf("%s\n", err.text);
        CU_FAIL("another message was expected");
    }
    CU_ASSERT_PTR_NULL(fit.layers);
    CU_ASSERT_PTR_NULL(report.sizes);
}

static void test_refuses(void)
{
    akin_calibration_t *c = load(0);
    akin_fit_make_params_t params = params_of(c, 0, AKIN_FIT_COUNT);
    refuse(&params, "0 clusters");
    params.n_clusters = FIXTURE_N + 1;
    refuse(&params, "33 clusters need as many requests, the calibration has "
                    "32");
    params.n_clusters = 4;
    params.seed = (uint64_t)INT64_MAX + 1;
    refuse(&params, "seed");
    params.seed = 1;
    memset(c->prefill + 7 * FIXTURE_CELLS, 0,
           FIXTURE_CELLS * sizeof(c->prefill[0]));
    refuse(&params, "request \"r7\" is zero");
    params.variant = AKIN_FIT_COUNT_IDF;
    refuse(&params, "request \"r7\" is zero");
    memset(c->decode, 0, FIXTURE_N * FIXTURE_CELLS * sizeof(c->decode[0]));
    refuse(&params, "equally far apart");
    unload(c);
}

/* Equal requests are one direction for `count`; `count_idf` has no expert that
 * tells them apart. */
static void test_all_equal(void)
{
    akin_calibration_t *c = load(2);
    for (uint32_t r = 1; r < FIXTURE_N; r++)
        memcpy(c->prefill + r * FIXTURE_CELLS, c->prefill,
               FIXTURE_CELLS * sizeof(c->prefill[0]));
    akin_fit_make_params_t params = params_of(c, 3, AKIN_FIT_COUNT);
    akin_fit_t fit;
    akin_fit_report_t report;
    make(&params, &fit, &report);
    CU_ASSERT(isnan(fit.rho));
    CU_ASSERT_DOUBLE_EQUAL(report.cost, 0, 1e-4);
    CU_ASSERT(report.sizes[0] <= 11 && report.sizes[1] <= 11 &&
              report.sizes[2] <= 11);
    for (size_t j = 0; j < FIXTURE_CELLS; j++) {
        CU_ASSERT_EQUAL(fit.centroids[j], fit.centroids[FIXTURE_CELLS + j]);
        CU_ASSERT_EQUAL(fit.centroids[j], fit.centroids[2 * FIXTURE_CELLS + j]);
    }
    akin_fit_report_cleanup(&report);
    akin_fit_cleanup(&fit);
    params.variant = AKIN_FIT_COUNT_IDF;
    refuse(&params, "\"r0\" is zero");
    unload(c);
}

static void test_one_request(void)
{
    akin_calibration_t *c = load(1);
    for (uint32_t i = 1; i < FIXTURE_N; i++)
        free(c->ids[i]);
    c->n_requests = 1;
    akin_fit_make_params_t params = params_of(c, 1, AKIN_FIT_COUNT);
    akin_fit_t fit;
    make(&params, &fit, NULL);
    CU_ASSERT(isnan(fit.rho));
    for (size_t j = 0; j < FIXTURE_CELLS; j++)
        CU_ASSERT_DOUBLE_EQUAL(fit.pbar[j] * (float)c->n_decode[0],
                               c->decode[j], 1e-5);
    akin_fit_cleanup(&fit);
    params.variant = AKIN_FIT_COUNT_IDF;
    refuse(&params, "there is only 1");
    unload(c);
}

/* Shares of domains in clusters that are known. */
static void test_purity(void)
{
    akin_calibration_t *c = load(2);
    /* Kinds 0 and 2 share a domain, 1 and 3 the other; then one request has
     * none and one the wrong one. */
    c->domain[4] = AKIN_CALIBRATION_NO_DOMAIN;
    c->domain[8] = 1;
    const akin_fit_make_params_t params = params_of(c, 4, AKIN_FIT_COUNT_IDF);
    akin_fit_t fit;
    akin_fit_report_t report;
    make(&params, &fit, &report);
    CU_ASSERT_DOUBLE_EQUAL(report.purity, 30.0 / 31.0, 1e-12);
    CU_ASSERT_STRING_EQUAL(fit.domains[0].name, "d1");
    CU_ASSERT_EQUAL(fit.domains[0].n_requests, 17);
    CU_ASSERT_EQUAL(fit.domains[1].n_requests, 14);
    akin_fit_report_cleanup(&report);
    akin_fit_cleanup(&fit);
    unload(c);
}

static const runner_test_t tests[] = {
    {"artifact", test_artifact},       {"conservation", test_conservation},
    {"one cluster", test_one_cluster}, {"repeats", test_repeats},
    {"refuses", test_refuses},         {"all equal", test_all_equal},
    {"one request", test_one_request}, {"purity", test_purity},
};

RUNNER_MAIN("fit_make", tests)
