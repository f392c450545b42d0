/* Error text: a caller-owned message that says what went wrong and where. */
#ifndef AKIN_BASE_ERROR_H
#define AKIN_BASE_ERROR_H

#include "base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Owned by the caller, usually on its stack; start it as `{{0}}`. A message
 * names the file, line, key or field that is at fault and the way out.
 */
typedef struct akin_error {
    char text[512];
} akin_error_t;

/**
 * Write a message and hand the status back, so that a failing function ends
 * with `return akin_error_set(err, AKIN_ERR_FORMAT, "%s: ...", path);`.
 *
 * \param[out] err     message to fill, cut at its size; NULL is allowed.
 * \param[in]  status  the status to return.
 * \param[in]  format  printf format of the message.
 * \return status, unchanged.
 */
akin_status_t akin_error_set(akin_error_t *err, akin_status_t status,
                             const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/**
 * Put a prefix ("file: ") before a message already written.
 *
 * \param[in,out] err     message to extend; NULL is allowed.
 * \param[in]     status  the status to return.
 * \param[in]     format  printf format of the prefix.
 * \return status, unchanged.
 */
akin_status_t akin_error_prefix(akin_error_t *err, akin_status_t status,
                                const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif

#endif
