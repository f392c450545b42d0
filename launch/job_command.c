/* Job command: its options, its start under mpirun, its life as a rank. */
#include "launch/job_command.h"

#include "base/clock.h"
#include "base/log.h"
#include "launch/command.h"
#include "launch/job_end.h"
#include "launch/mpirun.h"
#include "launch/plan_apply.h"
#include "launch/plan_json.h"
#include "net/boot.h"
#include "net/supervisor.h"
#include "roles/job_fit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* For MPI and the model: a rank that takes longer hangs, and with it the job.
 */
#define START_TIMEOUT_NS (30 * 60 * AKIN_NS_PER_S)

enum { OPT_SET = 512, OPT_PLAN, OPT_RESUME, OPT_PRINT_LAUNCH };

static const struct argp_option arguments[] = {
    {"config", 'c', "JOB", 0, "Job file; `akin info --config` lists its keys",
     0},
    {"input", 'i', "IN.jsonl", 0, "Batch input, - for standard input", 0},
    {"set", OPT_SET, "KEY=VALUE", 0,
     "Change a key of the job file; may be repeated", 0},
    {"plan", OPT_PLAN, "PLAN.json", 0,
     "Run the ranks where the plan has them; akin plan --emit json makes it",
     0},
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
    case OPT_PLAN:
        c->plan = arg;
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

/* The plan of the job; *n_ranks is 0 where there is none. Ranks take what the
 * launcher has read: the file may be on its host only. */
static akin_status_t read_plan(const akin_job_command_t *c, int is_rank,
                               akin_plan_t *plan_p, akin_error_t *err)
{
    const char *text = getenv(AKIN_PLAN_VARIABLE);
    const char *origin = AKIN_PLAN_VARIABLE;
    *plan_p = (akin_plan_t){0};
    if (c->plan != NULL && (!is_rank || text == NULL)) {
        text = c->plan;
        origin = "--plan";
    }
    if (text == NULL || text[0] == '\0')
        return AKIN_OK;
    return akin_plan_read(text, origin, plan_p, err);
}

/* Start the job's ranks; the job file is read here, too, so that a mistake in
 * it shows at once and the number of ranks is known. */
static int launch(const akin_job_command_t *c, const akin_rank_params_t *rank,
                  const char *name, int argc, char **argv)
{
    akin_error_t err = {{0}};
    akin_config_t *config;
    akin_job_t job;
    akin_mpirun_t command;
    akin_plan_t plan;
    akin_status_t status = akin_rank_read_job(rank, &config, &job, &err);
    if (status != AKIN_OK)
        return akin_command_fail(
            status == AKIN_ERR_NOMEM ? status : AKIN_ERR_CONFIG, &err);
    uint32_t n_ranks = akin_job_n_ranks(&job);
    status = akin_job_fit_check(&job, &err);
    akin_config_destroy(config);
    if (status != AKIN_OK)
        return akin_command_fail(status, &err);
    status = read_plan(c, 0, &plan, &err);
    if (status == AKIN_OK && plan.n_ranks > 0 && plan.n_ranks != n_ranks)
        status = akin_error_set(&err, AKIN_ERR_CONFIG,
                                "the plan has %u ranks, but the job has %u: "
                                "make it anew with akin plan",
                                plan.n_ranks, n_ranks);
    if (status == AKIN_OK && plan.n_nodes > 1 && plan.hosts == NULL)
        status = akin_error_set(&err, AKIN_ERR_CONFIG,
                                "the nodes of the plan have no names: make it "
                                "with cluster.hosts set, or --hosts");
    const akin_mpirun_params_t params = {
        .n_ranks = n_ranks,
        .subcommand = name,
        .argc = argc,
        .argv = argv,
        .plan = plan.n_ranks > 0 ? &plan : NULL,
    };
    if (status == AKIN_OK)
        status = akin_mpirun_create(&params, &command, &err);
    akin_plan_cleanup(&plan);
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

/* What the process of a rank starts with. */
typedef struct start {
    const akin_job_command_t *command;
    akin_rank_params_t params;
    uint32_t rank;
    uint32_t n_ranks;
} start_t;

/* Go where the plan has this rank; what is wrong is told once all ranks can
 * agree on it. */
static void take_place(start_t *start, akin_plan_t *plan)
{
    akin_rank_params_t *p = &start->params;
    p->node = AKIN_RANK_NO_NODE;
    p->placed = read_plan(start->command, 1, plan, &p->placed_error);
    if (p->placed != AKIN_OK || plan->n_ranks == 0)
        return;
    p->placed =
        akin_plan_apply(plan, start->rank, start->n_ranks, &p->placed_error);
    if (p->placed != AKIN_OK)
        return;
    const akin_plan_rank_t *row = &plan->ranks[start->rank];
    p->node = row->node;
    p->host = plan->hosts != NULL ? plan->hosts[row->node] : NULL;
    p->n_threads = (int)row->n_cores;
}

static int rank_main(void *arg, const akin_supervisor_life_t *life)
{
    start_t *start = arg;
    akin_plan_t plan;
    take_place(start, &plan);
    const int code = akin_rank_run(&start->params, life);
    akin_plan_cleanup(&plan);
    return code;
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
    start_t start = {
        .command = command,
        .params =
            {
                .job_path = command->job_path,
                .settings = command->settings,
                .n_settings = command->n_settings,
                .batch = command->batch,
                .calibration = command->calibration,
            },
    };
    if (command->print_launch ||
        akin_boot_launch_rank(&start.rank, &start.n_ranks) != AKIN_OK)
        return launch(command, &start.params, name, argc, argv);
    const uint32_t rank = start.rank;
    akin_log_identify((int)rank, rank == 0 ? "router" : "worker");
    if (rank != 0)
        leave_input();
    const akin_supervisor_params_t supervisor = {
        .rank_main = rank_main,
        .set_signals = set_signals,
        .arg = &start,
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
