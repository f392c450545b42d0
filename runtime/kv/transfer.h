/* Transfer: pulls a request's blocks with their sidecars from the rank that
 * owns them, and trusts none before it was checked. */
#ifndef AKIN_KV_TRANSFER_H
#define AKIN_KV_TRANSFER_H

#include "kv/cache.h"
#include "net/net.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_kv_transfers akin_kv_transfers_t;

/** How a transfer ended. */
typedef struct akin_kv_transfer_result {
    akin_status_t status;      /* OK, ERR_REFUSED, ERR_PEER, ERR_TIMEOUT,
                                  ERR_CANCELED; ERR_RANGE: a descriptor's
                                  slot is not in the owner's slab;
                                  ERR_NOMEM */
    akin_kv_refusal_t refusal; /* with ERR_REFUSED: the first one */
    uint32_t refused_block;    /* with ERR_REFUSED: index of that block */
    uint32_t n_blocks;         /* blocks read and found good */
    uint64_t bytes;            /* bytes read */
    int64_t ns;                /* from start to end */
} akin_kv_transfer_result_t;

/**
 * Told once per started transfer, from inside akin_net_wait(), akin_net_poll(),
 * akin_kv_transfers_expire(), akin_kv_transfers_cancel() or
 * akin_kv_transfers_destroy(). May start and cancel transfers, must not destroy
 * them.
 *
 * With AKIN_OK every slot holds its block under the slot's own generation, fit
 * for akin_kv_cache_adopt(). Otherwise the caller gives all slots of the
 * transfer back (akin_kv_cache_unref()) and takes others to start again: a read
 * that was given up may still write to them, and they stay out of use until it
 * has ended.
 */
typedef void (*akin_kv_transfer_fn_t)(void *arg,
                                      const akin_kv_transfer_result_t *result);

typedef struct akin_kv_transfer_params {
    uint32_t owner;                     /* rank that holds the blocks */
    const akin_kv_descriptor_t *blocks; /* [n_blocks]; copied */
    const uint32_t *slots;              /* [n_blocks] own slots; copied; each
                                           gets a reference for the time that
                                           a read may still write to it */
    uint32_t n_blocks;                  /* >= 1 */
    int64_t deadline_ns;                /* akin_clock_now_ns() time */
    akin_kv_transfer_fn_t done;
    void *arg;
} akin_kv_transfer_params_t;

/**
 * \param[in]  net, cache, view  borrowed; `view` is over akin_net_slab(net)
 *                               and all peers' slabs have its layout.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 * \return AKIN_ERR_CONFIG: AKIN_FAULT_KV of a test build is wrong.
 */
akin_status_t
akin_kv_transfers_create(akin_net_t *net, akin_kv_cache_t *cache,
                         const akin_kv_view_t *view,
                         akin_kv_transfers_t **transfers_p) AKIN_MUST_CHECK;

/**
 * Free; running transfers end with AKIN_ERR_CANCELED. NULL is allowed. If reads
 * are still running, akin_net_destroy() comes later and ends them; the slots
 * that they write to stay referenced for good.
 */
void akin_kv_transfers_destroy(akin_kv_transfers_t *transfers);

/**
 * Start reading. Blocks that lie one after another on both sides are read as
 * one piece of at most 4 MiB (or one block), several pieces at a time. The
 * transfer ends when every block has arrived and passed
 * akin_kv_block_check(), or with the first failure; a slot that a read may
 * still write to stays referenced until UCX is done with it.
 *
 * \param[out] id_p  for akin_kv_transfers_cancel().
 * \return AKIN_OK: `done` will be called exactly once, not from inside start.
 * \return AKIN_ERR_PEER, AKIN_ERR_RANGE, AKIN_ERR_NOMEM: not started.
 */
akin_status_t akin_kv_transfers_start(akin_kv_transfers_t *transfers,
                                      const akin_kv_transfer_params_t *params,
                                      uint64_t *id_p) AKIN_MUST_CHECK;

/** Give a transfer up: `done` is called with AKIN_ERR_CANCELED at once. */
void akin_kv_transfers_cancel(akin_kv_transfers_t *transfers, uint64_t id);

/**
 * End the transfers whose deadline has passed (AKIN_ERR_TIMEOUT).
 *
 * \return the next deadline, INT64_MAX if none.
 */
int64_t akin_kv_transfers_expire(akin_kv_transfers_t *transfers,
                                 int64_t now_ns);

/** Counters since creation. */
typedef struct akin_kv_transfer_stats {
    uint64_t transfers;
    uint64_t blocks;
    uint64_t bytes;
    uint64_t pieces; /* reads after coalescing */
    uint64_t refused[AKIN_KV_REFUSAL_COUNT];
    uint64_t failed; /* peer, timeout, canceled */
} akin_kv_transfer_stats_t;

void akin_kv_transfers_stats(const akin_kv_transfers_t *transfers,
                             akin_kv_transfer_stats_t *stats_p);

#ifdef __cplusplus
}
#endif

#endif
