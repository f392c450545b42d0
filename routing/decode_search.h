/* Decode search: chooses how a decode map is made by what it predicts of
 * requests held out. */
#ifndef AKIN_ROUTING_DECODE_SEARCH_H
#define AKIN_ROUTING_DECODE_SEARCH_H

#include "routing/decode_samples.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a decode map is made. Zero predicts the mean. */
typedef struct akini_decode_choice {
    uint32_t n_axes; /* as many as the requests have, at most */
    double ridge;    /* parts of the mean squared length of the x */
    double carry;
    double r2; /* share of the held-out variance explained; NaN: unknown */
} akini_decode_choice_t;

/**
 * Try all choices by cross-validation: requests are dealt into five parts by
 * the seed, and each part is predicted from the others. The choice of least
 * squared error over cells and requests wins, the simpler one on a tie; every
 * request counts the same, however long it decodes, as every one is routed
 * once. Rates are not clipped here. Errors follow from the products of the
 * samples alone, without a look at their cells.
 *
 * \param[out] choice_p  the mean alone for fewer than ten requests, and where
 *                       requests do not differ.
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t
akini_decode_search(const akini_decode_samples_t *samples, uint64_t seed,
                    akini_decode_choice_t *choice_p) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
