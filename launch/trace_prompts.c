/* trace prompts: prompts that make the modelled engine take one record of a
 * trace after another. */
#include "launch/trace_command.h"

#include "base/rng.h"
#include "engine/modelled.h"
#include "launch/command.h"
#include "roles/job.h"
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

/* '#'s in a row, more than any record's id has: what follows them in an id
 * tells it from all others. */
static char *make_separator(const akin_trace_record_t *records, uint64_t n)
{
    size_t longest = 0;
    for (uint64_t i = 0; i < n; i++)
        for (const char *at = strchr(records[i].id, '#'); at != NULL;
             at = strchr(at, '#')) {
            const size_t run = strspn(at, "#");
            longest = run > longest ? run : longest;
            at += run;
        }
    char *separator = malloc(longest + 2);
    if (separator == NULL)
        return NULL;
    memset(separator, '#', longest + 1);
    separator[longest + 1] = '\0';
    return separator;
}

typedef struct prompts {
    const options_t *o;
    akin_model_config_t model;
    char name[256]; /* that a job of it goes by */
    const akin_trace_record_t *records;
    uint32_t n_records;
    char *separator;  /* between an id and how often its record has come */
    uint32_t *tokens; /* of the prompt at hand */
} prompts_t;

/* The n-th random token of a request; none that ends a text. */
static uint32_t token_of(const prompts_t *p, uint64_t request, uint64_t n)
{
    for (uint64_t i = n << 8;; i++) {
        const uint32_t token = (uint32_t)akin_rng_below(
            p->o->seed ^ request << 20, STREAM_TOKENS, i, p->model.vocab_size);
        if (!akin_model_config_is_eos(&p->model, token))
            return token;
    }
}

/* A beginning whose name picks the record: the last token of the name is looked
 * for, and if none does it, another one before it is tried. */
static int find_name(prompts_t *p, uint64_t request)
{
    const uint32_t last = AKIN_MODELLED_NAME_TOKENS - 1;
    for (uint32_t i = 0; i < last; i++)
        p->tokens[i] = token_of(p, request, i);
    for (uint32_t attempt = 0; attempt < MAX_TRIES; attempt++) {
        p->tokens[last - 1] = token_of(p, request, last + attempt);
        uint64_t name = AKIN_MODELLED_NO_NAME;
        for (uint32_t i = 0; i < last; i++)
            name = akin_modelled_name(name, p->tokens[i]);
        for (uint32_t token = 0; token < p->model.vocab_size; token++)
            if (akin_modelled_name(name, token) % p->n_records ==
                    request % p->n_records &&
                !akin_model_config_is_eos(&p->model, token)) {
                p->tokens[last] = token;
                return 1;
            }
    }
    return 0;
}

static json_t *line_of(const prompts_t *p, uint64_t request)
{
    const akin_trace_record_t *record = &p->records[request % p->n_records];
    const uint64_t pass = request / p->n_records;
    json_t *id = pass == 0 ? json_string(record->id)
                           : json_sprintf("%s%s%" PRIu64, record->id,
                                          p->separator, pass + 1);
    json_t *prompt = json_array();
    for (uint32_t i = 0; i < record->n_prompt; i++)
        (void)json_array_append_new(prompt, json_integer(p->tokens[i]));
    json_t *body = json_pack(
        "{s:o, s:o, s:I, s:i}", "model", json_string(p->name), "prompt", prompt,
        "max_tokens", (json_int_t)(record->n_tokens - record->n_prompt),
        "temperature", 0);
    if (record->domain[0] != '\0')
        (void)json_object_set_new(body, "metadata",
                                  json_pack("{s:s}", "domain", record->domain));
    return json_pack("{s:o, s:s, s:s, s:o}", "custom_id", id, "method", "POST",
                     "url", "/v1/completions", "body", body);
}

static akin_status_t write_line(prompts_t *p, uint64_t request,
                                akin_error_t *err)
{
    const akin_trace_record_t *record = &p->records[request % p->n_records];
    if (record->n_tokens >= AKIN_MODELLED_MAX_POSITIONS)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: %s has %u tokens, %u are the most",
                              p->o->path, record->id, record->n_tokens,
                              AKIN_MODELLED_MAX_POSITIONS - 1);
    if (!find_name(p, request))
        return akin_error_set(
            err, AKIN_ERR_INVALID,
            "%s: %u tokens are too few to tell %u records apart",
            p->o->model_dir, p->model.vocab_size, p->n_records);
    for (uint32_t i = AKIN_MODELLED_NAME_TOKENS; i < record->n_prompt; i++)
        p->tokens[i] = token_of(p, request, MAX_TRIES + i);
    json_t *line = line_of(p, request);
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

static akin_status_t write_prompts(prompts_t *p, akin_error_t *err)
{
    const uint64_t n = p->o->n_requests > 0 ? p->o->n_requests : p->n_records;
    uint32_t n_left_out = 0;
    akin_status_t status = AKIN_OK;
    for (uint64_t i = 0; i < n && status == AKIN_OK; i++) {
        if (can_be_named(&p->records[i % p->n_records]))
            status = write_line(p, i, err);
        else
            n_left_out++;
    }
    if (status == AKIN_OK && n_left_out == n)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: no record has a prompt of %u tokens or more "
                              "and an output",
                              p->o->path, AKIN_MODELLED_NAME_TOKENS);
    if (n_left_out > 0)
        (void)fprintf(stderr,
                      "akin: %u records have no output or prompts under %u "
                      "tokens, which cannot name them: left out\n",
                      n_left_out, AKIN_MODELLED_NAME_TOKENS);
    return status;
}

static akin_status_t prepare(prompts_t *p, const akin_trace_t *trace,
                             akin_error_t *err)
{
    akin_status_t status =
        akin_model_config_read(p->o->model_dir, &p->model, err);
    if (status != AKIN_OK)
        return status;
    if (p->model.vocab_size <= p->model.n_eos_ids)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: all tokens end a text", p->o->model_dir);
    akin_job_served_name("", p->o->model_dir, p->name, sizeof(p->name));
    p->records = akin_trace_records(trace, &p->n_records);
    p->separator = make_separator(p->records, p->n_records);
    p->tokens = calloc(AKIN_MODELLED_MAX_POSITIONS, sizeof(*p->tokens));
    return p->separator != NULL && p->tokens != NULL
               ? AKIN_OK
               : akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
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
    prompts_t p = {.o = &o};
    if (status == AKIN_OK)
        status = prepare(&p, trace, &err);
    if (status == AKIN_OK)
        status = write_prompts(&p, &err);
    free(p.separator);
    free(p.tokens);
    akin_trace_close(trace);
    return status == AKIN_OK ? AKIN_EXIT_OK : akin_command_fail(status, &err);
}
