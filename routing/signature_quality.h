/* Signature quality: how well signatures of prompts tell which requests decode
 * alike. */
#ifndef AKIN_ROUTING_SIGNATURE_QUALITY_H
#define AKIN_ROUTING_SIGNATURE_QUALITY_H

#include "routing/signature.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Requests and the pairs to compare; all pointers borrowed. */
typedef struct akin_signature_quality_params {
    akin_signature_form_t form; /* checked */
    uint32_t n_requests;
    const uint16_t *prefill; /* [n_requests][n_layers][n_experts] counts */
    const uint16_t *decode;  /* the same shape */
    const uint32_t *left;    /* [n_pairs] requests */
    const uint32_t *right;   /* [n_pairs] */
    uint32_t n_pairs;
} akin_signature_quality_params_t;

/**
 * Spearman's correlation (ALGORITHMS.md 2), over the pairs, between the cosine
 * distance of the signatures and that of the decode counts of all layers.
 *
 * \param[in]  params
 * \param[out] rho_p  -1 to 1; NaN if there are no pairs, or if either distance
 *                    is the same for all of them.
 * \param[out] err
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: a pair names a request that there is not.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t
akin_signature_quality_rho(const akin_signature_quality_params_t *params,
                           double *rho_p, akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
