/* Batch results: an answer or an error to one line of output JSONL. */
#ifndef AKIN_ROLES_BATCH_FORMAT_H
#define AKIN_ROLES_BATCH_FORMAT_H

#include "roles/request.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum akin_finish {
    AKIN_FINISH_STOP,  /* "stop": end token or stop string */
    AKIN_FINISH_LENGTH /* "length": max_tokens were generated */
} akin_finish_t;

/** Log-probability of one generated token and of its best alternatives. */
typedef struct akin_token_logprob {
    float logprob; /* of the token that was chosen, natural log */
    uint32_t n_top;
    struct {
        uint32_t id;
        float logprob;
    } top[AKIN_REQUEST_MAX_TOP]; /* best first */
} akin_token_logprob_t;

/** What came out of a request; everything is borrowed. */
typedef struct akin_result {
    const uint32_t *tokens; /* [n_tokens] generated, the end token included */
    uint32_t n_tokens;      /* usage.completion_tokens */
    const char *text;       /* decoded, cut at a stop string; UTF-8 */
    size_t text_bytes;
    akin_finish_t finish;
    const akin_token_logprob_t *logprobs; /* [n_tokens], or NULL */
    uint32_t n_cached; /* prompt tokens found in the prefix cache */
    int64_t created_s; /* Unix time, seconds */
} akin_result_t;

typedef struct akin_batch_format akin_batch_format_t;

/** How lines are made. */
typedef struct akin_batch_format_params {
    const char *model;                 /* "model" in the answers; copied */
    const akin_tokenizer_t *tokenizer; /* for logprobs; may be NULL: tokens
                                          are named "token_id:N" */
    int deterministic_ids; /* ids from the custom_id alone, created is 0,
                              no count of cached tokens */
} akin_batch_format_params_t;

/**
 * Create a formatter. It keeps one growing buffer.
 *
 * \param[out] format_p  owned by the caller.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t
akin_batch_format_create(const akin_batch_format_params_t *params,
                         akin_batch_format_t **format_p) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akin_batch_format_destroy(akin_batch_format_t *format);

/**
 * An answer: `{"id", "custom_id", "response": {"status_code": 200,
 * "request_id", "body"}, "error": null}` with the body of the request's
 * endpoint. The order of the keys is fixed. A choice carries its token ids as
 * "token_ids" if the request asks for them or there is no tokenizer.
 *
 * In logprobs a token is its text; one that is not whole UTF-8 is
 * "bytes:\\xe2\\x80", one without an entry in the tokenizer "token_id:N".
 *
 * \param[in]  request
 * \param[in]  result
 * \param[out] line_p   one line with its end of line; borrowed until the next
 *                      call.
 * \param[out] bytes_p  its length.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_batch_format_result(akin_batch_format_t *format,
                                       const akin_request_t *request,
                                       const akin_result_t *result,
                                       const char **line_p,
                                       size_t *bytes_p) AKIN_MUST_CHECK;

/**
 * An error line:
 *
 *     {"id", "custom_id", "response": {"status_code": 400, "request_id",
 *      "body": {"error": {"message", "type", "param", "code"}}},
 *      "error": {"code", "message"}}
 *
 * The response is OpenAI's. "error" is not null, so that a program that asks
 * `error is None`, as is usual with vLLM's files, sees the failure, too.
 * Without a custom_id ("custom_id": null) the id is "batch_req_line-N" in
 * every mode: akin_batch_output_open() knows the line by it in a resume.
 *
 * \return as akin_batch_format_result()
 */
akin_status_t akin_batch_format_error(akin_batch_format_t *format,
                                      const akin_request_error_t *error,
                                      const char **line_p,
                                      size_t *bytes_p) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
