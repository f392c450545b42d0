/* trace info: what a trace holds and how local its routes are. */
#include "launch/trace_command.h"

#include "launch/command.h"
#include "routing/route_statistics.h"
#include "routing/trace.h"

#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <libsmartcols/libsmartcols.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_BATCHES 1000u
/* Domains that the table shows; JSON has all. */
#define MAX_DOMAINS 20u

static const uint32_t batches[] = {1, 8, 16, 64};

#define N_SIZES (sizeof(batches) / sizeof(batches[0]))

/* Sizes at which requests of one domain meet. */
static const uint32_t domain_batches[] = {8, 16, 32, 64};

#define N_DOMAIN_SIZES (sizeof(domain_batches) / sizeof(domain_batches[0]))

typedef struct options {
    const char *path;
    uint64_t seed;
    uint32_t prompt_tokens;
    int json;
} options_t;

typedef struct figures {
    uint32_t n_records;
    uint32_t n_unknown; /* records that know no prompt */
    uint64_t n_tokens;
    uint64_t n_prompt;
    uint64_t n_decode; /* rows after a known prompt */
    uint64_t bytes;
    uint32_t lengths[4]; /* min, median, p99, max */
    double distinct[N_SIZES];
    double one_domain[N_DOMAIN_SIZES]; /* NaN: too few requests */
    double any_domain[N_DOMAIN_SIZES]; /* of the same requests */
    akin_route_correlation_t correlation;
    const akin_route_domain_t *domains;
    uint32_t n_domains;
} figures_t;

enum { OPT_SEED = 256, OPT_PROMPT, OPT_JSON };

static const struct argp_option arguments[] = {
    {"seed", OPT_SEED, "S", 0, "Of the batches drawn (0)", 0},
    {"prompt-tokens", OPT_PROMPT, "N", 0,
     "First rows that stand in for the prompt of requests that know none "
     "(48)",
     0},
    {"json", OPT_JSON, NULL, 0, "Print JSON", 0},
    {0}};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    switch (key) {
    case OPT_SEED:
        o->seed = akin_trace_parse_number("--seed", arg, 0, INT64_MAX, state);
        break;
    case OPT_PROMPT:
        o->prompt_tokens = (uint32_t)akin_trace_parse_number(
            "--prompt-tokens", arg, 1, UINT32_MAX, state);
        break;
    case OPT_JSON:
        o->json = 1;
        break;
    case ARGP_KEY_ARG:
        if (o->path != NULL)
            argp_error(state, "%s: one trace at a time", arg);
        o->path = arg;
        break;
    case ARGP_KEY_END:
        if (o->path == NULL)
            argp_error(state, "no trace: name its index");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static int compare_u32(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static akin_status_t count_rows(const akin_trace_t *trace, figures_t *f,
                                akin_error_t *err)
{
    const akin_trace_shape_t *shape = akin_trace_shape(trace);
    const akin_trace_record_t *records =
        akin_trace_records(trace, &f->n_records);
    const uint32_t n = f->n_records;
    uint32_t *lengths = calloc(n, sizeof(*lengths));
    if (lengths == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    for (uint32_t i = 0; i < n; i++) {
        lengths[i] = records[i].n_tokens;
        f->n_tokens += records[i].n_tokens;
        f->n_prompt += records[i].n_prompt;
        f->n_unknown += records[i].n_prompt == 0;
        if (records[i].n_prompt > 0)
            f->n_decode += records[i].n_tokens - records[i].n_prompt;
    }
    f->bytes = f->n_tokens * shape->n_layers * shape->top_k * shape->id_bytes;
    qsort(lengths, n, sizeof(*lengths), compare_u32);
    f->lengths[0] = lengths[0];
    f->lengths[1] = lengths[(n - 1) / 2];
    f->lengths[2] = lengths[((uint64_t)n * 99 + 99) / 100 - 1];
    f->lengths[3] = lengths[n - 1];
    free(lengths);
    return AKIN_OK;
}

static akin_status_t measure(const akin_trace_t *trace, const options_t *o,
                             akin_route_statistics_t *s, figures_t *f,
                             akin_error_t *err)
{
    akin_status_t status = count_rows(trace, f, err);
    if (status == AKIN_OK)
        status =
            akin_route_correlate(trace, o->prompt_tokens, &f->correlation, err);
    if (status != AKIN_OK)
        return status;
    f->domains = akin_route_domains(s, &f->n_domains);
    for (size_t i = 0; i < N_SIZES; i++)
        f->distinct[i] =
            akin_route_distinct(s, AKIN_ROUTE_ANY, batches[i], N_BATCHES);
    for (size_t i = 0; i < N_DOMAIN_SIZES; i++) {
        f->one_domain[i] = akin_route_distinct(s, AKIN_ROUTE_SAME_DOMAIN,
                                               domain_batches[i], N_BATCHES);
        f->any_domain[i] = akin_route_distinct(s, AKIN_ROUTE_LARGE,
                                               domain_batches[i], N_BATCHES);
    }
    return AKIN_OK;
}

static const char *prompt_kind(const akin_trace_t *trace, const figures_t *f)
{
    return f->n_prompt == 0                     ? "unknown"
           : akin_trace_prompt_stands_in(trace) ? "stand-in"
           : f->n_unknown > 0                   ? "partly known"
                                                : "recorded";
}

/* jansson has no NaN; null says that there is no figure. */
static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *domains_json(const figures_t *f)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < f->n_domains; i++)
        if (json_array_append_new(
                list,
                json_pack("{s:s, s:I}", "name", f->domains[i].name, "requests",
                          (json_int_t)f->domains[i].n_records)) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *distinct_json(const figures_t *f)
{
    json_t *list = json_array();
    for (size_t i = 0; i < N_SIZES; i++)
        if (json_array_append_new(
                list, json_pack("{s:I, s:o}", "batch", (json_int_t)batches[i],
                                "mean", real(f->distinct[i]))) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *locality_json(const figures_t *f)
{
    json_t *list = json_array();
    for (size_t i = 0; i < N_DOMAIN_SIZES; i++)
        if (json_array_append_new(
                list, json_pack("{s:I, s:o, s:o}", "batch",
                                (json_int_t)domain_batches[i], "same_domain",
                                real(f->one_domain[i]), "any_domain",
                                real(f->any_domain[i]))) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *info_json(const akin_trace_t *trace, const options_t *o,
                         const figures_t *f)
{
    const akin_trace_shape_t *shape = akin_trace_shape(trace);
    json_t *head = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I}", "trace", o->path, "model",
        akin_trace_model(trace), "layers", (json_int_t)shape->n_layers,
        "experts", (json_int_t)shape->n_experts, "top_k",
        (json_int_t)shape->top_k, "id_bytes", (json_int_t)shape->id_bytes);
    json_t *rows = json_pack(
        "{s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I, s:I}, s:o}",
        "requests", (json_int_t)f->n_records, "tokens", (json_int_t)f->n_tokens,
        "prompt", prompt_kind(trace, f), "prompt_tokens",
        (json_int_t)f->n_prompt, "decode_tokens", (json_int_t)f->n_decode,
        "unknown_tokens", (json_int_t)(f->n_tokens - f->n_prompt - f->n_decode),
        "bytes", (json_int_t)f->bytes, "length_tokens", "min",
        (json_int_t)f->lengths[0], "median", (json_int_t)f->lengths[1], "p99",
        (json_int_t)f->lengths[2], "max", (json_int_t)f->lengths[3], "domains",
        domains_json(f));
    json_t *routes = json_pack(
        "{s:I, s:I, s:o, s:o, s:{s:o, s:o, s:o, s:I, s:I, s:I}}", "seed",
        (json_int_t)o->seed, "batches_drawn", (json_int_t)N_BATCHES,
        "distinct_experts_per_layer", distinct_json(f), "domain_locality",
        locality_json(f), "prefill_decode_correlation", "mean",
        real(f->correlation.mean), "layer_min", real(f->correlation.layer_min),
        "layer_max", real(f->correlation.layer_max), "requests",
        (json_int_t)f->correlation.n_requests, "stand_in_requests",
        (json_int_t)f->correlation.n_stand_in, "stand_in_tokens",
        (json_int_t)(f->n_unknown > 0 ? o->prompt_tokens : 0));
    if (head == NULL || rows == NULL || routes == NULL ||
        json_object_update(head, rows) != 0 ||
        json_object_update(head, routes) != 0) {
        json_decref(head);
        head = NULL;
    }
    json_decref(rows);
    json_decref(routes);
    return head;
}

/* Gives 0, or not. */
static int add_line(struct libscols_table *table, const char *name,
                    const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int add_line(struct libscols_table *table, const char *name,
                    const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0)
        return 1;
    struct libscols_line *line = scols_table_new_line(table, NULL);
    int failed = line == NULL || scols_line_set_data(line, 0, name) != 0 ||
                 scols_line_set_data(line, 1, text) != 0;
    free(text);
    return failed;
}

static int add_rows(struct libscols_table *table, const akin_trace_t *trace,
                    const figures_t *f)
{
    const akin_trace_shape_t *shape = akin_trace_shape(trace);
    const char *model = akin_trace_model(trace);
    return add_line(table, "model", "%s", model[0] != '\0' ? model : "-") ||
           add_line(table, "layers x experts, top-k", "%u x %u, top-%u",
                    shape->n_layers, shape->n_experts, shape->top_k) ||
           add_line(table, "requests", "%u", f->n_records) ||
           add_line(table, "tokens", "%llu", (unsigned long long)f->n_tokens) ||
           add_line(table, "  of prompts (prompt is)", "%llu (%s)",
                    (unsigned long long)f->n_prompt, prompt_kind(trace, f)) ||
           add_line(table, "  of decode after a prompt", "%llu",
                    (unsigned long long)f->n_decode) ||
           add_line(table, "length min, median, p99, max", "%u, %u, %u, %u",
                    f->lengths[0], f->lengths[1], f->lengths[2],
                    f->lengths[3]) ||
           add_line(table, "bytes of routes", "%llu, %u per id",
                    (unsigned long long)f->bytes, shape->id_bytes);
}

static int add_domains(struct libscols_table *table, const figures_t *f)
{
    int failed = 0;
    for (uint32_t i = 0; i < f->n_domains && i < MAX_DOMAINS && !failed; i++)
        failed = add_line(table, i == 0 ? "requests by domain" : "", "%u %s",
                          f->domains[i].n_records,
                          f->domains[i].name[0] != '\0' ? f->domains[i].name
                                                        : "(no label)");
    if (f->n_domains > MAX_DOMAINS && !failed)
        failed = add_line(table, "", "and %u domains more, see --json",
                          f->n_domains - MAX_DOMAINS);
    return failed;
}

static int add_routes(struct libscols_table *table, const options_t *o,
                      const figures_t *f)
{
    const akin_route_correlation_t *c = &f->correlation;
    int failed = 0;
    for (size_t i = 0; i < N_SIZES && !failed; i++) {
        char name[64];
        (void)snprintf(name, sizeof(name), "distinct per layer, batch %u",
                       batches[i]);
        failed = isfinite(f->distinct[i])
                     ? add_line(table, name, "%.2f", f->distinct[i])
                     : add_line(table, name, "- (too few requests)");
    }
    for (size_t i = 0; i < N_DOMAIN_SIZES && f->n_domains > 1 && !failed; i++) {
        char name[64];
        (void)snprintf(name, sizeof(name), "  one domain / any, batch %u",
                       domain_batches[i]);
        failed =
            isfinite(f->one_domain[i])
                ? add_line(table, name, "%.2f / %.2f, %+.1f %%",
                           f->one_domain[i], f->any_domain[i],
                           100.0 * (f->one_domain[i] / f->any_domain[i] - 1.0))
                : add_line(table, name, "- (no domain has %u requests)",
                           domain_batches[i]);
    }
    if (failed)
        return failed;
    if (c->n_requests == 0)
        return add_line(table, "prefill-decode correlation",
                        "- (no request has both)");
    if (c->n_stand_in == 0)
        return add_line(table, "prefill-decode correlation",
                        "%.3f (%u requests), %.3f to %.3f over layers", c->mean,
                        c->n_requests, c->layer_min, c->layer_max);
    if (f->n_unknown == 0)
        return add_line(table, "prefill-decode correlation",
                        "%.3f (%u requests; rows of decode stand in for the "
                        "prompt, which flatters it)",
                        c->mean, c->n_requests);
    return add_line(table, "prefill-decode correlation",
                    "%.3f (%u requests; in %u of them the first %u rows stand "
                    "in for the prompt, which flatters it)",
                    c->mean, c->n_requests, c->n_stand_in, o->prompt_tokens);
}

static int print_table(const akin_trace_t *trace, const options_t *o,
                       const figures_t *f)
{
    struct libscols_table *table = scols_new_table();
    int failed = table == NULL ||
                 scols_table_enable_noheadings(table, 1) != 0 ||
                 scols_table_new_column(table, "", 0, 0) == NULL ||
                 scols_table_new_column(table, "", 0, 0) == NULL ||
                 add_rows(table, trace, f) || add_domains(table, f) ||
                 add_routes(table, o, f);
    errno = 0;
    if (!failed)
        failed = scols_print_table(table) != 0 || fflush(stdout) != 0;
    scols_unref_table(table);
    if (!failed)
        return AKIN_EXIT_OK;
    (void)fprintf(stderr, "akin: cannot print the table: %s\n",
                  errno != 0 ? strerror(errno) : "out of memory");
    return AKIN_EXIT_FAILED;
}

int akin_trace_info_command(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        "TRACE.json",
        "Show what a trace, or a published route set, holds: shape, requests, "
        "rows, domains; how many experts batches of its decode activate; and "
        "how alike prompt and decode of a request choose.",
        NULL,
        NULL,
        NULL};
    options_t o = {.prompt_tokens = 48};
    akin_error_t err = {{0}};
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return AKIN_EXIT_USAGE;
    akin_trace_t *trace = NULL;
    akin_route_statistics_t *statistics = NULL;
    figures_t f = {0};
    akin_status_t status = akin_trace_open(o.path, &trace, &err);
    if (status == AKIN_OK)
        status = akin_route_statistics_create(trace, o.seed, &statistics, &err);
    if (status == AKIN_OK)
        status = measure(trace, &o, statistics, &f, &err);
    int code = status != AKIN_OK ? akin_command_fail(status, &err)
               : o.json ? akin_command_print_json(info_json(trace, &o, &f))
                        : print_table(trace, &o, &f);
    akin_route_statistics_destroy(statistics);
    akin_trace_close(trace);
    return code;
}
