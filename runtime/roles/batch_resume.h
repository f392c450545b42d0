/* Batch resume: what the output of an earlier run holds. */
#ifndef AKIN_ROLES_BATCH_RESUME_H
#define AKIN_ROLES_BATCH_RESUME_H

#include "roles/batch_output.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Read an output file in bounded memory (one line and its JSON tree).
 *
 * A last line without an end of line is torn if it starts as output lines do
 * or is all NUL bytes, which a crashed file system leaves; anything else is
 * not ours to cut.
 *
 * \param[in]     path
 * \param[in,out] done      gets the custom_ids, and the lines of those error
 *                          lines that have none.
 * \param[out]    resume_p
 * \param[out]    keep_p    bytes up to the end of the last whole line.
 * \param[out]    err       names path, line and way out.
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT: not a line of batch output, or a second answer.
 * \return AKIN_ERR_IO, AKIN_ERR_NOMEM
 */
akin_status_t akini_batch_resume_scan(const char *path, akin_id_set_t *done,
                                      akin_batch_resume_t *resume_p,
                                      uint64_t *keep_p,
                                      akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
