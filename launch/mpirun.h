/* mpirun: starts a job outside of a launcher. */
#ifndef AKIN_LAUNCH_MPIRUN_H
#define AKIN_LAUNCH_MPIRUN_H

#include "base/error.h"
#include "launch/plan.h"

#include <stdint.h>
#include <stdio.h>

/** What Open MPI's launcher is told unless the user did; a NULL name ends the
 * list. */
typedef struct akin_mpirun_variable {
    const char *name;
    const char *value;
} akin_mpirun_variable_t;

extern const akin_mpirun_variable_t akin_mpirun_environment[];

typedef struct akin_mpirun_params {
    uint32_t n_ranks;
    const char *subcommand; /* "run" */
    int argc;               /* of the subcommand; argv[0] is not used */
    char **argv;
    const akin_plan_t *plan; /* NULL: mpirun places the ranks */
} akin_mpirun_params_t;

/** A command and the environment that it needs on top of ours. */
typedef struct akin_mpirun {
    char **argv; /* NULL-terminated, owned */
    int n;
    int hosts_fd; /* the node of each rank, by name; -1: none */
} akin_mpirun_t;

/**
 * The command that starts the ranks of this program with the same arguments,
 * each on its node of the plan. Sets AKIN_PLAN in this process's environment.
 *
 * \param[out] command_p   for akin_mpirun_cleanup().
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM; AKIN_ERR_IO: the path of this program is unknown.
 */
akin_status_t akin_mpirun_create(const akin_mpirun_params_t *params,
                                 akin_mpirun_t *command_p,
                                 akin_error_t *err) AKIN_MUST_CHECK;

void akin_mpirun_cleanup(akin_mpirun_t *command);

/** Print the command with its environment as one could type it. */
void akin_mpirun_print(const akin_mpirun_t *command, FILE *stream);

/**
 * Run it and wait. SIGINT, SIGTERM and SIGHUP become SIGUSR1 to mpirun, which
 * passes that one on to the ranks, so that the run can stop in order; a second
 * one becomes SIGTERM, with which mpirun ends the job at once. The job ends
 * with this process, however that ends. An mpirun that is still there some
 * seconds after SIGTERM, or after the router's supervisor has told that the job
 * is over, is killed: it waits for hosts that do not answer.
 *
 * \return exit code: mpirun's, or the job's where mpirun had to be ended after
 *         it; AKIN_EXIT_STOPPED if signals ended it;
 *         AKIN_EXIT_FAILED if another signal ended it or the router.
 */
int akin_mpirun_run(const akin_mpirun_t *command);

#endif
