/* trace_alone: does a trace hold the experts that the engine chooses when it
 * runs every request alone, in one process, prompt in one go, then greedily
 * token by token? Index and data are read here by other means than akin's. */
#include "../unit/engine_run.h"
#include "roles/batch_parse.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_TOKENS 16u
#define MAX_SLOTS 64u

static void fail(const char *what, const char *detail)
{
    (void)fprintf(stderr, "trace_alone: %s: %s\n", what, detail);
    exit(1);
}

typedef struct trace {
    json_t *index;
    unsigned char *data;
    size_t bytes;
} trace_t;

static uint32_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value))
        fail(key, "no such number");
    return (uint32_t)json_integer_value(value);
}

static void read_trace(trace_t *t, const char *path)
{
    json_error_t error;
    t->index = json_load_file(path, 0, &error);
    if (t->index == NULL)
        fail(path, error.text);
    char data[4096];
    const char *slash = strrchr(path, '/');
    (void)snprintf(data, sizeof(data), "%.*s%s",
                   slash != NULL ? (int)(slash + 1 - path) : 0, path,
                   json_string_value(json_object_get(t->index, "data")));
    FILE *file = fopen(data, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        fail(data, "cannot read");
    t->bytes = (size_t)ftell(file);
    t->data = malloc(t->bytes + 1);
    rewind(file);
    if (t->data == NULL || fread(t->data, 1, t->bytes, file) != t->bytes)
        fail(data, "cannot read");
    (void)fclose(file);
}

static json_t *find_record(const trace_t *t, const char *id)
{
    size_t i;
    json_t *record;
    json_array_foreach(json_object_get(t->index, "records"), i, record)
    {
        const char *found = json_string_value(json_object_get(record, "id"));
        if (found != NULL && strcmp(found, id) == 0)
            return record;
    }
    fail(id, "not in the trace");
    return NULL;
}

static uint32_t best(const float *logits, uint32_t n)
{
    uint32_t at = 0;
    for (uint32_t v = 1; v < n; v++)
        if (logits[v] > logits[at])
            at = v;
    return at;
}

/* One record against the engine; ids of one byte. */
static void check(engine_run_t *run, const trace_t *t,
                  const akin_request_t *request, uint32_t n_output)
{
    const akin_model_config_t *c = run->info.model;
    const size_t row = (size_t)c->n_layers * c->top_k;
    const json_t *record = find_record(t, request->custom_id);
    const uint32_t n_prompt = request->n_prompt;
    const uint32_t room = c->max_positions - n_prompt;
    const uint32_t n_tokens =
        n_prompt + (n_output < room ? n_output : room) - 1;
    const size_t offset = number(record, "offset");
    if (number(record, "n_prompt") != n_prompt ||
        number(record, "n_tokens") != n_tokens ||
        offset + n_tokens * row > t->bytes)
        fail(request->custom_id, "another number of rows");
    uint32_t *tokens = calloc(n_tokens + 1, sizeof(*tokens));
    uint16_t *routes = calloc(n_tokens * row, sizeof(*routes));
    float *logits = calloc(c->vocab_size, sizeof(*logits));
    if (tokens == NULL || routes == NULL || logits == NULL)
        fail(request->custom_id, "out of memory");
    uint32_t slots[MAX_SLOTS];
    for (uint32_t i = 0; i < MAX_SLOTS; i++)
        slots[i] = i;
    memcpy(tokens, request->prompt, n_prompt * sizeof(*tokens));
    for (uint32_t done = 0; done < n_tokens;) {
        const akin_engine_span_t span = {.tokens = tokens + done,
                                         .n_tokens = done == 0 ? n_prompt : 1,
                                         .position = done,
                                         .slots = slots,
                                         .logits = logits,
                                         .routes = routes + done * row};
        engine_run_step(run, &span, 1);
        done += span.n_tokens;
        tokens[done] = best(logits, c->vocab_size);
    }
    for (size_t i = 0; i < n_tokens * row; i++)
        if (t->data[offset + i] != routes[i])
            fail(request->custom_id, "another expert than the engine's");
    free(tokens);
    free(routes);
    free(logits);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        (void)fputs("usage: trace_alone MODEL TRACE IN.jsonl TOKENS\n", stderr);
        return 2;
    }
    const akin_engine_params_t params = {
        .model_dir = argv[1], .kernel = "auto", .n_threads = 1};
    akin_engine_t *engine = engine_run_load(&params);
    engine_run_t run;
    engine_run_init(&run, engine, BLOCK_TOKENS, MAX_SLOTS);
    char path[4096];
    akin_error_t err = {{0}};
    akin_tokenizer_t *tokenizer;
    (void)snprintf(path, sizeof(path), "%s/tokenizer.json", argv[1]);
    engine_run_need(akin_tokenizer_load(path, &tokenizer, &err), &err);
    const akin_request_limits_t limits = {
        .tokenizer = tokenizer,
        .vocab_size = run.info.model->vocab_size,
        .max_positions = run.info.model->max_positions,
        .n_tokens = 1};
    trace_t trace;
    read_trace(&trace, argv[2]);
    akin_batch_input_t *input;
    engine_run_need(akin_batch_input_open(argv[3], 0, &input, &err), &err);
    akin_batch_line_t line;
    uint32_t n = 0;
    while (akin_batch_input_next(input, &line, &err) == AKIN_OK) {
        akin_request_t *request;
        akin_request_error_t refused;
        if (akin_batch_parse(&limits, &line, &request, &refused) != AKIN_OK)
            fail(argv[3], refused.message);
        check(&run, &trace, request, (uint32_t)strtoul(argv[4], NULL, 10));
        akin_request_destroy(request);
        n++;
    }
    if (json_array_size(json_object_get(trace.index, "records")) != n)
        fail(argv[2], "it has other records, too");
    akin_batch_input_close(input);
    json_decref(trace.index);
    free(trace.data);
    akin_tokenizer_destroy(tokenizer);
    engine_run_cleanup(&run);
    akin_engine_destroy(engine);
    return 0;
}
