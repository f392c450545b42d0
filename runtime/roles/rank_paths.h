/* Rank paths: all ranks tell each other where they are and what KV between them
 * travels over; rank 0 tells the user. */
#ifndef AKIN_ROLES_RANK_PATHS_H
#define AKIN_ROLES_RANK_PATHS_H

#include "net/wire.h"
#include "roles/rank_state.h"

/**
 * This rank's blob to all ranks, over MPI.
 *
 * \param[in,out] packer     with the blob; cleaned up.
 * \param[out]    blobs_p    of all ranks, one after another; free().
 * \param[out]    offsets_p  [ranks + 1] where each begins; free(). Both are
 * NULL on failure. \return AKIN_OK on all ranks or on none
 */
akin_status_t akini_rank_swap(akini_self_t *self, akin_packer_t *packer,
                              unsigned char **blobs_p,
                              size_t **offsets_p) AKIN_MUST_CHECK;

/**
 * Tell all ranks of this rank's host, and check them against the plan. Fills
 * self->paths.hosts.
 *
 * \return AKIN_OK on all ranks or on none
 * \return AKIN_ERR_CONFIG: they are not where the plan has them.
 */
akin_status_t akini_rank_tell_host(akini_self_t *self) AKIN_MUST_CHECK;

/**
 * Once the net has its peers: tell of the lanes to them, count and judge them.
 * Rank 0 prints; self->transports has the figures.
 *
 * \return AKIN_OK on all ranks or on none
 * \return AKIN_ERR_CONFIG: launch.require_rdma, and KV between hosts goes over
 *         something else.
 */
akin_status_t akini_rank_tell_paths(akini_self_t *self) AKIN_MUST_CHECK;

/**
 * launch.probe: every decode rank reads from every prefill rank; rank 0 prints
 * the bandwidths and names slow pairs. Slabs are as before.
 *
 * \return AKIN_OK on all ranks or on none
 * \return AKIN_ERR_TIMEOUT, AKIN_ERR_PEER: a read has not come to its end.
 */
akin_status_t akini_rank_probe(akini_self_t *self) AKIN_MUST_CHECK;

#endif
