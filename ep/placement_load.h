/* Placement load: how many experts the busiest rank of a worker is expected to
 * activate in a step. Pure. */
#ifndef AKIN_EP_PLACEMENT_LOAD_H
#define AKIN_EP_PLACEMENT_LOAD_H

#include "ep/placement.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * c_R of ALGORITHMS.md 6: the expected maximum of R standard normal variables
 * to three places, .564, 1.029, 1.424, 1.766 for 2, 4, 8, 16 ranks.
 *
 * \param[in] n_ranks  beyond AKIN_PLACEMENT_MAX_RANKS it no longer grows.
 */
double akin_placement_load_factor(uint32_t n_ranks);

/**
 * Expected maximum over the ranks of one layer (ALGORITHMS.md 6): mean(mu) +
 * c_R sqrt(mean(var) + Var(mu)), mu = sum of 1 - idle, var = sum of
 * idle (1 - idle) over what a rank serves. Beyond that:
 * - An expert with several holders goes to the less loaded one, as
 *   akin_placement_choose() does, in the same order: this raises the ranks' mu
 *   by the chance that each is the less loaded, and takes from the variances
 *   and adds to the covariances, whose mean is subtracted from mean(var). What
 *   it levels is no longer normal but whole: R loads that differ by at most one
 *   have their maximum (R - 1) / (2 R) above the mean.
 * - The largest mu is a lower bound; what the busiest rank serves when every
 *   expert is active is an upper one, which shows from three deviations below
 *   it on.
 *
 * Against the replica choice on independent activations it is within 2 % in
 * the mean over random maps of 4 to 32 experts per rank with up to two replica
 * slots per rank; a map in which one rank stands out may be 10 % off.
 *
 * \param[in] idle     [n_experts] chance that no request activates the expert.
 * \param[in] holders  [n_experts]
 * \param[in] n_ranks  at most AKIN_PLACEMENT_MAX_RANKS.
 * \return experts; the sum of 1 - idle with one rank.
 */
double akin_placement_load_layer(const float *idle, const uint64_t *holders,
                                 uint32_t n_experts, uint32_t n_ranks);

/**
 * Sum over the layers of akin_placement_load_layer().
 *
 * \param[in] idle  [n_layers][n_experts]
 */
double akin_placement_load(const akin_placement_t *placement,
                           const float *idle);

/** idle = (1 - rate)^batch: the chance that no request of a step activates the
 * expert. \param[out] idle  [n] */
void akin_placement_idle(const float *rates, size_t n, double batch,
                         float *idle);

/**
 * akin_placement_load() of a step with so many requests.
 *
 * \param[in] rates  [n_layers][n_experts] chance that a decode token activates
 *                   the expert.
 * \param[in] batch  requests of the step, more than 0.
 */
double akin_placement_predict(const akin_placement_t *placement,
                              const float *rates, double batch);

#ifdef __cplusplus
}
#endif

#endif
