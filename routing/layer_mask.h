/* Layer mask: the layers whose prefill counts tell best how alike two requests
 * decode. */
#ifndef AKIN_ROUTING_LAYER_MASK_H
#define AKIN_ROUTING_LAYER_MASK_H

#include "base/error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Pairs of requests that production draws. */
#define AKIN_LAYER_MASK_PAIRS 30000

/** Calibration requests and the pairs to compare; all pointers borrowed. */
typedef struct akin_layer_mask_params {
    uint32_t n_requests;
    uint32_t n_layers;
    uint32_t n_experts;
    const uint16_t *prefill; /* [n_requests][n_layers][n_experts] counts */
    const uint16_t *decode;  /* the same shape */
    const float *idf;        /* [n_layers][n_experts]; NULL: 1 everywhere */
    const uint32_t *left;    /* [n_pairs] requests */
    const uint32_t *right;   /* [n_pairs] */
    uint32_t n_pairs;
} akin_layer_mask_params_t;

/** What the search found. */
typedef struct akin_layer_mask_result {
    uint32_t n_masked; /* layers in the mask */
    double rho;        /* of the mask */
    /* Parts of the time. */
    double products_s; /* products of the pairs' counts */
    double search_s;   /* the search, ranking included */
    double ranking_s;  /* ranking alone */
} akin_layer_mask_result_t;

/**
 * Draw pairs of different requests, each side uniform: with replacement, equal
 * ones dropped.
 *
 * \param[in]  n_requests  at least 1.
 * \param[in]  n_draws     pairs to draw.
 * \param[in]  seed
 * \param[out] left        [n_draws]
 * \param[out] right       [n_draws]
 * \return pairs kept, at most n_draws.
 */
uint32_t akin_layer_mask_draw(uint32_t n_requests, uint32_t n_draws,
                              uint64_t seed, uint32_t *left, uint32_t *right);

/**
 * Forward-greedy search (ALGORITHMS.md 2): the layer that raises rho most
 * joins next, the lowest on a tie, until all have; the mask is the shortest
 * prefix of that order with the largest rho, sorted. Rho is Spearman's
 * correlation over the pairs between the cosine distance of the signatures and
 * that of the decode counts.
 *
 * \param[in]  params
 * \param[out] order     [n_layers] layers as they joined.
 * \param[out] rho       [n_layers] rho after each of them.
 * \param[out] mask      [n_layers] the first n_masked are the mask, rising.
 * \param[out] result_p
 * \param[out] err       says what is wrong.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: a size is 0, a pair names a request that there is
 *         not, or all pairs decode equally far apart.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_layer_mask_search(const akin_layer_mask_params_t *params,
                                     uint32_t *order, double *rho,
                                     uint32_t *mask,
                                     akin_layer_mask_result_t *result_p,
                                     akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
