/* Placement: which ranks of a worker hold which experts. Pure: no I/O, no MPI,
 * no UCX. */
#ifndef AKIN_EP_PLACEMENT_H
#define AKIN_EP_PLACEMENT_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Most ranks of a worker. */
#define AKIN_PLACEMENT_MAX_RANKS 64u

/**
 * One worker's map. Bit r of holders[l * n_experts + e] says that rank r holds
 * expert e of layer l; every expert has at least one holder. In every layer
 * every rank holds exactly n_slots = (n_experts + n_replicas) / n_ranks
 * experts, each once.
 */
typedef struct akin_placement {
    uint32_t n_layers;
    uint32_t n_experts;
    uint32_t n_ranks;
    uint32_t n_replicas; /* slots of a layer beyond one per expert */
    uint64_t epoch;      /* rises with every change */
    uint64_t *holders;   /* [n_layers][n_experts], owned */
} akin_placement_t;

typedef enum akin_placement_kind {
    AKIN_PLACEMENT_LINEAR,      /* contiguous */
    AKIN_PLACEMENT_ROUND_ROBIN, /* expert e on rank e mod n_ranks */
    AKIN_PLACEMENT_EPLB,        /* by tokens */
    AKIN_PLACEMENT_ACTIVATION   /* by the chance to be active in a step */
} akin_placement_kind_t;

/** "linear", "round-robin", "eplb", "activation"; NULL: no such kind. */
const char *akin_placement_kind_name(akin_placement_kind_t kind);

/** \return AKIN_OK, AKIN_ERR_INVALID: err names the nearest one. */
akin_status_t akin_placement_kind_find(const char *name,
                                       akin_placement_kind_t *kind_p,
                                       akin_error_t *err) AKIN_MUST_CHECK;

/** What must fit together; see akin_placement_params_t. */
typedef struct akin_placement_sizes {
    uint32_t n_layers;
    uint32_t n_experts;
    uint32_t n_ranks;
    uint32_t n_replicas;
} akin_placement_sizes_t;

/**
 * Whether experts and replicas fill the ranks' slots evenly; to check a
 * configuration before there are rates.
 *
 * \param[out] err  names the number that does not fit and one that does.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: as akin_placement_make().
 */
akin_status_t akin_placement_check_sizes(const akin_placement_sizes_t *sizes,
                                         akin_error_t *err) AKIN_MUST_CHECK;

typedef struct akin_placement_params {
    akin_placement_kind_t kind;
    uint32_t n_layers;
    uint32_t n_experts;
    uint32_t n_ranks;    /* divides n_experts + n_replicas */
    uint32_t n_replicas; /* extra slots per layer */
    const float *rates;  /* [n_layers][n_experts] chance that a decode token
                            activates the expert; eplb and activation */
    double batch;        /* usual requests of a step; activation */
} akin_placement_params_t;

/**
 * Place the experts (ALGORITHMS.md 6): `eplb` replicates the expert with the
 * largest rate per replica and packs by rate, largest first, each on the least
 * loaded rank with a free slot (ep/placement_eplb.h in its global mode); a slot
 * that would hold an expert twice goes to the expert, of those that the rank
 * lacks, with the largest rate per replica. `activation` packs by
 * q = 1 - (1 - rate)^batch by the longest-processing-time rule and gives a
 * replica slot to where the expected maximum (ep/placement_load.h) falls most,
 * then looks at each of these slots once more.
 * `linear` lets each rank's block reach into that of the next rank, so that the
 * first experts of every block have replicas; `round-robin` replicates the
 * experts 0, 1, ... in turn. Epoch 0. Deterministic.
 *
 * \param[out] placement_p  owned by the caller, akin_placement_cleanup().
 * \param[out] err          names the number that does not fit.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: ranks that do not divide the slots, more than
 *         n_experts slots on a rank, a size of 0, more ranks than
 *         AKIN_PLACEMENT_MAX_RANKS, rates missing, negative or not finite; for
 *         activation rates above 1 or a batch of 0.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_placement_make(const akin_placement_params_t *params,
                                  akin_placement_t *placement_p,
                                  akin_error_t *err) AKIN_MUST_CHECK;

/** Free what it owns; NULL is allowed. The placement is empty then. */
void akin_placement_cleanup(akin_placement_t *placement);

/** Copy with everything. \return AKIN_OK, AKIN_ERR_NOMEM */
akin_status_t akin_placement_copy(const akin_placement_t *from,
                                  akin_placement_t *to_p) AKIN_MUST_CHECK;

/**
 * Check a map that came from somewhere: every expert has a holder, no holder
 * beyond n_ranks, every rank n_slots experts in every layer.
 *
 * \param[out] err  names layer and expert or rank.
 * \return AKIN_OK, AKIN_ERR_INVALID
 */
akin_status_t akin_placement_check(const akin_placement_t *placement,
                                   akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Check a map that is to follow another one: akin_placement_check(), the same
 * sizes and a later epoch.
 *
 * \return AKIN_OK, AKIN_ERR_INVALID
 */
akin_status_t akin_placement_check_epoch(const akin_placement_t *current,
                                         const akin_placement_t *next,
                                         akin_error_t *err) AKIN_MUST_CHECK;

/** Holders of a layer's experts: [n_experts]. */
static inline const uint64_t *
akin_placement_layer(const akin_placement_t *placement, uint32_t layer)
{
    return placement->holders + (size_t)layer * placement->n_experts;
}

#ifdef __cplusplus
}
#endif

#endif
