/* Plan script: what both launchers need, and what each of them does. */
#include "launch/plan_script.h"

#include "base/clock.h"
#include "launch/mpirun.h"
#include "launch/plan_apply.h"
#include "launch/plan_json.h"
#include "launch/plan_print.h"
#include "launch/shell_word.h"

#include <string.h>

static void print_head(const akin_plan_script_t *s, const char *kind,
                       const char *call, FILE *stream)
{
    char title[160];
    (void)akin_plan_title(s->job, s->plan, title, sizeof(title));
    (void)fprintf(stream, "#!/usr/bin/env bash\n# %s\n# made by: akin plan -c ",
                  title);
    akin_shell_word_print(s->job_path, stream);
    for (size_t i = 0; i < s->n_settings; i++) {
        (void)fputs(" --set ", stream);
        akin_shell_word_print(s->settings[i], stream);
    }
    (void)fprintf(stream, " --emit %s\n#\n# usage: %s%s [AKIN-RUN-OPTION...]\n",
                  kind, call,
                  s->input_path != NULL && s->output_path != NULL
                      ? ""
                      : " IN.jsonl OUT.jsonl");
}

/* The variables `input` and `output`. */
static void print_paths(const akin_plan_script_t *s, FILE *stream)
{
    if (s->input_path != NULL && s->output_path != NULL) {
        (void)fputs("input=", stream);
        akin_shell_word_print(s->input_path, stream);
        (void)fputs("\noutput=", stream);
        akin_shell_word_print(s->output_path, stream);
        (void)fputs("\n", stream);
        return;
    }
    (void)fputs("if [ $# -lt 2 ]; then\n"
                "    echo \"usage: $0 IN.jsonl OUT.jsonl "
                "[AKIN-RUN-OPTION...]\" >&2\n"
                "    exit 2\n"
                "fi\n"
                "input=$1 output=$2\n"
                "shift 2\n",
                stream);
}

/* The ranks read it; every one finds its own row. */
static akin_status_t print_plan(const akin_plan_script_t *s, FILE *stream)
{
    (void)fputs("# What every rank gets.\nexport " AKIN_PLAN_VARIABLE "='",
                stream);
    akin_status_t status = akin_plan_write(s->plan, stream);
    (void)fputs("'\n", stream);
    return status;
}

static void print_mpirun(const akin_plan_script_t *s, int has_hosts,
                         const char *indent, FILE *stream)
{
    for (const akin_mpirun_variable_t *v = akin_mpirun_environment;
         v->name != NULL; v++)
        (void)fprintf(stream, "%sexport %s=${%s:-%s}\n", indent, v->name,
                      v->name, v->value);
    (void)fprintf(stream, "%scommand=(mpirun -q -n %u --bind-to none", indent,
                  s->plan->n_ranks);
    if (has_hosts)
        (void)fprintf(stream, "\n%s    --hostfile \"$hosts\" --map-by seq",
                      indent);
    (void)fputs(" -x " AKIN_PLAN_VARIABLE ")\n", stream);
}

static void print_akin(const akin_plan_script_t *s, FILE *stream)
{
    (void)fputs("command+=(", stream);
    akin_shell_word_print(s->akin, stream);
    (void)fputs(" run -c ", stream);
    akin_shell_word_print(s->job_path, stream);
    for (size_t i = 0; i < s->n_settings; i++) {
        (void)fputs("\n    --set ", stream);
        akin_shell_word_print(s->settings[i], stream);
    }
    (void)fputs("\n    -i \"$input\" -o \"$output\"", stream);
}

/* The launcher's exit code is `code`; a signal stops the job in order. */
static void print_wait(FILE *stream)
{
    (void)fputs(
        "\n"
        "# SIGUSR1 tells the router to stop in order: what is written by then "
        "can be\n"
        "# resumed.\n"
        "stopped=\n"
        "\"${command[@]}\" <&0 &\n"
        "job=$!\n"
        "trap 'stopped=signal; kill -USR1 \"$job\"' INT TERM HUP\n"
        "trap 'stopped=limit; kill -USR1 \"$job\"' USR1\n"
        "wait \"$job\"\n"
        "code=$?\n"
        "while [ $code -gt 128 ] && kill -0 \"$job\" 2>/dev/null; do\n"
        "    wait \"$job\"\n"
        "    code=$?\n"
        "done\n"
        "if [ -n \"$stopped\" ]; then\n"
        "    wait \"$job\" 2>/dev/null\n"
        "    last=$?\n"
        "    [ $last -eq 127 ] || code=$last\n"
        "fi\n",
        stream);
}

akin_status_t akin_plan_script_mpirun(const akin_plan_script_t *s, FILE *stream,
                                      akin_error_t *err)
{
    const akin_plan_t *plan = s->plan;
    const int has_hosts = plan->hosts != NULL;
    if (plan->n_nodes > 1 && !has_hosts)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "mpirun needs the names of the %u nodes: set "
                              "cluster.hosts, or give --hosts",
                              plan->n_nodes);
    print_head(s, "mpirun", "bash THIS-FILE", stream);
    (void)fputs("set -u\n\n", stream);
    print_paths(s, stream);
    (void)fputs("\n", stream);
    akin_status_t status = print_plan(s, stream);
    (void)fputs("\n", stream);
    if (has_hosts) {
        (void)fputs("# The node of each rank, in their order.\n"
                    "hosts=$(mktemp)\n"
                    "trap 'rm -f \"$hosts\"' EXIT\n"
                    "cat >\"$hosts\" <<'HOSTS'\n",
                    stream);
        for (uint32_t r = 0; r < plan->n_ranks; r++)
            (void)fprintf(stream, "%s\n", plan->hosts[plan->ranks[r].node]);
        (void)fputs("HOSTS\n", stream);
    }
    print_mpirun(s, has_hosts, "", stream);
    print_akin(s, stream);
    (void)fputs(" \"$@\")\n", stream);
    print_wait(stream);
    (void)fputs("exit $code\n", stream);
    if (status != AKIN_OK)
        return akin_error_set(err, status, "out of memory");
    return AKIN_OK;
}

static void print_sbatch(const akin_plan_script_t *s, FILE *stream)
{
    const long long minutes =
        (long long)((s->job->time_limit_ns + 60 * AKIN_NS_PER_S - 1) /
                    (60 * AKIN_NS_PER_S));
    const long long seconds =
        (long long)(s->job->stop_before_ns / AKIN_NS_PER_S);
    (void)fprintf(stream,
                  "#SBATCH --job-name=akin\n"
                  "#SBATCH --nodes=%u\n"
                  "#SBATCH --exclusive\n"
                  "#SBATCH --mem=0\n",
                  s->plan->n_nodes);
    if (s->job->n_gpus > 0)
        (void)fprintf(stream, "#SBATCH --gpus-per-node=%u\n", s->job->n_gpus);
    (void)fprintf(stream,
                  "#SBATCH --time=%lld\n"
                  "#SBATCH --signal=B:USR1@%lld\n"
                  "#SBATCH --requeue\n"
                  "#SBATCH --open-mode=append\n"
                  "set -u\n\n",
                  minutes, seconds);
}

static void print_hosts(const akin_plan_t *plan, FILE *stream)
{
    (void)fprintf(
        stream,
        "# The node of each rank, in their order.\n"
        "mapfile -t nodes < <(scontrol show hostnames "
        "\"$SLURM_JOB_NODELIST\")\n"
        "if [ ${#nodes[@]} -ne %u ]; then\n"
        "    echo \"the plan is for %u nodes, but the job has ${#nodes[@]}: "
        "make it anew\" >&2\n"
        "    exit 2\n"
        "fi\n"
        "hosts=$(mktemp)\n"
        "trap 'rm -f \"$hosts\"' EXIT\n"
        "for node in",
        plan->n_nodes, plan->n_nodes);
    for (uint32_t r = 0; r < plan->n_ranks; r++)
        (void)fprintf(stream, "%s%u",
                      r % 24 == 0 && plan->n_ranks > 24 ? " \\\n    " : " ",
                      plan->ranks[r].node);
    (void)fputs("; do\n"
                "    echo \"${nodes[node]}\"\n"
                "done >\"$hosts\"\n\n",
                stream);
}

akin_status_t akin_plan_script_slurm(const akin_plan_script_t *s, FILE *stream,
                                     akin_error_t *err)
{
    const akin_plan_t *plan = s->plan;
    /* Slurm chooses the nodes, and orders them. */
    const akin_plan_t nameless = {.n_ranks = plan->n_ranks,
                                  .ranks = plan->ranks,
                                  .n_nodes = plan->n_nodes};
    akin_plan_script_t script = *s;
    script.plan = &nameless;
    print_head(&script, "slurm", "sbatch [SBATCH-OPTION...] THIS-FILE", stream);
    print_sbatch(&script, stream);
    print_paths(&script, stream);
    (void)fputs("\n", stream);
    print_hosts(&nameless, stream);
    akin_status_t status = print_plan(&script, stream);
    (void)fprintf(
        stream,
        "\n"
        "if srun --mpi=list 2>&1 | grep -qw pmix; then\n"
        "    export SLURM_HOSTFILE=$hosts\n"
        "    command=(srun --mpi=pmix --nodes=%u --ntasks=%u "
        "--distribution=arbitrary\n"
        "        --overcommit --cpu-bind=none --kill-on-bad-exit=0 --wait=0)\n"
        "else\n",
        plan->n_nodes, plan->n_ranks);
    print_mpirun(&script, 1, "    ", stream);
    (void)fputs("fi\n", stream);
    print_akin(&script, stream);
    (void)fputs(" --resume \"$@\")\n", stream);
    print_wait(stream);
    (void)fputs("\n"
                "# Stopped before the time limit: the rest is for the next "
                "run.\n"
                "if [ $code -eq 4 ] && [ \"$stopped\" = limit ]; then\n"
                "    scontrol requeue \"$SLURM_JOB_ID\"\n"
                "fi\n"
                "exit $code\n",
                stream);
    if (status != AKIN_OK)
        return akin_error_set(err, status, "out of memory");
    return AKIN_OK;
}
