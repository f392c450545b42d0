/* Batch results: ids, the envelope and the bodies of both endpoints. */
#include "roles/batch_format.h"

#include "base/clock.h"
#include "roles/batch_logprobs.h"
#include "roles/json_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <xxhash.h>

#define HEX_BYTES 33

struct akin_batch_format {
    char *model;
    const akin_tokenizer_t *tokenizer;
    int deterministic;
    uint64_t salt;    /* of this run */
    uint64_t n_lines; /* made so far */
    akini_json_text_t text;
};

akin_status_t akin_batch_format_create(const akin_batch_format_params_t *params,
                                       akin_batch_format_t **format_p)
{
    *format_p = NULL;
    akin_batch_format_t *format = calloc(1, sizeof(*format));
    if (format == NULL)
        return AKIN_ERR_NOMEM;
    format->model = strdup(params->model == NULL ? "" : params->model);
    if (format->model == NULL) {
        free(format);
        return AKIN_ERR_NOMEM;
    }
    format->tokenizer = params->tokenizer;
    format->deterministic = params->deterministic_ids;
    /* Ids need to be different, not secret. */
    if (getrandom(&format->salt, sizeof(format->salt), GRND_NONBLOCK) !=
        (ssize_t)sizeof(format->salt))
        format->salt =
            (uint64_t)akin_clock_now_ns() ^ ((uint64_t)getpid() << 40U);
    *format_p = format;
    return AKIN_OK;
}

void akin_batch_format_destroy(akin_batch_format_t *format)
{
    if (format == NULL)
        return;
    akini_json_text_cleanup(&format->text);
    free(format->model);
    free(format);
}

/* The part of all ids of a line that tells it from others. */
static void make_hex(const akin_batch_format_t *format, const char *custom_id,
                     char hex[HEX_BYTES])
{
    uint64_t seed = format->deterministic ? 0 : format->salt + format->n_lines;
    XXH128_hash_t h = XXH3_128bits_withSeed(custom_id, strlen(custom_id), seed);
    (void)snprintf(hex, HEX_BYTES, "%016" PRIx64 "%016" PRIx64,
                   (uint64_t)h.high64, (uint64_t)h.low64);
}

static void begin_line(akini_json_text_t *text, const char *unique,
                       const char *custom_id, int status_code)
{
    akini_json_text_raw(text, "{\"id\":\"batch_req_");
    akini_json_text_raw(text, unique);
    akini_json_text_raw(text, "\",\"custom_id\":");
    akini_json_text_word(text, custom_id);
    akini_json_text_raw(text, ",\"response\":{\"status_code\":");
    akini_json_text_integer(text, status_code);
    akini_json_text_raw(text, ",\"request_id\":\"req_");
    akini_json_text_raw(text, unique);
    akini_json_text_raw(text, "\",\"body\":");
}

static akin_status_t finish_line(akin_batch_format_t *format,
                                 const char **line_p, size_t *bytes_p)
{
    akini_json_text_raw(&format->text, "}\n");
    if (format->text.status != AKIN_OK)
        return format->text.status;
    format->n_lines++;
    *line_p = format->text.data;
    *bytes_p = format->text.bytes;
    return AKIN_OK;
}

static void put_choice(akin_batch_format_t *format,
                       const akin_request_t *request,
                       const akin_result_t *result)
{
    akini_json_text_t *text = &format->text;
    const int chat = request->kind == AKIN_REQUEST_CHAT;
    akini_json_text_raw(text, chat ? "{\"index\":0,\"message\":{\"role\":"
                                     "\"assistant\",\"content\":"
                                   : "{\"index\":0,\"text\":");
    akini_json_text_string(text, result->text == NULL ? "" : result->text,
                           result->text == NULL ? 0 : result->text_bytes);
    if (chat)
        akini_json_text_raw(text, ",\"refusal\":null}");
    akini_json_text_raw(text, ",\"logprobs\":");
    if (!request->want_logprobs || result->logprobs == NULL)
        akini_json_text_raw(text, "null");
    else if (chat)
        akini_batch_logprobs_chat(text, format->tokenizer, result,
                                  request->n_top);
    else
        akini_batch_logprobs_completion(text, format->tokenizer, result,
                                        request->n_top);
    akini_json_text_raw(text, result->finish == AKIN_FINISH_STOP
                                  ? ",\"finish_reason\":\"stop\""
                                  : ",\"finish_reason\":\"length\"");
    if (request->want_token_ids || format->tokenizer == NULL) {
        akini_json_text_raw(text, ",\"token_ids\":[");
        for (uint32_t i = 0; i < result->n_tokens; i++) {
            akini_json_text_raw(text, i > 0 ? "," : "");
            akini_json_text_integer(text, result->tokens[i]);
        }
        akini_json_text_raw(text, "]");
    }
    akini_json_text_raw(text, "}");
}

static void put_usage(akin_batch_format_t *format,
                      const akin_request_t *request,
                      const akin_result_t *result)
{
    akini_json_text_t *text = &format->text;
    akini_json_text_raw(text, "{\"prompt_tokens\":");
    akini_json_text_integer(text, request->n_prompt);
    akini_json_text_raw(text, ",\"completion_tokens\":");
    akini_json_text_integer(text, result->n_tokens);
    akini_json_text_raw(text, ",\"total_tokens\":");
    akini_json_text_integer(text,
                            (int64_t)request->n_prompt + result->n_tokens);
    /* What the cache held depends on the run: not for lines that are to be
     * the same in every run. */
    if (!format->deterministic) {
        akini_json_text_raw(text,
                            ",\"prompt_tokens_details\":{\"cached_tokens\":");
        akini_json_text_integer(text, result->n_cached);
        akini_json_text_raw(text, "}");
    }
    akini_json_text_raw(text, "}");
}

akin_status_t akin_batch_format_result(akin_batch_format_t *format,
                                       const akin_request_t *request,
                                       const akin_result_t *result,
                                       const char **line_p, size_t *bytes_p)
{
    akini_json_text_t *text = &format->text;
    char hex[HEX_BYTES];
    const int chat = request->kind == AKIN_REQUEST_CHAT;
    make_hex(format, request->custom_id, hex);
    akini_json_text_reset(text);
    begin_line(text, hex, request->custom_id, 200);
    akini_json_text_raw(text, chat ? "{\"id\":\"chatcmpl-" : "{\"id\":\"cmpl-");
    akini_json_text_raw(text, hex);
    akini_json_text_raw(
        text, chat ? "\",\"object\":\"chat.completion\",\"created\":"
                   : "\",\"object\":\"text_completion\",\"created\":");
    akini_json_text_integer(text,
                            format->deterministic ? 0 : result->created_s);
    akini_json_text_raw(text, ",\"model\":");
    akini_json_text_word(text, format->model);
    akini_json_text_raw(text, ",\"choices\":[");
    put_choice(format, request, result);
    akini_json_text_raw(text, "],\"usage\":");
    put_usage(format, request, result);
    akini_json_text_raw(text, "}},\"error\":null");
    return finish_line(format, line_p, bytes_p);
}

static const char *or_null(const char *word)
{
    return word[0] == '\0' ? NULL : word;
}

akin_status_t akin_batch_format_error(akin_batch_format_t *format,
                                      const akin_request_error_t *error,
                                      const char **line_p, size_t *bytes_p)
{
    akini_json_text_t *text = &format->text;
    char unique[HEX_BYTES];
    if (error->has_id)
        make_hex(format, error->custom_id, unique);
    else
        (void)snprintf(unique, sizeof(unique), "line-%" PRIu64, error->line);
    const char *code =
        error->code[0] != '\0' ? error->code : or_null(error->type);
    akini_json_text_reset(text);
    begin_line(text, unique, error->has_id ? error->custom_id : NULL,
               error->status_code);
    akini_json_text_raw(text, "{\"error\":{\"message\":");
    akini_json_text_word(text, error->message);
    akini_json_text_raw(text, ",\"type\":");
    akini_json_text_word(text, error->type);
    akini_json_text_raw(text, ",\"param\":");
    akini_json_text_word(text, or_null(error->param));
    akini_json_text_raw(text, ",\"code\":");
    akini_json_text_word(text, or_null(error->code));
    akini_json_text_raw(text, "}}},\"error\":{\"code\":");
    akini_json_text_word(text, code);
    akini_json_text_raw(text, ",\"message\":");
    akini_json_text_word(text, error->message);
    akini_json_text_raw(text, "}");
    return finish_line(format, line_p, bytes_p);
}
