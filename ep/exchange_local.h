/* Local exchange: the ranks of a group are threads of one process. For tests
 * and for machines without a second process. */
#ifndef AKIN_EP_EXCHANGE_LOCAL_H
#define AKIN_EP_EXCHANGE_LOCAL_H

#include "ep/exchange.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the ranks share. */
typedef struct akin_ep_local akin_ep_local_t;

/**
 * \param[in]  n_ranks  at least 1.
 * \param[out] local_p  owned by the caller; outlives the exchanges.
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akin_ep_local_create(uint32_t n_ranks,
                                   akin_ep_local_t **local_p) AKIN_MUST_CHECK;

/** NULL is allowed. */
void akin_ep_local_destroy(akin_ep_local_t *local);

/**
 * One rank's exchange; one per rank. Once it is destroyed the others get
 * AKIN_ERR_PEER where they wait for that rank.
 *
 * \param[out] exchange_p  owned by the caller, akin_ep_exchange_destroy().
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t
akin_ep_exchange_local_create(akin_ep_local_t *local, uint32_t rank,
                              akin_ep_exchange_t **exchange_p) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
