/* mpirun: the command line, the environment, and passing signals on. */
#include "launch/mpirun.h"

#include "base/clock.h"
#include "launch/command.h"
#include "launch/job_end.h"
#include "launch/plan_apply.h"
#include "launch/plan_json.h"
#include "launch/shell_word.h"
#include "net/boot.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What Open MPI's launcher is told, unless the user did: ranks may exceed
 * cores and are not bound, since a rank has threads; root is allowed, which
 * containers need. */
const akin_mpirun_variable_t akin_mpirun_environment[] = {
    {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
    {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
    {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
    {"OMPI_MCA_hwloc_base_binding_policy", "none"},
    {"OMPI_MCA_orte_base_help_aggregate", "0"},
    {NULL, NULL},
};

/* How long mpirun may take to end by itself once the job is over, and then at
 * the signal that ends the job at once. */
#define PART_NS (6 * AKIN_NS_PER_S)
#define TERM_NS (4 * AKIN_NS_PER_S)

/* Names the node of each rank in a file that is nowhere but in this process,
 * and puts the plan into the environment. */
static akin_status_t hand_out_plan(const akin_plan_t *plan,
                                   akin_mpirun_t *command, akin_error_t *err)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    akin_status_t status =
        stream != NULL ? akin_plan_write(plan, stream) : AKIN_ERR_NOMEM;
    if (stream != NULL && fclose(stream) != 0)
        status = AKIN_ERR_NOMEM;
    if (status == AKIN_OK && setenv(AKIN_PLAN_VARIABLE, text, 1) != 0)
        status = AKIN_ERR_NOMEM;
    free(text);
    command->hosts_fd = memfd_create("akin-hosts", MFD_CLOEXEC);
    for (uint32_t r = 0;
         status == AKIN_OK && plan->hosts != NULL && r < plan->n_ranks; r++)
        if (command->hosts_fd < 0 ||
            dprintf(command->hosts_fd, "%s\n",
                    plan->hosts[plan->ranks[r].node]) < 0)
            status = AKIN_ERR_IO;
    if (status == AKIN_OK)
        return status;
    return akin_error_set(err, status, "the plan for mpirun: %s",
                          akin_status_string(status));
}

static int add(akin_mpirun_t *command, const char *word)
{
    command->argv[command->n] = strdup(word);
    return command->argv[command->n++] != NULL;
}

/* Options of mpirun, before the program. */
enum { N_OPTIONS = 16 };

akin_status_t akin_mpirun_create(const akin_mpirun_params_t *params,
                                 akin_mpirun_t *command_p, akin_error_t *err)
{
    char self[4096], count[16], hosts[64];
    *command_p = (akin_mpirun_t){.hosts_fd = -1};
    ssize_t bytes = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (bytes <= 0)
        return akin_error_set(err, AKIN_ERR_IO, "/proc/self/exe: %s",
                              strerror(errno));
    self[bytes] = '\0';
    (void)snprintf(count, sizeof(count), "%u", params->n_ranks);
    akin_status_t status = AKIN_OK;
    if (params->plan != NULL)
        status = hand_out_plan(params->plan, command_p, err);
    command_p->argv = calloc((size_t)N_OPTIONS + (size_t)params->argc,
                             sizeof(*command_p->argv));
    if (command_p->argv == NULL) {
        akin_mpirun_cleanup(command_p);
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    }
    int is_done = add(command_p, "mpirun") && add(command_p, "-q") &&
                  add(command_p, "-n") && add(command_p, count);
    if (is_done && params->plan != NULL)
        is_done = add(command_p, "--bind-to") && add(command_p, "none") &&
                  add(command_p, "-x") && add(command_p, AKIN_PLAN_VARIABLE);
    if (is_done && params->plan != NULL && params->plan->hosts != NULL) {
        (void)snprintf(hosts, sizeof(hosts), "/proc/%ld/fd/%d", (long)getpid(),
                       command_p->hosts_fd);
        is_done = add(command_p, "--hostfile") && add(command_p, hosts) &&
                  add(command_p, "--map-by") && add(command_p, "seq");
    }
    is_done =
        is_done && add(command_p, self) && add(command_p, params->subcommand);
    for (int i = 1; is_done && i < params->argc; i++)
        is_done = add(command_p, params->argv[i]);
    if (status == AKIN_OK && !is_done)
        status = akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    if (status != AKIN_OK)
        akin_mpirun_cleanup(command_p);
    return status;
}

void akin_mpirun_cleanup(akin_mpirun_t *command)
{
    for (int i = 0; command->argv != NULL && i < command->n; i++)
        free(command->argv[i]);
    free(command->argv);
    if (command->hosts_fd >= 0)
        (void)close(command->hosts_fd);
    *command = (akin_mpirun_t){.hosts_fd = -1};
}

void akin_mpirun_print(const akin_mpirun_t *command, FILE *stream)
{
    for (const akin_mpirun_variable_t *v = akin_mpirun_environment;
         v->name != NULL; v++)
        (void)fprintf(stream, "%s=%s ", v->name, v->value);
    for (int i = 0; i < command->n; i++) {
        if (i > 0)
            (void)fputc(' ', stream);
        akin_shell_word_print(command->argv[i], stream);
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
    for (const akin_mpirun_variable_t *v = akin_mpirun_environment;
         v->name != NULL; v++)
        (void)setenv(v->name, v->value, 0);
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

/* Waiting for mpirun's end. */
typedef struct attendance {
    pid_t mpirun;
    const sigset_t *watched;
    akin_job_end_t job_end;
    int n_signals;
    int is_told;  /* the job is over */
    int code;     /* then: the job's */
    int is_ended; /* mpirun does not end by itself */
    int is_killed;
    int64_t term_ns; /* when mpirun is told to end the job at once */
    int64_t kill_ns; /* when it is killed */
} attendance_t;

/* What is due by time. */
static void attend_time(attendance_t *a)
{
    const int64_t now_ns = akin_clock_now_ns();
    if (!a->is_told && akin_job_end_is_told(&a->job_end, &a->code)) {
        a->is_told = 1;
        a->term_ns = now_ns + PART_NS;
    }
    if (a->term_ns <= now_ns) {
        a->term_ns = INT64_MAX;
        a->kill_ns = now_ns + TERM_NS;
        a->is_ended = 1;
        (void)kill(a->mpirun, SIGTERM);
    }
    if (a->kill_ns <= now_ns) {
        a->kill_ns = INT64_MAX;
        a->is_killed = 1;
        (void)fprintf(stderr,
                      "akin: mpirun does not end, some host does not answer: "
                      "it was killed%s\n",
                      a->is_told ? "; the job was over" : "");
        /* Its agents are of the group. */
        (void)kill(-a->mpirun, SIGKILL);
    }
}

/* Wait for mpirun's end and pass signals on. The first one is repeated, since
 * an mpirun that has not started its ranks yet passes nothing on. */
static int attend(attendance_t *a)
{
    static const struct timespec look = {.tv_sec = 1};
    for (;;) {
        attend_time(a);
        int number = sigtimedwait(a->watched, NULL, &look);
        int status;
        if (number == SIGCHLD) {
            if (waitpid(a->mpirun, &status, WNOHANG) == a->mpirun)
                return status;
            continue;
        }
        if (number > 0)
            a->n_signals++;
        else if (errno != EAGAIN)
            continue;
        if (a->n_signals == 1)
            (void)kill(a->mpirun, SIGUSR1);
        else if (number > 0 && !a->is_ended)
            a->term_ns = akin_clock_now_ns();
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
    attendance_t a = {
        .watched = &watched, .term_ns = INT64_MAX, .kill_ns = INT64_MAX};
    /* The job does as well without. */
    if (akin_job_end_listen(&a.job_end) != AKIN_OK)
        akin_job_end_close(&a.job_end);
    pid_t launcher = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become_mpirun(command, launcher, &mask);
    int code = AKIN_EXIT_FAILED;
    a.mpirun = pid;
    if (pid < 0) {
        (void)fprintf(stderr, "akin: cannot start mpirun: %s\n",
                      strerror(errno));
    } else {
        int status = attend(&a);
        if (a.is_told && a.is_ended)
            code = a.code < 128 ? a.code : AKIN_EXIT_FAILED;
        else if (a.n_signals > 1)
            code = AKIN_EXIT_STOPPED;
        else if (WIFEXITED(status) && WEXITSTATUS(status) < 128)
            code = WEXITSTATUS(status);
        else if (a.n_signals == 1)
            code = AKIN_EXIT_STOPPED; /* before anybody could handle it */
        else if (WIFSIGNALED(status))
            (void)fprintf(stderr, "akin: mpirun was ended by signal %d (%s)\n",
                          WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
    akin_job_end_close(&a.job_end);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    return code;
}
