/* Trace file: the POSIX calls of traces. */
#ifndef AKIN_ROUTING_TRACE_FILE_H
#define AKIN_ROUTING_TRACE_FILE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/** The status of errno, with "PATH: cannot WHAT: reason". */
akin_status_t akini_trace_file_fail(const char *path, const char *what,
                                    int code, akin_error_t *err);

/**
 * Map a regular file to read it.
 *
 * \param[in]  max_bytes  a longer file is refused.
 * \param[out] map_p      to be unmapped; NULL for a file of no bytes.
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND, AKIN_ERR_IO, AKIN_ERR_FORMAT, AKIN_ERR_NOMEM
 */
akin_status_t akini_trace_file_map(const char *path, uint64_t max_bytes,
                                   void **map_p, size_t *bytes_p,
                                   akin_error_t *err) AKIN_MUST_CHECK;

void akini_trace_file_unmap(void *map, size_t bytes);

/** Write all of a buffer at a place; path is for the message. */
akin_status_t akini_trace_file_write(int fd, const char *path, const void *data,
                                     size_t bytes, uint64_t offset,
                                     akin_error_t *err) AKIN_MUST_CHECK;

/** Make the directory entry of a file durable, where that can be done. */
void akini_trace_file_sync_directory(const char *path);

/**
 * Path of a file beside another.
 *
 * \return to be freed; NULL: out of memory.
 */
char *akini_trace_file_beside(const char *path, const char *name);

/**
 * A path without ".json" at its end and with another end in its place.
 *
 * \return to be freed; NULL: out of memory.
 */
char *akini_trace_file_renamed(const char *path, const char *end);

/** Does the path end in ".json"? */
int akini_trace_file_is_json(const char *path);

/** The last part of a path. */
const char *akini_trace_file_base(const char *path);

#endif
