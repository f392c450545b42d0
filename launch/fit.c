/* fit: from a trace to centroids for the decode workers. */
#include "launch/command.h"
#include "launch/fit_print.h"
#include "launch/trace_command.h"
#include "routing/fit_placement.h"

#include <argp.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct options {
    const char *trace_path;
    const char *fit_path;
    const char *show_path;
    uint32_t n_workers;
    const char *variant;
    uint32_t n_ranks;
    uint32_t n_replicas;
    double batch;
    akin_placement_kind_t placement;
    uint64_t seed;
    uint32_t prompt_tokens;
    uint32_t min_tokens;
    int json;
} options_t;

enum {
    OPT_VARIANT = 256,
    OPT_EP,
    OPT_REPLICAS,
    OPT_PLACEMENT,
    OPT_BATCH,
    OPT_SEED,
    OPT_PROMPT,
    OPT_MIN,
    OPT_SHOW,
    OPT_JSON
};

static const struct argp_option arguments[] = {
    {"output", 'o', "FIT", 0, "Fit file to write", 0},
    {"workers", 'K', "W", 0, "Decode workers, one cluster each", 0},
    {"variant", OPT_VARIANT, "auto|count|count_idf", 0,
     "Form of the signatures; auto tries both on requests held out (auto)", 0},
    {"ep", OPT_EP, "R", 0,
     "Expert-parallel ranks per worker: place the experts of each, too", 0},
    {"replicas", OPT_REPLICAS, "N", 0,
     "Slots of every layer beyond one per expert (0)", 0},
    {"placement", OPT_PLACEMENT, "linear|round-robin|eplb|activation", 0,
     "How experts are placed (activation)", 0},
    {"batch", OPT_BATCH, "B", 0, "Usual requests of a decode step (16)", 0},
    {"seed", OPT_SEED, "S", 0, "Of pairs, clusters and splits (0)", 0},
    {"prompt-tokens", OPT_PROMPT, "N", 0,
     "First rows that stand in for the prompt of requests that know none", 0},
    {"min-tokens", OPT_MIN, "N", 0, "Leave out requests of fewer rows", 0},
    {"show", OPT_SHOW, "FIT", 0, "Show what a fit file holds, and nothing else",
     0},
    {"json", OPT_JSON, NULL, 0, "Print JSON", 0},
    {0}};

static void check_options(const options_t *o, const struct argp_state *state)
{
    if (o->show_path != NULL) {
        if (o->trace_path != NULL || o->fit_path != NULL || o->n_workers != 0)
            argp_error(state, "--show makes no fit: leave out the trace, -o "
                              "and -K");
        return;
    }
    if (o->trace_path == NULL)
        argp_error(state, "no trace: name its index; akin calibrate makes one");
    if (o->fit_path == NULL)
        argp_error(state, "no output: name it with -o FIT");
    if (o->n_ranks == 1 && o->n_replicas > 0)
        argp_error(state, "--replicas are for workers of several ranks: give "
                          "--ep, too");
    if (o->n_workers == 0)
        argp_error(state, "how many decode workers? give them with -K");
}

static void parse_placement(const char *arg, options_t *o,
                            const struct argp_state *state)
{
    akin_error_t err = {{0}};
    if (akin_placement_kind_find(arg, &o->placement, &err) != AKIN_OK)
        argp_error(state, "--placement: %s", err.text);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    switch (key) {
    case 'o':
        o->fit_path = arg;
        break;
    case 'K':
        o->n_workers =
            (uint32_t)akin_trace_parse_number("-K", arg, 1, 1024, state);
        break;
    case OPT_VARIANT:
        if (strcmp(arg, "auto") != 0 && strcmp(arg, "count") != 0 &&
            strcmp(arg, "count_idf") != 0)
            argp_error(state,
                       "--variant %s: auto, count or count_idf is needed", arg);
        o->variant = arg;
        break;
    case OPT_EP:
        o->n_ranks = (uint32_t)akin_trace_parse_number(
            "--ep", arg, 1, AKIN_PLACEMENT_MAX_RANKS, state);
        break;
    case OPT_REPLICAS:
        o->n_replicas = (uint32_t)akin_trace_parse_number("--replicas", arg, 0,
                                                          65536, state);
        break;
    case OPT_PLACEMENT:
        parse_placement(arg, o, state);
        break;
    case OPT_BATCH:
        o->batch =
            (double)akin_trace_parse_number("--batch", arg, 1, 65536, state);
        break;
    case OPT_SEED:
        o->seed = akin_trace_parse_number("--seed", arg, 0, INT64_MAX, state);
        break;
    case OPT_PROMPT:
        o->prompt_tokens = (uint32_t)akin_trace_parse_number(
            "--prompt-tokens", arg, 1, UINT32_MAX, state);
        break;
    case OPT_MIN:
        o->min_tokens = (uint32_t)akin_trace_parse_number("--min-tokens", arg,
                                                          0, UINT32_MAX, state);
        break;
    case OPT_SHOW:
        o->show_path = arg;
        break;
    case OPT_JSON:
        o->json = 1;
        break;
    case ARGP_KEY_ARG:
        if (o->trace_path != NULL)
            argp_error(state, "%s: one trace is enough", arg);
        o->trace_path = arg;
        break;
    case ARGP_KEY_END:
        check_options(o, state);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static int show(const options_t *o)
{
    akin_error_t err = {{0}};
    akin_fit_t fit;
    akin_status_t status = akin_fit_read(o->show_path, &fit, &err);
    if (status != AKIN_OK)
        return akin_command_fail(status, &err);
    int code = AKIN_EXIT_OK;
    if (o->json)
        code = akin_command_print_json(akin_fit_show_json(&fit, o->batch));
    else
        akin_fit_show_print(o->show_path, &fit, o->batch);
    akin_fit_cleanup(&fit);
    return code;
}

static akin_status_t make(const options_t *o, const akin_trace_t *trace,
                          const akin_replay_set_t *set, akin_fit_t *fit,
                          akin_fit_auto_report_t *report, akin_error_t *err)
{
    const akin_trace_shape_t *shape = akin_trace_shape(trace);
    akin_cost_t cost;
    akin_cost_init(&cost, shape->n_layers * shape->n_experts, 0.0);
    const akin_fit_auto_params_t params = {
        .trace = trace,
        .set = set,
        .prompt_tokens = o->prompt_tokens,
        .n_clusters = o->n_workers,
        .seed = o->seed,
        .only_variant = strcmp(o->variant, "auto") != 0,
        .variant = strcmp(o->variant, "count") == 0 ? AKIN_FIT_COUNT
                                                    : AKIN_FIT_COUNT_IDF,
        .cost = cost.line,
    };
    akin_status_t status = akin_fit_auto(&params, fit, report, err);
    const akin_fit_placement_params_t place = {
        .kind = o->placement,
        .n_ranks = o->n_ranks,
        .n_replicas = o->n_replicas,
        .batch = o->batch,
    };
    if (status == AKIN_OK && o->n_ranks > 1)
        status = akin_fit_place(fit, &place, err);
    if (status == AKIN_OK)
        status = akin_fit_write(fit, o->fit_path, err);
    return status;
}

/* A fit replaces an older one, but never a trace or whatever else is there by
 * a slip of the hand. Said before the work, as is that there is no such
 * folder. */
static akin_status_t check_output(const char *path, akin_error_t *err)
{
    struct stat there;
    akin_fit_t fit;
    if (stat(path, &there) == 0) {
        if (S_ISREG(there.st_mode) && there.st_size == 0)
            return AKIN_OK;
        akin_status_t status = akin_fit_read(path, &fit, err);
        akin_fit_cleanup(&fit);
        if (status == AKIN_OK || status == AKIN_ERR_NOMEM)
            return status;
        return akin_error_set(err, AKIN_ERR_EXISTS,
                              "%s: exists and is no fit file; remove it or "
                              "name another output",
                              path);
    }
    char *copy = strdup(path);
    if (copy == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    const char *folder = dirname(copy);
    akin_status_t status = AKIN_OK;
    if (access(folder, W_OK | X_OK) != 0)
        status = akin_error_set(err, akin_status_from_errno(errno),
                                "%s: cannot write the fit into %s: %s", path,
                                folder, strerror(errno));
    free(copy);
    return status;
}

static akin_status_t open_trace(const options_t *o, akin_trace_t **trace_p,
                                akin_replay_set_t **set_p,
                                akin_route_correlation_t *correlation,
                                akin_error_t *err)
{
    akin_status_t status = akin_trace_open(o->trace_path, trace_p, err);
    if (status != AKIN_OK)
        return status;
    status = akin_replay_set_create(*trace_p, o->prompt_tokens, o->min_tokens,
                                    set_p, err);
    if (status == AKIN_OK && o->prompt_tokens > 0 && (*set_p)->n_stand_in == 0)
        status = akin_error_set(err, AKIN_ERR_INVALID,
                                "all requests know their prompts: leave "
                                "--prompt-tokens out");
    if (status == AKIN_OK)
        status =
            akin_route_correlate(*trace_p, o->prompt_tokens, correlation, err);
    if (status != AKIN_OK)
        return akin_error_prefix(err, status, "%s: ", o->trace_path);
    return AKIN_OK;
}

static int fit_trace(const options_t *o)
{
    akin_error_t err = {{0}};
    akin_trace_t *trace = NULL;
    akin_replay_set_t *set = NULL;
    akin_fit_t fit = {0};
    akin_fit_auto_report_t report = {0};
    akin_route_correlation_t correlation;
    akin_status_t status = check_output(o->fit_path, &err);
    if (status == AKIN_OK)
        status = open_trace(o, &trace, &set, &correlation, &err);
    if (status == AKIN_OK)
        status = make(o, trace, set, &fit, &report, &err);
    int code = AKIN_EXIT_OK;
    if (status != AKIN_OK) {
        code = akin_command_fail(status, &err);
    } else {
        const akin_fit_outcome_t outcome = {
            .trace_path = o->trace_path,
            .fit_path = o->fit_path,
            .set = set,
            .fit = &fit,
            .report = &report,
            .correlation = &correlation,
            .stands_in = akin_trace_prompt_stands_in(trace) ||
                         correlation.n_stand_in > 0,
        };
        if (o->json)
            code = akin_command_print_json(akin_fit_json(&outcome));
        else
            akin_fit_print(&outcome);
    }
    akin_fit_auto_report_cleanup(&report);
    akin_fit_cleanup(&fit);
    akin_replay_set_destroy(set);
    akin_trace_close(trace);
    return code;
}

int akin_command_fit(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        "TRACE",
        "Learn from a trace how the prompts of requests tell where they should "
        "be decoded: signatures, and a centroid for every decode worker.",
        NULL,
        NULL,
        NULL};
    options_t o = {
        .variant = "auto",
        .n_ranks = 1,
        .batch = 16.0,
        .placement = AKIN_PLACEMENT_ACTIVATION,
    };
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return AKIN_EXIT_USAGE;
    return o.show_path != NULL ? show(&o) : fit_trace(&o);
}
