/* Batch lines: one line of OpenAI batch JSONL to a request. */
#ifndef AKIN_ROLES_BATCH_PARSE_H
#define AKIN_ROLES_BATCH_PARSE_H

#include "roles/batch_input.h"
#include "roles/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Read `{"custom_id", "method": "POST", "url", "body"}`. A line that is too
 * long, not JSON, not UTF-8, names a key twice or asks for something that
 * cannot be done gives an error whose message starts with "line N: ".
 *
 * \param[in]  limits     what requests are checked against.
 * \param[in]  line       from akin_batch_input_next().
 * \param[out] request_p  owned by the caller; NULL on failure.
 * \param[out] error      filled on failure: for akin_batch_format_error().
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: refused, error is filled.
 * \return AKIN_ERR_NOMEM: error is filled, too (status_code 500).
 */
akin_status_t akin_batch_parse(const akin_request_limits_t *limits,
                               const akin_batch_line_t *line,
                               akin_request_t **request_p,
                               akin_request_error_t *error) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
