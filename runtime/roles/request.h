/* Request: what one client asked for, checked and tokenized. */
#ifndef AKIN_ROLES_REQUEST_H
#define AKIN_ROLES_REQUEST_H

#include "base/error.h"
#include "engine/sampler.h"
#include "engine/tokenizer.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AKIN_REQUEST_ID_BYTES 512    /* longest custom_id, without the NUL */
#define AKIN_REQUEST_MAX_STOPS 4     /* stop strings */
#define AKIN_REQUEST_STOP_BYTES 1024 /* longest stop string */
#define AKIN_REQUEST_MAX_TOP 5       /* alternatives per token in logprobs */

typedef enum akin_request_kind {
    AKIN_REQUEST_COMPLETION, /* /v1/completions */
    AKIN_REQUEST_CHAT        /* /v1/chat/completions */
} akin_request_kind_t;

/** One request; everything that it points to is its own. */
typedef struct akin_request {
    akin_request_kind_t kind;
    char *custom_id;  /* UTF-8, NUL-terminated, 1 .. 512 bytes, no NUL inside */
    char *domain;     /* label of its kind, likewise; NULL: none was given */
    uint64_t line;    /* line of the input file, from 1; 0: not from a file */
    uint32_t *prompt; /* [n_prompt] token ids, each < vocab_size */
    uint32_t n_prompt;        /* >= 1; n_prompt + max_tokens <= max_positions */
    uint32_t max_tokens;      /* >= 1 */
    akin_sampling_t sampling; /* passed akin_sampling_check(); seed is set */
    int ignore_eos;           /* non-zero: generate max_tokens whatever comes */
    int want_token_ids;       /* non-zero: the answer carries its token ids */
    int want_logprobs;        /* non-zero: the answer carries logprobs */
    uint32_t n_top;           /* alternatives per token, 0 .. 5 */
    uint32_t n_stops;
    char *stops[AKIN_REQUEST_MAX_STOPS]; /* NUL-terminated, maybe NULs inside */
    size_t stop_bytes[AKIN_REQUEST_MAX_STOPS]; /* 1 .. 1024 */
} akin_request_t;

/** Free a request and what it owns; NULL is allowed. */
void akin_request_destroy(akin_request_t *request);

/**
 * A refused or failed request: what the client gets instead of an answer. All
 * texts are valid UTF-8.
 */
typedef struct akin_request_error {
    uint64_t line;   /* line of the input file; 0: not from a file */
    int status_code; /* 400, 404, 500, 503, ... */
    int has_id;      /* custom_id could be read and stands for this line */
    char custom_id[AKIN_REQUEST_ID_BYTES + 1];
    char message[512];
    char type[32];  /* "invalid_request_error", "server_error" */
    char param[80]; /* field at fault, "max_tokens"; "": none */
    char code[40];  /* "context_length_exceeded"; "": none */
} akin_request_error_t;

/**
 * Fill an error, keeping line, has_id and custom_id. The type follows from the
 * status code.
 *
 * \param[out] error        NULL is allowed.
 * \param[in]  status_code  HTTP status; 4xx: the request is at fault.
 * \param[in]  param        field at fault, or NULL.
 * \param[in]  code         word for programs, or NULL.
 * \param[in]  format       printf format of the message, which is cut at its
 *                          size at a character boundary.
 * \return AKIN_ERR_INVALID, so that a check ends with `return ..._set(...)`.
 */
akin_status_t akin_request_error_set(akin_request_error_t *error,
                                     int status_code, const char *param,
                                     const char *code, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/**
 * Start an error about a request that was accepted before: takes over its
 * custom_id and line; then call akin_request_error_set().
 */
void akin_request_error_init(akin_request_error_t *error,
                             const akin_request_t *request);

/** What requests are checked against; pointers are borrowed. */
typedef struct akin_request_limits {
    const akin_tokenizer_t *tokenizer; /* NULL: only prompts of token ids */
    const char *model;      /* served name or path; NULL: any name is taken */
    uint32_t vocab_size;    /* token ids are below this */
    uint32_t max_positions; /* prompt and answer together, tokens */
    uint32_t n_tokens; /* non-zero: max_tokens of every request, or what room
                        * its prompt leaves, whatever it asks for */
} akin_request_limits_t;

struct json_t;

/**
 * Check the body of a completion or chat request and tokenize its prompt.
 *
 * Fields, with the default of OpenAI's API: model, prompt (text, token ids, or
 * an array of one text) or messages, max_tokens and max_completion_tokens (16;
 * chat: the rest of the context), temperature (1), top_p (1), seed (from
 * custom_id), stop, logprobs, top_logprobs; with the meaning of vLLM: top_k,
 * min_p, repetition_penalty, ignore_eos, return_token_ids (those of the answer
 * alone). metadata.domain, a text, is the label that policy `domain` goes by;
 * user, store and the rest of metadata are taken and do nothing. What Akin does
 * not do is taken only with the value that means "no"; any other value, like an
 * unknown field, is refused by name. null is the same as absent.
 *
 * A prompt that leaves less room than max_tokens is refused, never cut.
 *
 * \param[in]  limits
 * \param[in]  kind
 * \param[in]  body       jansson value; borrowed.
 * \param[in]  custom_id  copied; gives the seed where the body has none.
 * \param[out] request_p  owned by the caller; NULL on failure.
 * \param[out] error      what the client is told; line and id are kept.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: refused, error is filled.
 * \return AKIN_ERR_NOMEM: error is filled, too (status_code 500).
 */
akin_status_t akin_request_read(const akin_request_limits_t *limits,
                                akin_request_kind_t kind, struct json_t *body,
                                const char *custom_id,
                                akin_request_t **request_p,
                                akin_request_error_t *error) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
