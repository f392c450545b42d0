/* Group: one MoE layer over the ranks of an expert-parallel worker: dispatch,
 * expert compute, combine. */
#ifndef AKIN_EP_GROUP_H
#define AKIN_EP_GROUP_H

#include "ep/exchange.h"
#include "ep/expert_step.h"
#include "ep/placement.h"

#ifdef __cplusplus
extern "C" {
#endif

/** This rank's part of a group. */
typedef struct akin_ep_group akin_ep_group_t;

typedef struct akin_ep_group_params {
    akin_ep_exchange_t *exchange;      /* borrowed */
    const akin_placement_t *placement; /* of the worker; copied */
    int64_t timeout_ns; /* for a rank of the group that does not come */
} akin_ep_group_params_t;

/**
 * \param[out] group_p  owned by the caller; outlives the engine that runs it.
 * \return AKIN_OK, AKIN_ERR_INVALID: exchange and placement differ in ranks.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_ep_group_create(const akin_ep_group_params_t *params,
                                   akin_ep_group_t **group_p,
                                   akin_error_t *err) AKIN_MUST_CHECK;

/** NULL is allowed. */
void akin_ep_group_destroy(akin_ep_group_t *group);

/**
 * The longest piece that one rank of a group gives another in a swap, for
 * exchanges whose memory is laid out beforehand.
 *
 * \param[in] step  of which hidden, top_k and max_rows count.
 * \return bytes.
 */
size_t akin_ep_group_piece_bytes(const akin_expert_step_params_t *step);

/**
 * Make the scratch memory for steps of a model; called once by the engine.
 *
 * \param[in] step  sizes; max_rows is the same on all ranks of the group.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: other experts than are placed, sizes of nothing or
 *         beyond all bounds, called a second time.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_ep_group_prepare(akin_ep_group_t *group,
                                    const akin_expert_step_params_t *step,
                                    akin_error_t *err) AKIN_MUST_CHECK;

/**
 * As akin_expert_step_run(), the experts being where the placement says: the
 * hidden vector of a row goes once to every other rank that serves one of its
 * experts, each (row, choice) comes back as one vector, and the owner adds a
 * row's vectors in the gate's order: the same bits as on one rank. Every rank
 * of the group calls it for every layer of a step, with or without rows.
 *
 * Called by every thread of the team; ends with a barrier.
 *
 * \param[in]  layer
 * \param[in]  batch   this rank's rows; batch->experts are those of the layer,
 *                     of which only the ones held here are touched.
 * \param[out] status_p  written by thread 0 only, and before the last barrier,
 *                       so that every thread may read it afterwards: AKIN_OK,
 *                       or why the group is no more; the rows are then worth
 *                       nothing, and later calls fail alike.
 * \return distinct experts that this rank served; 0 on failure.
 */
uint32_t akin_ep_group_run(akin_ep_group_t *group, akin_team_t *team,
                           uint32_t rank, uint32_t layer,
                           const akin_expert_batch_t *batch,
                           akin_status_t *status_p);

/**
 * Give every rank of the group some bytes and get theirs, outside of layers.
 * Every rank calls it between the same two steps; needs no prepare. Not while
 * the group runs.
 *
 * \param[in]  data, bytes  as many on every rank.
 * \param[out] pieces       [n_ranks] of `bytes` each, aligned to 8, borrowed
 *                          until the call after next; the own one is `data`.
 * \return AKIN_OK
 * \return AKIN_ERR_PEER, AKIN_ERR_TIMEOUT, AKIN_ERR_FORMAT, AKIN_ERR_NOMEM or
 *         the exchange's own: the group is no more, as akin_ep_group_error()
 *         tells.
 */
akin_status_t akin_ep_group_share(akin_ep_group_t *group, const void *data,
                                  size_t bytes,
                                  akin_ep_piece_t *pieces) AKIN_MUST_CHECK;

/**
 * Give a layer another map. Every rank of the group calls it between the same
 * two steps, with the same map; no bit of any result changes.
 *
 * \param[in] layer
 * \param[in] holders  [n_experts] as in a placement; copied.
 * \param[in] epoch    of the placement from now on; above the present one.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: an epoch out of order, or as
 *         akin_placement_check_layer(); nothing has changed.
 */
akin_status_t akin_ep_group_set_layer(akin_ep_group_t *group, uint32_t layer,
                                      const uint64_t *holders, uint64_t epoch,
                                      akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Give all layers another map, whatever the epochs. Every rank of the group
 * calls it before the group's first step.
 *
 * \param[in] placement  of the same sizes; copied, with its epoch.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: other sizes, or as akin_placement_check(); nothing
 *         has changed.
 */
akin_status_t akin_ep_group_set_placement(akin_ep_group_t *group,
                                          const akin_placement_t *placement,
                                          akin_error_t *err) AKIN_MUST_CHECK;

/** Why the group is no more, for people: names the rank at fault and the layer;
 * NULL while it is well. Not while a step runs. */
const char *akin_ep_group_error(const akin_ep_group_t *group);

/** Counters since creation. */
typedef struct akin_ep_group_stats {
    uint64_t n_layers; /* layers run */
    uint64_t bytes_out;
    uint64_t bytes_in;
    int64_t dispatch_ns; /* from the routes to all vectors being here */
    int64_t compute_ns;
    int64_t combine_ns; /* from the outputs to their being at their rows */
} akin_ep_group_stats_t;

void akin_ep_group_stats(const akin_ep_group_t *group,
                         akin_ep_group_stats_t *stats_p);

const akin_placement_t *akin_ep_group_placement(const akin_ep_group_t *group);

/** Own place in the group. */
uint32_t akin_ep_group_rank(const akin_ep_group_t *group);

#ifdef __cplusplus
}
#endif

#endif
