/* Bare UCX: two ranks, one read at a time and nothing around it. What
 * measurements put beside the net. */
#ifndef AKIN_LAUNCH_BARE_UCX_H
#define AKIN_LAUNCH_BARE_UCX_H

#include "base/error.h"

#include <stddef.h>

typedef struct akin_bare_ucx akin_bare_ucx_t;

/**
 * A worker with a slab allocated by UCX.
 *
 * \param[out] bare_p  owned by the caller.
 * \return AKIN_OK
 * \return AKIN_ERR_UCX, AKIN_ERR_NOMEM
 */
akin_status_t akin_bare_ucx_create(size_t slab_bytes, akin_bare_ucx_t **bare_p,
                                   akin_error_t *err) AKIN_MUST_CHECK;

/** Free; NULL is allowed. The other side must have stopped reading. */
void akin_bare_ucx_destroy(akin_bare_ucx_t *bare);

/** Own slab. */
void *akin_bare_ucx_slab(const akin_bare_ucx_t *bare);

/** What the other side needs; malloc'ed, free(). */
akin_status_t akin_bare_ucx_identity(const akin_bare_ucx_t *bare, void **blob_p,
                                     size_t *bytes_p,
                                     akin_error_t *err) AKIN_MUST_CHECK;

/** Connect to the other side; its identity comes from this same program. */
akin_status_t akin_bare_ucx_connect(akin_bare_ucx_t *bare, const void *blob,
                                    size_t bytes,
                                    akin_error_t *err) AKIN_MUST_CHECK;

/** Progress, and answers to reads of the other side. */
void akin_bare_ucx_progress(akin_bare_ucx_t *bare);

/**
 * Read the first bytes of the other slab into the own one, and wait: by one
 * ucp_get, or by one active message with rendezvous from the owner.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_UCX; AKIN_ERR_TIMEOUT: not within 30 s.
 */
akin_status_t akin_bare_ucx_read(akin_bare_ucx_t *bare, size_t bytes,
                                 int one_sided) AKIN_MUST_CHECK;

#endif
