/* Policy `union`, seen from inside: what its tests compare. */
#ifndef AKIN_ROUTING_POLICY_UNION_H
#define AKIN_ROUTING_POLICY_UNION_H

#include "routing/cost.h"
#include "routing/policy.h"
#include "routing/union_rates.h"

/**
 * S of a worker: the sum of -ln(1 - rate) over its requests in flight.
 *
 * \param[in] policy  created as "union".
 * \param[in] worker  below n_workers.
 * \return [n_layers][n_experts], borrowed until the next call that changes
 *         the policy.
 */
const float *akini_union_state(const akin_policy_t *policy, uint32_t worker);

/** U of all workers: [n_workers][n_layers x n_experts, rounded up to
 * AKINI_LANES], borrowed alike. */
const float *akini_union_idle(const akin_policy_t *policy);

/** Rates expected of a request of which nothing is known, laid out alike. */
const float *akini_union_prior(const akin_policy_t *policy);

/** The fit of the step time. */
const akin_cost_t *akini_union_cost(const akin_policy_t *policy);

#endif
