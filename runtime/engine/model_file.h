/* Model file: opening, bounded reading and JSON parsing of the files of a
 * model directory, which are untrusted input. */
#ifndef AKIN_ENGINE_MODEL_FILE_H
#define AKIN_ENGINE_MODEL_FILE_H

#include "base/error.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/**
 * DIR/FILE.
 *
 * \return malloc'ed, owned by the caller; NULL: out of memory.
 */
char *akini_model_path(const char *dir, const char *file);

/**
 * Open a regular file for reading; a FIFO, a device or a directory is refused
 * without waiting for it.
 *
 * \param[out] fd_p     owned by the caller, close() it.
 * \param[out] bytes_p  size of the file.
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND: no such file.
 * \return AKIN_ERR_IO: it cannot be opened, or is not a regular file.
 * \return AKIN_ERR_FORMAT: it is empty.
 */
akin_status_t akini_model_file_open(const char *path, int *fd_p,
                                    uint64_t *bytes_p,
                                    akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Read a whole small file.
 *
 * \param[in]  max_bytes  a longer file is refused.
 * \param[out] text_p     malloc'ed, owned by the caller, not NUL-terminated.
 * \param[out] bytes_p    its length.
 * \return as akini_model_file_open(), AKIN_ERR_NOMEM, or
 * \return AKIN_ERR_FORMAT: the file is longer than max_bytes.
 */
akin_status_t akini_model_file_read(const char *path, size_t max_bytes,
                                    char **text_p, size_t *bytes_p,
                                    akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Parse text that must be one JSON object, no key twice.
 *
 * \param[in]  name     stands for the path in messages.
 * \param[out] object_p owned by the caller, json_decref() it.
 * \param[out] err      "name:line:column: what".
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akini_model_json_parse(const char *text, size_t bytes,
                                     const char *name, json_t **object_p,
                                     akin_error_t *err) AKIN_MUST_CHECK;

/** Room for a JSON value in a message. */
#define AKINI_JSON_SHOWN_BYTES 81

/**
 * A JSON value as compact text for a message, cut to fit.
 *
 * \param[in]  value  borrowed.
 * \param[out] text   NUL-terminated.
 */
void akini_model_json_show(const json_t *value,
                           char text[AKINI_JSON_SHOWN_BYTES]);

#endif
