/* UCX exchange: pieces of a group's ranks by one-sided reads of symmetric
 * memory, or by messages where there are none. */
#ifndef AKIN_EP_EXCHANGE_UCX_H
#define AKIN_EP_EXCHANGE_UCX_H

#include "ep/exchange.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Zero is the default. */
typedef struct akin_ep_exchange_ucx_params {
    uint32_t rank;    /* own place in the group */
    uint32_t n_ranks; /* of the group, at least 1 */
    /* Pieces up to here are read one-sided where the transport can; longer ones
     * go as messages. The same on all ranks; takes five times as much address
     * space per other rank, of which only what is used becomes memory.
     * akin_ep_group_piece_bytes() is enough for a group. 0: 2 MiB. */
    size_t slot_bytes;
    /* How long a swap looks for pieces, giving the core to others in between,
     * before the rank sleeps. 0: 50 us; negative: not at all. */
    int64_t spin_ns;
} akin_ep_exchange_ucx_params_t;

/**
 * A UCX worker of its own with its symmetric memory, not yet connected. Create
 * and connect it on any thread; from then on the engine thread owns it, until
 * the caller destroys it after that thread's end.
 *
 * \param[out] exchange_p  owned by the caller, akin_ep_exchange_destroy(),
 *                         which after swaps that went well waits up to a second
 *                         for ranks that may still read from this one.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: no such rank.
 * \return AKIN_ERR_UCX, AKIN_ERR_NOMEM
 */
akin_status_t
akin_ep_exchange_ucx_create(const akin_ep_exchange_ucx_params_t *params,
                            akin_ep_exchange_t **exchange_p,
                            akin_error_t *err) AKIN_MUST_CHECK;

/**
 * What the other ranks need to connect to this one.
 *
 * \param[out] blob_p  malloc'ed, owned by the caller.
 * \return AKIN_OK, AKIN_ERR_UCX, AKIN_ERR_NOMEM
 */
akin_status_t akin_ep_exchange_ucx_identity(const akin_ep_exchange_t *exchange,
                                            void **blob_p, size_t *bytes_p,
                                            akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Connect to another rank of the group; every rank to every other one before
 * its first swap.
 *
 * \param[in] rank  its place in the group.
 * \param[in] blob  its identity.
 * \return AKIN_OK, and the statuses of akin_net_add_peer()
 */
akin_status_t akin_ep_exchange_ucx_connect(akin_ep_exchange_t *exchange,
                                           uint32_t rank, const void *blob,
                                           size_t bytes,
                                           akin_error_t *err) AKIN_MUST_CHECK;

/** How long pieces of a rank come, for people: "one-sided (sysv)". */
const char *akin_ep_exchange_ucx_path(const akin_ep_exchange_t *exchange,
                                      uint32_t rank);

#ifdef __cplusplus
}
#endif

#endif
