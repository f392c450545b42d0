/* bench route: its options, its table and its JSON. */
#include "launch/bench_route.h"

#include "launch/command.h"

#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define MAX_LIST 16
#define MAX_WORKERS 16384u
#define N_DOMAINS 16u

typedef struct options {
    akin_planted_t planted;
    uint32_t workers[MAX_LIST];
    size_t n_workers;
    const char *policies[MAX_LIST];
    size_t n_policies;
    uint32_t seconds;
    int json;
} options_t;

static const char *const known[] = {"eldr", "eldr-static", "union",
                                    "union-band", "union-pull"};

#define N_KNOWN (sizeof(known) / sizeof(known[0]))

enum {
    OPT_WORKERS = 256,
    OPT_LAYERS,
    OPT_EXPERTS,
    OPT_TOP_K,
    OPT_POLICY,
    OPT_SECONDS,
    OPT_SEED,
    OPT_JSON
};

static const struct argp_option arguments[] = {
    {"workers", OPT_WORKERS, "LIST", 0,
     "Decode workers (4,16,64,256,1024,4096)", 0},
    {"layers", OPT_LAYERS, "N", 0, "MoE layers (48)", 0},
    {"experts", OPT_EXPERTS, "N", 0, "Experts per layer (128)", 0},
    {"top-k", OPT_TOP_K, "N", 0, "Experts per token (8)", 0},
    {"policy", OPT_POLICY, "LIST", 0,
     "Policies (eldr,eldr-static,union,union-band,union-pull)", 0},
    {"seconds", OPT_SECONDS, "N", 0, "Seconds per case at most (2)", 0},
    {"seed", OPT_SEED, "N", 0, "Seed of the requests (1)", 0},
    {"json", OPT_JSON, NULL, 0, "Print JSON", 0},
    {0}};

static uint32_t number(struct argp_state *state, const char *name,
                       const char *text, uint32_t max)
{
    uint32_t value;
    if (akin_bench_parse_list(text, max, &value, 1) != 1)
        argp_error(state, "--%s %s: a whole number from 1 to %u is needed",
                   name, text, max);
    return value;
}

/* Split the list in place. */
static void take_policies(struct argp_state *state, char *list)
{
    options_t *o = state->input;
    char *rest = NULL;
    o->n_policies = 0;
    for (char *name = strtok_r(list, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest)) {
        size_t k = 0;
        while (k < N_KNOWN && strcmp(name, known[k]) != 0)
            k++;
        if (k == N_KNOWN || o->n_policies == MAX_LIST)
            argp_error(state,
                       "--policy %s: choose up to %d among eldr, eldr-static, "
                       "union, union-band, union-pull; the others read no "
                       "array",
                       name, MAX_LIST);
        o->policies[o->n_policies++] = name;
    }
    if (o->n_policies == 0)
        argp_error(state, "--policy: names are needed, as in eldr,union");
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    switch (key) {
    case OPT_WORKERS:
        o->n_workers =
            akin_bench_parse_list(arg, MAX_WORKERS, o->workers, MAX_LIST);
        if (o->n_workers == 0)
            argp_error(state,
                       "--workers %s: up to %d numbers from 1 to %u, as in "
                       "4,16",
                       arg, MAX_LIST, MAX_WORKERS);
        break;
    case OPT_LAYERS:
        o->planted.n_layers = number(state, "layers", arg, 1024);
        break;
    case OPT_EXPERTS:
        o->planted.n_experts = number(state, "experts", arg, 1024);
        break;
    case OPT_TOP_K:
        o->planted.top_k = number(state, "top-k", arg, 1024);
        break;
    case OPT_POLICY:
        take_policies(state, arg);
        break;
    case OPT_SECONDS:
        o->seconds = number(state, "seconds", arg, 3600);
        break;
    case OPT_SEED:
        o->planted.seed = number(state, "seed", arg, UINT32_MAX);
        break;
    case OPT_JSON:
        o->json = 1;
        break;
    case ARGP_KEY_END:
        if (o->planted.top_k > o->planted.n_experts)
            argp_error(state, "--top-k %u: there are %u experts",
                       o->planted.top_k, o->planted.n_experts);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static json_t *to_json(const options_t *o, const char *name, uint32_t n_workers,
                       const akin_bench_route_figures_t *f)
{
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, "
        "s:f, s:f}",
        "bench", "route", "policy", name, "workers", (json_int_t)n_workers,
        "layers", (json_int_t)o->planted.n_layers, "experts",
        (json_int_t)o->planted.n_experts, "top_k", (json_int_t)o->planted.top_k,
        "rounds", (json_int_t)f->n, "bytes", (json_int_t)f->bytes, "seconds",
        f->choice.seconds, "p99_seconds", f->p99_seconds, "reference_seconds",
        f->choice.reference_seconds, "reference_p99_seconds",
        f->read_p99_seconds, "ratio", 1.0 / f->choice.reference_over_ours,
        "decide_seconds", f->decide_seconds, "band", f->n_band);
}

static akin_status_t print_row(const char *name, uint32_t n_workers,
                               const akin_bench_route_figures_t *f,
                               akin_error_t *err)
{
    (void)printf("%-12s %7u %9.2f %10.2f %10.2f %10.2f %8.2f %8.2f %10.2f "
                 "%7.1f\n",
                 name, n_workers, (double)f->bytes / 1e6,
                 f->choice.reference_seconds * 1e6, f->choice.seconds * 1e6,
                 f->p99_seconds * 1e6, 1.0 / f->choice.reference_over_ours,
                 f->p99_seconds / f->choice.seconds, f->decide_seconds * 1e6,
                 f->n_band);
    if (fflush(stdout) != 0)
        return akin_error_set(err, AKIN_ERR_IO, "cannot write the result: %s",
                              strerror(errno));
    return AKIN_OK;
}

static akin_status_t run_workers(const options_t *o, uint32_t n_workers,
                                 json_t *rows, akin_error_t *err)
{
    akin_bench_route_bed_t bed = {.planted = &o->planted,
                                  .n_workers = n_workers,
                                  .max_seconds = o->seconds};
    akin_status_t status = akin_bench_route_init(&bed, err);
    for (size_t i = 0; status == AKIN_OK && i < o->n_policies; i++) {
        akin_bench_route_figures_t figures = {0};
        status = akin_bench_route_run(&bed, o->policies[i], &figures, err);
        if (status != AKIN_OK)
            break;
        if (!o->json)
            status = print_row(o->policies[i], n_workers, &figures, err);
        else if (json_array_append_new(rows, to_json(o, o->policies[i],
                                                     n_workers, &figures)) != 0)
            status = akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    }
    akin_bench_route_cleanup(&bed);
    return status;
}

static int run(const options_t *o, akin_error_t *err)
{
    json_t *rows = json_array();
    akin_status_t status = rows == NULL ? AKIN_ERR_NOMEM : AKIN_OK;
    if (!o->json)
        (void)printf("%u layers x %u experts, top %u, %s; times in "
                     "microseconds\n"
                     "%-12s %7s %9s %10s %10s %10s %8s %8s %10s %7s\n",
                     o->planted.n_layers, o->planted.n_experts,
                     o->planted.top_k,
                     akin_kernel_path_name(akin_kernels_best()), "policy",
                     "workers", "MB", "read", "choice", "p99", "ratio",
                     "p99/p50", "decide", "band");
    for (size_t i = 0; status == AKIN_OK && i < o->n_workers; i++)
        status = run_workers(o, o->workers[i], rows, err);
    if (status == AKIN_OK && o->json)
        return akin_command_print_json(rows);
    json_decref(rows);
    return status == AKIN_OK ? AKIN_EXIT_OK : akin_command_fail(status, err);
}

int akin_bench_route_command(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        NULL,
        "Time routing decisions on one core beside a plain read of the array "
        "that they walk through: the workers' centroids, or for union what "
        "is expected of their experts. The choice ends when the worker is "
        "known; \"decide\" adds what is noted of the request then. The ratio "
        "is choice / read: 1 is the limit, lower is better.",
        NULL,
        NULL,
        NULL};
    options_t o = {
        .planted = {48, 128, 8, N_DOMAINS, 1},
        .workers = {4, 16, 64, 256, 1024, 4096},
        .n_workers = 6,
        .n_policies = N_KNOWN,
        .seconds = 2,
    };
    memcpy(o.policies, known, sizeof(known));
    akin_error_t err = {{0}};
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return AKIN_EXIT_USAGE;
    return run(&o, &err);
}
