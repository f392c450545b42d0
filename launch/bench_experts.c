/* bench experts: time of the expert step on weights far larger than the
 * caches, beside a plain read of the same bytes. */
#include "launch/bench.h"

#include "base/clock.h"
#include "base/team.h"
#include "base/thread.h"
#include "ep/expert_step.h"
#include "launch/command.h"

#include <argp.h>
#include <jansson.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_LIST 16
#define TOP_K 8u

typedef struct options {
    uint32_t hidden;
    uint32_t inter;
    uint32_t n_experts;
    uint32_t tokens[MAX_LIST];
    size_t n_tokens;
    uint32_t rounds;
    int n_threads;
    const char *kernel;
    int json;
} options_t;

enum {
    OPT_HIDDEN = 256,
    OPT_INTER,
    OPT_EXPERTS,
    OPT_TOKENS,
    OPT_ROUNDS,
    OPT_KERNEL,
    OPT_JSON
};

static const struct argp_option arguments[] = {
    {"hidden", OPT_HIDDEN, "N", 0, "Hidden size (2048)", 0},
    {"inter", OPT_INTER, "N", 0, "Intermediate size of an expert (768)", 0},
    {"experts", OPT_EXPERTS, "N", 0, "Experts (128)", 0},
    {"tokens", OPT_TOKENS, "LIST", 0, "Tokens per expert (1,2,4,8,16)", 0},
    {"rounds", OPT_ROUNDS, "N", 0, "Rounds per case (15)", 0},
    {"threads", 't', "N", 0, "Threads (the cores of this process)", 0},
    {"kernel", OPT_KERNEL, "PATH", 0, "auto, avx512, avx2, portable (auto)", 0},
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

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    switch (key) {
    case OPT_HIDDEN:
        o->hidden = number(state, "hidden", arg, 65536);
        break;
    case OPT_INTER:
        o->inter = number(state, "inter", arg, 65536);
        break;
    case OPT_EXPERTS:
        o->n_experts = number(state, "experts", arg, 4096);
        break;
    case OPT_TOKENS:
        o->n_tokens = akin_bench_parse_list(arg, 1024, o->tokens, MAX_LIST);
        if (o->n_tokens == 0)
            argp_error(state,
                       "--tokens %s: up to %d numbers from 1 to 1024, "
                       "as in 1,2,4",
                       arg, MAX_LIST);
        break;
    case OPT_ROUNDS:
        o->rounds = number(state, "rounds", arg, AKIN_BENCH_MAX_ROUNDS);
        break;
    case 't':
        o->n_threads = (int)number(state, "threads", arg, 4096);
        break;
    case OPT_KERNEL:
        o->kernel = arg;
        break;
    case OPT_JSON:
        o->json = 1;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* One layer's experts in one anonymous mapping. */
typedef struct weights {
    akin_expert_t *experts;
    uint16_t *data;
    size_t bytes;
} weights_t;

static akin_status_t weights_init(weights_t *w, const options_t *o,
                                  akin_error_t *err)
{
    const size_t n = (size_t)o->hidden * o->inter;
    w->bytes = 3 * n * o->n_experts * sizeof(uint16_t);
    w->experts = calloc(o->n_experts, sizeof(*w->experts));
    w->data = mmap(NULL, w->bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (w->experts == NULL || w->data == MAP_FAILED) {
        w->data = NULL;
        return akin_error_set(err, AKIN_ERR_NOMEM,
                              "out of memory for %zu MiB of weights",
                              w->bytes >> 20);
    }
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < w->bytes / sizeof(uint16_t); i++) {
        /* bf16 of about 0.01, of both signs. */
        uint32_t hash = (uint32_t)i * UINT32_C(2654435761);
        w->data[i] = (uint16_t)(0x3c00u | (hash >> 16 & 0x807fu));
    }
    for (uint32_t e = 0; e < o->n_experts; e++) {
        const uint16_t *at = w->data + 3 * n * e;
        w->experts[e] = (akin_expert_t){
            .gate = {at, AKIN_DTYPE_BF16, o->inter, o->hidden},
            .up = {at + n, AKIN_DTYPE_BF16, o->inter, o->hidden},
            .down = {at + 2 * n, AKIN_DTYPE_BF16, o->hidden, o->inter},
        };
    }
    return AKIN_OK;
}

static void weights_cleanup(weights_t *w)
{
    free(w->experts);
    if (w->data != NULL)
        (void)munmap(w->data, w->bytes);
}

/* Rows whose routes give every expert exactly `tokens` of them. */
typedef struct rows {
    float *x, *y, *weights;
    uint16_t *routes;
    uint32_t n, top_k;
} rows_t;

static int rows_init(rows_t *r, const options_t *o, uint32_t tokens)
{
    r->top_k = TOP_K < o->n_experts ? TOP_K : o->n_experts;
    while (o->n_experts % r->top_k != 0)
        r->top_k--;
    r->n = o->n_experts / r->top_k * tokens;
    r->x = calloc((size_t)r->n * o->hidden, sizeof(float));
    r->y = calloc((size_t)r->n * o->hidden, sizeof(float));
    r->weights = calloc((size_t)r->n * r->top_k, sizeof(float));
    r->routes = calloc((size_t)r->n * r->top_k, sizeof(uint16_t));
    if (r->x == NULL || r->y == NULL || r->weights == NULL || r->routes == NULL)
        return 0;
    for (size_t i = 0; i < (size_t)r->n * o->hidden; i++)
        r->x[i] = (float)(i % 17) * 0.1f - 0.8f;
    for (size_t i = 0; i < (size_t)r->n * r->top_k; i++) {
        r->weights[i] = 1.0f / (float)r->top_k;
        r->routes[i] = (uint16_t)(i % o->n_experts);
    }
    return 1;
}

static void rows_cleanup(rows_t *r)
{
    free(r->x);
    free(r->y);
    free(r->weights);
    free(r->routes);
}

static akin_status_t measure(const options_t *o, const akin_kernels_t *kernels,
                             const weights_t *w, uint32_t tokens,
                             akin_bench_medians_t *medians_p, akin_error_t *err)
{
    static akin_bench_rounds_t rounds;
    rows_t r = {0};
    akin_expert_step_t *step = NULL;
    akin_team_t *team = akin_team_create();
    akin_status_t status = AKIN_ERR_NOMEM;
    if (team != NULL && rows_init(&r, o, tokens)) {
        const akin_expert_step_params_t params = {
            kernels, o->hidden, o->inter, o->n_experts, r.top_k, r.n};
        status = akin_expert_step_create(&params, &step);
    }
    if (status != AKIN_OK) {
        akin_team_destroy(team);
        rows_cleanup(&r);
        return akin_error_set(err, status, "out of memory for %u tokens",
                              tokens);
    }
    const akin_expert_batch_t batch = {w->experts, r.x, r.routes,
                                       r.weights,  r.n, r.y};
    const akin_bench_piece_t piece = {w->data, w->bytes};
    rounds.n = 0;
    for (uint32_t i = 0; i <= o->rounds; i++) {
        int64_t begin = akin_clock_now_ns();
#pragma omp parallel num_threads(o->n_threads)
        {
            akin_team_begin(team, (uint32_t)omp_get_num_threads());
            (void)akin_expert_step_run(step, team,
                                       (uint32_t)omp_get_thread_num(), &batch);
        }
        double seconds =
            (double)(akin_clock_now_ns() - begin) / (double)AKIN_NS_PER_S;
        double reference = akin_bench_read(&piece, 1, o->n_threads);
        if (i == 0)
            continue; /* the first round warms up */
        rounds.seconds[rounds.n] = seconds;
        rounds.reference[rounds.n++] = reference;
    }
    akin_bench_medians(&rounds, medians_p);
    akin_expert_step_destroy(step);
    akin_team_destroy(team);
    rows_cleanup(&r);
    return AKIN_OK;
}

int akin_bench_experts_command(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        NULL,
        "Time one MoE layer's expert step beside a plain read of the same "
        "weights. The ratio is achieved / read bandwidth: 1 is the limit, "
        "higher is better.",
        NULL,
        NULL,
        NULL};
    options_t o = {.hidden = 2048,
                   .inter = 768,
                   .n_experts = 128,
                   .tokens = {1, 2, 4, 8, 16},
                   .n_tokens = 5,
                   .rounds = 15,
                   .n_threads = akin_thread_usable_cores(),
                   .kernel = "auto"};
    akin_error_t err = {{0}};
    const akin_kernels_t *kernels;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return AKIN_EXIT_USAGE;
    akin_status_t status = akin_kernels_find(o.kernel, &kernels, &err);
    if (status != AKIN_OK)
        return akin_command_fail(AKIN_ERR_INVALID, &err);
    weights_t w = {0};
    status = weights_init(&w, &o, &err);
    json_t *cases = json_array();
    if (status == AKIN_OK && !o.json)
        (void)printf("hidden %u, intermediate %u, %u experts, %zu MiB of bf16, "
                     "%s, %d threads, medians of %u rounds\n"
                     "tokens/expert   step ms   GB/s   read ms   GB/s   "
                     "achieved/read\n",
                     o.hidden, o.inter, o.n_experts, w.bytes >> 20,
                     kernels->name, o.n_threads, o.rounds);
    for (size_t i = 0; i < o.n_tokens && status == AKIN_OK; i++) {
        akin_bench_medians_t m;
        status = measure(&o, kernels, &w, o.tokens[i], &m, &err);
        if (status != AKIN_OK)
            break;
        const double gigabytes = (double)w.bytes / 1e9;
        if (!o.json)
            (void)printf("%13u %9.2f %6.1f %9.2f %6.1f %15.3f\n", o.tokens[i],
                         m.seconds * 1e3, gigabytes / m.seconds,
                         m.reference_seconds * 1e3,
                         gigabytes / m.reference_seconds,
                         m.reference_over_ours);
        (void)json_array_append_new(
            cases,
            json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:s, s:I, s:f, s:f, s:f}",
                      "bench", "experts", "hidden", (int)o.hidden, "inter",
                      (int)o.inter, "experts", (int)o.n_experts, "tokens",
                      (int)o.tokens[i], "threads", o.n_threads, "kernel",
                      kernels->name, "bytes", (json_int_t)w.bytes, "seconds",
                      m.seconds, "reference_seconds", m.reference_seconds,
                      "ratio", m.reference_over_ours));
    }
    weights_cleanup(&w);
    if (status != AKIN_OK) {
        json_decref(cases);
        return akin_command_fail(status, &err);
    }
    if (o.json)
        return akin_command_print_json(cases);
    json_decref(cases);
    return fflush(stdout) == 0 ? AKIN_EXIT_OK : AKIN_EXIT_FAILED;
}
