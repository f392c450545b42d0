/* Placement change: a better map for one layer of a worker that serves. Pure.
 */
#ifndef AKIN_EP_PLACEMENT_CHANGE_H
#define AKIN_EP_PLACEMENT_CHANGE_H

#include "ep/placement.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AKIN_PLACEMENT_NO_LAYER UINT32_MAX

typedef struct akin_placement_change_params {
    const akin_placement_t *placement; /* of the worker now; borrowed */
    const float *rates; /* [n_layers][n_experts] chance that a decode token of
                           the worker activates the expert, as observed */
    double batch;       /* usual requests of a step; more than 0 */
    /* What a change has to pay for itself. */
    double steps;                 /* in which it can */
    double seconds_per_expert;    /* of a step, for each on the busiest rank */
    double expert_bytes;          /* of one expert of one layer */
    double bandwidth_bytes_per_s; /* at which ranks take experts; more than 0 */
} akin_placement_change_params_t;

/** What one layer's new map is worth. */
typedef struct akin_placement_change {
    uint32_t layer;   /* AKIN_PLACEMENT_NO_LAYER: there is no change */
    uint32_t n_moved; /* experts that ranks hold then and do not now */
    double load_now;  /* expected experts of the busiest rank in a step */
    double load_then;
    double gain_s; /* saved in params->steps, less the time of the move */
} akin_placement_change_t;

/**
 * Check a map of one layer that came from somewhere; see
 * akin_placement_check().
 *
 * \param[in]  placement  whose layer it is to be: for the sizes.
 * \param[in]  holders    [n_experts]
 * \param[out] err        names expert or rank.
 * \return AKIN_OK, AKIN_ERR_INVALID
 */
akin_status_t akin_placement_check_layer(const akin_placement_t *placement,
                                         uint32_t layer,
                                         const uint64_t *holders,
                                         akin_error_t *err) AKIN_MUST_CHECK;

/** Experts that a rank holds by the one map and not by the other, summed over
 * the ranks. \param[in] from, to  [n_experts] */
uint32_t akin_placement_moves(const uint64_t *from, const uint64_t *to,
                              uint32_t n_experts);

/**
 * Name the ranks of a map so that few experts move: sets of experts go, the
 * largest common part first, to the rank that holds most of them already. Loads
 * stay what they are, for ranks are alike.
 *
 * \param[in]     from     [n_experts]
 * \param[in,out] to       [n_experts]
 * \param[in]     n_ranks  at most AKIN_PLACEMENT_MAX_RANKS.
 */
void akin_placement_relabel(const uint64_t *from, uint64_t *to,
                            uint32_t n_experts, uint32_t n_ranks);

/**
 * A layer by one of the kinds, its ranks named as akin_placement_relabel()
 * does; of `activation`, experts that moved to no purpose are exchanged back.
 * And what it is worth, which may be less than nothing.
 *
 * \param[out] holders  [n_experts] the new map.
 * \return as akin_placement_make()
 */
akin_status_t
akin_placement_change_make(const akin_placement_change_params_t *params,
                           uint32_t layer, akin_placement_kind_t kind,
                           uint64_t *holders, akin_placement_change_t *change_p,
                           akin_error_t *err) AKIN_MUST_CHECK;

/**
 * The change of one layer to `activation` that is worth most (ALGORITHMS.md 6:
 * predicted gain x horizon > bytes to move / bandwidth). So that this takes a
 * bounded time, only the eight layers are tried whose busiest rank is furthest
 * above an even share.
 *
 * \param[out] holders   [n_experts] its map.
 * \param[out] change_p  no layer if none is worth more than nothing.
 * \return AKIN_OK, or that of akin_placement_make()
 */
akin_status_t akin_placement_change_propose(
    const akin_placement_change_params_t *params, uint64_t *holders,
    akin_placement_change_t *change_p, akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
