/* run: a batch through a job of MPI ranks. Outside of a launcher it starts
 * itself under mpirun; inside it is one rank. */
#include "base/log.h"
#include "launch/command.h"
#include "launch/mpirun.h"
#include "net/boot.h"
#include "net/supervisor.h"
#include "roles/rank.h"

#include <argp.h>
#include <stdio.h>

#define MAX_SETTINGS 64

typedef struct options {
    akin_rank_params_t rank;
    const char *settings[MAX_SETTINGS];
    int print_launch;
} options_t;

enum {
    OPT_SET = 256,
    OPT_RESUME,
    OPT_ORDERED,
    OPT_DETERMINISTIC_IDS,
    OPT_SUMMARY,
    OPT_PRINT_LAUNCH
};

static const struct argp_option arguments[] = {
    {"config", 'c', "JOB", 0, "Job file; `akin info --config` lists its keys",
     0},
    {"input", 'i', "IN.jsonl", 0, "Batch input, - for standard input", 0},
    {"output", 'o', "OUT.jsonl", 0, "Batch output, - for standard output", 0},
    {"set", OPT_SET, "KEY=VALUE", 0,
     "Change a key of the job file; may be repeated", 0},
    {"resume", OPT_RESUME, NULL, 0,
     "Go on with an output that an earlier run left", 0},
    {"ordered", OPT_ORDERED, NULL, 0, "Write answers in the order of the input",
     0},
    {"deterministic-ids", OPT_DETERMINISTIC_IDS, NULL, 0,
     "Make ids from the custom_id alone and leave times out, so that outputs "
     "of two runs compare equal",
     0},
    {"summary", OPT_SUMMARY, "FILE", 0, "Write the summary as JSON", 0},
    {"print-launch", OPT_PRINT_LAUNCH, NULL, 0,
     "Show the mpirun command and do nothing", 0},
    {0}};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    switch (key) {
    case 'c':
        o->rank.job_path = arg;
        break;
    case 'i':
        o->rank.batch.input_path = arg;
        break;
    case 'o':
        o->rank.batch.output_path = arg;
        break;
    case OPT_SET:
        if (o->rank.n_settings == MAX_SETTINGS)
            argp_error(state, "--set: at most %d of them", MAX_SETTINGS);
        o->settings[o->rank.n_settings++] = arg;
        break;
    case OPT_RESUME:
        o->rank.batch.resume = 1;
        break;
    case OPT_ORDERED:
        o->rank.batch.ordered = 1;
        break;
    case OPT_DETERMINISTIC_IDS:
        o->rank.batch.deterministic_ids = 1;
        break;
    case OPT_SUMMARY:
        o->rank.batch.summary_path = arg;
        break;
    case OPT_PRINT_LAUNCH:
        o->print_launch = 1;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "%s: no such argument", arg);
        break;
    case ARGP_KEY_END:
        if (o->rank.job_path == NULL)
            argp_error(state, "no job file: give it with -c JOB");
        if (o->rank.batch.input_path == NULL)
            argp_error(state, "no input: give it with -i IN.jsonl");
        if (o->rank.batch.output_path == NULL)
            argp_error(state, "no output: give it with -o OUT.jsonl");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* Start the job's ranks; the job file is read here, too, so that a mistake in
 * it shows at once and the number of ranks is known. */
static int launch(const options_t *o, int argc, char **argv)
{
    akin_error_t err = {{0}};
    akin_config_t *config;
    akin_job_t job;
    akin_mpirun_t command;
    akin_status_t status = akin_rank_read_job(&o->rank, &config, &job, &err);
    if (status != AKIN_OK)
        return akin_command_fail(
            status == AKIN_ERR_NOMEM ? status : AKIN_ERR_CONFIG, &err);
    uint32_t n_ranks = akin_job_n_ranks(&job);
    akin_config_destroy(config);
    status = akin_mpirun_create(n_ranks, "run", argc, argv, &command, &err);
    if (status != AKIN_OK)
        return akin_command_fail(status, &err);
    int code = AKIN_EXIT_OK;
    if (o->print_launch)
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

static int rank_main(void *arg)
{
    return akin_rank_run(arg);
}

int akin_command_run(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        NULL,
        "Run a batch of OpenAI requests through a job of one router, prefill "
        "and decode ranks.",
        NULL,
        NULL,
        NULL};
    options_t o = {0};
    o.rank.settings = o.settings;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return AKIN_EXIT_USAGE;
    uint32_t rank, size;
    if (o.print_launch || akin_boot_launch_rank(&rank, &size) != AKIN_OK)
        return launch(&o, argc, argv);
    akin_log_identify((int)rank, rank == 0 ? "router" : "worker");
    const akin_supervisor_params_t supervisor = {
        .rank_main = rank_main,
        .set_signals = set_signals,
        .arg = &o.rank,
        .rank = (int)rank,
        .role = rank == 0 ? "router" : "worker",
        .pass_exit_code = rank == 0,
    };
    return akin_supervisor_run(&supervisor);
}
