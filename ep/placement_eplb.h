/* Placement by tokens: DeepSeek's expert parallelism load balancer. */
#ifndef AKIN_EP_PLACEMENT_EPLB_H
#define AKIN_EP_PLACEMENT_EPLB_H

#include "base/error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_placement_eplb_params {
    const float *weights; /* [n_layers][n_experts] tokens; 0 or more, finite */
    uint32_t n_layers;
    uint32_t n_experts; /* at most 65536 */
    uint32_t n_slots;   /* of all ranks: n_experts and the replicas */
    uint32_t n_groups;  /* of experts that the gate chooses together; 0: 1 */
    uint32_t n_nodes;   /* 0: 1 */
    uint32_t n_ranks;
} akin_placement_eplb_params_t;

/**
 * The physical-to-logical map of EPLB (ALGORITHMS.md 6). Where the nodes divide
 * the groups it is hierarchical: groups packed to nodes, then inside each node
 * the expert with the largest weight per copy replicated and the copies packed
 * to the node's ranks. Otherwise there is one group on one node. All sorts are
 * stable and the lowest index wins. As with EPLB, a rank may get two copies of
 * an expert.
 *
 * \param[in]  params
 * \param[out] expert_of_slot  [n_layers][n_slots]; slot i is of rank
 *                             i / (n_slots / n_ranks).
 * \param[out] err             names the number that does not fit.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: fewer slots than experts, ranks that do not divide
 *         the slots, nodes the ranks or groups the experts, a size of 0, a
 *         weight negative or not finite.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_placement_eplb(const akin_placement_eplb_params_t *params,
                                  uint16_t *expert_of_slot,
                                  akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
