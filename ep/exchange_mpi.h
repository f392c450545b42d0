/* MPI exchange: pieces of a group's ranks by collectives on the group's
 * communicator. MPI stays up, so the death of a rank ends the job. */
#ifndef AKIN_EP_EXCHANGE_MPI_H
#define AKIN_EP_EXCHANGE_MPI_H

#include "ep/exchange.h"
#include "net/boot_group.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * \param[in]  group       borrowed; no other thread calls MPI meanwhile.
 * \param[out] exchange_p  owned by the caller, akin_ep_exchange_destroy(),
 *                         before the group and before akin_boot_finish().
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akin_ep_exchange_mpi_create(akin_boot_group_t *group,
                                          akin_ep_exchange_t **exchange_p,
                                          akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
