/* Transport: cheapest assignment of points to sinks of bounded capacity. */
#ifndef AKIN_ROUTING_TRANSPORT_H
#define AKIN_ROUTING_TRANSPORT_H

#include "base/error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Exact minimum of the sum of cost[i][sink[i]] with at most `capacity` points
 * per sink: successive shortest paths on the graph of the sinks, where the
 * edge j -> k costs what the cheapest point of j loses by moving to k. About
 * n_points x n_sinks^2 steps (ALGORITHMS.md 3). Equal inputs give equal
 * answers; where several assignments are cheapest, which one is not said.
 *
 * \param[in]  cost      [n_points][n_sinks], finite.
 * \param[in]  n_points  may be 0.
 * \param[in]  n_sinks   1 to 1024.
 * \param[in]  capacity  points per sink at most.
 * \param[out] sink      [n_points]
 * \param[out] total_p   sum of the costs; NULL is allowed.
 * \param[out] err       says what is wrong.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: n_sinks out of range, the sinks cannot hold all
 *         points, or a cost is not finite.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_transport_solve(const float *cost, uint32_t n_points,
                                   uint32_t n_sinks, uint32_t capacity,
                                   uint32_t *sink, double *total_p,
                                   akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
