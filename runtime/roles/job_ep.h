/* Job EP: which ranks of the workers hold which experts. */
#ifndef AKIN_ROLES_JOB_EP_H
#define AKIN_ROLES_JOB_EP_H

#include "engine/model_config.h"
#include "ep/placement.h"
#include "roles/job.h"
#include "routing/fit.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Maps of all workers. Zero is a job whose workers have one rank each. */
typedef struct akin_job_placements {
    akin_placement_t *decode; /* [n_decode]; NULL: workers of one rank */
    uint32_t n_decode;
    akin_placement_t prefill; /* of all alike; without holders: likewise */
} akin_job_placements_t;

/**
 * Check what roles.ep, roles.prefill_ep, ep.replicas and ep.placement ask of a
 * model.
 *
 * \param[in]  fit  of the job; may be empty.
 * \param[out] err  names the keys and where they were set.
 * \return AKIN_OK, AKIN_ERR_CONFIG
 */
akin_status_t akin_job_ep_check(const akin_job_t *job,
                                const akin_model_config_t *model,
                                const akin_fit_t *fit,
                                akin_error_t *err) AKIN_MUST_CHECK;

/** What ep.placement comes to for the decode workers: "auto" is "fit", the
 * fit's own maps, if those are for workers of such ranks and replicas; else
 * "activation" with a fit that has decode rates, and "linear" without. */
const char *akin_job_placement_name(const akin_job_t *job,
                                    const akin_fit_t *fit);

/**
 * Place the experts: decode worker w by the fit's own map or the decode rates
 * of its cluster w, prefill workers by the mean of all clusters, each with half
 * of decode.max_batch as the usual batch.
 *
 * \param[out] placements_p  akin_job_placements_cleanup()
 * \return AKIN_OK, AKIN_ERR_NOMEM, and those of akin_job_ep_check()
 */
akin_status_t akin_job_placements_make(const akin_job_t *job,
                                       const akin_model_config_t *model,
                                       const akin_fit_t *fit,
                                       akin_job_placements_t *placements_p,
                                       akin_error_t *err) AKIN_MUST_CHECK;

/**
 * As text, for the other ranks.
 *
 * \param[out] text_p  malloc'ed, owned by the caller.
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akin_job_placements_pack(const akin_job_placements_t *placements,
                                       char **text_p) AKIN_MUST_CHECK;

/** \return AKIN_OK, AKIN_ERR_FORMAT: not of this job; AKIN_ERR_NOMEM */
akin_status_t akin_job_placements_unpack(const akin_job_t *job,
                                         const char *text,
                                         akin_job_placements_t *placements_p,
                                         akin_error_t *err) AKIN_MUST_CHECK;

/** Map of the worker that a rank is of, of a spare one that of any decode
 * worker; NULL: it has one rank. */
const akin_placement_t *
akin_job_placements_of(const akin_job_placements_t *placements,
                       const akin_job_place_t *place);

/** NULL is allowed. */
void akin_job_placements_cleanup(akin_job_placements_t *placements);

#ifdef __cplusplus
}
#endif

#endif
