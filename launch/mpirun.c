/* mpirun: the command line, the environment, and passing signals on. */
#include "launch/mpirun.h"

#include "launch/command.h"
#include "net/boot.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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
    command_p->argv = calloc((size_t)(n_head + argc), sizeof(*command_p->argv));
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

static atomic_int n_signals;
static volatile pid_t child;

static void on_signal(int number)
{
    (void)number;
    if (child > 0)
        (void)kill(child,
                   atomic_fetch_add(&n_signals, 1) == 0 ? SIGUSR1 : SIGTERM);
}

static void become_mpirun(const akin_mpirun_t *command)
{
    /* A group of its own: Ctrl-C is for the launcher, which passes it on. */
    (void)setpgid(0, 0);
    akin_boot_set_environment();
    for (size_t i = 0; i < N_ENVIRONMENT; i++)
        (void)setenv(environment[i][0], environment[i][1], 0);
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

int akin_mpirun_run(const akin_mpirun_t *command)
{
    struct sigaction action = {.sa_handler = on_signal};
    (void)sigemptyset(&action.sa_mask);
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        become_mpirun(command);
    if (pid < 0) {
        (void)fprintf(stderr, "akin: cannot start mpirun: %s\n",
                      strerror(errno));
        return AKIN_EXIT_FAILED;
    }
    child = pid;
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return AKIN_EXIT_FAILED;
    if (atomic_load(&n_signals) > 1)
        return AKIN_EXIT_STOPPED;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
