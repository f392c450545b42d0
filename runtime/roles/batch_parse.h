/* Batch lines: one line of OpenAI batch JSONL to a request. */
#ifndef AKIN_ROLES_BATCH_PARSE_H
#define AKIN_ROLES_BATCH_PARSE_H

#include "roles/batch_input.h"
#include "roles/id_set.h"
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

/**
 * Look a line up among those of this input and those that an earlier run
 * answered. Call it once for every line, in order, after akin_batch_parse(),
 * whatever that said: a refused line takes its custom_id, too.
 *
 * A custom_id that an earlier line of the input has is refused. The error line
 * has no custom_id then, since a resume would take it for the answer to the
 * first; its message names both lines.
 *
 * \param[in,out] seen       custom_ids of this input so far.
 * \param[in]     done       from akin_batch_output_open(); NULL: no resume.
 * \param[in,out] request_p  the request; freed and NULL if it is refused.
 * \param[in,out] error      of akin_batch_parse() if *request_p is NULL.
 * \param[out]    done_p     non-zero: this line has its output line already,
 *                           so that nothing must be done for it.
 * \return AKIN_OK: go on with *request_p, or, if it is NULL, with the error.
 * \return AKIN_ERR_EXISTS: refused as a duplicate: go on with the error.
 * \return AKIN_ERR_NOMEM: the request is kept; try again.
 */
akin_status_t akin_batch_admit(akin_id_set_t *seen, akin_id_set_t *done,
                               akin_request_t **request_p,
                               akin_request_error_t *error,
                               int *done_p) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
