/* Group change: another map for a layer of a group that serves. */
#include "ep/group_state.h"

#include "ep/placement_change.h"

#include <string.h>

akin_status_t akin_ep_group_set_layer(akin_ep_group_t *g, uint32_t layer,
                                      const uint64_t *holders, uint64_t epoch,
                                      akin_error_t *err)
{
    if (epoch <= g->placement.epoch)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "expert-parallel group: epoch out of order: %llu "
                              "after %llu",
                              (unsigned long long)epoch,
                              (unsigned long long)g->placement.epoch);
    akin_status_t status =
        akin_placement_check_layer(&g->placement, layer, holders, err);
    if (status != AKIN_OK)
        return status;
    memcpy(g->placement.holders + (size_t)layer * g->placement.n_experts,
           holders, g->placement.n_experts * sizeof(*holders));
    g->placement.epoch = epoch;
    return AKIN_OK;
}

akin_status_t akin_ep_group_set_placement(akin_ep_group_t *g,
                                          const akin_placement_t *placement,
                                          akin_error_t *err)
{
    const akin_placement_t *now = &g->placement;
    if (placement->n_layers != now->n_layers ||
        placement->n_experts != now->n_experts ||
        placement->n_ranks != now->n_ranks ||
        placement->n_replicas != now->n_replicas)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "the placement is of another model or another "
                              "group");
    akin_status_t status = akin_placement_check(placement, err);
    if (status != AKIN_OK)
        return status;
    memcpy(g->placement.holders, placement->holders,
           (size_t)now->n_layers * now->n_experts *
               sizeof(*g->placement.holders));
    g->placement.epoch = placement->epoch;
    return AKIN_OK;
}
