/* Batch input: the lines of a JSONL file of any size, in bounded memory. */
#ifndef AKIN_ROLES_BATCH_INPUT_H
#define AKIN_ROLES_BATCH_INPUT_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AKIN_BATCH_LINE_BYTES ((size_t)1 << 20) /* default limit of a line */

typedef struct akin_batch_input akin_batch_input_t;

/** One line that is not blank. */
typedef struct akin_batch_line {
    uint64_t number;  /* from 1, blank lines counted */
    const char *text; /* without the end of line; may hold NUL bytes; borrowed
                         until the next call; NULL if too long */
    size_t bytes;     /* of text; if too long: of the whole line */
    int too_long;     /* longer than the limit; its text was dropped */
    int torn;         /* last line of the file, without an end of line */
} akin_batch_line_t;

/**
 * Open an input.
 *
 * \param[in]  path            file, FIFO, or "-" for standard input.
 * \param[in]  max_line_bytes  limit of a line without its end; 0: 1 MiB.
 *                             Memory: at most this and 64 KiB.
 * \param[out] input_p         owned by the caller.
 * \param[out] err             names the path.
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND, AKIN_ERR_IO, AKIN_ERR_NOMEM
 * \return AKIN_ERR_INVALID: a directory.
 */
akin_status_t akin_batch_input_open(const char *path, size_t max_line_bytes,
                                    akin_batch_input_t **input_p,
                                    akin_error_t *err) AKIN_MUST_CHECK;

/** Close and free; NULL is allowed. */
void akin_batch_input_close(akin_batch_input_t *input);

/**
 * The next line that is not blank. A byte order mark at the start of the file
 * and a CR before the end of line are taken off. Never waits: where nothing is
 * to be had yet from a pipe or terminal it says so.
 *
 * \param[out] line_p  valid with AKIN_OK only.
 * \param[out] err     names the path and the line.
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND: the end of the input; err is not written.
 * \return AKIN_ERR_BUSY: no whole line has come yet: wait for the descriptor
 *         to become readable; err is not written.
 * \return AKIN_ERR_IO: reading failed; so does every later call.
 * \return AKIN_ERR_NOMEM: nothing was consumed.
 */
akin_status_t akin_batch_input_next(akin_batch_input_t *input,
                                    akin_batch_line_t *line_p,
                                    akin_error_t *err) AKIN_MUST_CHECK;

/** Descriptor to wait on after AKIN_ERR_BUSY (poll, epoll). */
int akin_batch_input_fd(const akin_batch_input_t *input);

/** Bytes of the input that lines returned so far end at: for a resume, a
 * progress bar, or cutting a torn line off. */
uint64_t akin_batch_input_offset(const akin_batch_input_t *input);

/**
 * Count the lines of a file that are not blank, in one fast pass, so that a
 * progress bar knows its end.
 *
 * \param[in]  path
 * \param[in]  max_bytes  files longer than this are not scanned; 0: 1 GiB.
 * \return the count; 0 if it is unknown: no regular file, too long, unreadable.
 */
uint64_t akin_batch_input_count(const char *path, uint64_t max_bytes);

#ifdef __cplusplus
}
#endif

#endif
