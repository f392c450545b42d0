/* Exchange: the ranks of one expert-parallel group swap pieces of data, all in
 * step. */
#ifndef AKIN_EP_EXCHANGE_H
#define AKIN_EP_EXCHANGE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes for one rank of the group, or from one. */
typedef struct akin_ep_piece {
    const void *data;
    size_t bytes;
} akin_ep_piece_t;

typedef struct akin_ep_exchange akin_ep_exchange_t;

/** What kinds of exchange bring; see the functions below. */
typedef struct akin_ep_exchange_ops {
    const char *name; /* "ucx", "mpi" */
    akin_status_t (*swap)(akin_ep_exchange_t *exchange,
                          const akin_ep_piece_t *out, akin_ep_piece_t *in,
                          int64_t deadline_ns);
    void *(*place)(akin_ep_exchange_t *exchange, uint32_t to,
                   size_t bytes); /* NULL: never a place */
    void (*destroy)(akin_ep_exchange_t *exchange);
} akin_ep_exchange_ops_t;

/** First member of every exchange. */
struct akin_ep_exchange {
    const akin_ep_exchange_ops_t *ops;
    uint32_t rank;    /* own place in the group */
    uint32_t n_ranks; /* of the group */
    uint32_t culprit; /* whom a failed swap blames; n_ranks: nobody */
};

/**
 * Give every other rank a piece and get one from each. All ranks call it the
 * same number of times; a rank sleeps while it waits. Called by the engine
 * thread alone.
 *
 * \param[in]  out          [n_ranks]; the own one is not looked at. The data
 *                          may change once the call returns.
 * \param[out] in           [n_ranks] borrowed from the exchange until its next
 *                          call but one, aligned to 64 bytes; the own one is
 *                          empty.
 * \param[in]  deadline_ns  akin_clock_now_ns() time.
 * \return AKIN_OK
 * \return AKIN_ERR_PEER: a rank of the group is lost; the group is no more.
 * \return AKIN_ERR_TIMEOUT: a rank has not come; as above.
 * \return AKIN_ERR_FORMAT: what came is no piece, or not the next one; as
 *         above.
 * \return AKIN_ERR_NOMEM, AKIN_ERR_UCX, AKIN_ERR_MPI
 */
static inline akin_status_t akin_ep_swap(akin_ep_exchange_t *exchange,
                                         const akin_ep_piece_t *out,
                                         akin_ep_piece_t *in,
                                         int64_t deadline_ns)
{
    return exchange->ops->swap(exchange, out, in, deadline_ns);
}

/**
 * Memory in which a piece of the next swap may be made, so that it need not be
 * copied: where out[to].data of that swap points to it.
 *
 * \param[in] bytes  at most.
 * \return aligned to 64 bytes, borrowed until the next swap returns; NULL: the
 *         exchange has none, the caller uses its own.
 */
static inline void *akin_ep_exchange_place(akin_ep_exchange_t *exchange,
                                           uint32_t to, size_t bytes)
{
    return exchange->ops->place != NULL
               ? exchange->ops->place(exchange, to, bytes)
               : NULL;
}

/** NULL is allowed. */
static inline void akin_ep_exchange_destroy(akin_ep_exchange_t *exchange)
{
    if (exchange != NULL)
        exchange->ops->destroy(exchange);
}

#ifdef __cplusplus
}
#endif

#endif
