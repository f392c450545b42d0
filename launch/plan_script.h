/* Plan script: the plan as a shell script that starts the job. */
#ifndef AKIN_LAUNCH_PLAN_SCRIPT_H
#define AKIN_LAUNCH_PLAN_SCRIPT_H

#include "launch/plan.h"

#include <stdio.h>

typedef struct akin_plan_script {
    const akin_job_t *job;
    const akin_plan_t *plan;
    const char *akin;            /* the command, by name or path */
    const char *job_path;        /* for -c */
    const char *const *settings; /* [n_settings] for --set */
    size_t n_settings;
    const char *input_path; /* NULL: an argument of the script */
    const char *output_path;
} akin_plan_script_t;

/**
 * A script around mpirun. The nodes need names where there are several.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_CONFIG: they have none; AKIN_ERR_NOMEM
 */
akin_status_t akin_plan_script_mpirun(const akin_plan_script_t *script,
                                      FILE *stream,
                                      akin_error_t *err) AKIN_MUST_CHECK;

/**
 * A batch script for Slurm: srun with PMIx where Slurm has it, else mpirun.
 * Shortly before the time limit the job stops in order, and is requeued for
 * what is left.
 *
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akin_plan_script_slurm(const akin_plan_script_t *script,
                                     FILE *stream,
                                     akin_error_t *err) AKIN_MUST_CHECK;

#endif
