/* Fit placement: a fit's maps of experts for workers of several ranks. */
#ifndef AKIN_ROUTING_FIT_PLACEMENT_H
#define AKIN_ROUTING_FIT_PLACEMENT_H

#include "routing/fit.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_fit_placement_params {
    akin_placement_kind_t kind;
    uint32_t n_ranks;
    uint32_t n_replicas; /* slots of a layer beyond one per expert */
    double batch;        /* usual requests of a step */
} akin_fit_placement_params_t;

/**
 * Place the experts of every cluster's worker by the cluster's decode rates.
 *
 * \param[in,out] fit  gets `placements`; those that it had go.
 * \param[out]    err  says what does not fit.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: a fit without pbar, the errors of
 *         akin_placement_make().
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_fit_place(akin_fit_t *fit,
                             const akin_fit_placement_params_t *params,
                             akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
