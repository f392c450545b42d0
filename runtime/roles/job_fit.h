/* Job fit: the fit file that a job names, checked against its model and its
 * decode workers. */
#ifndef AKIN_ROLES_JOB_FIT_H
#define AKIN_ROLES_JOB_FIT_H

#include "engine/model_config.h"
#include "roles/job.h"
#include "routing/fit.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Read the file of routing.fit.
 *
 * \param[in]  model
 * \param[out] fit  the caller's to clean up; empty if the job names none, and
 *                  on failure.
 * \param[out] err  names routing.fit, where it was set, the file and the key.
 * \return AKIN_OK
 * \return AKIN_ERR_CONFIG: the file cannot be read, is no fit, or is one for
 *         another model or another number of decode workers.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_job_fit_read(const akin_job_t *job,
                                const akin_model_config_t *model,
                                akin_fit_t *fit,
                                akin_error_t *err) AKIN_MUST_CHECK;

/**
 * The same and akin_job_ep_check(), with the model's own config.json and
 * without keeping the fit: for whoever starts the ranks, so that a mistake
 * shows before they are there. A model that cannot be read here is left to
 * them.
 */
akin_status_t akin_job_fit_check(const akin_job_t *job,
                                 akin_error_t *err) AKIN_MUST_CHECK;

/** Width of the locality band: what the job says, else what the fit found
 * best, else the default. \param[in] fit  may be empty, or NULL. */
double akin_job_tau(const akin_job_t *job, const akin_fit_t *fit);

/** Pull of the centroids to route with, likewise. */
double akin_job_pull(const akin_job_t *job, const akin_fit_t *fit);

#ifdef __cplusplus
}
#endif

#endif
