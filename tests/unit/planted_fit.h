/* A fit for planted requests: one cluster per worker, worker w holding the
 * domain w modulo the number of domains. */
#ifndef AKIN_TESTS_UNIT_PLANTED_FIT_H
#define AKIN_TESTS_UNIT_PLANTED_FIT_H

#include "planted_requests.h"

#include "routing/fit.h"

#include <math.h>
#include <stdlib.h>

/** Variant `count_idf` with an IDF of 1 and all layers; akin_fit_cleanup(). */
static inline akin_fit_t planted_fit(const planted_shape_t *shape,
                                     uint32_t n_workers)
{
    enum { TOKENS = 200 };
    const size_t cells = (size_t)shape->n_layers * shape->n_experts;
    akin_fit_t fit = {
        .n_layers = shape->n_layers,
        .n_experts = shape->n_experts,
        .top_k = shape->top_k,
        .n_clusters = n_workers,
        .variant = AKIN_FIT_COUNT_IDF,
        .n_masked = shape->n_layers,
        .dim = cells,
        .rho = NAN,
        .tau = NAN,
        .pull = NAN,
        .layers = calloc(shape->n_layers, sizeof(*fit.layers)),
        .idf = calloc(cells, sizeof(*fit.idf)),
        .centroids = calloc(n_workers * cells, sizeof(*fit.centroids)),
        .pbar = calloc(n_workers * cells, sizeof(*fit.pbar)),
    };
    uint16_t *counts = calloc(cells, sizeof(*counts));
    if (fit.layers == NULL || fit.idf == NULL || fit.centroids == NULL ||
        fit.pbar == NULL || counts == NULL)
        abort();
    for (uint32_t l = 0; l < shape->n_layers; l++)
        fit.layers[l] = l;
    for (size_t i = 0; i < cells; i++)
        fit.idf[i] = 1.0f;
    const akin_signature_form_t form = akin_fit_form(&fit);
    for (uint32_t w = 0; w < n_workers; w++) {
        /* A request of the domain, of a seed that no test draws from. */
        planted_counts(shape, 777777, w % shape->n_domains, TOKENS, counts);
        akin_signature_compute(&form, counts, fit.centroids + w * cells);
        for (size_t i = 0; i < cells; i++)
            fit.pbar[w * cells + i] = (float)counts[i] / TOKENS;
    }
    free(counts);
    return fit;
}

#endif
