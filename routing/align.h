/* Align: gives new centroids to the workers whose old ones they resemble. */
#ifndef AKIN_ROUTING_ALIGN_H
#define AKIN_ROUTING_ALIGN_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The one-to-one assignment that maximises the sum of current[worker_of[i]] .
 * fitted[i] (ALGORITHMS.md 4, background refit), so that a refit leaves the
 * prefix caches of the workers of use.
 *
 * \param[in]  current    [k][dim] centroids by worker.
 * \param[in]  fitted     [k][dim] centroids of the new fit, in any order.
 * \param[in]  k          1 to 1024.
 * \param[in]  dim        elements of a centroid.
 * \param[out] worker_of  [k] the worker of each fitted centroid.
 * \param[out] err        says what is wrong.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: k out of range, or centroids that are not finite.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_align_centroids(const float *current, const float *fitted,
                                   uint32_t k, size_t dim, uint32_t *worker_of,
                                   akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
