/* Fit parse: the artifact's format, and what is refused. */
#include "runner.h"

#include "routing/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two of three layers, two experts, two centroids; as the artifact writes. */
#define IDF_FIT                                                                \
    "{\"model\": \"m\", \"algo\": \"kmbal\", \"k\": 2, \"m\": 2, \"L\": 3, "   \
    "\"e\": 2, \"n_fit\": 9, \"variant\": \"count_idf\", "                     \
    "\"layer_select\": \"forward_greedy\", \"layer_mask\": [0, 2], "           \
    "\"fit_peak_rho\": 0.75, \"seed\": 7, \"sig_dtype\": \"<i2\", "            \
    "\"centroids\": [[1, 0, 0.0, 0], [0, 0.6, 0, 0.8]], "                      \
    "\"training_sha256\": \"00\", "                                            \
    "\"calibration_format\": \"eldr-calibration-v1\", "                        \
    "\"sig_idf\": [0.5, 0, 0.25, 1]}"

/* One layer of two experts and one centroid. */
#define COUNT_FIT                                                              \
    "{\"L\": 1, \"e\": 2, \"variant\": \"count\", \"k\": 1, "                  \
    "\"centroids\": [[0.6, 0.8]]}"

static akin_status_t parse(const char *text, akin_fit_t *fit, akin_error_t *err)
{
    return akin_fit_parse(text, strlen(text), "a.json", fit, err);
}

static void test_artifact(void)
{
    akin_fit_t fit;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(parse(IDF_FIT, &fit, &err), AKIN_OK);
    CU_ASSERT_STRING_EQUAL(fit.model, "m");
    CU_ASSERT_EQUAL(fit.variant, AKIN_FIT_COUNT_IDF);
    CU_ASSERT_EQUAL(fit.n_layers, 3);
    CU_ASSERT_EQUAL(fit.n_experts, 2);
    CU_ASSERT_EQUAL(fit.n_clusters, 2);
    CU_ASSERT_EQUAL(fit.n_requests, 9);
    CU_ASSERT_EQUAL(fit.top_k, 0);
    CU_ASSERT_EQUAL(fit.seed, 7);
    CU_ASSERT_EQUAL(fit.rho, 0.75);
    CU_ASSERT(isnan(fit.tau));
    CU_ASSERT_PTR_NULL(fit.pbar);
    CU_ASSERT_EQUAL_FATAL(fit.n_masked, 2);
    CU_ASSERT_EQUAL(fit.layers[0], 0);
    CU_ASSERT_EQUAL(fit.layers[1], 2);
    const float idf[6] = {0.5f, 0, 0, 0, 0.25f, 1};
    CU_ASSERT_EQUAL(memcmp(fit.idf, idf, sizeof(idf)), 0);
    CU_ASSERT_EQUAL_FATAL(fit.dim, 4);
    CU_ASSERT_EQUAL(fit.centroids[4 + 3], 0.8f);

    /* Counts (2, 1) of layer 0 and (4, 1) of layer 2, weighted by the IDF:
     * (1, 0, 1, 1) / sqrt(3). Layer 1 does not count. */
    const uint16_t counts[6] = {2, 1, 9, 9, 4, 1};
    float signature[4];
    akin_signature_form_t form = akin_fit_form(&fit);
    CU_ASSERT_EQUAL(akin_signature_form_check(&form, &err), AKIN_OK);
    akin_signature_compute(&form, counts, signature);
    CU_ASSERT_DOUBLE_EQUAL(signature[0], 0.57735027, 1e-7);
    CU_ASSERT_EQUAL(signature[1], 0);
    CU_ASSERT_DOUBLE_EQUAL(signature[3], 0.57735027, 1e-7);
    akin_fit_cleanup(&fit);
}

/* What the artifact leaves out: variant, k, the mask of all layers. */
static void test_count(void)
{
    akin_fit_t fit;
    CU_ASSERT_EQUAL_FATAL(parse("{\"L\":2,\"e\":1,\"sig_idf\":null,"
                                "\"sig_per_layer_norm\":false,"
                                "\"fit_peak_rho\":null,"
                                "\"micro_centroids\":[[0.6,0.8]]}",
                                &fit, NULL),
                          AKIN_OK);
    CU_ASSERT_EQUAL(fit.variant, AKIN_FIT_COUNT);
    CU_ASSERT_EQUAL(fit.n_clusters, 1);
    CU_ASSERT_EQUAL(fit.n_masked, 2);
    CU_ASSERT_EQUAL(fit.layers[1], 1);
    CU_ASSERT_PTR_NULL(fit.idf);
    CU_ASSERT(isnan(fit.rho));
    akin_fit_cleanup(&fit);
}

/* A length within 0.001 of 1 is scaled, one that float rounding explains
 * stays. */
static void test_scales(void)
{
    akin_fit_t fit;
    CU_ASSERT_EQUAL_FATAL(parse("{\"L\":1,\"e\":2,\"centroids\":[[0.6005,0.8],"
                                "[0.600000024,0.800000012]]}",
                                &fit, NULL),
                          AKIN_OK);
    double norm = hypot((double)fit.centroids[0], (double)fit.centroids[1]);
    CU_ASSERT_DOUBLE_EQUAL(norm, 1.0, 1e-7);
    CU_ASSERT_DOUBLE_EQUAL(fit.centroids[0], 0.6005 / hypot(0.6005, 0.8), 1e-7);
    CU_ASSERT_EQUAL(fit.centroids[2], 0.6f);
    CU_ASSERT_EQUAL(fit.centroids[3], 0.8f);
    akin_fit_cleanup(&fit);
}

/* A fit with one text in place of another. */
typedef struct change {
    const char *base;
    const char *from;
    const char *to;
    const char *message; /* part of it */
    akin_status_t status;
} change_t;

static char *replace(const change_t *change)
{
    const char *at = strstr(change->base, change->from);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    char *text = NULL;
    CU_ASSERT_FATAL(asprintf(&text, "%.*s%s%s", (int)(at - change->base),
                             change->base, change->to,
                             at + strlen(change->from)) >= 0);
    return text;
}

static void test_refuses(void)
{
    static const change_t changes[] = {
#define IDF(from, to, message) {IDF_FIT, from, to, message, AKIN_ERR_FORMAT}
#define COUNT(from, to, message)                                               \
    {                                                                          \
        COUNT_FIT, from, to, message, AKIN_ERR_FORMAT                          \
    }
#define OTHER(to, message)                                                     \
    {                                                                          \
        IDF_FIT, "\"seed\": 7", to, message, AKIN_ERR_UNSUPPORTED              \
    }
        IDF("[0, 2]", "[]", "layer_mask is a list of 0"),
        IDF("[0, 2]", "[0, 0]", "layer_mask[1] is 0, must be above"),
        IDF("[0, 2]", "[2, 0]", "layer_mask[1] is 0, must be above"),
        IDF("[0, 2]", "[0, 3]", "layer_mask[1] is 3, must be a layer"),
        IDF("[0, 2]", "[-1, 2]", "layer_mask[0] is -1"),
        IDF("[0, 2]", "[0, true]", "layer_mask[1] is true"),
        IDF("[0, 2]", "[0, 1.0]", "layer_mask[1] is 1.0"),
        IDF("[0, 2]", "[0, \"2\"]", "layer_mask[1] is \"2\""),
        IDF("[0, 2]", "[0, 1, 2, 3]", "layer_mask is a list of 4"),
        IDF("[0, 2]", "2", "layer_mask is 2"),
        IDF("[0, 2]", "null", "layer_mask is missing"),
        IDF("0.25, 1]", "0.25]", "sig_idf is a list of 3, must be a list of 4"),
        IDF("0.25, 1]", "0.25, 1, 1]", "sig_idf is a list of 5"),
        IDF("0.25, 1]", "0.25, -1]", "sig_idf[3] is -1"),
        IDF("0.25, 1]", "0.25, NaN]", "Python writes"),
        IDF("0.25, 1]", "0.25, -Infinity]", "Python writes"),
        IDF("0.25, 1]", "0.25, 1e39]", "sig_idf[3] is 1e39"),
        IDF("0.25, 1]", "0.25, true]", "sig_idf[3] is true"),
        IDF("0.25, 1]", "0.25, [1]]", "sig_idf[3] is a list of 1"),
        IDF("[0.5, 0, 0.25, 1]", "[0, 0, 0, 0]", "sig_idf is 0 everywhere"),
        IDF("[0.5, 0, 0.25, 1]", "null", "sig_idf is missing"),
        IDF("\"count_idf\"", "\"count\"", "layer_mask has 2 of 3 layers"),
        IDF("\"count_idf\"", "\"counts\"", "variant is \"counts\""),
        IDF("\"count_idf\"", "3", "variant is 3"),
        IDF("\"k\": 2", "\"k\": 3", "k is 3, but there are 2 centroids"),
        IDF("\"k\": 2", "\"k\": 0", "k is 0"),
        IDF("\"k\": 2", "\"k\": 2.0", "k is 2.0"),
        IDF("\"L\": 3", "\"L\": 0", "L is 0"),
        IDF("\"L\": 3", "\"L\": 65536", "L is 65536"),
        IDF("\"L\": 3", "\"L\": true", "L is true"),
        IDF("\"L\": 3", "\"l\": 3", "L is missing"),
        IDF("\"L\": 3, \"e\": 2", "\"L\": 65535, \"e\": 65535",
            "must be at most 16777216"),
        IDF("\"e\": 2", "\"e\": 0", "e is 0"),
        IDF("\"e\": 2", "\"e\": -2", "e is -2"),
        IDF("\"e\": 2", "\"e\": 18446744073709551618", "too big"),
        IDF("0, 0.0, 0]", "0, 0.0]", "centroids[0] is a list of 3"),
        IDF("[0, 0.6, 0, 0.8]", "4", "centroids[1] is 4"),
        IDF("[0, 0.6, 0, 0.8]", "[0, 0.6, 0, 0.81]",
            "centroids[1] has the length 1.008"),
        IDF("[0, 0.6, 0, 0.8]", "[0, 0, 0, 0]", "centroids[1] has the length"),
        IDF("[0, 0.6, 0, 0.8]", "[0, 3e38, 0, 3e38]", "centroids[1] has the"),
        IDF("[0, 0.6, 0, 0.8]", "[0, 0.6, null, 0.8]", "centroids[1][2]"),
        IDF("[0, 0.6, 0, 0.8]", "[0, 0.6, 1e400, 0.8]", "overflow"),
        IDF("\"centroids\"", "\"centroid\"", "centroids is missing"),
        IDF("\"seed\": 7", "\"seed\": -7", "seed is -7"),
        IDF("\"seed\": 7", "\"seed\": 7, \"seed\": 8", "duplicate"),
        IDF("\"n_fit\": 9", "\"n_fit\": 0", "n_fit is 0"),
        IDF("0.75", "1.5", "fit_peak_rho is 1.5"),
        IDF("0.75", "\"0.75\"", "fit_peak_rho is \"0.75\""),
        IDF("\"m\", \"algo\"", "[], \"algo\"", "model is a list"),
        COUNT("\"k\"", "\"sig_idf\": [1, 1], \"k\"", "sig_idf belongs"),
        COUNT("\"k\"", "\"top_k\": 3, \"k\"", "top_k is 3, must be"),
        COUNT("\"k\"", "\"tau\": -0.1, \"k\"", "tau is -0.1"),
        COUNT("\"k\"", "\"pbar\": [[[0, 1.5]]], \"k\"", "pbar[0][0][1] is 1.5"),
        COUNT("\"k\"", "\"pbar\": [[[0]]], \"k\"", "pbar[0][0] is a list of 1"),
        COUNT("\"k\"", "\"pbar\": [0], \"k\"", "pbar[0] is 0"),
        COUNT("\"k\"", "\"pbar\": {}, \"k\"", "pbar is an object"),
        COUNT("\"k\"", "\"domains\": [], \"k\"", "domains is a list of 0"),
        COUNT("\"k\"", "\"domains\": {\"x\": 0}, \"k\"", "domains.x is 0"),
        COUNT("\"k\"", "\"domains\": {\"x\": 4294967295, \"y\": 1}, \"k\"",
              "domains.y is 1, must be less"),
        COUNT("}", "} x", "end of file expected"),
        COUNT("[[0.6, 0.8]]", "[]", "centroids is a list of 0"),
        COUNT(COUNT_FIT, "[]", "must hold a JSON object"),
        COUNT(COUNT_FIT, "", "a.json:1"),
        COUNT(COUNT_FIT, "{}", "L is missing"),
        OTHER("\"sig_per_layer_norm\": true", "sig_per_layer_norm"),
        OTHER("\"sig_per_layer_norm\": 1", "sig_per_layer_norm"),
        OTHER("\"sig_mean\": [0, 0, 0, 0]", "sig_mean"),
        {IDF_FIT, "<i2", "<f4", "sig_dtype is \"<f4\"", AKIN_ERR_UNSUPPORTED},
        {IDF_FIT, "count_idf", "gate_prob_all", "variant \"gate_prob_all\"",
         AKIN_ERR_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        char *text = replace(&changes[i]);
        akin_fit_t fit;
        akin_error_t err = {{0}};
        akin_status_t status = parse(text, &fit, &err);
        if (status != changes[i].status ||
            strstr(err.text, changes[i].message) == NULL ||
            strncmp(err.text, "a.json", 6) != 0) {
            printf("\n%s\n  status %d: %s\n", text, (int)status, err.text);
            CU_FAIL("not refused as expected");
        }
        CU_ASSERT_PTR_NULL(fit.centroids);
        akin_fit_cleanup(&fit);
        free(text);
    }
}

/* A fit cut anywhere is refused, not taken in part. */
static void test_truncated(void)
{
    size_t bytes = strlen(IDF_FIT);
    for (size_t n = 0; n < bytes; n++) {
        akin_fit_t fit;
        CU_ASSERT_EQUAL(akin_fit_parse(IDF_FIT, n, "a.json", &fit, NULL),
                        AKIN_ERR_FORMAT);
        akin_fit_cleanup(&fit);
    }
}

static const runner_test_t tests[] = {
    {"artifact", test_artifact},   {"count", test_count},
    {"scales", test_scales},       {"refuses", test_refuses},
    {"truncated", test_truncated},
};

RUNNER_MAIN("fit_parse", tests)
