/* Loops of the policy `union` over the cells (layer, expert) of a model.
 *
 * Arrays that a kernel writes or sums have a multiple of AKINI_LANES
 * elements, those at the end zero. Every sum runs in AKINI_LANES fixed
 * lanes and the build forbids fused multiply-add, so the result is the same to
 * the bit whatever instruction set serves the call. */
#ifndef AKIN_ROUTING_UNION_KERNEL_H
#define AKIN_ROUTING_UNION_KERNEL_H

#include "routing/lanes.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Cells rounded up to whole lanes. */
static inline size_t akini_union_padded(size_t cells)
{
    return (cells + AKINI_LANES - 1) / AKINI_LANES * AKINI_LANES;
}

/** Rows of rates that a kernel mixes at once. */
#define AKINI_UNION_MIX_ROWS 4

/**
 * A weighted mean of rows of rates, row by row in each cell:
 * (sum + weights[0] * rows[0] + weights[1] * rows[1] + ...) * scale.
 */
typedef struct akini_union_mixture {
    const float *sum; /* [cells] of rows mixed before, or NULL: 0 */
    const float *rows[AKINI_UNION_MIX_ROWS]; /* [n_rows] of [cells] */
    float weights[AKINI_UNION_MIX_ROWS];
    uint32_t n_rows; /* 1 to AKINI_UNION_MIX_ROWS */
    float scale;
} akini_union_mixture_t;

/** sum = the mixture's; it may be the sum that the mixture starts from. */
void akini_union_mix(const akini_union_mixture_t *mixture, float *sum,
                     size_t cells);

/**
 * Chance that one decode token activates each expert:
 * (counts + kappa * prior) / (n_tokens + kappa), at most 1 - 1e-6
 * (ALGORITHMS.md 5).
 *
 * \param[in]  counts  [cells] prompt counts, or NULL: the prior alone.
 * \param[in]  prior   mixture of chances.
 * \param[out] rates   [cells]; the padding is left alone.
 */
void akini_union_rates(const uint16_t *counts,
                       const akini_union_mixture_t *prior, float *rates,
                       size_t cells, float n_tokens, float kappa);

/**
 * -ln(1 - rate), as -log1p(-rate) to a few ulp.
 *
 * \param[in]  rates     [padded] each in [0, 1 - 1e-6].
 * \param[out] surprise  [padded]
 */
void akini_union_surprise(const float *rates, float *surprise, size_t padded);

/** after = idle * (1 - rates): the chances that experts stay idle when a
 * request joins. */
void akini_union_still_idle(const float *idle, const float *rates, float *after,
                            size_t padded);

/** sum += surprise. */
void akini_union_add(float *sum, const float *surprise, size_t padded);

/** sum = max(sum - surprise, 0). */
void akini_union_subtract(float *sum, const float *surprise, size_t padded);

/**
 * Chance that each expert stays idle: idle = exp(-sum).
 *
 * \return expected distinct experts, the sum of 1 - idle.
 */
double akini_union_refresh(const float *sum, float *idle, size_t padded);

#ifdef __cplusplus
}
#endif

#endif
