/* Placement load: how many experts the busiest rank of a worker is expected to
 * activate in a step. Pure. */
#ifndef AKIN_EP_PLACEMENT_LOAD_H
#define AKIN_EP_PLACEMENT_LOAD_H

#include "ep/placement.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * c_R of ALGORITHMS.md 6: the expected maximum of R standard normal variables,
 * 0, .564, 1.029, 1.424, 1.766 for 1, 2, 4, 8, 16 ranks, and what lies
 * between.
 */
double akin_placement_load_factor(uint32_t n_ranks);

/**
 * Expected maximum over the ranks of one layer: mean(mu) + c_R sqrt(mean(var) +
 * Var(mu)), mu = sum of 1 - idle, var = sum of idle (1 - idle) over what a
 * rank serves; an expert with several holders is shared among them as the
 * replica choice would on average.
 *
 * \param[in] idle     [n_experts] chance that no request activates the expert.
 * \param[in] holders  [n_experts]
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
