/* Band: the workers whose centroids lie near a signature, and the least loaded
 * of them. */
#ifndef AKIN_ROUTING_BAND_H
#define AKIN_ROUTING_BAND_H

#include "routing/policy.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Least in flight among the eligible workers with a score of at least
 * max - tau over the eligible ones, tie to the lowest index (ALGORITHMS.md 4,
 * `eldr-static`). Equal scores, such as those of a zero signature, leave the
 * least in flight of all.
 *
 * \param[in] scores     [n_workers] cosines, finite.
 * \param[in] in_flight  [n_workers]
 * \param[in] eligible   [n_workers], non-zero: may be chosen.
 * \param[in] tau        finite, >= 0.
 * \return a worker; AKIN_ROUTING_NO_WORKER if none is eligible.
 */
uint32_t akin_band_choose(const float *scores, const uint32_t *in_flight,
                          const uint8_t *eligible, uint32_t n_workers,
                          double tau);

/**
 * Least score that is in the band: max - tau over the eligible workers.
 *
 * \return -infinity if none is eligible.
 */
double akin_band_floor(const float *scores, const uint8_t *eligible,
                       uint32_t n_workers, double tau);

#ifdef __cplusplus
}
#endif

#endif
