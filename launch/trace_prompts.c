/* trace prompts: prompts that make the modelled engine take one record of a
 * trace after another. */
#include "launch/trace_command.h"

#include "base/rng.h"
#include "engine/modelled.h"
#include "launch/command.h"
#include "routing/trace.h"

#include <argp.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_TOKENS = 120 };

/* Beginnings that are tried for a record; with as many tokens as records a
 * third of them fails. */
#define MAX_TRIES 1000u

typedef struct options {
    const char *path;
    const char *model_dir;
    uint64_t n_requests;
    uint64_t seed;
} options_t;

static const struct argp_option arguments[] = {
    {"model", 'm', "DIR", 0, "Model directory of the job: its tokens are used",
     0},
    {"requests", 'n', "N", 0,
     "Prompts to write; behind the last record comes the first again (one for "
     "each record)",
     0},
    {"seed", 's', "S", 0, "Of the tokens (0)", 0},
    {0}};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    switch (key) {
    case 'm':
        o->model_dir = arg;
        break;
    case 'n':
        o->n_requests =
            akin_trace_parse_number("--requests", arg, 1, UINT32_MAX, state);
        break;
    case 's':
        o->seed = akin_trace_parse_number("--seed", arg, 0, INT64_MAX, state);
        break;
    case ARGP_KEY_ARG:
        if (o->path != NULL)
            argp_error(state, "%s: one trace at a time", arg);
        o->path = arg;
        break;
    case ARGP_KEY_END:
        if (o->path == NULL)
            argp_error(state, "no trace: name its index");
        if (o->model_dir == NULL)
            argp_error(state, "no model: name its directory with --model");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* The n-th random token of a request; none that ends a text. */
static uint32_t token_of(const options_t *o, const akin_model_config_t *model,
                         uint64_t request, uint64_t n)
{
    for (uint64_t i = n << 8;; i++) {
        const uint32_t token = (uint32_t)akin_rng_below(
            o->seed ^ request << 20, STREAM_TOKENS, i, model->vocab_size);
        if (!akin_model_config_is_eos(model, token))
            return token;
    }
}

/* A beginning whose name picks the record: the last token of the name is looked
 * for, and if none does it, another one before it is tried. */
static int find_name(const options_t *o, const akin_model_config_t *model,
                     uint64_t request, uint64_t n_records, uint32_t *tokens)
{
    const uint32_t last = AKIN_MODELLED_NAME_TOKENS - 1;
    for (uint32_t i = 0; i < last; i++)
        tokens[i] = token_of(o, model, request, i);
    for (uint32_t attempt = 0; attempt < MAX_TRIES; attempt++) {
        tokens[last - 1] = token_of(o, model, request, last + attempt);
        uint64_t name = AKIN_MODELLED_NO_NAME;
        for (uint32_t i = 0; i < last; i++)
            name = akin_modelled_name(name, tokens[i]);
        for (uint32_t token = 0; token < model->vocab_size; token++)
            if (akin_modelled_name(name, token) % n_records ==
                    request % n_records &&
                !akin_model_config_is_eos(model, token)) {
                tokens[last] = token;
                return 1;
            }
    }
    return 0;
}

/* The name that a job gives its model: the last part of the path. */
static json_t *served_name(const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    return json_stringn(path + begin, end - begin);
}

static json_t *line_of(const options_t *o, const akin_trace_record_t *record,
                       uint64_t request, uint64_t n_records,
                       const uint32_t *tokens)
{
    char id[320];
    if (request < n_records)
        (void)snprintf(id, sizeof(id), "%.255s", record->id);
    else
        (void)snprintf(id, sizeof(id), "%.255s-%" PRIu64, record->id,
                       request / n_records + 1);
    json_t *prompt = json_array();
    for (uint32_t i = 0; i < record->n_prompt; i++)
        (void)json_array_append_new(prompt, json_integer(tokens[i]));
    json_t *body = json_pack(
        "{s:o, s:o, s:I, s:i}", "model", served_name(o->model_dir), "prompt",
        prompt, "max_tokens", (json_int_t)(record->n_tokens - record->n_prompt),
        "temperature", 0);
    if (record->domain[0] != '\0')
        (void)json_object_set_new(body, "metadata",
                                  json_pack("{s:s}", "domain", record->domain));
    return json_pack("{s:s, s:s, s:s, s:o}", "custom_id", id, "method", "POST",
                     "url", "/v1/completions", "body", body);
}

static akin_status_t write_line(const options_t *o,
                                const akin_model_config_t *model,
                                const akin_trace_record_t *records,
                                uint64_t n_records, uint64_t request,
                                uint32_t *tokens, akin_error_t *err)
{
    const akin_trace_record_t *record = &records[request % n_records];
    if (!find_name(o, model, request, n_records, tokens))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: %u tokens are too few to tell %" PRIu64
                              " records apart",
                              o->model_dir, model->vocab_size, n_records);
    for (uint32_t i = AKIN_MODELLED_NAME_TOKENS; i < record->n_prompt; i++)
        tokens[i] = token_of(o, model, request, MAX_TRIES + i);
    json_t *line = line_of(o, record, request, n_records, tokens);
    const int failed =
        line == NULL || json_dumpf(line, stdout, JSON_COMPACT) != 0;
    json_decref(line);
    if (failed || putchar('\n') == EOF)
        return akin_error_set(err, AKIN_ERR_IO, "cannot write the prompts");
    return AKIN_OK;
}

static int can_be_named(const akin_trace_record_t *record)
{
    return record->n_prompt >= AKIN_MODELLED_NAME_TOKENS &&
           record->n_tokens > record->n_prompt;
}

static akin_status_t write_prompts(const options_t *o,
                                   const akin_trace_t *trace, akin_error_t *err)
{
    akin_model_config_t model;
    uint32_t n_records, n_left_out = 0;
    const akin_trace_record_t *records = akin_trace_records(trace, &n_records);
    const uint64_t n = o->n_requests > 0 ? o->n_requests : n_records;
    akin_status_t status = akin_model_config_read(o->model_dir, &model, err);
    if (status != AKIN_OK)
        return status;
    uint32_t *tokens = calloc(AKIN_MODELLED_MAX_POSITIONS, sizeof(*tokens));
    if (tokens == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    for (uint64_t i = 0; i < n && status == AKIN_OK; i++) {
        const akin_trace_record_t *record = &records[i % n_records];
        if (!can_be_named(record))
            n_left_out++;
        else if (record->n_tokens >= AKIN_MODELLED_MAX_POSITIONS)
            status = akin_error_set(err, AKIN_ERR_INVALID,
                                    "%s: %s has %u tokens, %u are the most",
                                    o->path, record->id, record->n_tokens,
                                    AKIN_MODELLED_MAX_POSITIONS - 1);
        else
            status = write_line(o, &model, records, n_records, i, tokens, err);
    }
    free(tokens);
    if (status == AKIN_OK && n_left_out == n)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: no record has a prompt of %u tokens or more "
                              "and an output",
                              o->path, AKIN_MODELLED_NAME_TOKENS);
    if (n_left_out > 0)
        (void)fprintf(stderr,
                      "akin: %u records have no output or prompts under %u "
                      "tokens, which cannot name them: left out\n",
                      n_left_out, AKIN_MODELLED_NAME_TOKENS);
    return status;
}

int akin_trace_prompts_command(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        "-m MODEL TRACE.json",
        "Write batch input for a job with engine.kind = \"modelled\" and this "
        "trace as modelled.trace, on stdout: prompts of random tokens, as long "
        "as the records', whose first tokens make the engine take the experts "
        "of one record after another.",
        NULL,
        NULL,
        NULL};
    options_t o = {0};
    akin_error_t err = {{0}};
    akin_trace_t *trace = NULL;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return AKIN_EXIT_USAGE;
    akin_status_t status = akin_trace_open(o.path, &trace, &err);
    if (status == AKIN_OK)
        status = write_prompts(&o, trace, &err);
    akin_trace_close(trace);
    return status == AKIN_OK ? AKIN_EXIT_OK : akin_command_fail(status, &err);
}
