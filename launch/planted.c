/* Planted traffic: synthetic requests of known domains, and a fit for them. */
#include "launch/planted.h"

#include "base/rng.h"
#include "routing/float_array.h"

#include <math.h>
#include <stdlib.h>

#define OWN_SHARE 0.75
#define CLUSTER_TOKENS 1000u

/* Streams of the domains' experts and of the IDF, beside those of the kinds. */
enum { STREAM_SHIFT = 8, STREAM_IDF };

/* Experts e of the layer with (e + shift) % n_domains == domain are its own. */
static uint32_t shift_of(const akin_planted_t *planted, uint32_t layer)
{
    return (uint32_t)akin_rng_below(planted->seed, STREAM_SHIFT, layer,
                                    planted->n_domains);
}

void akin_planted_counts(const akin_planted_t *planted,
                         akin_planted_kind_t kind, uint32_t index,
                         uint32_t n_tokens, uint16_t *counts)
{
    uint32_t n_experts = planted->n_experts;
    uint32_t domain = index % planted->n_domains;
    uint64_t stream = ((uint64_t)index << 4) + (uint64_t)kind;
    for (uint32_t layer = 0; layer < planted->n_layers; layer++) {
        uint16_t *row = counts + (size_t)layer * n_experts;
        uint32_t shift = shift_of(planted, layer);
        uint32_t n_own = 0;
        for (uint32_t e = 0; e < n_experts; e++)
            n_own += (e + shift) % planted->n_domains == domain;
        uint32_t n_other = n_experts - n_own;
        double share = n_own == 0 ? 0.0 : n_other == 0 ? 1.0 : OWN_SHARE;
        double choices = (double)n_tokens * planted->top_k;
        for (uint32_t e = 0; e < n_experts; e++) {
            int is_own = (e + shift) % planted->n_domains == domain;
            double mean =
                is_own ? share / n_own : (1.0 - share) / fmax(n_other, 1.0);
            double noise =
                0.5 + akin_rng_uniform(planted->seed, stream,
                                       (uint64_t)layer * n_experts + e);
            row[e] = (uint16_t)fmin(choices * mean * noise + 0.5, n_tokens);
        }
    }
}

akin_status_t akin_planted_fit(const akin_planted_t *planted,
                               uint32_t n_clusters, akin_fit_t *fit,
                               akin_error_t *err)
{
    const size_t cells = (size_t)planted->n_layers * planted->n_experts;
    *fit = (akin_fit_t){
        .n_layers = planted->n_layers,
        .n_experts = planted->n_experts,
        .top_k = planted->top_k,
        .n_clusters = n_clusters,
        .variant = AKIN_FIT_COUNT_IDF,
        .n_masked = planted->n_layers,
        .dim = cells,
        .rho = NAN,
        .tau = NAN,
        .layers = calloc(planted->n_layers, sizeof(*fit->layers)),
        .idf = akini_float_array_create(1, cells),
        .centroids = akini_float_array_create(n_clusters, cells),
        .pbar = akini_float_array_create(n_clusters, cells),
    };
    uint16_t *counts = calloc(cells, sizeof(*counts));
    if (fit->layers == NULL || fit->idf == NULL || fit->centroids == NULL ||
        fit->pbar == NULL || counts == NULL) {
        free(counts);
        akin_fit_cleanup(fit);
        return akin_error_set(err, AKIN_ERR_NOMEM,
                              "out of memory for %u clusters of %u layers x "
                              "%u experts",
                              n_clusters, planted->n_layers,
                              planted->n_experts);
    }
    for (uint32_t l = 0; l < planted->n_layers; l++)
        fit->layers[l] = l;
    for (size_t i = 0; i < cells; i++)
        fit->idf[i] =
            (float)(0.1 + 2.0 * akin_rng_uniform(planted->seed, STREAM_IDF, i));
    const akin_signature_form_t form = akin_fit_form(fit);
    for (uint32_t k = 0; k < n_clusters; k++) {
        akin_planted_counts(planted, AKIN_PLANTED_CLUSTER, k, CLUSTER_TOKENS,
                            counts);
        akin_signature_compute(&form, counts, fit->centroids + k * cells);
        for (size_t i = 0; i < cells; i++)
            fit->pbar[k * cells + i] = (float)counts[i] / (float)CLUSTER_TOKENS;
    }
    free(counts);
    return AKIN_OK;
}
