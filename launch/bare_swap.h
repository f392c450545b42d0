/* Bare swap: what measurements put beside a group's exchange: all ranks of a
 * job give each other pieces whose sizes are known, and nothing around it. */
#ifndef AKIN_LAUNCH_BARE_SWAP_H
#define AKIN_LAUNCH_BARE_SWAP_H

#include "net/boot.h"

typedef struct akin_bare_swap akin_bare_swap_t;

/**
 * A UCX worker of its own, connected to all ranks of the job. All ranks call
 * it, while MPI is up.
 *
 * \param[in]  piece_bytes  longest piece.
 * \param[out] bare_p       owned by the caller.
 * \return AKIN_OK
 * \return AKIN_ERR_UCX, AKIN_ERR_MPI, AKIN_ERR_NOMEM
 */
akin_status_t akin_bare_swap_create(akin_boot_t *boot, size_t piece_bytes,
                                    akin_bare_swap_t **bare_p,
                                    akin_error_t *err) AKIN_MUST_CHECK;

/** Free; NULL is allowed. Not while another rank may be in a swap. */
void akin_bare_swap_destroy(akin_bare_swap_t *bare);

/**
 * By UCX: one put per rank into its memory, a fence, and an active message that
 * says so.
 *
 * \param[in] sizes  [ranks] bytes for each rank.
 * \return AKIN_OK, AKIN_ERR_UCX; AKIN_ERR_TIMEOUT: not within 30 s.
 */
akin_status_t akin_bare_swap_ucx(akin_bare_swap_t *bare,
                                 const size_t *sizes) AKIN_MUST_CHECK;

/**
 * By one MPI_Alltoallv.
 *
 * \param[in] sizes     [ranks] bytes for each rank.
 * \param[in] sizes_in  [ranks] bytes from each rank.
 * \return AKIN_OK, AKIN_ERR_MPI
 */
akin_status_t akin_bare_swap_mpi(akin_bare_swap_t *bare, const size_t *sizes,
                                 const size_t *sizes_in) AKIN_MUST_CHECK;

#endif
