/* Supervisor: the process that the launcher started; it forks the rank,
 * watches it, starts it anew, and keeps its death from the launcher. */
#ifndef AKIN_NET_SUPERVISOR_H
#define AKIN_NET_SUPERVISOR_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a rank's process is told of those before it. */
typedef struct akin_supervisor_life {
    uint32_t number;  /* 0: the first; else it joins a job that runs */
    int is_last;      /* it only tells the router of the death and ends: the
                         rank may not be started any more */
    int64_t delay_ns; /* after it has told the router, to wait before the rest:
                         grows with deaths in a row */
    /* What a life before left with akin_supervised_arm(); borrowed until
     * rank_main returns. NULL: nothing. */
    const void *ticket;
    size_t ticket_bytes;
} akin_supervisor_life_t;

/** The rank's main; its result is the exit code. */
typedef int (*akin_supervisor_main_fn_t)(void *arg,
                                         const akin_supervisor_life_t *life);

/** Exit code of a life that found its router gone: no other life follows, and
 * the supervisor exits 0, without a word. Before a first life is armed it is a
 * code like others. Where lives did not reach the router before, five more may
 * find it gone: a link that comes back says so at first. */
#define AKIN_SUPERVISOR_ROUTER_GONE 75

/** Exit code of a later life that has not reached its router, which may be
 * behind a link that is cut: another life tries again a second later, and so
 * on for reach_timeout_ns. These lives do not count as started anew. */
#define AKIN_SUPERVISOR_ROUTER_AWAY 76

typedef struct akin_supervisor_params {
    akin_supervisor_main_fn_t rank_main;
    /* Called in the rank before any signal can reach it, to say what signals
     * do; NULL: they do what they did in the caller. */
    void (*set_signals)(void *arg);
    void *arg; /* of both */
    int rank;  /* for messages */
    const char
        *role; /* for messages, until the rank tells its role: "worker" */
    /* Non-zero: the exit code of the rank is the supervisor's (router), and it
     * is never started anew.
     * Zero: a rank that is lost (signal, non-zero code) after it was armed is
     * reported on stderr and the supervisor exits 0 in the end, so that the
     * launcher keeps the others; one lost before that leaves the others waiting
     * in MPI, so that the supervisor exits with its code, or 128 + signal, for
     * the launcher to end the job. A loss by signal is always reported; of an
     * exit code that is passed on the rank has said the reason. */
    int pass_exit_code;
    int64_t start_timeout_ns; /* a first life that is not armed by then is
                                 killed; 0: never */
} akin_supervisor_params_t;

/** A life that is_last has so long to tell the router, at most. */
#define AKIN_SUPERVISOR_LAST_LIMIT_NS (INT64_C(30) * 1000 * 1000 * 1000)

/**
 * Fork, run rank_main in the child, wait for it, pass SIGINT, SIGTERM, SIGUSR1
 * and SIGHUP on to it (signals that reach the whole process group are not
 * doubled: unless stdin is a terminal, the rank has a group of its own; only a
 * sender that signals every process one by one reaches it twice). The child
 * dies with its supervisor (PR_SET_PDEATHSIG), and gets SIGTERM when the
 * supervisor's parent, the launcher, is gone. Call before MPI, UCX or any
 * thread exists; returns only in the supervisor.
 *
 * A rank that is lost after it was armed is followed at once by another life,
 * with the ticket, as its terms say: while fewer than max_lives were started
 * within window_ns the next one is to serve (after a delay of 0, then
 * first_delay_ns, doubled each time up to 8 s); the one beyond that is_last.
 * So is a later life that is lost, armed or not; but where one was lost before
 * it was armed, the rest of the delay that it was to wait is waited for first.
 * No life follows SIGTERM or SIGINT to the supervisor, a launcher that is
 * gone, a rank that has begun to end (akin_supervised_end()), or exit code 0.
 * The standard input of later lives is empty.
 *
 * A rank that lets a limit pass (start_timeout_ns, stall_ns, the end's) is
 * killed by SIGKILL. Time in which the supervisor did not run itself does not
 * count. Every event has one line on stderr.
 *
 * \return the exit code for main(): the rank's, 128 + signal if a signal ended
 *         it, or 0 as above.
 */
int akin_supervisor_run(const akin_supervisor_params_t *params);

/** What the rank asks of its supervisor once it serves. */
typedef struct akin_supervised_terms {
    /* Lives that may be started within window_ns to serve; 0: none, the next
     * one is_last. -1: no life follows at all, and the supervisor passes the
     * exit code on as if it were not armed (MPI is still up). */
    int32_t max_lives;
    int64_t window_ns; /* 0: lives of all times count */
    int64_t first_delay_ns;
    /* A rank that does not beat for so long while its supervisor runs is
     * killed: it is stopped or hangs. 0: never. */
    int64_t stall_ns;
    /* A later life that is not armed by then, its delay not counted, is
     * killed; 0: never. */
    int64_t start_timeout_ns;
    /* How long lives try to reach the router, from the first one that has not;
     * 0: one tries. */
    int64_t reach_timeout_ns;
    char role[16]; /* for messages; "": akin_supervisor_params_t's */
} akin_supervised_terms_t;

/*
 * What a rank tells its supervisor, through memory that both share. In a
 * process without a supervisor these do nothing.
 */

/**
 * The rank serves from now on; called again, it changes its terms. Terms and
 * ticket come into force together: a rank that is killed in here leaves the
 * former ones, or none, and then was not armed. One thread at a time.
 *
 * \param[in] ticket  [ticket_bytes], what a later life needs to join without
 *                    MPI; copied. NULL: keep the one there is.
 * \return AKIN_OK, AKIN_ERR_NOMEM, AKIN_ERR_IO
 */
akin_status_t akin_supervised_arm(const akin_supervised_terms_t *terms,
                                  const void *ticket,
                                  size_t ticket_bytes) AKIN_MUST_CHECK;

/** The rank is alive; any thread, costs one store. */
void akin_supervised_beat(void);

/** The rank has begun to end: it need not beat, but is killed if it is still
 * there after `limit_ns`; 0: never. Any thread. */
void akin_supervised_end(int64_t limit_ns);

#ifdef __cplusplus
}
#endif

#endif
