/* Output file: opening, locking, and writing so that whole lines stay whole. */
#ifndef AKIN_ROLES_OUTPUT_FILE_H
#define AKIN_ROLES_OUTPUT_FILE_H

#include "roles/batch_output.h"

#include <stdatomic.h>

typedef struct akini_output_file {
    int fd;
    int is_stdout;    /* not ours: never locked, cut or closed */
    int regular;      /* a write never waits for a reader */
    uint64_t offset;  /* bytes of whole lines, if not standard output */
    uint64_t n_lines; /* written by this process */
    char *name;       /* path or "standard output"; owned */
} akini_output_file_t;

/**
 * Open, lock and, for a resume, read and cut: see akin_batch_output_open().
 *
 * \param[out] file  to be cleaned up only after AKIN_OK.
 */
akin_status_t akini_output_file_open(akini_output_file_t *file,
                                     const char *path, int resume,
                                     akin_id_set_t *done,
                                     akin_batch_resume_t *resume_p,
                                     akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Write whole lines. On failure the file is cut back to its last whole line.
 *
 * \param[in]     lines    each with its end of line.
 * \param[in]     abandon  stop waiting for a reader when this is not zero.
 * \param[in,out] n_moved  counts the bytes written, for others to see.
 * \return AKIN_OK
 * \return AKIN_ERR_FULL, AKIN_ERR_IO; AKIN_ERR_CANCELED: abandoned.
 */
akin_status_t akini_output_file_write(akini_output_file_t *file,
                                      const char *lines, size_t bytes,
                                      const atomic_int *abandon,
                                      atomic_ullong *n_moved,
                                      akin_error_t *err) AKIN_MUST_CHECK;

/** Sync to the disk; nothing to do for pipes and terminals. */
akin_status_t akini_output_file_sync(akini_output_file_t *file,
                                     akin_error_t *err) AKIN_MUST_CHECK;

/** Close, which unlocks, and free. */
void akini_output_file_cleanup(akini_output_file_t *file);

#endif
