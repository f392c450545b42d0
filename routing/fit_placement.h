/* Fit placement: a fit's maps of experts for workers of several ranks. */
#ifndef AKIN_ROUTING_FIT_PLACEMENT_H
#define AKIN_ROUTING_FIT_PLACEMENT_H

#include "routing/fit.h"
#include "routing/fit_json.h"

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

/** Read the key `placement`, if it is there: one map per cluster, all of the
 * same ranks and replicas. */
akin_status_t akini_fit_placement_read(const akini_fit_json_t *json,
                                       akin_fit_t *fit) AKIN_MUST_CHECK;

/** The maps as a list; NULL: out of memory. */
struct json_t *akini_fit_placement_json(const akin_fit_t *fit);

#ifdef __cplusplus
}
#endif

#endif
