/* Union rates: how likely a decode token of a request activates each expert. */
#ifndef AKIN_ROUTING_UNION_RATES_H
#define AKIN_ROUTING_UNION_RATES_H

#include "routing/locality.h"
#include "routing/policy.h"

#include <stddef.h>

/** Weight of the prior, in prompt tokens. */
#define AKINI_UNION_KAPPA 8.0f

/** Weight of a prior that comes from a fit. */
#define AKINI_UNION_FIT_KAPPA 64.0f

/** Decode tokens that the running mean of decode rates remembers. */
#define AKINI_UNION_MEMORY_TOKENS 4096.0f

/** What the rates of a request come from: the fit's decode map, else the
 * decode rates of its clusters, else the running mean of recent decode. */
typedef struct akini_union_rates_source {
    uint32_t n_layers;
    uint32_t n_experts;
    uint32_t top_k;
    size_t cells;
    float *prior; /* [cells] running mean of decode rates */
    float *mixed; /* [cells] scratch: prior of the request, from pbar */
    float *rates; /* [cells] of the request */
    const akin_decode_map_t *map; /* of the fit, or NULL */
    const float *pbar;            /* [n_clusters][cells] of the fit, or NULL */
} akini_union_rates_source_t;

/**
 * Begin with a uniform prior.
 *
 * \param[in] arrays  three of `padded` floats each, zero, borrowed.
 */
void akini_union_rates_init(akini_union_rates_source_t *source,
                            const akin_policy_params_t *params, float *arrays,
                            size_t padded);

/** Are cosines with the centroids needed? */
int akini_union_rates_need_scores(const akini_union_rates_source_t *source);

/**
 * Fill source->rates (ALGORITHMS.md 5).
 *
 * \param[in] locality  scored for the request, if scores are needed.
 */
void akini_union_rates_expect(akini_union_rates_source_t *source,
                              const akini_locality_t *locality,
                              const akin_policy_request_t *request);

/** Feed decode counts into the running mean, unless they are damaged. */
void akini_union_rates_observe(akini_union_rates_source_t *source,
                               const uint16_t *counts, uint32_t n_tokens);

#endif
