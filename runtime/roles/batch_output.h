/* Batch output: result lines to a file that is a valid prefix at any time. */
#ifndef AKIN_ROLES_BATCH_OUTPUT_H
#define AKIN_ROLES_BATCH_OUTPUT_H

#include "base/error.h"
#include "roles/id_set.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AKIN_BATCH_OUTPUT_LINE_BYTES ((size_t)64 << 20) /* longest line */

/** Where and how to write; zero is the default. */
typedef struct akin_batch_output_params {
    const char *path;        /* "-": standard output */
    int resume;              /* go on with a file that an earlier run left */
    int ordered;             /* lines leave in the order of their sequence */
    uint32_t max_held_lines; /* ordered: 0: 4096 */
    size_t max_held_bytes;   /* 0: 64 MiB */
    uint32_t sync_lines;     /* fsync after so many lines; 0: 64 */
    int64_t sync_ns;         /* ... or after this time; 0: 1 s */
} akin_batch_output_params_t;

/** What a resume found. */
typedef struct akin_batch_resume {
    uint64_t n_lines;    /* whole lines that are kept */
    uint64_t n_ok;       /* ... with status 200 */
    uint64_t n_failed;   /* ... with any other */
    uint64_t n_server;   /* ... of these with a status >= 500 */
    uint64_t torn_bytes; /* of an unfinished last line, cut off */
} akin_batch_resume_t;

typedef struct akin_batch_output akin_batch_output_t;

/**
 * Open and lock an output. SIGPIPE and SIGXFSZ are ignored from then on if
 * nobody handles them: both come as errors, too.
 *
 * With `resume` an existing file is read line by line, an unfinished last line
 * is cut off, and what the others answer goes into `done`: every line counts,
 * whatever its status, since a request that has a line must not get a second
 * one. (To have failed requests run again, delete their lines first.) A file
 * that does not exist is created. Standard output cannot be resumed.
 *
 * \param[in]     params
 * \param[in,out] done      set to add to; may be NULL without `resume`.
 * \param[out]    resume_p  what was found; may be NULL.
 * \param[out]    output_p  owned by the caller.
 * \param[out]    err       names the path, the line and the way out.
 * \return AKIN_OK
 * \return AKIN_ERR_EXISTS: the file is not empty and `resume` is not set.
 * \return AKIN_ERR_BUSY: another process writes this file.
 * \return AKIN_ERR_FORMAT: with `resume`: a line is not a line of batch
 *         output, or answers what an earlier line answers; the file was not
 *         changed.
 * \return AKIN_ERR_INVALID: a directory, a file without write permission, or
 *         `resume` of something that is not a regular file.
 * \return AKIN_ERR_NOT_FOUND, AKIN_ERR_FULL, AKIN_ERR_IO, AKIN_ERR_NOMEM
 */
akin_status_t akin_batch_output_open(const akin_batch_output_params_t *params,
                                     akin_id_set_t *done,
                                     akin_batch_resume_t *resume_p,
                                     akin_batch_output_t **output_p,
                                     akin_error_t *err) AKIN_MUST_CHECK;

/**
 * How many more lines may be begun: the reader waits while this is 0, which is
 * when max_held_bytes are waiting for a slow disk or pipe, or, in order, when
 * max_held_lines lie between the line that is written next and the last one
 * begun. Bytes held exceed max_held_bytes by no more than the lines of the
 * requests that were running when it was reached.
 *
 * \param[in] n_begun  sequence numbers given out so far.
 * \return UINT32_MAX without `ordered`, unless it is 0.
 */
uint32_t akin_batch_output_room(akin_batch_output_t *output, uint64_t n_begun);

/**
 * Give a final line. A thread of the output writes it, so that a slow file
 * system or reader never holds the caller up; a failure shows in a later call.
 * Sequence numbers are the caller's: 0, 1, 2, ... in input order, one for
 * every line that will be put, each put once.
 *
 * After a failed write the file is cut back to its last whole line where that
 * is possible, and every later call gives the same status and text.
 *
 * \param[in]  sequence  without `ordered` it is not looked at.
 * \param[in]  line      with its end of line, the only one in it; copied.
 * \param[in]  now_ns    akin_clock_now_ns()
 * \param[out] err       names the path and the way out.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: a sequence number twice, or one for which there
 *         was no room; no end of line.
 * \return AKIN_ERR_RANGE: a line longer than 64 MiB.
 * \return AKIN_ERR_FULL: no space left, quota or file size limit.
 * \return AKIN_ERR_IO
 * \return AKIN_ERR_NOMEM: the line was not taken.
 */
akin_status_t akin_batch_output_put(akin_batch_output_t *output,
                                    uint64_t sequence, const char *line,
                                    size_t bytes, int64_t now_ns,
                                    akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Have what was written synced to the disk if it is time; call it now and
 * then. The thread does it.
 *
 * \return as akin_batch_output_put()
 */
akin_status_t akin_batch_output_tick(akin_batch_output_t *output,
                                     int64_t now_ns,
                                     akin_error_t *err) AKIN_MUST_CHECK;

/** Lines that were put and wait for an earlier one. */
uint64_t akin_batch_output_held(const akin_batch_output_t *output);

/** Lines that were written, by this process. */
uint64_t akin_batch_output_written(akin_batch_output_t *output);

/**
 * Write and sync what was put, unlock, close and free, also on failure. Lines
 * that still wait for an earlier one are dropped, as they would leave a gap:
 * their requests run again in a resume.
 *
 * \param[in]  output  NULL is allowed.
 * \return as akin_batch_output_put()
 * \return AKIN_ERR_TIMEOUT: file system or reader took nothing for 60 s.
 */
akin_status_t akin_batch_output_close(akin_batch_output_t *output,
                                      akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
