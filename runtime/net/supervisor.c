/* The process that the launcher started: forks the rank and outlives it. */
#include "net/supervisor.h"

#include "base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int forwarded[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};
#define N_FORWARDED (sizeof(forwarded) / sizeof(forwarded[0]))

/* Runs in the child; does not return. */
static void rank_run(const akin_supervisor_params_t *params, pid_t supervisor,
                     int own_group, const sigset_t *mask)
{
    /* The rank must not outlive its supervisor, which may be gone already. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor)
        _exit(1);
    if (own_group)
        setpgid(0, 0);
    if (params->set_signals != NULL)
        params->set_signals(params->arg);
    sigprocmask(SIG_SETMASK, mask, NULL);
    const akin_supervisor_life_t life = {0};
    exit(params->rank_main(params->arg, &life));
}

static int exit_code(const akin_supervisor_params_t *params, int wait_status)
{
    const char *role = params->role != NULL ? params->role : "?";
    if (WIFSIGNALED(wait_status)) {
        int number = WTERMSIG(wait_status);
        AKIN_LOG(NET, ERROR, "rank %d (%s) was lost: signal %d (%s)%s",
                 params->rank, role, number, strsignal(number),
                 params->pass_exit_code ? "" : "; the job goes on without it");
        return params->pass_exit_code ? 128 + number : 0;
    }
    int code = WEXITSTATUS(wait_status);
    if (params->pass_exit_code || code == 0)
        return code;
    AKIN_LOG(NET, ERROR,
             "rank %d (%s) was lost: exit code %d; the job goes on without it",
             params->rank, role, code);
    return 0;
}

static int supervise(const akin_supervisor_params_t *params, pid_t child,
                     pid_t launcher, int own_group, const sigset_t *watched)
{
    /* A launcher that is killed says nothing. PR_SET_PDEATHSIG would follow
     * the thread of it that forked, which may end long before. */
    static const struct timespec look = {.tv_sec = 5};
    for (;;) {
        siginfo_t info;
        int number = sigtimedwait(watched, &info, launcher != 0 ? &look : NULL);
        if (launcher != 0 && getppid() != launcher) {
            launcher = 0;
            kill(child, SIGTERM);
        }
        if (number == SIGCHLD) {
            int wait_status;
            if (waitpid(child, &wait_status, WNOHANG) == child)
                return exit_code(params, wait_status);
        } else if (number > 0 && (own_group || info.si_code != SI_KERNEL)) {
            /* A terminal's signal has reached a rank in the same group. */
            kill(child, number);
        }
    }
}

int akin_supervisor_run(const akin_supervisor_params_t *params)
{
    sigset_t watched, mask;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    for (size_t i = 0; i < N_FORWARDED; i++)
        sigaddset(&watched, forwarded[i]);
    /* An inherited SIG_IGN would reap the rank unseen. */
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &watched, &mask);
    /*
     * Launchers and kill(1) signal a whole process group. In a group of its
     * own the rank gets such a signal once, from here. On a terminal it has to
     * stay in the foreground group, or reading would stop it.
     */
    int own_group = !isatty(STDIN_FILENO);
    pid_t supervisor = getpid(), launcher = getppid();
    /* Or both would write what is still buffered. */
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        rank_run(params, supervisor, own_group, &mask);
    int code = 1;
    if (child < 0)
        AKIN_LOG(NET, ERROR, "rank %d: fork: %s", params->rank,
                 strerror(errno));
    else
        code = supervise(params, child, launcher, own_group, &watched);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    return code;
}

akin_status_t akin_supervised_arm(const akin_supervised_terms_t *terms,
                                  const void *ticket, size_t ticket_bytes)
{
    (void)terms;
    (void)ticket;
    (void)ticket_bytes;
    return AKIN_OK;
}

void akin_supervised_beat(void)
{
}

void akin_supervised_end(int64_t limit_ns)
{
    (void)limit_ns;
}
