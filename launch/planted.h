/* Planted traffic: synthetic requests of known domains, and a fit for them,
 * drawn from a seed alone. For measurements. */
#ifndef AKIN_LAUNCH_PLANTED_H
#define AKIN_LAUNCH_PLANTED_H

#include "routing/fit.h"

typedef struct akin_planted {
    uint32_t n_layers;
    uint32_t n_experts;
    uint32_t top_k;
    uint32_t n_domains; /* >= 1; a request or cluster i is of i % n_domains */
    uint64_t seed;
} akin_planted_t;

/** What a list of counts is of: no two draw the same noise. */
typedef enum akin_planted_kind {
    AKIN_PLANTED_CLUSTER = 1,
    AKIN_PLANTED_PREFILL,
    AKIN_PLANTED_DECODE
} akin_planted_kind_t;

/**
 * Counts of some tokens: three in four of a layer's choices go to the experts
 * of its domain, which are others in every layer, each expert with noise of a
 * factor of 0.5 to 1.5. They are rounded, so a layer adds up to about
 * n_tokens x top_k.
 *
 * \param[in]  n_tokens  up to 65,535.
 * \param[out] counts    [n_layers][n_experts]
 */
void akin_planted_counts(const akin_planted_t *planted,
                         akin_planted_kind_t kind, uint32_t index,
                         uint32_t n_tokens, uint16_t *counts);

/**
 * A fit of all layers with an IDF, made of one list of counts per cluster
 * rather than by clustering.
 *
 * \param[out] fit  the caller's to clean up.
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akin_planted_fit(const akin_planted_t *planted,
                               uint32_t n_clusters, akin_fit_t *fit,
                               akin_error_t *err) AKIN_MUST_CHECK;

#endif
