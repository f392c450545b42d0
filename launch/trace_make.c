/* trace make: a trace of requests that nobody sent, shaped like a model. */
#include "launch/trace_command.h"

#include "base/rng.h"
#include "launch/command.h"
#include "routing/model_shape.h"
#include "routing/route_generator.h"
#include "routing/trace_writer.h"

#include <argp.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_REQUESTS UINT32_C(10000000)
/* Stream of the arrivals: those of the generator have a number in the upper
 * byte. */
#define STREAM_ARRIVAL UINT64_C(1)

typedef struct options {
    const char *output;
    const akin_model_shape_t *like;
    akin_route_generator_params_t params;
    uint32_t n_requests;
    double rate; /* requests per second; 0: arrivals are unknown */
    int resume;
    int json;
} options_t;

/* What a trace is made with, and of. */
typedef struct make {
    const options_t *o;
    akin_route_generator_t *generator;
    char model[160];
    uint16_t *urn;
    uint16_t *routes; /* room for max_tokens rows */
    uint32_t max_tokens;
    uint64_t n_tokens;
    uint64_t n_prompt;
    double arrival_s;
} make_t;

enum {
    OPT_LIKE = 256,
    OPT_WORKLOAD,
    OPT_REQUESTS,
    OPT_SEED,
    OPT_PROMPT,
    OPT_OUTPUT,
    OPT_PROMPT_SPREAD,
    OPT_OUTPUT_SPREAD,
    OPT_RATE,
    OPT_RESUME,
    OPT_JSON
};

static const struct argp_option arguments[] = {
    {"output", 'o', "TRACE.json", 0, "Index to write; its data lie beside it",
     0},
    {"like", OPT_LIKE, "MODEL", 0,
     "Shape of a model: qwen3-30b-a3b, qwen3-235b-a22b, gpt-oss-20b, "
     "gpt-oss-120b, gemma-4-26b-a4b",
     0},
    {"layers", 'L', "N", 0, "MoE layers (the model's)", 0},
    {"experts", 'E', "N", 0, "Experts per layer (the model's)", 0},
    {"top-k", 'k', "N", 0, "Experts per token and layer (the model's)", 0},
    {"workload", OPT_WORKLOAD, "KIND", 0,
     "task: legal, code, math, medical; or language: ten of them (task)", 0},
    {"requests", OPT_REQUESTS, "N", 0, "Requests (500)", 0},
    {"seed", OPT_SEED, "S", 0, "Of all that is drawn (0)", 0},
    {"prompt-tokens", OPT_PROMPT, "MEAN", 0, "Mean length of prompts (128)", 0},
    {"output-tokens", OPT_OUTPUT, "MEAN", 0, "Mean length of outputs (128)", 0},
    {"prompt-spread", OPT_PROMPT_SPREAD, "S", 0,
     "Standard deviation of the logarithm of the prompts' lengths; 0 makes "
     "all equal (0.6)",
     0},
    {"output-spread", OPT_OUTPUT_SPREAD, "S", 0, "The same of outputs (0.6)",
     0},
    {"rate", OPT_RATE, "R", 0,
     "Let requests arrive by a Poisson process of R per second (without it "
     "the trace knows no arrivals)",
     0},
    {"resume", OPT_RESUME, NULL, 0, "Go on with a trace that was cut off", 0},
    {"json", OPT_JSON, NULL, 0, "Print JSON", 0},
    {0}};

static double parse_real(const char *option, const char *text, double min,
                         double max, const struct argp_state *state)
{
    char *end = NULL;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= min && value <= max))
        argp_error(state, "%s %s: a number from %g to %g is needed", option,
                   text, min, max);
    return value;
}

static void parse_like(options_t *o, const char *arg,
                       const struct argp_state *state)
{
    const char *names[16];
    size_t n = 0;
    const akin_model_shape_t *shape;
    while (n < 16 && (shape = akin_model_shape_at((uint32_t)n)) != NULL)
        names[n++] = shape->name;
    o->like = akin_model_shape_find(arg);
    if (o->like == NULL)
        akin_trace_refuse_name("--like", arg, names, n, state);
}

static void parse_workload(options_t *o, const char *arg,
                           const struct argp_state *state)
{
    const char *names[16];
    size_t n = 0;
    while (n < 16 && (names[n] = akin_route_workload_name((uint32_t)n)) != NULL)
        n++;
    o->params.workload = akin_route_workload_find(arg);
    if (o->params.workload == NULL)
        akin_trace_refuse_name("--workload", arg, names, n, state);
}

/* The shape is the model's but for what was given. */
static void finish_options(options_t *o, const struct argp_state *state)
{
    akin_route_generator_params_t *p = &o->params;
    if (o->like != NULL) {
        p->n_layers = p->n_layers > 0 ? p->n_layers : o->like->n_layers;
        p->n_experts = p->n_experts > 0 ? p->n_experts : o->like->n_experts;
        p->top_k = p->top_k > 0 ? p->top_k : o->like->top_k;
    }
    if (p->n_layers == 0 || p->n_experts == 0 || p->top_k == 0)
        argp_error(state, "no shape: name a model with --like, or give all of "
                          "-L, -E and -k");
    if (p->top_k > p->n_experts)
        argp_error(state, "-k %u: there are %u experts", p->top_k,
                   p->n_experts);
    if (o->output == NULL || o->output[0] == '\0')
        argp_error(state, "no output: name it with -o TRACE.json");
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    akin_route_generator_params_t *p = &o->params;
    switch (key) {
    case 'o':
        o->output = arg;
        break;
    case OPT_LIKE:
        parse_like(o, arg, state);
        break;
    case OPT_WORKLOAD:
        parse_workload(o, arg, state);
        break;
    case 'L':
        p->n_layers = (uint32_t)akin_trace_parse_number(
            "-L", arg, 1, AKIN_ROUTE_MAX_LAYERS, state);
        break;
    case 'E':
        p->n_experts = (uint32_t)akin_trace_parse_number(
            "-E", arg, 1, AKIN_ROUTE_MAX_EXPERTS, state);
        break;
    case 'k':
        p->top_k = (uint32_t)akin_trace_parse_number(
            "-k", arg, 1, AKIN_ROUTE_MAX_TOP_K, state);
        break;
    case OPT_REQUESTS:
        o->n_requests = (uint32_t)akin_trace_parse_number("--requests", arg, 1,
                                                          MAX_REQUESTS, state);
        break;
    case OPT_SEED:
        p->seed = akin_trace_parse_number("--seed", arg, 0, INT64_MAX, state);
        break;
    case OPT_PROMPT:
        p->prompt_tokens =
            parse_real("--prompt-tokens", arg, 1, AKIN_ROUTE_MAX_TOKENS, state);
        break;
    case OPT_OUTPUT:
        p->output_tokens =
            parse_real("--output-tokens", arg, 1, AKIN_ROUTE_MAX_TOKENS, state);
        break;
    case OPT_PROMPT_SPREAD:
        p->prompt_spread = parse_real("--prompt-spread", arg, 0, 3, state);
        break;
    case OPT_OUTPUT_SPREAD:
        p->output_spread = parse_real("--output-spread", arg, 0, 3, state);
        break;
    case OPT_RATE:
        o->rate = parse_real("--rate", arg, 1e-6, 1e9, state);
        break;
    case OPT_RESUME:
        o->resume = 1;
        break;
    case OPT_JSON:
        o->json = 1;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "%s: there is nothing to name but options", arg);
        break;
    case ARGP_KEY_END:
        finish_options(o, state);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* Is the shape that of the model it was named after? */
static int is_like(const options_t *o)
{
    return o->like != NULL && o->like->n_layers == o->params.n_layers &&
           o->like->n_experts == o->params.n_experts &&
           o->like->top_k == o->params.top_k;
}

/* A trace that is resumed must be the same one: what it was drawn with is in
 * the name of its model, which the writer compares. */
static void name_model(make_t *m)
{
    const akin_route_generator_params_t *p = &m->o->params;
    (void)snprintf(m->model, sizeof(m->model),
                   "%s, made: %s, seed %" PRIu64 ", prompts %g (%g), outputs "
                   "%g (%g), rate %g",
                   is_like(m->o) ? m->o->like->name : "no model",
                   p->workload->name, p->seed, p->prompt_tokens,
                   p->prompt_spread, p->output_tokens, p->output_spread,
                   m->o->rate);
}

static akin_status_t no_memory(akin_error_t *err)
{
    return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
}

static akin_status_t reserve(make_t *m, uint32_t n_tokens, akin_error_t *err)
{
    const akin_route_generator_params_t *p = &m->o->params;
    if (n_tokens <= m->max_tokens)
        return AKIN_OK;
    uint16_t *routes = realloc(m->routes, (size_t)n_tokens * p->n_layers *
                                              p->top_k * sizeof(*routes));
    if (routes == NULL)
        return no_memory(err);
    m->routes = routes;
    m->max_tokens = n_tokens;
    return AKIN_OK;
}

static void draw_rows(make_t *m, const akin_route_request_t *r)
{
    const akin_route_generator_params_t *p = &m->o->params;
    uint16_t *row = m->routes;
    for (uint32_t t = 0; t < r->n_prompt + r->n_output; t++) {
        if (t == 0 || t == r->n_prompt)
            akin_route_urn_fill(m->generator, r,
                                t == 0 ? AKIN_ROUTE_PREFILL : AKIN_ROUTE_DECODE,
                                m->urn);
        for (uint32_t l = 0; l < p->n_layers; l++, row += p->top_k)
            akin_route_draw(m->generator, r, m->urn, t, l, row);
    }
}

static akin_status_t make_request(make_t *m, uint32_t number,
                                  akin_trace_writer_t *writer,
                                  akin_error_t *err)
{
    const options_t *o = m->o;
    akin_route_request_t r;
    char id[32];
    akin_route_request_make(m->generator, number, NULL, &r);
    (void)snprintf(id, sizeof(id), "%08u", number);
    if (o->rate > 0.0)
        m->arrival_s -= log(1.0 - akin_rng_uniform(o->params.seed,
                                                   STREAM_ARRIVAL, number)) /
                        o->rate;
    m->n_tokens += r.n_prompt + r.n_output;
    m->n_prompt += r.n_prompt;
    if (akin_trace_writer_has(writer, id))
        return AKIN_OK;
    const akin_status_t status = reserve(m, r.n_prompt + r.n_output, err);
    if (status != AKIN_OK)
        return status;
    draw_rows(m, &r);
    const akin_trace_record_t record = {
        .id = id,
        .domain = o->params.workload->domains[r.domain].name,
        .n_tokens = r.n_prompt + r.n_output,
        .n_prompt = r.n_prompt,
        .arrival_s = o->rate > 0.0 ? m->arrival_s : -1.0,
    };
    return akin_trace_writer_append(writer, &record, m->routes, err);
}

static akin_status_t make_trace(make_t *m, akin_error_t *err)
{
    const options_t *o = m->o;
    akin_status_t status =
        akin_route_generator_create(&o->params, &m->generator, err);
    if (status != AKIN_OK)
        return status;
    m->urn = calloc((size_t)o->params.n_layers * akin_route_slots(m->generator),
                    sizeof(*m->urn));
    if (m->urn == NULL)
        return no_memory(err);
    name_model(m);
    const akin_trace_writer_params_t params = {
        .path = o->output,
        .model = m->model,
        .shape = {.n_layers = o->params.n_layers,
                  .n_experts = o->params.n_experts,
                  .top_k = o->params.top_k},
        .resume = o->resume,
    };
    akin_trace_writer_t *writer;
    status = akin_trace_writer_create(&params, &writer, err);
    for (uint32_t i = 0; i < o->n_requests && status == AKIN_OK; i++)
        status = make_request(m, i, writer, err);
    if (status == AKIN_OK && akin_trace_writer_count(writer) != o->n_requests)
        status = akin_error_set(err, AKIN_ERR_INVALID,
                                "%s.part: has more requests than %u; remove it "
                                "or name another output",
                                o->output, o->n_requests);
    if (status == AKIN_OK)
        status = akin_trace_writer_finish(writer, err);
    akin_trace_writer_destroy(writer);
    return status;
}

static int report(const make_t *m)
{
    const options_t *o = m->o;
    const akin_route_generator_params_t *p = &o->params;
    if (o->json)
        return akin_command_print_json(json_pack(
            "{s:s, s:s, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:I}", "trace",
            o->output, "model", m->model, "layers", (json_int_t)p->n_layers,
            "experts", (json_int_t)p->n_experts, "top_k", (json_int_t)p->top_k,
            "workload", p->workload->name, "seed", (json_int_t)p->seed,
            "requests", (json_int_t)o->n_requests, "tokens",
            (json_int_t)m->n_tokens, "prompt_tokens", (json_int_t)m->n_prompt));
    (void)printf("%s: %u requests, %" PRIu64 " tokens, %" PRIu64
                 " of them of prompts, %u layers x %u experts, top-%u\n",
                 o->output, o->n_requests, m->n_tokens, m->n_prompt,
                 p->n_layers, p->n_experts, p->top_k);
    return AKIN_EXIT_OK;
}

int akin_trace_make_command(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        "-o TRACE.json --like MODEL",
        "Write a trace of synthetic requests whose routes have the statistics "
        "of real models: how alike prompt and decode of a request choose, and "
        "how many experts batches of one domain and of all touch. Equal "
        "options give equal bytes. `akin trace info` shows what was reached.",
        NULL,
        NULL,
        NULL};
    options_t o = {
        .n_requests = 500,
        .params = {.workload = akin_route_workload_find("task"),
                   .prompt_tokens = 128.0,
                   .output_tokens = 128.0,
                   .prompt_spread = 0.6,
                   .output_spread = 0.6},
    };
    akin_error_t err = {{0}};
    /* A file that may not grow is an error of the write, told as such. */
    (void)signal(SIGXFSZ, SIG_IGN);
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return AKIN_EXIT_USAGE;
    make_t m = {.o = &o};
    const akin_status_t status = make_trace(&m, &err);
    const int code =
        status == AKIN_OK ? report(&m) : akin_command_fail(status, &err);
    akin_route_generator_destroy(m.generator);
    free(m.urn);
    free(m.routes);
    return code;
}
