/* bench route: time of a routing decision on one core, beside a plain read of
 * the array that it walks through. */
#include "launch/bench.h"

#include "base/clock.h"
#include "launch/command.h"
#include "launch/planted.h"
#include "routing/policy_impl.h"
#include "routing/policy_union.h"
#include "routing/union_kernel.h"

#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LIST 16
#define MAX_WORKERS 16384u
#define MIN_ROUNDS 20u
#define TAU 0.1

enum {
    N_DOMAINS = 16,
    N_REQUESTS = 16,
    PROMPT_TOKENS = 400,
    /* Requests in flight: several per worker, but no more than are quickly
     * decided on. */
    PER_WORKER = 8,
    MAX_IN_FLIGHT = 256
};

typedef struct options {
    akin_planted_t planted;
    uint32_t workers[MAX_LIST];
    size_t n_workers;
    const char *policies[MAX_LIST];
    size_t n_policies;
    uint32_t seconds;
    int json;
} options_t;

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
     "Policies (eldr,eldr-static,union,union-band)", 0},
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
    static const char *const known[] = {"eldr", "eldr-static", "union",
                                        "union-band"};
    options_t *o = state->input;
    char *rest = NULL;
    o->n_policies = 0;
    for (char *name = strtok_r(list, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest)) {
        size_t k = 0;
        while (k < 4 && strcmp(name, known[k]) != 0)
            k++;
        if (k == 4 || o->n_policies == MAX_LIST)
            argp_error(state,
                       "--policy %s: choose up to %d among eldr, eldr-static, "
                       "union, union-band; the others read no array",
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

/* What all policies of a number of workers share. */
typedef struct bed {
    const options_t *options;
    uint32_t n_workers;
    akin_fit_t fit;
    uint16_t *counts;  /* [N_REQUESTS][cells] */
    uint16_t *request; /* [cells] */
    uint8_t *eligible;
} bed_t;

typedef struct figures {
    akin_bench_medians_t choice;
    double p99_seconds;
    double read_p99_seconds;
    double decide_seconds; /* choice and bookkeeping */
    double n_band;         /* mean; 0: the policy has none */
    size_t bytes;
    uint32_t n;
} figures_t;

static akin_status_t init_bed(bed_t *bed, akin_error_t *err)
{
    const akin_planted_t *planted = &bed->options->planted;
    const size_t cells = (size_t)planted->n_layers * planted->n_experts;
    bed->counts = calloc(N_REQUESTS, cells * sizeof(*bed->counts));
    bed->request = calloc(cells, sizeof(*bed->request));
    bed->eligible = calloc(bed->n_workers, 1);
    if (bed->counts == NULL || bed->request == NULL || bed->eligible == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM,
                              "out of memory for %u workers", bed->n_workers);
    memset(bed->eligible, 1, bed->n_workers);
    for (uint32_t i = 0; i < N_REQUESTS; i++)
        akin_planted_counts(planted, AKIN_PLANTED_PREFILL, i, PROMPT_TOKENS,
                            bed->counts + i * cells);
    return akin_planted_fit(planted, bed->n_workers, &bed->fit, err);
}

static void cleanup_bed(bed_t *bed)
{
    akin_fit_cleanup(&bed->fit);
    free(bed->eligible);
    free(bed->request);
    free(bed->counts);
}

/* The router sums the counts of a prompt's blocks right before it decides: they
 * are in its cache. */
static akin_policy_request_t request_of(const bed_t *bed, uint64_t id)
{
    const akin_planted_t *planted = &bed->options->planted;
    const size_t cells = (size_t)planted->n_layers * planted->n_experts;
    memcpy(bed->request, bed->counts + id % N_REQUESTS * cells,
           cells * sizeof(*bed->request));
    return (akin_policy_request_t){
        .id = id,
        .counts = bed->request,
        .n_tokens = PROMPT_TOKENS,
        .now_ns = akin_clock_now_ns(),
    };
}

/* A plain read of the arrays that decide how long a choice takes: the
 * centroids, or for `union` the chances of all workers, for `union-band` those
 * of as many workers as its last band had. One core needs no team, and a short
 * read would be mostly its start. */
static size_t read_arrays(const bed_t *bed, const akin_policy_t *policy)
{
    static volatile uint64_t sink;
    const akin_kernels_t *kernels = akin_kernels_of(akin_kernels_best());
    const size_t row = akini_union_padded(bed->fit.dim) * sizeof(float);
    size_t centroids = bed->fit.dim * bed->n_workers * sizeof(float);
    size_t chances = 0;
    if (policy->ops == &akini_policy_union) {
        centroids = 0;
        chances = bed->n_workers * row;
    } else if (policy->ops == &akini_policy_union_band) {
        chances = akin_policy_last_choice(policy).n_band * row;
    }
    uint64_t sum = 0;
    if (centroids > 0)
        sum += kernels->read(bed->fit.centroids, centroids);
    if (chances > 0)
        sum += kernels->read(akini_union_idle(policy), chances);
    sink = sum;
    (void)sink;
    return centroids + chances;
}

static double seconds_since(int64_t begin_ns)
{
    return (double)(akin_clock_now_ns() - begin_ns) / (double)AKIN_NS_PER_S;
}

static akin_status_t measure(const bed_t *bed, akin_policy_t *policy,
                             figures_t *out, akin_error_t *err)
{
    static akin_bench_rounds_t rounds, whole;
    static volatile uint32_t chosen;
    uint64_t n_in_flight = (uint64_t)bed->n_workers * PER_WORKER;
    if (n_in_flight > MAX_IN_FLIGHT)
        n_in_flight = MAX_IN_FLIGHT;
    int64_t begin = 0;
    rounds.n = whole.n = 0;
    out->n_band = 0.0;
    double bytes = 0.0;
    for (uint64_t id = 0; rounds.n < AKIN_BENCH_MAX_ROUNDS; id++) {
        uint32_t worker;
        akin_policy_request_t request = request_of(bed, id);
        int64_t read_ns = akin_clock_now_ns();
        size_t n_read = read_arrays(bed, policy);
        double read = seconds_since(read_ns);
        int64_t choose_ns = akin_clock_now_ns();
        chosen = policy->ops->choose(policy, &request, bed->eligible);
        double choose = seconds_since(choose_ns);
        int64_t decide_ns = akin_clock_now_ns();
        akin_status_t status =
            akin_policy_decide(policy, &request, bed->eligible, &worker);
        double decide = seconds_since(decide_ns);
        if (status != AKIN_OK)
            return akin_error_set(err, status, "decision %llu: %s",
                                  (unsigned long long)id,
                                  akin_status_string(status));
        if (id < n_in_flight) {
            begin = akin_clock_now_ns();
            continue; /* the workers fill up */
        }
        akin_policy_finish(policy, id - n_in_flight);
        rounds.seconds[rounds.n] = choose;
        rounds.reference[rounds.n++] = read;
        whole.seconds[whole.n] = decide;
        whole.reference[whole.n++] = read;
        bytes += (double)n_read;
        out->n_band += akin_policy_last_choice(policy).n_band;
        if (rounds.n >= MIN_ROUNDS &&
            seconds_since(begin) > (double)bed->options->seconds)
            break;
    }
    (void)chosen;
    akin_bench_medians_t medians;
    akin_bench_medians(&whole, &medians);
    out->decide_seconds = medians.seconds;
    akin_bench_medians(&rounds, &out->choice);
    out->p99_seconds = akin_bench_quantile(rounds.seconds, rounds.n, 0.99);
    out->read_p99_seconds =
        akin_bench_quantile(rounds.reference, rounds.n, 0.99);
    out->n_band /= rounds.n;
    out->bytes = (size_t)(bytes / rounds.n);
    out->n = rounds.n;
    return AKIN_OK;
}

static akin_status_t run_case(const bed_t *bed, const char *name,
                              figures_t *figures, akin_error_t *err)
{
    const akin_planted_t *planted = &bed->options->planted;
    const akin_policy_params_t params = {
        .n_workers = bed->n_workers,
        .n_layers = planted->n_layers,
        .n_experts = planted->n_experts,
        .top_k = planted->top_k,
        .seed = planted->seed,
        .fit = strcmp(name, "union") == 0 ? NULL : &bed->fit,
        .tau = TAU,
    };
    akin_policy_t *policy;
    akin_status_t status = akin_policy_create(name, &params, &policy, err);
    if (status != AKIN_OK)
        return status;
    status = measure(bed, policy, figures, err);
    akin_policy_destroy(policy);
    return status;
}

static json_t *to_json(const options_t *o, const char *name, uint32_t n_workers,
                       const figures_t *f)
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
                               const figures_t *f, akin_error_t *err)
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
    bed_t bed = {.options = o, .n_workers = n_workers};
    akin_status_t status = init_bed(&bed, err);
    for (size_t i = 0; status == AKIN_OK && i < o->n_policies; i++) {
        figures_t figures = {0};
        status = run_case(&bed, o->policies[i], &figures, err);
        if (status != AKIN_OK)
            break;
        if (!o->json)
            status = print_row(o->policies[i], n_workers, &figures, err);
        else if (json_array_append_new(rows, to_json(o, o->policies[i],
                                                     n_workers, &figures)) != 0)
            status = akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    }
    cleanup_bed(&bed);
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
        .policies = {"eldr", "eldr-static", "union", "union-band"},
        .n_policies = 4,
        .seconds = 2,
    };
    akin_error_t err = {{0}};
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return AKIN_EXIT_USAGE;
    return run(&o, &err);
}
