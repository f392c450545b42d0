/* Eigen: the largest eigenvalues of a symmetric matrix, with their vectors. */
#ifndef AKIN_ROUTING_EIGEN_H
#define AKIN_ROUTING_EIGEN_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akini_eigen_params {
    const double *matrix; /* [n][stride] symmetric, without negative
                             eigenvalues beyond rounding; finite */
    size_t stride;        /* elements from row to row, >= n */
    uint32_t n;           /* >= 1 */
    uint32_t n_wanted;    /* >= 1 */
    uint64_t seed;        /* of the vectors to start from */
} akini_eigen_params_t;

/**
 * Subspace iteration on some more vectors than are wanted, then one rotation
 * of what it found (Rayleigh-Ritz). The number of rounds is fixed: directions
 * whose eigenvalues lie close together at the end may still be mixed. The same
 * input gives the same bits.
 *
 * \param[out] values    [n_wanted] falling; those that rounding could have
 *                       made, and those past n, are left out.
 * \param[out] vectors   [n_wanted][n] of length 1, at right angles.
 * \param[out] n_found_p
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akini_eigen_find(const akini_eigen_params_t *params,
                               double *values, double *vectors,
                               uint32_t *n_found_p) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
