/* Node trial: hwloc reads XML in a process of its own first. */
#include "launch/node_trial.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRIAL_SECONDS = 30 };

static _Noreturn void run_child(int (*is_fine)(void *arg), void *arg)
{
    static const int deadly[] = {SIGSEGV, SIGBUS,  SIGFPE,
                                 SIGILL,  SIGABRT, SIGALRM};
    const struct rlimit no_core = {0, 0};
    sigset_t set;
    (void)sigemptyset(&set);
    /* Handlers of this program would write about the crash or survive it. */
    for (size_t i = 0; i < sizeof(deadly) / sizeof(*deadly); i++) {
        (void)signal(deadly[i], SIG_DFL);
        (void)sigaddset(&set, deadly[i]);
    }
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) {
        (void)dup2(null, STDOUT_FILENO);
        (void)dup2(null, STDERR_FILENO);
    }
    (void)alarm(TRIAL_SECONDS);
    _exit(is_fine(arg) ? EXIT_SUCCESS : EXIT_FAILURE);
}

akin_status_t akini_node_trial(int (*is_fine)(void *arg), void *arg)
{
    const pid_t child = fork();
    if (child == 0)
        run_child(is_fine, arg);
    if (child < 0)
        return AKIN_ERR_IO;
    int how = 0;
    pid_t who;
    do
        who = waitpid(child, &how, 0);
    while (who < 0 && errno == EINTR);
    if (who < 0)
        return AKIN_ERR_IO;
    return WIFEXITED(how) && WEXITSTATUS(how) == EXIT_SUCCESS ? AKIN_OK
                                                              : AKIN_ERR_FORMAT;
}
