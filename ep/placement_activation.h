/* Placement by activation: one layer, by the chance of each expert to be
 * active in a step. */
#ifndef AKIN_EP_PLACEMENT_ACTIVATION_H
#define AKIN_EP_PLACEMENT_ACTIVATION_H

#include "ep/placement.h"
#include "ep/placement_pack.h"

/** Scratch of one layer after another; owned by whoever makes it. */
typedef struct akini_placement_activation {
    akin_placement_sizes_t sizes;  /* checked */
    double batch;                  /* requests of a step */
    akini_placement_item_t *items; /* [n_experts] */
    uint32_t *pack;                /* [n_experts] */
    float *idle;                   /* [n_experts] */
} akini_placement_activation_t;

/** \return AKIN_OK, AKIN_ERR_NOMEM: clean up all the same. */
akin_status_t akini_placement_activation_init(
    akini_placement_activation_t *activation,
    const akin_placement_params_t *params) AKIN_MUST_CHECK;

void akini_placement_activation_cleanup(
    akini_placement_activation_t *activation);

/**
 * \param[in]  rates    [n_experts]
 * \param[out] holders  [n_experts]
 */
void akini_placement_activation_layer(akini_placement_activation_t *activation,
                                      const float *rates, uint64_t *holders);

#endif
