/* generate: one prompt on the engine, without MPI. */
#include "launch/generate.h"

#include "base/clock.h"
#include "engine/chat.h"
#include "engine/engine.h"
#include "engine/text_stream.h"
#include "engine/tokenizer.h"
#include "launch/command.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything a run holds; cleaned up in one place. */
typedef struct run {
    const akin_generate_options_t *options;
    akin_generate_result_t *result;
    akin_error_t *err;
    akin_engine_t *engine;
    akin_engine_info_t info;
    akin_tokenizer_t *tokenizer;
    akin_text_stream_t *stream;
    akin_sampler_t *sampler;
    akin_kv_layout_t layout;
    akin_kv_view_t view;
    uint32_t *slots;
    uint32_t *history; /* prompt, then what was generated */
    float *logits;
} run_t;

static akin_status_t read_token_ids(run_t *r)
{
    const char *at = r->options->token_ids;
    size_t n = 1;
    for (const char *c = at; *c != '\0'; c++)
        n += *c == ',';
    r->result->prompt = calloc(n, sizeof(uint32_t));
    if (r->result->prompt == NULL)
        return akin_error_set(r->err, AKIN_ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        char *end;
        errno = 0;
        unsigned long id = strtoul(at, &end, 10);
        if (errno != 0 || end == at || *at == '-' || id > UINT32_MAX ||
            (*end != ',' && *end != '\0'))
            return akin_error_set(r->err, AKIN_ERR_INVALID,
                                  "--tokens: item %zu is not a token id; "
                                  "write 1,2,3",
                                  i + 1);
        r->result->prompt[i] = (uint32_t)id;
        r->result->n_prompt++;
        at = end + 1;
    }
    return AKIN_OK;
}

static akin_status_t read_text(run_t *r, const char *text, size_t bytes)
{
    akin_status_t status =
        akin_tokenizer_encode(r->tokenizer, text, bytes, &r->result->prompt,
                              &r->result->n_prompt, r->err);
    return status == AKIN_OK ? AKIN_OK
                             : akin_error_prefix(r->err, status, "prompt: ");
}

static akin_status_t read_chat(run_t *r)
{
    json_error_t where;
    const char *path = r->options->chat_path;
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
    if (json == NULL && where.line < 0) /* it could not even be opened */
        return akin_error_set(r->err, AKIN_ERR_NOT_FOUND, "--chat: %s",
                              where.text);
    if (json == NULL)
        return akin_error_set(r->err, AKIN_ERR_FORMAT, "%s:%d: %s", path,
                              where.line, where.text);
    char *text;
    size_t bytes;
    akin_status_t status = akin_chat_render_json(json, &text, &bytes, r->err);
    json_decref(json);
    if (status != AKIN_OK)
        return akin_error_prefix(r->err, status, "%s: ", path);
    status = read_text(r, text, bytes);
    free(text);
    return status;
}

static akin_status_t read_prompt(run_t *r)
{
    const akin_generate_options_t *o = r->options;
    const akin_model_config_t *model = r->info.model;
    akin_status_t status;
    if (o->token_ids != NULL)
        status = read_token_ids(r);
    else if (o->chat_path != NULL)
        status = read_chat(r);
    else
        status = read_text(r, o->text, strlen(o->text));
    if (status != AKIN_OK)
        return status;
    if (r->result->n_prompt == 0)
        return akin_error_set(r->err, AKIN_ERR_INVALID,
                              "the prompt is empty: at least one token is "
                              "needed");
    if (r->result->n_prompt >= model->max_positions)
        return akin_error_set(r->err, AKIN_ERR_INVALID,
                              "the prompt has %zu tokens: the model's %u "
                              "positions leave no room to generate",
                              r->result->n_prompt, model->max_positions);
    for (size_t i = 0; i < r->result->n_prompt; i++)
        if (r->result->prompt[i] >= model->vocab_size)
            return akin_error_set(r->err, AKIN_ERR_INVALID,
                                  "prompt: token %zu is %u, the vocabulary "
                                  "has %u",
                                  i + 1, r->result->prompt[i],
                                  model->vocab_size);
    return AKIN_OK;
}

static akin_status_t load(run_t *r)
{
    const akin_generate_options_t *o = r->options;
    const akin_engine_params_t params = {
        .model_dir = o->model_dir,
        .kernel = o->kernel,
        .n_threads = o->n_threads,
    };
    int64_t begin = akin_clock_now_ns();
    akin_status_t status = akin_engine_load("cpu", &params, &r->engine, r->err);
    if (status != AKIN_OK)
        return status;
    akin_engine_describe(r->engine, &r->info);
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/tokenizer.json", o->model_dir);
    status = akin_tokenizer_load(path, &r->tokenizer, r->err);
    if (status != AKIN_OK)
        return status;
    if (akin_tokenizer_size(r->tokenizer) > r->info.model->vocab_size)
        return akin_error_set(r->err, AKIN_ERR_FORMAT,
                              "%s: %u tokens, but config.json says vocab_size "
                              "%u",
                              path, akin_tokenizer_size(r->tokenizer),
                              r->info.model->vocab_size);
    r->result->load_ns = akin_clock_now_ns() - begin;
    return AKIN_OK;
}

/* Memory for the prompt and everything that may be generated. */
static akin_status_t prepare(run_t *r, uint32_t max_tokens)
{
    const akin_model_config_t *model = r->info.model;
    akin_generate_result_t *result = r->result;
    akin_kv_shape_t shape;
    akin_engine_kv_shape(r->engine, r->options->block_tokens, &shape);
    akin_status_t status = akin_kv_layout_init(&shape, &r->layout, r->err);
    if (status != AKIN_OK)
        return status == AKIN_ERR_RANGE ? AKIN_ERR_INVALID : status;
    size_t n = result->n_prompt + max_tokens;
    r->view.layout = &r->layout;
    r->view.n_slots = (uint32_t)((n - 1) / shape.block_tokens + 1);
    r->view.base = aligned_alloc(AKIN_KV_SLOT_ALIGN_BYTES,
                                 r->view.n_slots * r->layout.stride_bytes);
    r->slots = calloc(r->view.n_slots, sizeof(*r->slots));
    r->history = calloc(n, sizeof(*r->history));
    r->logits = calloc(model->vocab_size, sizeof(*r->logits));
    result->n_layers = model->n_layers;
    result->n_experts = model->n_experts;
    result->n_top = model->vocab_size < AKIN_GENERATE_TOP ? model->vocab_size
                                                          : AKIN_GENERATE_TOP;
    result->counts = calloc((size_t)model->n_layers * model->n_experts,
                            sizeof(*result->counts));
    result->tokens = calloc(max_tokens, sizeof(*result->tokens));
    result->top =
        calloc((size_t)max_tokens * AKIN_GENERATE_TOP, sizeof(*result->top));
    if (r->view.base == NULL || r->slots == NULL || r->history == NULL ||
        r->logits == NULL || result->counts == NULL || result->tokens == NULL ||
        result->top == NULL ||
        akin_sampler_create(r->info.kernels, model->vocab_size, &r->sampler) !=
            AKIN_OK ||
        akin_text_stream_create(r->tokenizer, r->options->stops, NULL,
                                r->options->n_stops, &r->stream) != AKIN_OK)
        return akin_error_set(r->err, AKIN_ERR_NOMEM,
                              "out of memory for %zu tokens of context", n);
    for (uint32_t i = 0; i < r->view.n_slots; i++)
        r->slots[i] = i;
    memcpy(r->history, result->prompt, result->n_prompt * sizeof(uint32_t));
    return AKIN_OK;
}

static akin_status_t prefill(run_t *r)
{
    const uint32_t n = (uint32_t)r->result->n_prompt;
    int64_t begin = akin_clock_now_ns();
    for (uint32_t at = 0; at < n;) {
        uint32_t chunk = n - at < r->options->chunk_tokens
                             ? n - at
                             : r->options->chunk_tokens;
        const akin_engine_span_t span = {
            .tokens = r->history + at,
            .n_tokens = chunk,
            .position = at,
            .slots = r->slots,
            .logits = at + chunk == n ? r->logits : NULL,
        };
        akin_status_t status =
            akin_engine_step(r->engine, &r->view, &span, 1, NULL);
        if (status != AKIN_OK)
            return akin_error_set(r->err, status, "prefill failed: %s",
                                  akin_status_string(status));
        at += chunk;
    }
    r->result->prefill_ns = akin_clock_now_ns() - begin;
    const uint32_t n_blocks = (n - 1) / r->options->block_tokens + 1;
    for (uint32_t b = 0; b < n_blocks; b++)
        akin_kv_sidecar_add(&r->layout, akin_kv_slot(&r->view, b),
                            r->result->counts);
    return AKIN_OK;
}

/* Keep new text and, in text mode, show it at once. */
static akin_status_t emit(run_t *r, const char *text, size_t bytes)
{
    akin_generate_result_t *result = r->result;
    char *all = realloc(result->text, result->text_bytes + bytes + 1);
    if (all == NULL)
        return akin_error_set(r->err, AKIN_ERR_NOMEM, "out of memory");
    if (bytes > 0)
        memcpy(all + result->text_bytes, text, bytes);
    result->text = all;
    result->text_bytes += bytes;
    all[result->text_bytes] = '\0';
    errno = 0;
    if (!r->options->json && bytes > 0 &&
        (fwrite(text, 1, bytes, stdout) != bytes || fflush(stdout) != 0))
        return akin_error_set(r->err, AKIN_ERR_IO, "cannot write the text: %s",
                              strerror(errno));
    return AKIN_OK;
}

static akin_status_t decode(run_t *r, uint32_t max_tokens)
{
    akin_generate_result_t *result = r->result;
    const size_t n_prompt = result->n_prompt;
    const uint32_t vocab = r->info.model->vocab_size;
    const char *text;
    size_t bytes;
    int stopped = 0;
    akin_status_t status = AKIN_OK;
    int64_t begin = akin_clock_now_ns();
    result->finish_reason = "length";
    while (status == AKIN_OK) {
        size_t at = n_prompt + result->n_tokens;
        akin_sampler_top(r->logits, vocab, AKIN_GENERATE_TOP,
                         result->top + result->n_tokens * AKIN_GENERATE_TOP);
        uint32_t id = akin_sampler_pick(r->sampler, &r->options->sampling,
                                        r->logits, r->history, at, at);
        r->history[at] = id;
        result->tokens[result->n_tokens++] = id;
        if (!r->options->ignore_eos &&
            akin_model_config_is_eos(r->info.model, id)) {
            result->finish_reason = "stop";
            break;
        }
        status = akin_text_stream_push(r->stream, id, &text, &bytes, &stopped);
        if (status == AKIN_OK)
            status = emit(r, text, bytes);
        if (status != AKIN_OK || stopped || result->n_tokens == max_tokens)
            break;
        const akin_engine_span_t span = {
            .tokens = &r->history[at],
            .n_tokens = 1,
            .position = (uint32_t)at,
            .slots = r->slots,
            .logits = r->logits,
        };
        status = akin_engine_step(r->engine, &r->view, &span, 1, NULL);
        if (status != AKIN_OK)
            (void)akin_error_set(r->err, status, "decode failed: %s",
                                 akin_status_string(status));
    }
    if (stopped)
        result->finish_reason = "stop";
    if (status == AKIN_OK && !stopped) {
        akin_text_stream_finish(r->stream, &text, &bytes);
        status = emit(r, text, bytes);
    }
    result->decode_ns = akin_clock_now_ns() - begin;
    return status;
}

akin_status_t akin_generate_run(const akin_generate_options_t *options,
                                akin_generate_result_t *result_p,
                                akin_error_t *err)
{
    run_t r = {.options = options, .result = result_p, .err = err};
    *result_p = (akin_generate_result_t){0};
    uint32_t max_tokens = options->max_tokens;
    akin_status_t status = load(&r);
    if (status == AKIN_OK)
        status = read_prompt(&r);
    if (status == AKIN_OK) {
        uint32_t room =
            r.info.model->max_positions - (uint32_t)result_p->n_prompt;
        max_tokens = max_tokens < room ? max_tokens : room;
        status = prepare(&r, max_tokens);
    }
    if (status == AKIN_OK)
        status = prefill(&r);
    if (status == AKIN_OK)
        status = decode(&r, max_tokens);
    akin_text_stream_destroy(r.stream);
    akin_sampler_destroy(r.sampler);
    akin_tokenizer_destroy(r.tokenizer);
    akin_engine_destroy(r.engine);
    free(r.view.base);
    free(r.slots);
    free(r.history);
    free(r.logits);
    return status;
}

void akin_generate_result_cleanup(akin_generate_result_t *result)
{
    free(result->prompt);
    free(result->tokens);
    free(result->text);
    free(result->top);
    free(result->counts);
}

int akin_command_generate(int argc, char **argv)
{
    akin_error_t err = {{0}};
    akin_generate_options_t options;
    akin_status_t status = akin_generate_parse(argc, argv, &options, &err);
    if (status != AKIN_OK)
        return akin_command_fail(status, &err);
    akin_generate_result_t result;
    int code;
    status = akin_generate_run(&options, &result, &err);
    if (status != AKIN_OK)
        code = akin_command_fail(status, &err);
    else if (options.json)
        code = akin_command_print_json(akin_generate_result_json(&result));
    else
        code = putchar('\n') == EOF ? AKIN_EXIT_FAILED : AKIN_EXIT_OK;
    akin_generate_result_cleanup(&result);
    return code;
}
