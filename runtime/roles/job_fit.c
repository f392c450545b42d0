/* Job fit: the fit file that a job names, checked against its model and its
 * decode workers. */
#include "roles/job_fit.h"

#include "roles/job_ep.h"
#include "roles/modelled.h"

#include <math.h>
#include <string.h>

akin_status_t akin_job_fit_read(const akin_job_t *job,
                                const akin_model_config_t *model,
                                akin_fit_t *fit, akin_error_t *err)
{
    memset(fit, 0, sizeof(*fit));
    if (job->fit_path[0] == '\0')
        return AKIN_OK;
    akin_status_t status = akin_fit_read(job->fit_path, fit, err);
    if (status == AKIN_OK) {
        status = akin_fit_match(fit, job->n_decode, model->n_layers,
                                model->n_experts, model->top_k, err);
        if (status != AKIN_OK)
            (void)akin_error_prefix(err, status, "%s: ", job->fit_path);
    }
    if (status == AKIN_OK)
        return AKIN_OK;
    akin_fit_cleanup(fit);
    return akin_error_prefix(
        err, status == AKIN_ERR_NOMEM ? status : AKIN_ERR_CONFIG,
        "%s: routing.fit: ", job->fit_origin);
}

akin_status_t akin_job_fit_check(const akin_job_t *job, akin_error_t *err)
{
    akin_model_config_t model;
    akin_fit_t fit;
    if (akin_job_model_read(job, &model, NULL) != AKIN_OK)
        return AKIN_OK;
    akin_status_t status = akin_job_fit_read(job, &model, &fit, err);
    if (status == AKIN_OK)
        status = akin_job_ep_check(job, &model, &fit, err);
    akin_fit_cleanup(&fit);
    return status;
}

double akin_job_tau(const akin_job_t *job, const akin_fit_t *fit)
{
    int has_own = fit != NULL && fit->n_clusters > 0 && isfinite(fit->tau);
    return job->has_tau || !has_own ? job->tau : fit->tau;
}

double akin_job_pull(const akin_job_t *job, const akin_fit_t *fit)
{
    int has_own = fit != NULL && fit->n_clusters > 0 && isfinite(fit->pull);
    return job->has_pull || !has_own ? job->pull : fit->pull;
}
