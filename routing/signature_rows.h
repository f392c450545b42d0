/* Signature rows: a signature is formed while the first rows that it is
 * compared with are read. */
#ifndef AKIN_ROUTING_SIGNATURE_ROWS_H
#define AKIN_ROUTING_SIGNATURE_ROWS_H

#include "routing/signature.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Dot products of the counts, masked and times IDF, with rows. Divided by the
 * norm they are those of the signature; equal rows have equal sums.
 *
 * \param[in]  form      checked.
 * \param[in]  counts    [n_layers][n_experts]
 * \param[out] weighted  [akin_signature_size(form)] the signature, not yet
 *                       scaled, if it is kept; scratch otherwise.
 * \param[in]  is_kept   whether that signature is wanted.
 * \param[in]  rows      [n_rows][akin_signature_size(form)]
 * \param[out] sums      [n_rows]
 * \return scale of the signature, 1 / max(L2 norm, 1e-9).
 */
float akini_signature_dot_rows(const akin_signature_form_t *form,
                               const uint16_t *counts, float *weighted,
                               int is_kept, const float *rows, uint32_t n_rows,
                               double *sums);

/** weighted *= scale. */
void akini_signature_scale(float *weighted, float scale, size_t n);

#ifdef __cplusplus
}
#endif

#endif
