/* plan: which rank runs where, as a table or as what starts it so. */
#include "launch/cluster.h"
#include "launch/command.h"
#include "launch/job_command.h"
#include "launch/plan_json.h"
#include "launch/plan_print.h"
#include "launch/plan_script.h"

#include <argp.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum emit { EMIT_TABLE, EMIT_JSON, EMIT_MPIRUN, EMIT_SLURM } emit_t;

static const char *const emit_names[] = {
    [EMIT_TABLE] = "table",
    [EMIT_JSON] = "json",
    [EMIT_MPIRUN] = "mpirun",
    [EMIT_SLURM] = "slurm",
};

typedef struct options {
    const char *job_path;
    const char *settings[AKIN_JOB_COMMAND_SETTINGS];
    size_t n_settings;
    const char *files[AKIN_CLUSTER_FILES];
    size_t n_files;
    uint32_t n_nodes;
    const char *hosts;
    const char *input_path;
    const char *output_path;
    emit_t emit;
    int collect;
} options_t;

enum {
    OPT_SET = 256,
    OPT_TOPOLOGY,
    OPT_NODES,
    OPT_HOSTS,
    OPT_EMIT,
    OPT_JSON,
    OPT_COLLECT
};

static const struct argp_option arguments[] = {
    {"config", 'c', "JOB", 0, "Job file; `akin info --config` lists its keys",
     0},
    {"set", OPT_SET, "KEY=VALUE", 0,
     "Change a key of the job file; may be repeated", 0},
    {"topology", OPT_TOPOLOGY, "FILE", 0,
     "hwloc XML of a node instead of cluster.topology; may be repeated, the "
     "last one stands for all nodes that follow",
     0},
    {"nodes", OPT_NODES, "N", 0, "Nodes instead of cluster.nodes", 0},
    {"hosts", OPT_HOSTS, "NAMES", 0,
     "Names of the nodes instead of cluster.hosts, with commas between them",
     0},
    {"collect", OPT_COLLECT, NULL, 0,
     "Under mpirun or srun with one rank on each node: the nodes are these", 0},
    {"emit", OPT_EMIT, "table|json|mpirun|slurm", 0,
     "What to print (table): mpirun and slurm are scripts that start the job",
     0},
    {"input", 'i', "IN.jsonl", 0, "Batch input of the emitted script", 0},
    {"output", 'o', "OUT.jsonl", 0, "Batch output of the emitted script", 0},
    {"json", OPT_JSON, NULL, 0, "The same as --emit json", 0},
    {0}};

static emit_t parse_emit(const char *arg, const struct argp_state *state)
{
    for (emit_t e = EMIT_TABLE; e <= EMIT_SLURM; e++)
        if (strcmp(arg, emit_names[e]) == 0)
            return e;
    argp_error(state, "--emit %s: table, json, mpirun or slurm is needed", arg);
    return EMIT_TABLE;
}

static void check_options(const options_t *o, const struct argp_state *state)
{
    if (o->job_path == NULL)
        argp_error(state, "no job file: give it with -c JOB");
    if (o->collect && (o->n_files > 0 || o->n_nodes > 0 || o->hosts != NULL))
        argp_error(state, "--collect finds the nodes: leave out --topology, "
                          "--nodes and --hosts");
    if ((o->input_path == NULL) != (o->output_path == NULL))
        argp_error(state, "give both -i and -o, or none of them");
}

static uint32_t parse_nodes(const char *arg, const struct argp_state *state)
{
    char *end;
    const unsigned long n = strtoul(arg, &end, 10);
    if (end == arg || *end != '\0' || n == 0 || n > 65536 || arg[0] == '-')
        argp_error(state, "--nodes %s: a number from 1 to 65536 is needed",
                   arg);
    return (uint32_t)n;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    switch (key) {
    case 'c':
        o->job_path = arg;
        break;
    case 'i':
        o->input_path = arg;
        break;
    case 'o':
        o->output_path = arg;
        break;
    case OPT_SET:
        if (o->n_settings == AKIN_JOB_COMMAND_SETTINGS)
            argp_error(state, "--set: at most %d of them",
                       AKIN_JOB_COMMAND_SETTINGS);
        o->settings[o->n_settings++] = arg;
        break;
    case OPT_TOPOLOGY:
        if (o->n_files == AKIN_CLUSTER_FILES)
            argp_error(state, "--topology: at most %d of them",
                       AKIN_CLUSTER_FILES);
        o->files[o->n_files++] = arg;
        break;
    case OPT_NODES:
        o->n_nodes = parse_nodes(arg, state);
        break;
    case OPT_HOSTS:
        o->hosts = arg;
        break;
    case OPT_EMIT:
        o->emit = parse_emit(arg, state);
        break;
    case OPT_JSON:
        o->emit = EMIT_JSON;
        break;
    case OPT_COLLECT:
        o->collect = 1;
        break;
    case ARGP_KEY_END:
        check_options(o, state);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* As it was called: by name where the shell found it, else by its path. */
static const char *own_name(char *path, size_t bytes)
{
    if (strchr(program_invocation_name, '/') == NULL)
        return "akin";
    const ssize_t n = readlink("/proc/self/exe", path, bytes - 1);
    if (n <= 0)
        return "akin";
    path[n] = '\0';
    return path;
}

static int print_json(const akin_plan_t *plan)
{
    akin_error_t err = {{0}};
    json_t *json = akin_plan_json(plan);
    if (json == NULL) {
        (void)akin_error_set(&err, AKIN_ERR_NOMEM, "out of memory");
        return akin_command_fail(AKIN_ERR_NOMEM, &err);
    }
    return akin_command_print_json(json);
}

static int print_plan(const options_t *o, const akin_job_t *job,
                      const akin_plan_t *plan, const akin_cluster_t *cluster)
{
    char path[PATH_MAX];
    akin_error_t err = {{0}};
    const akin_plan_script_t script = {
        .job = job,
        .plan = plan,
        .akin = own_name(path, sizeof(path)),
        .job_path = o->job_path,
        .settings = o->settings,
        .n_settings = o->n_settings,
        .input_path = o->input_path,
        .output_path = o->output_path,
    };
    akin_status_t status = AKIN_OK;
    switch (o->emit) {
    case EMIT_TABLE:
        status = akin_plan_print(job, plan, cluster, stdout);
        break;
    case EMIT_JSON:
        return print_json(plan);
    case EMIT_MPIRUN:
        status = akin_plan_script_mpirun(&script, stdout, &err);
        break;
    case EMIT_SLURM:
        status = akin_plan_script_slurm(&script, stdout, &err);
        break;
    }
    return status == AKIN_OK ? AKIN_EXIT_OK : akin_command_fail(status, &err);
}

static int make_plan(const options_t *o, const akin_job_t *job,
                     const akin_cluster_t *cluster)
{
    akin_error_t err = {{0}};
    akin_plan_t plan;
    const akin_plan_params_t params = {
        .job = job,
        .nodes = cluster->nodes,
        .n_nodes = cluster->n_nodes,
        .hosts = (const char *const *)cluster->hosts,
    };
    akin_status_t status = akin_plan_make(&params, &plan, &err);
    if (status != AKIN_OK)
        return akin_command_fail(status, &err);
    const int code = print_plan(o, job, &plan, cluster);
    akin_plan_cleanup(&plan);
    return code;
}

/* The first rank of the job prints, the others tell it what they run on. */
static int collect(const options_t *o, const akin_job_t *job)
{
    akin_error_t err = {{0}};
    akin_boot_t *boot;
    akin_cluster_t cluster;
    uint32_t rank, size;
    if (akin_boot_launch_rank(&rank, &size) != AKIN_OK) {
        (void)fprintf(stderr,
                      "akin: --collect: start it on the nodes: mpirun -N 1 "
                      "akin plan --collect ..., or srun --mpi=pmix "
                      "--ntasks-per-node=1\n");
        return AKIN_EXIT_USAGE;
    }
    akin_boot_set_environment();
    akin_status_t status = akin_boot_start(&boot, &err);
    if (status != AKIN_OK)
        return akin_command_fail(status, &err);
    status = akin_cluster_collect(boot, &cluster, &err);
    int code = AKIN_EXIT_OK;
    if (akin_boot_rank(boot) == 0)
        code = status == AKIN_OK ? make_plan(o, job, &cluster)
                                 : akin_command_fail(status, &err);
    if (status == AKIN_OK)
        akin_cluster_cleanup(&cluster);
    akin_boot_finish(boot);
    return code;
}

static int plan_files(const options_t *o, const akin_job_t *job)
{
    akin_error_t err = {{0}};
    akin_cluster_t cluster;
    const akin_cluster_params_t params = {
        .job = job,
        .job_path = o->job_path,
        .files = o->files,
        .n_files = o->n_files,
    };
    akin_status_t status = akin_cluster_read(&params, &cluster, &err);
    if (status != AKIN_OK)
        return akin_command_fail(status, &err);
    const int code = make_plan(o, job, &cluster);
    akin_cluster_cleanup(&cluster);
    return code;
}

int akin_command_plan(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        NULL,
        "Place the ranks of a job on nodes, GPUs, NICs and cores, and print "
        "the plan or a script that starts the job so.",
        NULL,
        NULL,
        NULL};
    options_t o = {.emit = EMIT_TABLE};
    akin_error_t err = {{0}};
    akin_config_t *config;
    akin_job_t job;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return AKIN_EXIT_USAGE;
    const akin_rank_params_t rank = {
        .job_path = o.job_path,
        .settings = o.settings,
        .n_settings = o.n_settings,
    };
    akin_status_t status = akin_rank_read_job(&rank, &config, &job, &err);
    if (status != AKIN_OK)
        return akin_command_fail(
            status == AKIN_ERR_NOMEM ? status : AKIN_ERR_CONFIG, &err);
    if (o.n_nodes > 0)
        job.n_nodes = o.n_nodes;
    if (o.hosts != NULL)
        job.hosts = o.hosts;
    const int code = o.collect ? collect(&o, &job) : plan_files(&o, &job);
    akin_config_destroy(config);
    return code;
}
