/* Signature: the unit vector of a prompt's expert counts. */
#ifndef AKIN_ROUTING_SIGNATURE_H
#define AKIN_ROUTING_SIGNATURE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * What becomes of counts (ALGORITHMS.md 1): variant `count` is the form with
 * neither mask nor IDF, `count_idf` has both. All pointers are borrowed.
 */
typedef struct akin_signature_form {
    uint32_t n_layers;
    uint32_t n_experts;
    const uint32_t *layers; /* [n_masked] those that count, rising; NULL: all */
    uint32_t n_masked;
    const float *idf; /* [n_layers][n_experts]; NULL: 1 everywhere */
} akin_signature_form_t;

/**
 * Refuse a form that could lead out of bounds: to be called once for a form
 * that was read from somewhere.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: no layers, experts or masked layers, more than
 *         2^24 cells, masked layers that are out of range or do not rise, an
 *         IDF that is negative or not finite.
 */
akin_status_t akin_signature_form_check(const akin_signature_form_t *form,
                                        akin_error_t *err) AKIN_MUST_CHECK;

/** Elements of a signature of that form. */
size_t akin_signature_size(const akin_signature_form_t *form);

/**
 * Masked layers, layer-major, times IDF, divided by max(L2 norm, 1e-9); one
 * norm over all. Counts of zero give zeros.
 *
 * \param[in]  form       checked.
 * \param[in]  counts     [n_layers][n_experts]
 * \param[out] signature  [akin_signature_size(form)]
 */
void akin_signature_compute(const akin_signature_form_t *form,
                            const uint16_t *counts, float *signature);

/**
 * Count a calibration request: df[i] += counts[i] > 0.
 *
 * \param[in]     counts  [cells]
 * \param[in,out] df      [cells]
 */
void akin_signature_df_add(const uint16_t *counts, size_t cells, uint32_t *df);

/**
 * idf = ln((N + 1) / (df + 1)).
 *
 * \param[in]  df          [cells] requests that used the expert, <= n_requests.
 * \param[in]  n_requests  N.
 * \param[out] idf         [cells]
 */
void akin_signature_idf(const uint32_t *df, uint32_t n_requests, size_t cells,
                        float *idf);

#ifdef __cplusplus
}
#endif

#endif
