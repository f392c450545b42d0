/* mpirun: the command line, the environment, and passing signals on. */
#include "launch/mpirun.h"

#include "base/clock.h"
#include "launch/command.h"
#include "net/boot.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What Open MPI's launcher is told, unless the user did: ranks may exceed
 * cores and are not bound, since a rank has threads; root is allowed, which
 * containers need. */
static const char *const environment[][2] = {
    {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
    {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
    {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
    {"OMPI_MCA_hwloc_base_binding_policy", "none"},
    {"OMPI_MCA_orte_base_help_aggregate", "0"},
};

#define N_ENVIRONMENT (sizeof(environment) / sizeof(environment[0]))

akin_status_t akin_mpirun_create(uint32_t n_ranks, const char *subcommand,
                                 int argc, char **argv,
                                 akin_mpirun_t *command_p, akin_error_t *err)
{
    char self[4096], count[16];
    *command_p = (akin_mpirun_t){0};
    ssize_t bytes = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (bytes <= 0)
        return akin_error_set(err, AKIN_ERR_IO, "/proc/self/exe: %s",
                              strerror(errno));
    self[bytes] = '\0';
    (void)snprintf(count, sizeof(count), "%u", n_ranks);
    const char *const head[] = {"mpirun", "-q", "-n", count, self, subcommand};
    const int n_head = (int)(sizeof(head) / sizeof(head[0]));
    command_p->argv =
        calloc((size_t)n_head + (size_t)argc, sizeof(*command_p->argv));
    if (command_p->argv == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    for (int i = 0; i < n_head + argc - 1; i++) {
        const char *word = i < n_head ? head[i] : argv[i - n_head + 1];
        command_p->argv[i] = strdup(word);
        if (command_p->argv[i] == NULL) {
            akin_mpirun_cleanup(command_p);
            return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
        }
        command_p->n++;
    }
    return AKIN_OK;
}

void akin_mpirun_cleanup(akin_mpirun_t *command)
{
    for (int i = 0; i < command->n; i++)
        free(command->argv[i]);
    free(command->argv);
    *command = (akin_mpirun_t){0};
}

static void print_word(const char *word, FILE *stream)
{
    const char *plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                        "0123456789_-+=./,:@%";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        (void)fputs(word, stream);
        return;
    }
    (void)fputc('\'', stream);
    for (; *word != '\0'; word++)
        if (*word == '\'')
            (void)fputs("'\\''", stream);
        else
            (void)fputc(*word, stream);
    (void)fputc('\'', stream);
}

void akin_mpirun_print(const akin_mpirun_t *command, FILE *stream)
{
    for (size_t i = 0; i < N_ENVIRONMENT; i++)
        (void)fprintf(stream, "%s=%s ", environment[i][0], environment[i][1]);
    for (int i = 0; i < command->n; i++) {
        if (i > 0)
            (void)fputc(' ', stream);
        print_word(command->argv[i], stream);
    }
    (void)fputc('\n', stream);
}

static void become_mpirun(const akin_mpirun_t *command, pid_t launcher,
                          const sigset_t *mask)
{
    /* A job must not outlive its launcher, which may be gone already. */
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != launcher)
        _exit(AKIN_EXIT_FAILED);
    /* A group of its own: Ctrl-C is for the launcher, which passes it on. */
    (void)setpgid(0, 0);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    akin_boot_set_environment();
    for (size_t i = 0; i < N_ENVIRONMENT; i++)
        (void)setenv(environment[i][0], environment[i][1], 0);
    char start[24];
    (void)snprintf(start, sizeof(start), "%lld",
                   (long long)akin_clock_now_ns());
    (void)setenv("AKIN_START_NS", start, 1);
    if (isatty(STDERR_FILENO)) {
        const char *tty = ttyname(STDERR_FILENO);
        if (tty != NULL)
            (void)setenv("AKIN_TTY", tty, 1);
    }
    (void)execvp(command->argv[0], command->argv);
    (void)fprintf(stderr,
                  "akin: cannot start mpirun: %s: install openmpi-bin\n",
                  strerror(errno));
    _exit(AKIN_EXIT_FAILED);
}

/* Wait for mpirun's end and pass signals on. The first one is repeated, since
 * an mpirun that has not started its ranks yet passes nothing on. */
static int attend(pid_t mpirun, const sigset_t *watched, int *n_signals_p)
{
    static const struct timespec again = {.tv_sec = 1};
    for (;;) {
        int number = *n_signals_p == 1 ? sigtimedwait(watched, NULL, &again)
                                       : sigwaitinfo(watched, NULL);
        int status;
        if (number == SIGCHLD) {
            if (waitpid(mpirun, &status, WNOHANG) == mpirun)
                return status;
        } else if (number > 0) {
            ++*n_signals_p;
        } else if (errno != EAGAIN) {
            continue;
        }
        if (*n_signals_p > 0 && number != SIGCHLD)
            (void)kill(mpirun, *n_signals_p == 1 ? SIGUSR1 : SIGTERM);
    }
}

int akin_mpirun_run(const akin_mpirun_t *command)
{
    sigset_t watched, mask;
    (void)sigemptyset(&watched);
    (void)sigaddset(&watched, SIGCHLD);
    (void)sigaddset(&watched, SIGINT);
    (void)sigaddset(&watched, SIGTERM);
    /* Under nohup a closed terminal ends nothing. */
    struct sigaction hangup;
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        (void)sigaddset(&watched, SIGHUP);
    /* An inherited SIG_IGN would reap mpirun unseen. */
    (void)signal(SIGCHLD, SIG_DFL);
    (void)sigprocmask(SIG_BLOCK, &watched, &mask);
    (void)fflush(stdout);
    pid_t launcher = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become_mpirun(command, launcher, &mask);
    int code = AKIN_EXIT_FAILED;
    if (pid < 0) {
        (void)fprintf(stderr, "akin: cannot start mpirun: %s\n",
                      strerror(errno));
    } else {
        int n_signals = 0;
        int status = attend(pid, &watched, &n_signals);
        if (n_signals > 1)
            code = AKIN_EXIT_STOPPED;
        else if (WIFEXITED(status) && WEXITSTATUS(status) < 128)
            code = WEXITSTATUS(status);
        else if (n_signals == 1)
            code = AKIN_EXIT_STOPPED; /* before anybody could handle it */
        else if (WIFSIGNALED(status))
            (void)fprintf(stderr, "akin: mpirun was ended by signal %d (%s)\n",
                          WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    return code;
}
