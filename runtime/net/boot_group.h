/* Boot group: some ranks of the job swap data by MPI's collectives, for those
 * who keep MPI up. */
#ifndef AKIN_NET_BOOT_GROUP_H
#define AKIN_NET_BOOT_GROUP_H

#include "net/boot.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_boot_group akin_boot_group_t;

/**
 * Groups of the ranks that give the same colour, ordered by rank. All ranks of
 * the job call it. While a group is in use no other thread may call MPI, and
 * the group is destroyed before akin_boot_finish().
 *
 * \param[in]  colour   negative: in no group.
 * \param[out] group_p  owned by the caller; NULL in no group.
 * \return AKIN_OK
 * \return AKIN_ERR_UNSUPPORTED: MPI does not let one thread at a time call it.
 * \return AKIN_ERR_MPI, AKIN_ERR_NOMEM
 */
akin_status_t akin_boot_group_create(akin_boot_t *boot, int colour,
                                     akin_boot_group_t **group_p,
                                     akin_error_t *err) AKIN_MUST_CHECK;

/** Not while another rank may be in a swap with this one; NULL is allowed. */
void akin_boot_group_destroy(akin_boot_group_t *group);

uint32_t akin_boot_group_rank(const akin_boot_group_t *group);
uint32_t akin_boot_group_size(const akin_boot_group_t *group);

/**
 * MPI_Alltoall of one number per rank.
 *
 * \param[in]  out          [size]
 * \param[out] in           [size]
 * \param[in]  deadline_ns  akin_clock_now_ns() time.
 * \return AKIN_OK
 * \return AKIN_ERR_TIMEOUT: MPI may use the arrays until the end of the
 *         process, and the group serves no more.
 * \return AKIN_ERR_MPI
 */
akin_status_t akin_boot_group_swap_sizes(akin_boot_group_t *group,
                                         const uint64_t *out, uint64_t *in,
                                         int64_t deadline_ns) AKIN_MUST_CHECK;

/** Bytes for all ranks of a group, or from them: piece r lies at offsets[r]. */
typedef struct akin_boot_pieces {
    unsigned char *data;
    const int *sizes;   /* [size] */
    const int *offsets; /* [size] */
} akin_boot_pieces_t;

/**
 * MPI_Alltoallv of bytes. As akin_boot_group_swap_sizes().
 */
akin_status_t akin_boot_group_swap(akin_boot_group_t *group,
                                   const akin_boot_pieces_t *out,
                                   const akin_boot_pieces_t *in,
                                   int64_t deadline_ns) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
