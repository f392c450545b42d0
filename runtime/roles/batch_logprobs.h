/* Batch logprobs: the logprobs part of an answer in both of OpenAI's shapes. */
#ifndef AKIN_ROLES_BATCH_LOGPROBS_H
#define AKIN_ROLES_BATCH_LOGPROBS_H

#include "roles/batch_format.h"
#include "roles/json_text.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Append the value of "logprobs" of /v1/completions: tokens, token_logprobs,
 * top_logprobs (the best, and the chosen one if it is not among them),
 * text_offset (characters before the token).
 *
 * \param[in] tokenizer  may be NULL.
 * \param[in] n_top      alternatives per token, at most.
 */
void akini_batch_logprobs_completion(akini_json_text_t *text,
                                     const akin_tokenizer_t *tokenizer,
                                     const akin_result_t *result,
                                     uint32_t n_top);

/** Append the value of "logprobs" of /v1/chat/completions: content, each with
 * token, logprob, bytes and top_logprobs. */
void akini_batch_logprobs_chat(akini_json_text_t *text,
                               const akin_tokenizer_t *tokenizer,
                               const akin_result_t *result, uint32_t n_top);

#ifdef __cplusplus
}
#endif

#endif
