/* Layer mask: forward-greedy search for the layers that tell best how alike
 * two requests decode. */
#include "routing/layer_mask.h"

#include "base/rng.h"
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
    free(search->is_chosen);
    free(search->layers);
    free(search->values);
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
    if (search->values == NULL || search->layers == NULL ||
        search->is_chosen == NULL)
        return AKIN_ERR_NOMEM;
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

/* Add the products of some cells of every pair's two requests. */
static void add_products(const akin_layer_mask_params_t *params,
                         const uint16_t *counts, const float *weights,
                         size_t first, size_t n, products_t *out)
{
    size_t cells = (size_t)params->n_layers * params->n_experts;
    for (uint32_t p = 0; p < params->n_pairs; p++) {
        const uint16_t *l = counts + params->left[p] * cells + first;
        const uint16_t *r = counts + params->right[p] * cells + first;
        double dot = 0.0, ll = 0.0, rr = 0.0;
        for (size_t i = 0; i < n; i++) {
            double weight = weights != NULL ? (double)weights[first + i] : 1.0;
            double x = weight * l[i];
            double y = weight * r[i];
            dot += x * y;
            ll += x * x;
            rr += y * y;
        }
        out->dot[p] += dot;
        out->ll[p] += ll;
        out->rr[p] += rr;
    }
}

/* Rank the decode counts' distances; false if they do not vary. */
static bool rank_target(search_t *search)
{
    const akin_layer_mask_params_t *params = search->params;
    products_t *sum = &search->chosen; /* not in use yet */
    size_t n = (size_t)params->n_layers * params->n_experts;
    add_products(params, params->decode, NULL, 0, n, sum);
    for (uint32_t p = 0; p < params->n_pairs; p++) {
        double norm = sqrt(sum->ll[p]) * sqrt(sum->rr[p]);
        search->distance[p] = 1.0 - sum->dot[p] / fmax(norm, EPSILON);
    }
    akin_ranking_centred(search->ranking, search->distance, search->target);
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
    akin_ranking_centred(search->ranking, search->distance, search->ranks);
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
                                "that differ",
                                params->n_pairs);
    } else {
        for (uint32_t l = 0; l < params->n_layers; l++)
            add_products(params, params->prefill, params->idf,
                         (size_t)l * params->n_experts, params->n_experts,
                         &search.layers[l]);
        run_search(&search, order, rho, mask, result_p);
    }
    destroy_search(&search);
    return status;
}
