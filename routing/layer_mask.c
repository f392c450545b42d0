/* Layer mask: forward-greedy search for the layers that tell best how alike
 * two requests decode. */
#include "routing/layer_mask.h"

#include "base/clock.h"
#include "base/rng.h"
#include "routing/dot.h"
#include "routing/ranking.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EPSILON 1e-9

enum { STREAM_LEFT = 1, STREAM_RIGHT };

/* Products of one layer over the pairs, or their sum over the chosen layers.
 * The three follow each other in memory. */
typedef struct products {
    double *dot; /* [n_pairs] left . right */
    double *ll;  /* [n_pairs] left . left */
    double *rr;  /* [n_pairs] right . right */
} products_t;

typedef struct search {
    const akin_layer_mask_params_t *params;
    double *values;     /* what the products below lie in */
    products_t *layers; /* [n_layers] */
    products_t chosen;
    double *distance; /* [n_pairs] */
    double *ranks;    /* [n_pairs] of the signatures' distances */
    double *target;   /* [n_pairs] of the decode counts' distances */
    bool *is_chosen;  /* [n_layers] */
    float *rows;      /* [n_requests][n_experts] one layer, weighted */
    double *squares;  /* [n_requests] of those rows */
    /* The pairs, those with the same left request together. */
    uint32_t *pairs;  /* [n_pairs] their numbers */
    uint32_t *rights; /* [n_pairs] their right requests */
    uint32_t *ends;   /* [n_requests] where each left request's end */
    double *dots;     /* [n_pairs] in that order */
    double ranking_s; /* spent on ranking */
    akin_ranking_t *ranking;
} search_t;

uint32_t akin_layer_mask_draw(uint32_t n_requests, uint32_t n_draws,
                              uint64_t seed, uint32_t *left, uint32_t *right)
{
    uint32_t kept = 0;
    for (uint64_t i = 0; i < n_draws; i++) {
        uint64_t l = akin_rng_below(seed, STREAM_LEFT, i, n_requests);
        uint64_t r = akin_rng_below(seed, STREAM_RIGHT, i, n_requests);
        if (l == r)
            continue;
        left[kept] = (uint32_t)l;
        right[kept++] = (uint32_t)r;
    }
    return kept;
}

static void destroy_search(search_t *search)
{
    akin_ranking_destroy(search->ranking);
    free(search->dots);
    free(search->ends);
    free(search->rights);
    free(search->pairs);
    free(search->squares);
    free(search->rows);
    free(search->is_chosen);
    free(search->layers);
    free(search->values);
}

/* Put the pairs with the same left request together, in their order. */
static void sort_pairs(search_t *search)
{
    const akin_layer_mask_params_t *params = search->params;
    for (uint32_t p = 0; p < params->n_pairs; p++)
        search->ends[params->left[p]]++;
    uint32_t next = 0;
    for (uint32_t i = 0; i < params->n_requests; i++) {
        uint32_t count = search->ends[i];
        search->ends[i] = next;
        next += count;
    }
    for (uint32_t p = 0; p < params->n_pairs; p++) {
        uint32_t at = search->ends[params->left[p]]++;
        search->pairs[at] = p;
        search->rights[at] = params->right[p];
    }
}

static akin_status_t init_search(search_t *search,
                                 const akin_layer_mask_params_t *params)
{
    size_t n_pairs = params->n_pairs;
    size_t n_layers = params->n_layers;
    search->params = params;
    search->values = calloc(3 * n_layers + 6, n_pairs * sizeof(double));
    search->layers = calloc(n_layers, sizeof(*search->layers));
    search->is_chosen = calloc(n_layers, sizeof(*search->is_chosen));
    search->rows =
        calloc(params->n_requests, params->n_experts * sizeof(*search->rows));
    search->squares = calloc(params->n_requests, sizeof(*search->squares));
    search->pairs = calloc(n_pairs, sizeof(*search->pairs));
    search->rights = calloc(n_pairs, sizeof(*search->rights));
    search->ends = calloc(params->n_requests, sizeof(*search->ends));
    search->dots = calloc(n_pairs, sizeof(*search->dots));
    if (search->values == NULL || search->layers == NULL ||
        search->is_chosen == NULL || search->rows == NULL ||
        search->squares == NULL || search->pairs == NULL ||
        search->rights == NULL || search->ends == NULL || search->dots == NULL)
        return AKIN_ERR_NOMEM;
    sort_pairs(search);
    double *next = search->values;
    for (size_t l = 0; l <= n_layers; l++, next += 3 * n_pairs) {
        products_t products = {next, next + n_pairs, next + 2 * n_pairs};
        if (l < n_layers)
            search->layers[l] = products;
        else
            search->chosen = products;
    }
    search->distance = next;
    search->ranks = next + n_pairs;
    search->target = next + 2 * n_pairs;
    return akin_ranking_create(params->n_pairs, &search->ranking);
}

static double seconds_since(int64_t begin_ns)
{
    return (double)(akin_clock_now_ns() - begin_ns) / (double)AKIN_NS_PER_S;
}

/* Add the products of a layer of every pair's two requests. */
static void add_products(search_t *search, const uint16_t *counts,
                         const float *weights, uint32_t layer, products_t *out)
{
    const akin_layer_mask_params_t *params = search->params;
    const size_t n = params->n_experts;
    const size_t cells = (size_t)params->n_layers * n;
    const size_t first = layer * n;
    for (uint32_t i = 0; i < params->n_requests; i++) {
        const uint16_t *from = counts + i * cells + first;
        float *row = search->rows + i * n;
        for (size_t e = 0; e < n; e++)
            row[e] = weights != NULL ? weights[first + e] * (float)from[e]
                                     : (float)from[e];
        search->squares[i] = akini_dot(row, row, n);
    }
    uint32_t start = 0;
    for (uint32_t l = 0; l < params->n_requests; start = search->ends[l++])
        akini_dot_rows(search->rows + l * n, search->rows, n,
                       search->rights + start, search->ends[l] - start, n,
                       search->dots + start);
    for (uint32_t i = 0; i < params->n_pairs; i++) {
        uint32_t p = search->pairs[i];
        out->dot[p] += search->dots[i];
        out->ll[p] += search->squares[params->left[p]];
        out->rr[p] += search->squares[params->right[p]];
    }
}

static void rank(search_t *search, double *ranks)
{
    int64_t begin = akin_clock_now_ns();
    akin_ranking_centred(search->ranking, search->distance, ranks);
    search->ranking_s += seconds_since(begin);
}

/* Rank the decode counts' distances; false if they do not vary. */
static bool rank_target(search_t *search)
{
    const akin_layer_mask_params_t *params = search->params;
    products_t *sum = &search->chosen; /* not in use yet */
    for (uint32_t l = 0; l < params->n_layers; l++)
        add_products(search, params->decode, NULL, l, sum);
    for (uint32_t p = 0; p < params->n_pairs; p++) {
        double norm = sqrt(sum->ll[p]) * sqrt(sum->rr[p]);
        search->distance[p] = 1.0 - sum->dot[p] / fmax(norm, EPSILON);
    }
    rank(search, search->target);
    memset(sum->dot, 0, 3 * (size_t)params->n_pairs * sizeof(double));
    for (uint32_t p = 0; p < params->n_pairs; p++)
        if (search->target[p] != 0.0)
            return true;
    return false;
}

/* Rho of the chosen layers and one more. */
static double rho_with(search_t *search, uint32_t layer)
{
    uint32_t n = search->params->n_pairs;
    const products_t *sum = &search->chosen;
    const products_t *one = &search->layers[layer];
    for (uint32_t p = 0; p < n; p++)
        search->distance[p] = 1.0 - (sum->dot[p] + one->dot[p]) /
                                        sqrt((sum->ll[p] + one->ll[p]) *
                                                 (sum->rr[p] + one->rr[p]) +
                                             EPSILON);
    rank(search, search->ranks);
    return akin_ranking_correlate(search->ranks, search->target, n);
}

static void choose_layer(search_t *search, uint32_t layer)
{
    size_t n = 3 * (size_t)search->params->n_pairs;
    for (size_t i = 0; i < n; i++)
        search->chosen.dot[i] += search->layers[layer].dot[i];
    search->is_chosen[layer] = true;
}

static int compare_layers(const void *left, const void *right)
{
    const uint32_t *a = left;
    const uint32_t *b = right;
    return (*a > *b) - (*a < *b);
}

static void run_search(search_t *search, uint32_t *order, double *rho,
                       uint32_t *mask, akin_layer_mask_result_t *result)
{
    uint32_t n_layers = search->params->n_layers;
    result->n_masked = 0;
    for (uint32_t step = 0; step < n_layers; step++) {
        uint32_t best = n_layers;
        for (uint32_t l = 0; l < n_layers; l++) {
            if (search->is_chosen[l])
                continue;
            double candidate = rho_with(search, l);
            if (best == n_layers || candidate > rho[step]) {
                best = l;
                rho[step] = candidate;
            }
        }
        order[step] = best;
        choose_layer(search, best);
        if (step == 0 || rho[step] > result->rho) {
            result->rho = rho[step];
            result->n_masked = step + 1;
        }
    }
    memcpy(mask, order, n_layers * sizeof(*mask));
    qsort(mask, result->n_masked, sizeof(*mask), compare_layers);
}

static akin_status_t check_input(const akin_layer_mask_params_t *params,
                                 akin_error_t *err)
{
    if (params->n_requests == 0 || params->n_layers == 0 ||
        params->n_experts == 0 || params->n_pairs == 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "layer mask: %u requests, %u layers, %u experts, "
                              "%u pairs: none may be 0",
                              params->n_requests, params->n_layers,
                              params->n_experts, params->n_pairs);
    for (uint32_t p = 0; p < params->n_pairs; p++)
        if (params->left[p] >= params->n_requests ||
            params->right[p] >= params->n_requests)
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "layer mask: pair %u is (%u, %u), but there "
                                  "are %u requests",
                                  p, params->left[p], params->right[p],
                                  params->n_requests);
    return AKIN_OK;
}

akin_status_t akin_layer_mask_search(const akin_layer_mask_params_t *params,
                                     uint32_t *order, double *rho,
                                     uint32_t *mask,
                                     akin_layer_mask_result_t *result_p,
                                     akin_error_t *err)
{
    akin_status_t status = check_input(params, err);
    if (status != AKIN_OK)
        return status;
    search_t search = {0};
    akin_layer_mask_result_t result = {0};
    int64_t begin = akin_clock_now_ns();
    status = init_search(&search, params);
    if (status != AKIN_OK) {
        (void)akin_error_set(err, status,
                             "layer mask: out of memory for %u layers and %u "
                             "pairs",
                             params->n_layers, params->n_pairs);
    } else if (!rank_target(&search)) {
        status = akin_error_set(err, AKIN_ERR_INVALID,
                                "layer mask: all %u pairs of requests decode "
                                "equally far apart; calibrate with prompts "
                                "that differ or fit the variant count",
                                params->n_pairs);
    } else {
        for (uint32_t l = 0; l < params->n_layers; l++)
            add_products(&search, params->prefill, params->idf, l,
                         &search.layers[l]);
        result.products_s = seconds_since(begin);
        begin = akin_clock_now_ns();
        search.ranking_s = 0.0;
        run_search(&search, order, rho, mask, &result);
        result.search_s = seconds_since(begin);
        result.ranking_s = search.ranking_s;
        *result_p = result;
    }
    destroy_search(&search);
    return status;
}
