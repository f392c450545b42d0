/* Job command: what the commands that run a job of MPI ranks share. Outside of
 * a launcher such a command starts itself under mpirun; inside it is one rank.
 */
#ifndef AKIN_LAUNCH_JOB_COMMAND_H
#define AKIN_LAUNCH_JOB_COMMAND_H

#include "roles/rank.h"

#include <argp.h>

/** Settings of a command line, and as many of the command's own. */
#define AKIN_JOB_COMMAND_SETTINGS 64

typedef struct akin_job_command {
    akin_router_batch_t batch;
    const akin_router_calibration_t *calibration; /* NULL: a batch run */
    const char *job_path;
    const char *settings[2 * AKIN_JOB_COMMAND_SETTINGS];
    size_t n_settings;
    const char *plan; /* file; NULL: AKIN_PLAN, or none */
    int print_launch;
} akin_job_command_t;

/**
 * The options -c, -i, --set, --plan, --resume and --print-launch, for argp's
 * list of children; its input is an akin_job_command_t.
 */
extern const struct argp akin_job_command_argp;

/**
 * Start the job and wait for it, or be the rank that a launcher started.
 *
 * \param[in] name        of the subcommand: "run"
 * \param[in] argc, argv  of the subcommand
 * \return exit code
 */
int akin_job_command_run(const akin_job_command_t *command, const char *name,
                         int argc, char **argv);

#endif
