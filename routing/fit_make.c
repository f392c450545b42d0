/* Fit making: from calibration requests to a fit of one variant. */
#include "routing/fit_make.h"

#include "base/clock.h"
#include "routing/kmeans.h"
#include "routing/layer_mask.h"
#include "routing/signature_quality.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A fit being made. */
typedef struct maker {
    const akin_fit_make_params_t *params;
    const akin_calibration_t *calibration;
    size_t cells;
    uint32_t *left; /* pairs of requests */
    uint32_t *right;
    uint32_t n_pairs;
    float *signatures; /* [n_requests][dim] */
    akin_fit_t *fit;
    akin_fit_report_t *report;
    akin_error_t *err;
} maker_t;

typedef akin_status_t (*make_fn_t)(maker_t *maker);

static akin_status_t fail_nomem(const maker_t *maker)
{
    return akin_error_set(maker->err, AKIN_ERR_NOMEM,
                          "fit: out of memory for %u requests, %u clusters",
                          maker->calibration->n_requests,
                          maker->params->n_clusters);
}

static akin_status_t check_params(maker_t *maker)
{
    const akin_calibration_t *c = maker->calibration;
    uint32_t k = maker->params->n_clusters;
    if (k == 0)
        return akin_error_set(maker->err, AKIN_ERR_INVALID,
                              "fit: 0 clusters; give one per decode worker");
    if (k > c->n_requests)
        return akin_error_set(maker->err, AKIN_ERR_INVALID,
                              "fit: %u clusters need as many requests, the "
                              "calibration has %u; calibrate with more "
                              "prompts or fit fewer workers",
                              k, c->n_requests);
    if (maker->params->seed > INT64_MAX)
        return akin_error_set(maker->err, AKIN_ERR_INVALID,
                              "fit: the seed %llu is too large for a fit "
                              "file, must be at most %lld",
                              (unsigned long long)maker->params->seed,
                              (long long)INT64_MAX);
    return AKIN_OK;
}

static akin_status_t begin(maker_t *maker)
{
    const akin_calibration_t *c = maker->calibration;
    *maker->fit = (akin_fit_t){
        .n_layers = c->n_layers,
        .n_experts = c->n_experts,
        .top_k = c->top_k,
        .n_clusters = maker->params->n_clusters,
        .n_requests = c->n_requests,
        .variant = maker->params->variant,
        .rho = NAN,
        .tau = NAN,
        .pull = NAN,
        .seed = maker->params->seed,
    };
    if (c->model != NULL && (maker->fit->model = strdup(c->model)) == NULL)
        return fail_nomem(maker);
    return AKIN_OK;
}

static akin_status_t draw_pairs(maker_t *maker)
{
    uint32_t n = maker->params->n_pairs != 0 ? maker->params->n_pairs
                                             : AKIN_LAYER_MASK_PAIRS;
    maker->left = calloc(n, sizeof(*maker->left));
    maker->right = calloc(n, sizeof(*maker->right));
    if (maker->left == NULL || maker->right == NULL)
        return fail_nomem(maker);
    maker->n_pairs =
        akin_layer_mask_draw(maker->calibration->n_requests, n,
                             maker->params->seed, maker->left, maker->right);
    return AKIN_OK;
}

static akin_status_t weigh(maker_t *maker)
{
    const akin_calibration_t *c = maker->calibration;
    if (maker->params->variant == AKIN_FIT_COUNT)
        return AKIN_OK;
    uint32_t *df = calloc(maker->cells, sizeof(*df));
    maker->fit->idf = calloc(maker->cells, sizeof(*maker->fit->idf));
    if (df == NULL || maker->fit->idf == NULL) {
        free(df);
        return fail_nomem(maker);
    }
    for (uint32_t i = 0; i < c->n_requests; i++)
        akin_signature_df_add(c->prefill + i * maker->cells, maker->cells, df);
    akin_signature_idf(df, c->n_requests, maker->cells, maker->fit->idf);
    free(df);
    return AKIN_OK;
}

/* Every layer, and how well they do. */
static akin_status_t keep_all_layers(maker_t *maker)
{
    akin_fit_t *fit = maker->fit;
    for (uint32_t l = 0; l < fit->n_layers; l++)
        fit->layers[l] = l;
    fit->n_masked = fit->n_layers;
    const akin_signature_quality_params_t quality = {
        .form = akin_fit_form(fit),
        .n_requests = maker->calibration->n_requests,
        .prefill = maker->calibration->prefill,
        .decode = maker->calibration->decode,
        .left = maker->left,
        .right = maker->right,
        .n_pairs = maker->n_pairs,
    };
    return akin_signature_quality_rho(&quality, &fit->rho, maker->err);
}

static akin_status_t search_layers(maker_t *maker)
{
    akin_fit_t *fit = maker->fit;
    if (maker->n_pairs == 0)
        return akin_error_set(maker->err, AKIN_ERR_INVALID,
                              "fit: the layers of count_idf are chosen by "
                              "comparing requests, and there is only %u; "
                              "calibrate with more prompts or fit the variant "
                              "count",
                              maker->calibration->n_requests);
    const akin_layer_mask_params_t mask = {
        .n_requests = maker->calibration->n_requests,
        .n_layers = fit->n_layers,
        .n_experts = fit->n_experts,
        .prefill = maker->calibration->prefill,
        .decode = maker->calibration->decode,
        .idf = fit->idf,
        .left = maker->left,
        .right = maker->right,
        .n_pairs = maker->n_pairs,
    };
    uint32_t *order = calloc(fit->n_layers, sizeof(*order));
    double *rho = calloc(fit->n_layers, sizeof(*rho));
    akin_layer_mask_result_t result = {0};
    akin_status_t status =
        order == NULL || rho == NULL
            ? fail_nomem(maker)
            : akin_layer_mask_search(&mask, order, rho, fit->layers, &result,
                                     maker->err);
    free(rho);
    free(order);
    if (status != AKIN_OK)
        return status;
    fit->n_masked = result.n_masked;
    fit->rho = result.rho;
    /* Outside of the mask a fit file holds no weights. */
    for (uint32_t l = 0, next = 0; l < fit->n_layers; l++) {
        if (next < fit->n_masked && fit->layers[next] == l)
            next++;
        else
            memset(fit->idf + (size_t)l * fit->n_experts, 0,
                   fit->n_experts * sizeof(*fit->idf));
    }
    return AKIN_OK;
}

static akin_status_t choose_layers(maker_t *maker)
{
    akin_fit_t *fit = maker->fit;
    int64_t began_ns = akin_clock_now_ns();
    fit->layers = calloc(fit->n_layers, sizeof(*fit->layers));
    if (fit->layers == NULL)
        return fail_nomem(maker);
    akin_status_t status = maker->params->variant == AKIN_FIT_COUNT
                               ? keep_all_layers(maker)
                               : search_layers(maker);
    fit->dim = (size_t)fit->n_masked * fit->n_experts;
    maker->report->rho = fit->rho;
    maker->report->n_masked = fit->n_masked;
    maker->report->mask_seconds =
        (double)(akin_clock_now_ns() - began_ns) / (double)AKIN_NS_PER_S;
    return status;
}

static akin_status_t form_signatures(maker_t *maker)
{
    const akin_calibration_t *c = maker->calibration;
    size_t dim = maker->fit->dim;
    maker->signatures = calloc(c->n_requests, dim * sizeof(*maker->signatures));
    if (maker->signatures == NULL)
        return fail_nomem(maker);
    akin_signature_form_t form = akin_fit_form(maker->fit);
    akin_status_t status = akin_signature_form_check(&form, maker->err);
    for (uint32_t i = 0; status == AKIN_OK && i < c->n_requests; i++) {
        float *signature = maker->signatures + i * dim;
        akin_signature_compute(&form, c->prefill + i * maker->cells, signature);
        size_t at = 0;
        while (at < dim && signature[at] == 0.0f)
            at++;
        if (at < dim)
            continue;
        status = akin_error_set(
            maker->err, AKIN_ERR_INVALID,
            "fit: the signature of request \"%.120s\" is zero%s; leave the "
            "request out%s",
            c->ids[i],
            maker->params->variant == AKIN_FIT_COUNT
                ? ""
                : ", as all requests use the experts that it uses",
            maker->params->variant == AKIN_FIT_COUNT
                ? ""
                : " or fit the variant count");
    }
    return status;
}

static akin_status_t find_clusters(maker_t *maker)
{
    akin_fit_t *fit = maker->fit;
    akin_fit_report_t *report = maker->report;
    const uint32_t n = maker->calibration->n_requests;
    fit->centroids = calloc(fit->n_clusters, fit->dim * sizeof(float));
    report->cluster = calloc(n, sizeof(*report->cluster));
    report->sizes = calloc(fit->n_clusters, sizeof(*report->sizes));
    if (fit->centroids == NULL || report->cluster == NULL ||
        report->sizes == NULL)
        return fail_nomem(maker);
    const akin_kmeans_params_t kmeans = {
        .n_points = n,
        .n_clusters = fit->n_clusters,
        .dim = fit->dim,
        .seed = fit->seed,
        .is_plain = maker->params->is_plain,
    };
    akin_kmeans_result_t result = {0};
    akin_status_t status =
        akin_kmeans_fit(&kmeans, maker->signatures, fit->centroids,
                        report->cluster, &result, maker->err);
    if (status != AKIN_OK)
        return status;
    for (uint32_t i = 0; i < n; i++)
        report->sizes[report->cluster[i]]++;
    report->n_rounds = result.n_rounds;
    report->has_converged = result.has_converged;
    report->cost = result.cost;
    return AKIN_OK;
}

/* Mean rate of every cell over the requests of one cluster, or over all. */
static void mean_rate(const maker_t *maker, uint32_t cluster, bool is_all,
                      uint64_t *sums, float *rate)
{
    const akin_calibration_t *c = maker->calibration;
    uint64_t n_tokens = 0;
    memset(sums, 0, maker->cells * sizeof(*sums));
    for (uint32_t i = 0; i < c->n_requests; i++) {
        if (!is_all && maker->report->cluster[i] != cluster)
            continue;
        const uint16_t *counts = c->decode + i * maker->cells;
        for (size_t j = 0; j < maker->cells; j++)
            sums[j] += counts[j];
        n_tokens += c->n_decode[i];
    }
    for (size_t j = 0; n_tokens > 0 && j < maker->cells; j++)
        rate[j] = (float)fmin((double)sums[j] / (double)n_tokens, 1.0);
}

static akin_status_t average_decode(maker_t *maker)
{
    akin_fit_t *fit = maker->fit;
    uint64_t *sums = calloc(maker->cells, sizeof(*sums));
    fit->pbar = calloc(fit->n_clusters, maker->cells * sizeof(*fit->pbar));
    if (sums == NULL || fit->pbar == NULL) {
        free(sums);
        return fail_nomem(maker);
    }
    for (uint32_t k = 0; k < fit->n_clusters; k++)
        mean_rate(maker, k, maker->report->sizes[k] == 0, sums,
                  fit->pbar + k * maker->cells);
    free(sums);
    return AKIN_OK;
}

static akin_status_t map_decode(maker_t *maker)
{
    return akin_decode_map_make(maker->calibration, maker->params->seed,
                                &maker->fit->decode_map,
                                &maker->report->decode_map, maker->err);
}

static akin_status_t count_domains(maker_t *maker)
{
    const akin_calibration_t *c = maker->calibration;
    akin_fit_t *fit = maker->fit;
    maker->report->purity = NAN;
    if (c->n_domains == 0)
        return AKIN_OK;
    fit->domains = calloc(c->n_domains, sizeof(*fit->domains));
    uint32_t *table =
        calloc((size_t)fit->n_clusters * c->n_domains, sizeof(*table));
    if (fit->domains == NULL || table == NULL) {
        free(table);
        return fail_nomem(maker);
    }
    for (; fit->n_domains < c->n_domains; fit->n_domains++) {
        char *name = strdup(c->domains[fit->n_domains]);
        if (name == NULL) {
            free(table);
            return fail_nomem(maker);
        }
        fit->domains[fit->n_domains].name = name;
    }
    uint32_t n_labelled = 0, n_pure = 0;
    for (uint32_t i = 0; i < c->n_requests; i++) {
        if (c->domain[i] == AKIN_CALIBRATION_NO_DOMAIN)
            continue;
        fit->domains[c->domain[i]].n_requests++;
        table[(size_t)maker->report->cluster[i] * c->n_domains +
              c->domain[i]]++;
        n_labelled++;
    }
    for (uint32_t k = 0; k < fit->n_clusters; k++) {
        uint32_t most = 0;
        for (uint32_t d = 0; d < c->n_domains; d++)
            if (table[(size_t)k * c->n_domains + d] > most)
                most = table[(size_t)k * c->n_domains + d];
        n_pure += most;
    }
    free(table);
    maker->report->purity = (double)n_pure / (double)n_labelled;
    akin_fit_sort_domains(fit);
    return AKIN_OK;
}

void akin_fit_report_cleanup(akin_fit_report_t *report)
{
    if (report == NULL)
        return;
    free(report->sizes);
    free(report->cluster);
    memset(report, 0, sizeof(*report));
}

akin_status_t akin_fit_make(const akin_fit_make_params_t *params,
                            akin_fit_t *fit, akin_fit_report_t *report,
                            akin_error_t *err)
{
    static const make_fn_t steps[] = {
        check_params,  begin,           draw_pairs,    weigh,
        choose_layers, form_signatures, find_clusters, average_decode,
        map_decode,    count_domains,
    };
    akin_fit_report_t unwanted = {0};
    int64_t began_ns = akin_clock_now_ns();
    maker_t maker = {
        .params = params,
        .calibration = params->calibration,
        .cells = (size_t)params->calibration->n_layers *
                 params->calibration->n_experts,
        .fit = fit,
        .report = report != NULL ? report : &unwanted,
        .err = err,
    };
    memset(fit, 0, sizeof(*fit));
    memset(maker.report, 0, sizeof(*maker.report));
    akin_status_t status = AKIN_OK;
    for (size_t i = 0;
         status == AKIN_OK && i < sizeof(steps) / sizeof(steps[0]); i++)
        status = steps[i](&maker);
    maker.report->seconds =
        (double)(akin_clock_now_ns() - began_ns) / (double)AKIN_NS_PER_S;
    free(maker.signatures);
    free(maker.right);
    free(maker.left);
    if (status != AKIN_OK)
        akin_fit_cleanup(fit);
    if (status != AKIN_OK || report == NULL)
        akin_fit_report_cleanup(maker.report);
    return status;
}
