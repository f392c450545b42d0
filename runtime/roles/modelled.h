/* Modelled: the model, the machine and the trace that the modelled engine of a
 * job stands for. */
#ifndef AKIN_ROLES_MODELLED_H
#define AKIN_ROLES_MODELLED_H

#include "engine/engine.h"
#include "roles/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Whether a job's engine is the modelled one. */
int akin_job_is_modelled(const akin_job_t *job);

/**
 * The model's config.json as the job's engine has it: its own, or with the
 * sizes of the model that is stood for.
 *
 * \param[out] model
 * \param[out] err    names the file and key, or modelled.model and where it was
 *                    set.
 * \return AKIN_OK
 * \return AKIN_ERR_CONFIG: there is no such model to stand for, or
 *         modelled.kv_scale leaves nothing of its KV.
 * \return the statuses of akin_model_config_read()
 */
akin_status_t akin_job_model_read(const akin_job_t *job,
                                  akin_model_config_t *model,
                                  akin_error_t *err) AKIN_MUST_CHECK;

typedef struct akin_modelled akin_modelled_t;

/**
 * Open the trace and find model and machine.
 *
 * \param[out] modelled_p  owned by the caller; outlives the engine.
 * \param[out] err         names the key, where it was set, the file.
 * \return AKIN_OK
 * \return AKIN_ERR_CONFIG: no such model, machine or trace; the trace is of
 *         another model.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_modelled_open(const akin_job_t *job,
                                 akin_modelled_t **modelled_p,
                                 akin_error_t *err) AKIN_MUST_CHECK;

/** NULL is allowed. */
void akin_modelled_close(akin_modelled_t *modelled);

/** What the engine is told; borrowed from the object, which it calls. */
const akin_modelled_params_t *
akin_modelled_engine_params(const akin_modelled_t *modelled);

#ifdef __cplusplus
}
#endif

#endif
