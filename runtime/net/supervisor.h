/* Supervisor: the process that the launcher started; it forks the rank,
 * watches it and keeps its death from the launcher. */
#ifndef AKIN_NET_SUPERVISOR_H
#define AKIN_NET_SUPERVISOR_H

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The rank's main; its result is the exit code. */
typedef int (*akin_supervisor_main_fn_t)(void *arg);

typedef struct akin_supervisor_params {
    akin_supervisor_main_fn_t rank_main;
    /* Called in the rank before any signal can reach it, to say what signals
     * do; NULL: they do what they did in the caller. */
    void (*set_signals)(void *arg);
    void *arg;        /* of both */
    int rank;         /* for messages */
    const char *role; /* for messages: "decode" */
    /* Non-zero: the exit code of the rank is the supervisor's (router).
     * Zero: a rank that was lost (signal, non-zero code) is reported on
     * stderr and the supervisor exits 0, so that the launcher keeps the
     * others. */
    int pass_exit_code;
} akin_supervisor_params_t;

/**
 * Fork, run rank_main in the child, wait for it, pass SIGINT, SIGTERM, SIGUSR1
 * and SIGHUP on to it (signals that reach the whole process group are not
 * doubled: unless stdin is a terminal, the rank has a group of its own; only a
 * sender that signals every process one by one reaches it twice). The child
 * dies with its supervisor (PR_SET_PDEATHSIG), and gets SIGTERM when the
 * supervisor's parent, the launcher, is gone. Call before MPI, UCX or any
 * thread exists; returns only in the supervisor.
 *
 * \return the exit code for main(): the rank's, 128 + signal if a signal ended
 *         it, or 0 as above.
 */
int akin_supervisor_run(const akin_supervisor_params_t *params);

#ifdef __cplusplus
}
#endif

#endif
