/* Boot: what MPI is used for: start-up, agreement, exchange; then it ends. */
#ifndef AKIN_NET_BOOT_H
#define AKIN_NET_BOOT_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_boot akin_boot_t;

/**
 * Set the environment that MPI over UCX needs, where the user has not set it
 * (PLATFORM facts: pml ucx with any transport and device, no btl/tcp, yield
 * when idle). Call before any thread exists. Also used by launchers that pass
 * the environment on.
 */
void akin_boot_set_environment(void);

/** Whether this process was started by mpirun, srun --mpi=pmix or the like. */
int akin_boot_is_launched(void);

/** Rank and size as the launcher's environment says; AKIN_ERR_NOT_FOUND
 * without a launcher. Works before MPI is up. */
akin_status_t akin_boot_launch_rank(uint32_t *rank_p,
                                    uint32_t *size_p) AKIN_MUST_CHECK;

/**
 * MPI_Init. A failed MPI call later returns AKIN_ERR_MPI with MPI's own text.
 *
 * \param[out] boot_p  owned by the caller.
 * \return AKIN_OK
 * \return AKIN_ERR_MPI, AKIN_ERR_NOMEM
 */
akin_status_t akin_boot_start(akin_boot_t **boot_p,
                              akin_error_t *err) AKIN_MUST_CHECK;

uint32_t akin_boot_rank(const akin_boot_t *boot);
uint32_t akin_boot_size(const akin_boot_t *boot);
/** Ranks on this host, this one included: they share its cores. */
uint32_t akin_boot_host_ranks(const akin_boot_t *boot);

/**
 * Broadcast text from rank 0 together with its hash, which every rank checks.
 * Rank 0 may instead broadcast a failure, so that all ranks leave together.
 *
 * \param[in]     status  rank 0: AKIN_OK, or why there is no text.
 * \param[in]     text    rank 0: NUL-terminated; others: ignored.
 * \param[out]    text_p  every rank: malloc'ed copy, owned by the caller.
 * \param[in,out] err     rank 0: its message; the others receive it.
 * \return rank 0's status on every rank
 * \return AKIN_ERR_MPI, AKIN_ERR_NOMEM; AKIN_ERR_FORMAT: hash differs.
 */
akin_status_t akin_boot_broadcast(akin_boot_t *boot, akin_status_t status,
                                  const char *text, char **text_p,
                                  akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Agree on success: every rank gives its status and gets the first failing
 * rank's status and message.
 *
 * \param[in]     status  of this rank.
 * \param[in,out] err     message of this rank; replaced by that of the failing
 *                        rank of lowest number, prefixed "rank N: ".
 * \return AKIN_OK if all succeeded, else that rank's status.
 */
akin_status_t akin_boot_agree(akin_boot_t *boot, akin_status_t status,
                              akin_error_t *err) AKIN_MUST_CHECK;

/** Least value over all ranks (used to agree on one kernel path). */
akin_status_t akin_boot_min(akin_boot_t *boot, int64_t value, int64_t *min_p,
                            akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Communicator of the ranks with the same role, ordered by rank: MPI's own
 * object behind it stays inside boot.
 *
 * \param[in]  role     small number.
 * \param[out] index_p  place of this rank among them.
 * \param[out] count_p  how many they are.
 */
akin_status_t akin_boot_role(akin_boot_t *boot, int role, uint32_t *index_p,
                             uint32_t *count_p,
                             akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Every rank's blob to every rank.
 *
 * \param[in]  blob, bytes  own blob.
 * \param[out] blobs_p      malloc'ed: all blobs one after another; free().
 * \param[out] offsets_p    malloc'ed [size + 1]: blob r is at offsets[r], up
 *                          to offsets[r + 1]; free().
 */
akin_status_t akin_boot_exchange(akin_boot_t *boot, const void *blob,
                                 size_t bytes, unsigned char **blobs_p,
                                 size_t **offsets_p,
                                 akin_error_t *err) AKIN_MUST_CHECK;

/** Wait for all ranks. */
akin_status_t akin_boot_barrier(akin_boot_t *boot,
                                akin_error_t *err) AKIN_MUST_CHECK;

/**
 * The same, with something to do meanwhile: a rank whose net makes no progress
 * would keep those waiting that read from it.
 *
 * \param[in] poll      called again and again until all ranks are there.
 * \param[in] limit_ns  that this rank waits at most.
 * \return AKIN_OK
 * \return AKIN_ERR_TIMEOUT: a rank did not come; MPI waits on, so that this
 *         rank cannot but end.
 * \return AKIN_ERR_MPI
 */
akin_status_t akin_boot_barrier_poll(akin_boot_t *boot, void (*poll)(void *arg),
                                     void *arg, int64_t limit_ns,
                                     akin_error_t *err) AKIN_MUST_CHECK;

/**
 * End MPI: a barrier, then MPI_Finalize under a guard against the crash that
 * Open MPI 4.1 with PMIx 4.2 sometimes has there. MPI has done all its work by
 * then, so the guard lets the rank go on when MPI_Finalize crashes. Frees boot.
 */
void akin_boot_finish(akin_boot_t *boot);

#ifdef __cplusplus
}
#endif

#endif
