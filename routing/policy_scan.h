/* Policy scan: passes over all workers that a decision makes. */
#ifndef AKIN_ROUTING_POLICY_SCAN_H
#define AKIN_ROUTING_POLICY_SCAN_H

#include <stdint.h>

/** Least load of the workers that may be chosen.
 * \param[in]  loads     [n] each below UINT32_MAX.
 * \param[in]  eligible  [n] non-zero: may be chosen.
 * \param[out] count_p   workers that have it; 0: none may be chosen.
 * \return UINT32_MAX in that case. */
uint32_t akini_scan_least(const uint32_t *loads, const uint8_t *eligible,
                          uint32_t n, uint32_t *count_p);

/** The rank-th, from 0, of the workers that have this load and may be chosen.
 * \return n if there are not that many. */
uint32_t akini_scan_nth_at(const uint32_t *loads, const uint8_t *eligible,
                           uint32_t n, uint32_t load, uint64_t rank);

/** Workers that may be chosen. */
uint32_t akini_scan_count(const uint8_t *eligible, uint32_t n);

/** The rank-th of them, from 0. \return n if there are not that many. */
uint32_t akini_scan_nth(const uint8_t *eligible, uint32_t n, uint64_t rank);

#endif
