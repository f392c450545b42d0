/* Job command: its options, its start under mpirun, its life as a rank. */
#include "launch/job_command.h"

#include "base/clock.h"
#include "base/log.h"
#include "launch/command.h"
#include "launch/job_end.h"
#include "launch/mpirun.h"
#include "net/boot.h"
#include "net/supervisor.h"
#include "roles/job_fit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* For MPI and the model: a rank that takes longer hangs, and with it the job.
 */
#define START_TIMEOUT_NS (30 * 60 * AKIN_NS_PER_S)

enum { OPT_SET = 512, OPT_RESUME, OPT_PRINT_LAUNCH };

static const struct argp_option arguments[] = {
    {"config", 'c', "JOB", 0, "Job file; `akin info --config` lists its keys",
     0},
    {"input", 'i', "IN.jsonl", 0, "Batch input, - for standard input", 0},
    {"set", OPT_SET, "KEY=VALUE", 0,
     "Change a key of the job file; may be repeated", 0},
    {"resume", OPT_RESUME, NULL, 0,
     "Go on with an output that an earlier run left", 0},
    {"print-launch", OPT_PRINT_LAUNCH, NULL, 0,
     "Show the mpirun command and do nothing", 0},
    {0}};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    akin_job_command_t *c = state->input;
    switch (key) {
    case 'c':
        c->job_path = arg;
        break;
    case 'i':
        c->batch.input_path = arg;
        break;
    case OPT_SET:
        if (c->n_settings == AKIN_JOB_COMMAND_SETTINGS)
            argp_error(state, "--set: at most %d of them",
                       AKIN_JOB_COMMAND_SETTINGS);
        c->settings[c->n_settings++] = arg;
        break;
    case OPT_RESUME:
        c->batch.resume = 1;
        break;
    case OPT_PRINT_LAUNCH:
        c->print_launch = 1;
        break;
    case ARGP_KEY_END:
        if (c->job_path == NULL)
            argp_error(state, "no job file: give it with -c JOB");
        if (c->batch.input_path == NULL)
            argp_error(state, "no input: give it with -i IN.jsonl");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

const struct argp akin_job_command_argp = {.options = arguments,
                                           .parser = parse_option};

/* Start the job's ranks; the job file is read here, too, so that a mistake in
 * it shows at once and the number of ranks is known. */
static int launch(const akin_job_command_t *c, const akin_rank_params_t *rank,
                  const char *name, int argc, char **argv)
{
    akin_error_t err = {{0}};
    akin_config_t *config;
    akin_job_t job;
    akin_mpirun_t command;
    akin_status_t status = akin_rank_read_job(rank, &config, &job, &err);
    if (status != AKIN_OK)
        return akin_command_fail(
            status == AKIN_ERR_NOMEM ? status : AKIN_ERR_CONFIG, &err);
    uint32_t n_ranks = akin_job_n_ranks(&job);
    status = akin_job_fit_check(&job, &err);
    akin_config_destroy(config);
    if (status != AKIN_OK)
        return akin_command_fail(status, &err);
    status = akin_mpirun_create(n_ranks, name, argc, argv, &command, &err);
    if (status != AKIN_OK)
        return akin_command_fail(status, &err);
    int code = AKIN_EXIT_OK;
    if (c->print_launch)
        akin_mpirun_print(&command, stdout);
    else
        code = akin_mpirun_run(&command);
    akin_mpirun_cleanup(&command);
    return code;
}

static void set_signals(void *arg)
{
    (void)arg;
    akin_rank_set_signals();
}

static int rank_main(void *arg, const akin_supervisor_life_t *life)
{
    return akin_rank_run(arg, life);
}

/* Reads standard input away while the supervisor lives; does not return. */
static void drain_input(pid_t supervisor)
{
    char piece[65536];
    ssize_t n;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor)
        _exit(0);
    (void)close(STDOUT_FILENO);
    (void)close(STDERR_FILENO);
    do
        n = read(STDIN_FILENO, piece, sizeof(piece));
    while (n > 0 || (n < 0 && errno == EINTR));
    _exit(0);
}

/* The input is the router's. srun gives it to every rank, and stops giving any
 * of it once one does not read: closing it is not enough, it has to be read.
 */
static void leave_input(void)
{
    struct stat input;
    const pid_t own = getpid();
    if (fstat(STDIN_FILENO, &input) == 0 &&
        (S_ISFIFO(input.st_mode) || S_ISSOCK(input.st_mode)) && fork() == 0)
        drain_input(own);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)dup2(fd, STDIN_FILENO);
    if (fd != STDIN_FILENO)
        (void)close(fd);
}

int akin_job_command_run(const akin_job_command_t *command, const char *name,
                         int argc, char **argv)
{
    akin_rank_params_t params = {
        .job_path = command->job_path,
        .settings = command->settings,
        .n_settings = command->n_settings,
        .batch = command->batch,
        .calibration = command->calibration,
    };
    uint32_t rank, size;
    if (command->print_launch || akin_boot_launch_rank(&rank, &size) != AKIN_OK)
        return launch(command, &params, name, argc, argv);
    akin_log_identify((int)rank, rank == 0 ? "router" : "worker");
    if (rank != 0)
        leave_input();
    const akin_supervisor_params_t supervisor = {
        .rank_main = rank_main,
        .set_signals = set_signals,
        .arg = &params,
        .rank = (int)rank,
        .role = rank == 0 ? "router" : "worker",
        .pass_exit_code = rank == 0,
        .start_timeout_ns = START_TIMEOUT_NS,
    };
    int code = akin_supervisor_run(&supervisor);
    if (rank == 0)
        akin_job_end_tell(code);
    return code;
}
