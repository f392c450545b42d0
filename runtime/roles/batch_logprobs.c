/* Batch logprobs: names of tokens, offsets, and both shapes. */
#include "roles/batch_logprobs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistr.h>

/* JSON has no infinity; others write this for it, too. */
#define LEAST_LOGPROB (-9999.0F)

static float finite_logprob(float logprob)
{
    return isfinite(logprob) && logprob > LEAST_LOGPROB ? logprob
                                                        : LEAST_LOGPROB;
}

/* Bytes of a token; none if there is no tokenizer or no entry. */
static const char *token_bytes(const akin_tokenizer_t *tokenizer, uint32_t id,
                               size_t *bytes_p)
{
    const char *bytes = NULL;
    *bytes_p = 0;
    if (tokenizer != NULL && id < akin_tokenizer_size(tokenizer))
        akin_tokenizer_token(tokenizer, id, &bytes, bytes_p, NULL);
    return bytes;
}

static void put_token_id(akini_json_text_t *text, uint32_t id)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "\"token_id:%u\"", (unsigned)id);
    akini_json_text_raw(text, name);
}

static void put_name(akini_json_text_t *text, const akin_tokenizer_t *tokenizer,
                     uint32_t id)
{
    size_t n;
    const char *bytes = token_bytes(tokenizer, id, &n);
    if (n == 0) {
        put_token_id(text, id);
    } else if (u8_check((const uint8_t *)bytes, n) == NULL) {
        akini_json_text_string(text, bytes, n);
    } else {
        akini_json_text_raw(text, "\"bytes:");
        for (size_t i = 0; i < n; i++) {
            char hex[8];
            (void)snprintf(hex, sizeof(hex), "\\\\x%02x",
                           (unsigned)(unsigned char)bytes[i]);
            akini_json_text_raw(text, hex);
        }
        akini_json_text_raw(text, "\"");
    }
}

static int same_name(const akin_tokenizer_t *tokenizer, uint32_t a, uint32_t b)
{
    size_t n_a;
    size_t n_b;
    const char *x = token_bytes(tokenizer, a, &n_a);
    const char *y = token_bytes(tokenizer, b, &n_b);
    return a == b || (n_a == n_b && n_a > 0 && memcmp(x, y, n_a) == 0);
}

static uint32_t n_shown(const akin_token_logprob_t *logprob, uint32_t n_top)
{
    uint32_t n = logprob->n_top < n_top ? logprob->n_top : n_top;
    return n < AKIN_REQUEST_MAX_TOP ? n : AKIN_REQUEST_MAX_TOP;
}

/* An object of names. Two ids with one name (an added token that spells a
 * vocabulary entry) must not become one key: the later one shows its id. */
static void put_top(akini_json_text_t *text, const akin_tokenizer_t *tokenizer,
                    uint32_t chosen, const akin_token_logprob_t *logprob,
                    uint32_t n_top)
{
    struct {
        uint32_t id;
        float logprob;
    } all[AKIN_REQUEST_MAX_TOP + 1];
    uint32_t n = 0;
    int seen = 0;
    for (uint32_t i = 0; i < n_shown(logprob, n_top); i++, n++) {
        all[n].id = logprob->top[i].id;
        all[n].logprob = logprob->top[i].logprob;
        seen |= all[n].id == chosen;
    }
    if (!seen) {
        all[n].id = chosen;
        all[n].logprob = logprob->logprob;
        n++;
    }
    akini_json_text_raw(text, "{");
    for (uint32_t i = 0; i < n; i++) {
        int taken = 0;
        for (uint32_t j = 0; j < i; j++)
            taken |= same_name(tokenizer, all[i].id, all[j].id);
        if (i > 0)
            akini_json_text_raw(text, ",");
        if (taken)
            put_token_id(text, all[i].id);
        else
            put_name(text, tokenizer, all[i].id);
        akini_json_text_raw(text, ":");
        akini_json_text_float(text, finite_logprob(all[i].logprob));
    }
    akini_json_text_raw(text, "}");
}

/* Characters of the answer's text before each token; those of tokens behind a
 * stop string are the length of the text. */
static void put_offsets(akini_json_text_t *text,
                        const akin_tokenizer_t *tokenizer,
                        const akin_result_t *result)
{
    size_t most = u8_mbsnlen((const uint8_t *)result->text, result->text_bytes);
    size_t offset = 0;
    akin_decoder_t decoder = {{0}, 0};
    char *piece = NULL;
    if (tokenizer != NULL) {
        piece = malloc(akin_decoder_room(tokenizer));
        if (piece == NULL)
            text->status = AKIN_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < result->n_tokens; i++) {
        if (i > 0)
            akini_json_text_raw(text, ",");
        akini_json_text_integer(text, (int64_t)(offset < most ? offset : most));
        if (piece == NULL)
            continue;
        size_t n =
            akin_decoder_push(&decoder, tokenizer, result->tokens[i], 0, piece);
        offset += u8_mbsnlen((const uint8_t *)piece, n);
    }
    free(piece);
}

void akini_batch_logprobs_completion(akini_json_text_t *text,
                                     const akin_tokenizer_t *tokenizer,
                                     const akin_result_t *result,
                                     uint32_t n_top)
{
    const uint32_t n = result->n_tokens;
    akini_json_text_raw(text, "{\"tokens\":[");
    for (uint32_t i = 0; i < n; i++) {
        akini_json_text_raw(text, i > 0 ? "," : "");
        put_name(text, tokenizer, result->tokens[i]);
    }
    akini_json_text_raw(text, "],\"token_logprobs\":[");
    for (uint32_t i = 0; i < n; i++) {
        akini_json_text_raw(text, i > 0 ? "," : "");
        akini_json_text_float(text,
                              finite_logprob(result->logprobs[i].logprob));
    }
    akini_json_text_raw(text, "],\"top_logprobs\":[");
    for (uint32_t i = 0; i < n; i++) {
        akini_json_text_raw(text, i > 0 ? "," : "");
        put_top(text, tokenizer, result->tokens[i], &result->logprobs[i],
                n_top);
    }
    akini_json_text_raw(text, "],\"text_offset\":[");
    put_offsets(text, tokenizer, result);
    akini_json_text_raw(text, "]}");
}

/* {"token", "logprob", "bytes"} without the closing brace. */
static void put_chat_token(akini_json_text_t *text,
                           const akin_tokenizer_t *tokenizer, uint32_t id,
                           float logprob)
{
    size_t n;
    const char *bytes = token_bytes(tokenizer, id, &n);
    akini_json_text_raw(text, "{\"token\":");
    put_name(text, tokenizer, id);
    akini_json_text_raw(text, ",\"logprob\":");
    akini_json_text_float(text, finite_logprob(logprob));
    akini_json_text_raw(text, ",\"bytes\":");
    if (n == 0) {
        akini_json_text_raw(text, "null");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        akini_json_text_raw(text, i == 0 ? "[" : ",");
        akini_json_text_integer(text, (unsigned char)bytes[i]);
    }
    akini_json_text_raw(text, "]");
}

void akini_batch_logprobs_chat(akini_json_text_t *text,
                               const akin_tokenizer_t *tokenizer,
                               const akin_result_t *result, uint32_t n_top)
{
    akini_json_text_raw(text, "{\"content\":[");
    for (uint32_t i = 0; i < result->n_tokens; i++) {
        const akin_token_logprob_t *logprob = &result->logprobs[i];
        akini_json_text_raw(text, i > 0 ? "," : "");
        put_chat_token(text, tokenizer, result->tokens[i], logprob->logprob);
        akini_json_text_raw(text, ",\"top_logprobs\":[");
        for (uint32_t j = 0; j < n_shown(logprob, n_top); j++) {
            akini_json_text_raw(text, j > 0 ? "," : "");
            put_chat_token(text, tokenizer, logprob->top[j].id,
                           logprob->top[j].logprob);
            akini_json_text_raw(text, "}");
        }
        akini_json_text_raw(text, "]}");
    }
    akini_json_text_raw(text, "]}");
}
