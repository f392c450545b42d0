/* Fit parse: a fit out of the text of a fit file. */
#include "routing/fit.h"
#include "routing/fit_decode_map.h"
#include "routing/fit_json.h"
#include "routing/fit_placement_json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CELLS (1u << 24)
/* How far from length 1 a centroid may be, as in the artifact. */
#define MAX_OFF_UNIT 1e-3
/* Rounding to float moves a length by less: such a centroid stays as it is, so
 * that a fit reads back the same. */
#define ROUNDED_OFF_UNIT 1e-6
#define MAX_OFF_RHO 1e-6

typedef akin_status_t (*read_fn_t)(const akini_fit_json_t *json,
                                   akin_fit_t *fit);

static akin_status_t read_shape(const akini_fit_json_t *json, akin_fit_t *fit)
{
    static const char *const needed[] = {"L", "e"};
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        if (akini_fit_json_get(json, needed[i]) == NULL)
            return akini_fit_json_missing(json, needed[i]);
    uint64_t layers = 0, experts = 0, top_k = 0;
    akin_status_t status =
        akini_fit_json_whole(json, "L", 1, UINT16_MAX, &layers);
    if (status == AKIN_OK)
        status = akini_fit_json_whole(json, "e", 1, UINT16_MAX, &experts);
    if (status == AKIN_OK)
        status = akini_fit_json_whole(json, "top_k", 1, experts, &top_k);
    if (status != AKIN_OK)
        return status;
    if (layers * experts > MAX_CELLS)
        return akin_error_set(json->err, AKIN_ERR_FORMAT,
                              "%s: L x e is %llu x %llu, must be at most %u",
                              json->name, (unsigned long long)layers,
                              (unsigned long long)experts, MAX_CELLS);
    fit->n_layers = (uint32_t)layers;
    fit->n_experts = (uint32_t)experts;
    fit->top_k = (uint32_t)top_k;
    return AKIN_OK;
}

/* Signatures made in another way would be compared with the wrong centroids,
 * so what asks for one is refused even where it could be passed over. */
static akin_status_t refuse_other_forms(const akini_fit_json_t *json,
                                        akin_fit_t *fit)
{
    static const char *const others[] = {"sig_mean", "sig_per_layer_norm",
                                         "_mean",    "_per_layer_norm",
                                         "_mask",    "_idf"};
    (void)fit;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        const json_t *value = akini_fit_json_get(json, others[i]);
        if (value != NULL && !json_is_false(value))
            return akin_error_set(json->err, AKIN_ERR_UNSUPPORTED,
                                  "%s: %s asks for another formula of the "
                                  "signature, which is not supported; make "
                                  "the fit without it",
                                  json->name, others[i]);
    }
    const char *type = "<i2";
    akin_status_t status = akini_fit_json_text(json, "sig_dtype", &type);
    if (status == AKIN_OK && strcmp(type, "<i2") != 0)
        status = akin_error_set(json->err, AKIN_ERR_UNSUPPORTED,
                                "%s: sig_dtype is \"%.32s\", only \"<i2\" "
                                "(16-bit counts) is supported",
                                json->name, type);
    return status;
}

static akin_status_t read_variant(const akini_fit_json_t *json, akin_fit_t *fit)
{
    const char *variant = "count";
    akin_status_t status = akini_fit_json_text(json, "variant", &variant);
    if (status != AKIN_OK)
        return status;
    if (strcmp(variant, "count") == 0)
        fit->variant = AKIN_FIT_COUNT;
    else if (strcmp(variant, "count_idf") == 0)
        fit->variant = AKIN_FIT_COUNT_IDF;
    else if (strcmp(variant, "gate_prob_all") == 0)
        return akin_error_set(json->err, AKIN_ERR_UNSUPPORTED,
                              "%s: variant \"gate_prob_all\" needs gate "
                              "probabilities, which are not captured; use "
                              "\"count\" or \"count_idf\"",
                              json->name);
    else
        return akini_fit_json_wrong(json, "variant",
                                    akini_fit_json_get(json, "variant"),
                                    "\"count\" or \"count_idf\"");
    return AKIN_OK;
}

static akin_status_t wrong_layer(const akini_fit_json_t *json, size_t i,
                                 const json_t *value, const char *expected)
{
    char path[48];
    (void)snprintf(path, sizeof(path), "layer_mask[%zu]", i);
    return akini_fit_json_wrong(json, path, value, expected);
}

static akin_status_t read_layers(const akini_fit_json_t *json,
                                 const json_t *mask, akin_fit_t *fit)
{
    for (size_t i = 0; i < fit->n_masked; i++) {
        const json_t *value = json_array_get(mask, i);
        json_int_t layer = json_integer_value(value);
        if (!json_is_integer(value) || layer < 0 || layer >= fit->n_layers) {
            char expected[64];
            (void)snprintf(expected, sizeof(expected), "a layer, from 0 to %u",
                           fit->n_layers - 1);
            return wrong_layer(json, i, value, expected);
        }
        if (i > 0 && layer <= fit->layers[i - 1]) {
            char expected[64];
            (void)snprintf(expected, sizeof(expected),
                           "above the one before, %u: layers rise, none twice",
                           fit->layers[i - 1]);
            return wrong_layer(json, i, value, expected);
        }
        fit->layers[i] = (uint32_t)layer;
    }
    return AKIN_OK;
}

static akin_status_t read_mask(const akini_fit_json_t *json, akin_fit_t *fit)
{
    const json_t *mask = akini_fit_json_get(json, "layer_mask");
    if (mask == NULL && fit->variant == AKIN_FIT_COUNT_IDF)
        return akini_fit_json_missing(json, "layer_mask");
    size_t n = mask != NULL ? json_array_size(mask) : fit->n_layers;
    if (mask != NULL && (!json_is_array(mask) || n == 0 || n > fit->n_layers)) {
        char expected[64];
        (void)snprintf(expected, sizeof(expected), "a list of 1 to %u layers",
                       fit->n_layers);
        return akini_fit_json_wrong(json, "layer_mask", mask, expected);
    }
    fit->layers = calloc(n, sizeof(*fit->layers));
    if (fit->layers == NULL)
        return akin_error_set(json->err, AKIN_ERR_NOMEM, "%s: out of memory",
                              json->name);
    fit->n_masked = (uint32_t)n;
    fit->dim = n * fit->n_experts;
    for (uint32_t i = 0; mask == NULL && i < n; i++)
        fit->layers[i] = i;
    akin_status_t status =
        mask != NULL ? read_layers(json, mask, fit) : AKIN_OK;
    if (status == AKIN_OK && fit->variant == AKIN_FIT_COUNT &&
        n < fit->n_layers)
        status = akin_error_set(json->err, AKIN_ERR_FORMAT,
                                "%s: layer_mask has %zu of %u layers, must "
                                "have all of them with the variant \"count\"",
                                json->name, n, fit->n_layers);
    return status;
}

static akin_status_t read_idf(const akini_fit_json_t *json, akin_fit_t *fit)
{
    if (fit->variant == AKIN_FIT_COUNT) {
        if (akini_fit_json_get(json, "sig_idf") == NULL)
            return AKIN_OK;
        return akin_error_set(json->err, AKIN_ERR_FORMAT,
                              "%s: sig_idf belongs to the variant "
                              "\"count_idf\", not to \"count\"",
                              json->name);
    }
    const akini_fit_list_t list = {
        .key = "sig_idf",
        .sizes = {fit->dim},
        .n_sizes = 1,
        .max = FLT_MAX,
        .expected = "a finite number, 0 or more",
    };
    float *packed = NULL;
    akin_status_t status = akini_fit_json_numbers(json, &list, &packed);
    if (status != AKIN_OK)
        return status;
    size_t first = 0;
    while (first < fit->dim && !(packed[first] > 0.0f))
        first++;
    if (first == fit->dim) {
        free(packed);
        return akin_error_set(json->err, AKIN_ERR_FORMAT,
                              "%s: sig_idf is 0 everywhere, so that no "
                              "signature has a direction",
                              json->name);
    }
    fit->idf = calloc(fit->n_layers, fit->n_experts * sizeof(*fit->idf));
    if (fit->idf == NULL) {
        free(packed);
        return akin_error_set(json->err, AKIN_ERR_NOMEM, "%s: out of memory",
                              json->name);
    }
    for (uint32_t i = 0; i < fit->n_masked; i++)
        memcpy(fit->idf + (size_t)fit->layers[i] * fit->n_experts,
               packed + (size_t)i * fit->n_experts,
               fit->n_experts * sizeof(*packed));
    free(packed);
    return AKIN_OK;
}

static akin_status_t scale_centroids(const akini_fit_json_t *json,
                                     akin_fit_t *fit)
{
    for (uint32_t k = 0; k < fit->n_clusters; k++) {
        float *centroid = fit->centroids + k * fit->dim;
        double squares = 0.0;
        for (size_t i = 0; i < fit->dim; i++)
            squares += (double)centroid[i] * (double)centroid[i];
        double norm = sqrt(squares);
        double off = fabs(norm - 1.0);
        if (!(off <= MAX_OFF_UNIT))
            return akin_error_set(json->err, AKIN_ERR_FORMAT,
                                  "%s: centroids[%u] has the length %g, must "
                                  "be of length 1",
                                  json->name, k, norm);
        if (off <= ROUNDED_OFF_UNIT)
            continue;
        for (size_t i = 0; i < fit->dim; i++)
            centroid[i] = (float)((double)centroid[i] / norm);
    }
    return AKIN_OK;
}

static akin_status_t read_centroids(const akini_fit_json_t *json,
                                    akin_fit_t *fit)
{
    /* Older artifacts call them otherwise. */
    const char *key = "centroids";
    if (akini_fit_json_get(json, key) == NULL &&
        akini_fit_json_get(json, "micro_centroids") != NULL)
        key = "micro_centroids";
    const json_t *rows = akini_fit_json_get(json, key);
    if (rows == NULL)
        return akini_fit_json_missing(json, key);
    size_t n = json_array_size(rows);
    if (!json_is_array(rows) || n == 0 || n > UINT16_MAX)
        return akini_fit_json_wrong(json, key, rows,
                                    "a list of 1 to 65535 lists");
    uint64_t k = n;
    akin_status_t status = akini_fit_json_whole(json, "k", 1, UINT16_MAX, &k);
    if (status != AKIN_OK)
        return status;
    if (k != n)
        return akin_error_set(json->err, AKIN_ERR_FORMAT,
                              "%s: k is %llu, but there are %zu %s", json->name,
                              (unsigned long long)k, n, key);
    const akini_fit_list_t list = {
        .key = key,
        .sizes = {n, fit->dim},
        .n_sizes = 2,
        .min = -FLT_MAX,
        .max = FLT_MAX,
        .expected = "a finite number",
    };
    fit->n_clusters = (uint32_t)n;
    status = akini_fit_json_numbers(json, &list, &fit->centroids);
    return status == AKIN_OK ? scale_centroids(json, fit) : status;
}

static akin_status_t read_pbar(const akini_fit_json_t *json, akin_fit_t *fit)
{
    if (akini_fit_json_get(json, "pbar") == NULL)
        return AKIN_OK;
    const akini_fit_list_t list = {
        .key = "pbar",
        .sizes = {fit->n_clusters, fit->n_layers, fit->n_experts},
        .n_sizes = 3,
        .max = 1.0f,
        .expected = "a number from 0 to 1",
    };
    return akini_fit_json_numbers(json, &list, &fit->pbar);
}

static akin_status_t read_domains(const akini_fit_json_t *json, akin_fit_t *fit)
{
    json_t *domains = json_object_get(json->root, "domains");
    if (domains == NULL || json_is_null(domains))
        return AKIN_OK;
    size_t n = json_object_size(domains);
    if (!json_is_object(domains) || n > UINT16_MAX)
        return akini_fit_json_wrong(json, "domains", domains,
                                    "an object of at most 65535 names, each "
                                    "with its number of requests");
    if (n == 0)
        return AKIN_OK;
    fit->domains = calloc(n, sizeof(*fit->domains));
    if (fit->domains == NULL)
        return akin_error_set(json->err, AKIN_ERR_NOMEM, "%s: out of memory",
                              json->name);
    uint64_t total = 0;
    const char *name;
    json_t *value;
    json_object_foreach(domains, name, value)
    {
        json_int_t count = json_integer_value(value);
        char path[96];
        (void)snprintf(path, sizeof(path), "domains.%.80s", name);
        if (!json_is_integer(value) || count < 1 || count > UINT32_MAX)
            return akini_fit_json_wrong(json, path, value,
                                        "a whole number, 1 or more");
        total += (uint64_t)count;
        if (total > UINT32_MAX)
            return akini_fit_json_wrong(json, path, value,
                                        "less: the sum passes 4294967295");
        akin_fit_domain_t *domain = &fit->domains[fit->n_domains];
        domain->name = strdup(name);
        if (domain->name == NULL)
            return akin_error_set(json->err, AKIN_ERR_NOMEM,
                                  "%s: out of memory", json->name);
        domain->n_requests = (uint32_t)count;
        fit->n_domains++;
    }
    akin_fit_sort_domains(fit);
    return AKIN_OK;
}

static akin_status_t read_origin(const akini_fit_json_t *json, akin_fit_t *fit)
{
    const char *model = NULL;
    uint64_t n_requests = 0;
    akin_status_t status = akini_fit_json_text(json, "model", &model);
    if (status == AKIN_OK)
        status =
            akini_fit_json_whole(json, "n_fit", 1, UINT32_MAX, &n_requests);
    if (status == AKIN_OK)
        status = akini_fit_json_whole(json, "seed", 0, INT64_MAX, &fit->seed);
    if (status == AKIN_OK)
        status = akini_fit_json_real(json, "fit_peak_rho", -1.0 - MAX_OFF_RHO,
                                     1.0 + MAX_OFF_RHO, &fit->rho);
    if (status == AKIN_OK)
        status = akini_fit_json_real(json, "tau", 0.0, DBL_MAX, &fit->tau);
    if (status == AKIN_OK)
        status = akini_fit_json_real(json, "pull", 0.0, DBL_MAX, &fit->pull);
    if (status != AKIN_OK)
        return status;
    fit->n_requests = (uint32_t)n_requests;
    if (model != NULL && (fit->model = strdup(model)) == NULL)
        return akin_error_set(json->err, AKIN_ERR_NOMEM, "%s: out of memory",
                              json->name);
    return AKIN_OK;
}

akin_status_t akin_fit_parse(const char *text, size_t bytes, const char *name,
                             akin_fit_t *fit, akin_error_t *err)
{
    static const read_fn_t steps[] = {
        read_shape,
        refuse_other_forms,
        read_variant,
        read_mask,
        read_idf,
        read_centroids,
        read_pbar,
        akini_fit_decode_map_read,
        read_domains,
        read_origin,
        akini_fit_placement_read,
    };
    memset(fit, 0, sizeof(*fit));
    json_t *root = NULL;
    akin_status_t status = akini_fit_json_parse(text, bytes, name, &root, err);
    if (status != AKIN_OK)
        return status;
    const akini_fit_json_t json = {.root = root, .name = name, .err = err};
    fit->rho = NAN;
    fit->tau = NAN;
    fit->pull = NAN;
    for (size_t i = 0;
         status == AKIN_OK && i < sizeof(steps) / sizeof(steps[0]); i++)
        status = steps[i](&json, fit);
    json_decref(root);
    if (status != AKIN_OK)
        akin_fit_cleanup(fit);
    return status;
}
