/* trace import: published route sets or other traces into one trace. */
#include "launch/trace_command.h"

#include "launch/command.h"
#include "routing/trace.h"
#include "routing/trace_writer.h"

#include <argp.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    char **paths; /* [n_paths], in argv */
    uint32_t n_paths;
    const char *output;
    const char *model;
    uint32_t prompt_tokens; /* 0: not given */
    uint32_t min_tokens;
    int resume;
    int json;
} options_t;

/* The sources, and what becomes of their records. */
typedef struct import {
    const options_t *options;
    akin_trace_t **traces; /* [n_paths] */
    const char *model;
    char **prefixes;  /* [n_paths] before the ids; NULL with one source */
    uint16_t *routes; /* of the longest record */
    uint32_t n_records;
    uint32_t n_left_out;
    uint64_t n_tokens;
    uint64_t n_prompt;
    int stands_in;
} import_t;

enum { OPT_PROMPT = 256, OPT_MIN, OPT_MODEL, OPT_RESUME, OPT_JSON };

static const struct argp_option arguments[] = {
    {"output", 'o', "TRACE.json", 0, "Index to write; its data lie beside it",
     0},
    {"prompt-tokens", OPT_PROMPT, "N", 0,
     "Take the first N rows of each request for its prompt, and leave out "
     "requests that have no more; for sources that know no prompt",
     0},
    {"min-tokens", OPT_MIN, "N", 0, "Leave out requests of fewer rows", 0},
    {"model", OPT_MODEL, "NAME", 0, "Name of the model (the sources')", 0},
    {"resume", OPT_RESUME, NULL, 0, "Go on with an import that was cut off", 0},
    {"json", OPT_JSON, NULL, 0, "Print JSON", 0},
    {0}};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    switch (key) {
    case 'o':
        o->output = arg;
        break;
    case OPT_PROMPT:
        o->prompt_tokens = (uint32_t)akin_trace_parse_number(
            "--prompt-tokens", arg, 1, UINT32_MAX, state);
        break;
    case OPT_MIN:
        o->min_tokens = (uint32_t)akin_trace_parse_number("--min-tokens", arg,
                                                          0, UINT32_MAX, state);
        break;
    case OPT_MODEL:
        o->model = arg;
        break;
    case OPT_RESUME:
        o->resume = 1;
        break;
    case OPT_JSON:
        o->json = 1;
        break;
    case ARGP_KEY_ARG:
        o->paths[o->n_paths++] = arg;
        break;
    case ARGP_KEY_END:
        if (o->n_paths == 0)
            argp_error(state, "no source: name one or more indexes");
        if (o->output == NULL || o->output[0] == '\0')
            argp_error(state, "no output: name it with -o TRACE.json");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static akin_status_t no_memory(akin_error_t *err)
{
    return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
}

/* The last part of a path, without ".json". */
static char *short_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    size_t length = strlen(base);
    if (length > 5 && strcmp(base + length - 5, ".json") == 0)
        length -= 5;
    return strndup(base, length);
}

/* File names say most; where two are equal the numbers of the sources must
 * do. */
static akin_status_t make_prefixes(import_t *m, akin_error_t *err)
{
    const uint32_t n = m->options->n_paths;
    int is_clash = 0;
    if (n == 1)
        return AKIN_OK;
    m->prefixes = calloc(n, sizeof(*m->prefixes));
    if (m->prefixes == NULL)
        return no_memory(err);
    for (uint32_t i = 0; i < n; i++) {
        m->prefixes[i] = short_name(m->options->paths[i]);
        if (m->prefixes[i] == NULL)
            return no_memory(err);
        for (uint32_t j = 0; j < i; j++)
            is_clash |= strcmp(m->prefixes[i], m->prefixes[j]) == 0;
    }
    for (uint32_t i = 0; i < n && is_clash; i++) {
        free(m->prefixes[i]);
        if (asprintf(&m->prefixes[i], "%u", i + 1) < 0) {
            m->prefixes[i] = NULL;
            return no_memory(err);
        }
    }
    return AKIN_OK;
}

/* Sources of one trace are of one model. */
static akin_status_t check_source(const import_t *m, uint32_t i,
                                  akin_error_t *err)
{
    const options_t *o = m->options;
    const akin_trace_shape_t *a = akin_trace_shape(m->traces[0]);
    const akin_trace_shape_t *b = akin_trace_shape(m->traces[i]);
    if (a->n_layers != b->n_layers || a->n_experts != b->n_experts ||
        a->top_k != b->top_k)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: %u layers, %u experts, top_k %u, but %s "
                              "has %u, %u and %u: import them apart",
                              o->paths[i], b->n_layers, b->n_experts, b->top_k,
                              o->paths[0], a->n_layers, a->n_experts, a->top_k);
    if (o->model == NULL && strcmp(akin_trace_model(m->traces[i]),
                                   akin_trace_model(m->traces[0])) != 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: is of the model \"%.80s\", %s of "
                              "\"%.80s\": name one with --model",
                              o->paths[i], akin_trace_model(m->traces[i]),
                              o->paths[0], akin_trace_model(m->traces[0]));
    return AKIN_OK;
}

static int is_left_out(const options_t *o, const akin_trace_record_t *record)
{
    return record->n_tokens < o->min_tokens ||
           record->n_tokens <= o->prompt_tokens;
}

/* All that can be refused is refused before the first byte is written. */
static akin_status_t check_records(import_t *m, akin_error_t *err)
{
    const options_t *o = m->options;
    const akin_trace_shape_t *shape = akin_trace_shape(m->traces[0]);
    uint32_t longest = 0;
    for (uint32_t i = 0; i < o->n_paths; i++) {
        uint32_t n;
        const akin_trace_record_t *records =
            akin_trace_records(m->traces[i], &n);
        m->stands_in |= akin_trace_prompt_stands_in(m->traces[i]);
        for (uint32_t r = 0; r < n; r++) {
            if (o->prompt_tokens > 0 && records[r].n_prompt > 0)
                return akin_error_set(
                    err, AKIN_ERR_INVALID,
                    "%s: record \"%.120s\" knows its prompt of %u rows: leave "
                    "--prompt-tokens out",
                    o->paths[i], records[r].id, records[r].n_prompt);
            if (is_left_out(o, &records[r])) {
                m->n_left_out++;
                continue;
            }
            m->n_records++;
            m->n_tokens += records[r].n_tokens;
            m->n_prompt +=
                o->prompt_tokens > 0 ? o->prompt_tokens : records[r].n_prompt;
            if (records[r].n_tokens > longest)
                longest = records[r].n_tokens;
        }
    }
    m->stands_in |= o->prompt_tokens > 0;
    if (m->n_records == 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "no request is left: all %u have fewer than %u "
                              "rows",
                              m->n_left_out,
                              o->min_tokens > o->prompt_tokens
                                  ? o->min_tokens
                                  : o->prompt_tokens + 1);
    m->routes = calloc((size_t)longest * shape->n_layers * shape->top_k,
                       sizeof(*m->routes));
    return m->routes != NULL ? AKIN_OK : no_memory(err);
}

static akin_status_t open_sources(import_t *m, akin_error_t *err)
{
    const options_t *o = m->options;
    m->traces = calloc(o->n_paths, sizeof(*m->traces));
    if (m->traces == NULL)
        return no_memory(err);
    for (uint32_t i = 0; i < o->n_paths; i++) {
        akin_status_t status = akin_trace_open(o->paths[i], &m->traces[i], err);
        if (status == AKIN_OK)
            status = check_source(m, i, err);
        if (status != AKIN_OK)
            return status;
    }
    m->model = o->model != NULL ? o->model : akin_trace_model(m->traces[0]);
    akin_status_t status = make_prefixes(m, err);
    return status == AKIN_OK ? check_records(m, err) : status;
}

static akin_status_t copy_record(const import_t *m, uint32_t source,
                                 uint32_t index, akin_trace_writer_t *writer,
                                 akin_error_t *err)
{
    const options_t *o = m->options;
    uint32_t n;
    akin_trace_record_t record =
        akin_trace_records(m->traces[source], &n)[index];
    char *id = NULL;
    if (is_left_out(o, &record))
        return AKIN_OK;
    if (m->prefixes != NULL &&
        asprintf(&id, "%s/%s", m->prefixes[source], record.id) < 0)
        return no_memory(err);
    if (id != NULL)
        record.id = id;
    if (o->prompt_tokens > 0)
        record.n_prompt = o->prompt_tokens;
    akin_status_t status = AKIN_OK;
    if (!akin_trace_writer_has(writer, record.id)) {
        akin_trace_routes(m->traces[source], index, 0, record.n_tokens,
                          m->routes);
        status = akin_trace_writer_append(writer, &record, m->routes, err);
    }
    free(id);
    return status;
}

static akin_status_t copy_all(const import_t *m, akin_error_t *err)
{
    const options_t *o = m->options;
    akin_trace_writer_params_t params = {
        .path = o->output,
        .model = m->model,
        .shape = *akin_trace_shape(m->traces[0]),
        .prompt_stands_in = m->stands_in,
        .resume = o->resume,
    };
    params.shape.id_bytes = 0;
    akin_trace_writer_t *writer;
    akin_status_t status = akin_trace_writer_create(&params, &writer, err);
    for (uint32_t i = 0; i < o->n_paths && status == AKIN_OK; i++) {
        uint32_t n;
        (void)akin_trace_records(m->traces[i], &n);
        for (uint32_t r = 0; r < n && status == AKIN_OK; r++)
            status = copy_record(m, i, r, writer, err);
    }
    if (status == AKIN_OK && akin_trace_writer_count(writer) != m->n_records)
        status = akin_error_set(err, AKIN_ERR_INVALID,
                                "%s.part: has requests of another import; "
                                "remove it or name another output",
                                o->output);
    if (status == AKIN_OK)
        status = akin_trace_writer_finish(writer, err);
    akin_trace_writer_destroy(writer);
    return status;
}

static int report(const import_t *m)
{
    const options_t *o = m->options;
    if (o->json)
        return akin_command_print_json(json_pack(
            "{s:s, s:s, s:I, s:I, s:I, s:I, s:b}", "trace", o->output, "model",
            m->model, "requests", (json_int_t)m->n_records, "left_out",
            (json_int_t)m->n_left_out, "tokens", (json_int_t)m->n_tokens,
            "prompt_tokens", (json_int_t)m->n_prompt, "prompt_stands_in",
            m->stands_in));
    (void)printf("%s: %u requests, %llu tokens", o->output, m->n_records,
                 (unsigned long long)m->n_tokens);
    if (m->n_prompt > 0)
        (void)printf(", %llu of them %s", (unsigned long long)m->n_prompt,
                     m->stands_in ? "standing in for prompts" : "of prompts");
    if (m->n_left_out > 0)
        (void)printf("; %u too short and left out", m->n_left_out);
    (void)printf("\n");
    return AKIN_EXIT_OK;
}

static void cleanup(import_t *m)
{
    for (uint32_t i = 0; i < m->options->n_paths; i++) {
        if (m->traces != NULL)
            akin_trace_close(m->traces[i]);
        if (m->prefixes != NULL)
            free(m->prefixes[i]);
    }
    free(m->traces);
    free(m->prefixes);
    free(m->routes);
}

int akin_trace_import_command(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        "SOURCE.json...",
        "Write a trace from route sets of other layouts or from traces. "
        "Several sources must be of one shape; their ids get the names of "
        "their files in front.",
        NULL,
        NULL,
        NULL};
    options_t o = {0};
    akin_error_t err = {{0}};
    o.paths = calloc((size_t)argc, sizeof(*o.paths));
    if (o.paths == NULL)
        return akin_command_fail(AKIN_ERR_NOMEM, &err);
    int code = AKIN_EXIT_USAGE;
    /* A file that may not grow is an error of the write, told as such. */
    (void)signal(SIGXFSZ, SIG_IGN);
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) == 0) {
        import_t m = {.options = &o};
        akin_status_t status = open_sources(&m, &err);
        if (status == AKIN_OK)
            status = copy_all(&m, &err);
        code = status == AKIN_OK ? report(&m) : akin_command_fail(status, &err);
        cleanup(&m);
    }
    free(o.paths);
    return code;
}
