/* Net: one rank's UCX worker: messages to peers, one-sided reads of their
 * slabs, sleeping and waking. Owned by the comm thread. */
#ifndef AKIN_NET_NET_H
#define AKIN_NET_NET_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_net akin_net_t;

/**
 * What the owner of a net is told, always from inside akin_net_wait() or
 * akin_net_poll(). A callback may send, read and add peers; it must not
 * destroy the net.
 */
typedef struct akin_net_events {
    /* A message arrived; `payload` lives only during the call. Messages of one
     * sender arrive in the order in which they were sent. */
    void (*message)(void *arg, uint32_t from, uint16_t type,
                    const void *payload, size_t bytes);
    /* A peer is lost: its reads have completed with AKIN_ERR_PEER and further
     * sends to it fail. Called once per successful akin_net_add_peer(). The
     * status is AKIN_ERR_CANCELED if the peer destroyed its net in order,
     * AKIN_ERR_TIMEOUT if it was watched and silent, else AKIN_ERR_PEER. */
    void (*peer_lost)(void *arg, uint32_t rank, akin_status_t status);
    void *arg;
} akin_net_events_t;

typedef struct akin_net_params {
    uint32_t rank;            /* own rank in the job */
    uint32_t n_ranks;         /* ranks of the job; peers are below this */
    size_t slab_bytes;        /* memory that peers may read; 0: none */
    size_t max_message_bytes; /* longer ones are refused; 0: 16 MiB */
    akin_net_events_t events;
} akin_net_params_t;

/**
 * Start UCX (with UCX_MM_ERROR_HANDLING=y unless the user set it), create the
 * worker and allocate the slab through UCX, which is what makes reads of it
 * one-sided on a host.
 *
 * \param[in]  params
 * \param[out] net_p  owned by the caller; used by one thread only, except for
 *                    akin_net_wake().
 * \param[out] err
 * \return AKIN_OK
 * \return AKIN_ERR_UCX, AKIN_ERR_NOMEM
 */
akin_status_t akin_net_create(const akin_net_params_t *params,
                              akin_net_t **net_p,
                              akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Close all peers (waiting at most a second for what was sent, and as long for
 * UCX to close) and free. Pending reads complete with AKIN_ERR_CANCELED; no
 * other callback is called. NULL is allowed.
 */
void akin_net_destroy(akin_net_t *net);

/** Own slab: page-aligned, zeroed, `slab_bytes` long; NULL if there is none. */
void *akin_net_slab(const akin_net_t *net);

/**
 * What the other ranks need to reach this one: worker address, memory key and
 * address of the slab, as one versioned little-endian blob.
 *
 * \param[out] blob_p   malloc'ed, owned by the caller.
 * \param[out] bytes_p
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM, AKIN_ERR_UCX
 */
akin_status_t akin_net_identity(const akin_net_t *net, void **blob_p,
                                size_t *bytes_p,
                                akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Connect to a rank by its identity, with peer error handling, and choose how
 * its slab is read: by ucp_get where the transport has real one-sided reads,
 * else by active-message rendezvous from the owner. A lost peer may be added
 * anew with the identity of its next process; messages of the lost process
 * that are still under way are dropped. Messages of a rank that was not added
 * are delivered too, so that a new process can introduce itself; if the rank
 * is connected to its predecessor, that is reported lost first.
 *
 * \param[in]  rank    below n_ranks, not the own one.
 * \param[in]  blob    from akin_net_identity() of that rank; untrusted.
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT: not an identity, another version, or cut off.
 * \return AKIN_ERR_EXISTS: the peer is connected already.
 * \return AKIN_ERR_BUSY: it is lost, but peer_lost was not yet called.
 * \return AKIN_ERR_PEER: the identity is that of a lost process.
 * \return AKIN_ERR_NOT_FOUND: no network leads there.
 * \return AKIN_ERR_RANGE, AKIN_ERR_NOMEM, AKIN_ERR_UCX
 */
akin_status_t akin_net_add_peer(akin_net_t *net, uint32_t rank,
                                const void *blob, size_t bytes,
                                akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Give a peer up, as after missed heartbeats: the same follows as if UCX had
 * found it dead, peer_lost included. Nothing happens if there is no such peer.
 */
void akin_net_drop_peer(akin_net_t *net, uint32_t rank);

/**
 * Send a peer heartbeats from now on, and expect some: it is lost with
 * AKIN_ERR_TIMEOUT when nothing at all of it has come for `timeout_ns`. Time in
 * which this rank itself made no progress counts as no more than one interval,
 * so that a rank that was stopped or busy blames nobody. Until its first
 * message after this call a peer has ten times as long: it may begin later.
 * Heartbeats are sent and looked at inside akin_net_wait(), which wakes up for
 * them by itself, and akin_net_poll(); one is left out where another message
 * has gone to the peer in the interval, so up to two and a half intervals may
 * lie between two signs of a healthy peer. The peer has to watch this rank as
 * well. The watch ends with the peer's loss; a peer that is added anew is not
 * watched. While any peer is watched the supervisor hears of this rank, too. A
 * further call sets other times and begins anew.
 *
 * \param[in] interval_ns  > 0
 * \param[in] timeout_ns   above interval_ns, sensibly at least four of them; a
 *                         loss is noticed up to one interval later.
 * \return AKIN_OK
 * \return AKIN_ERR_PEER: no such peer, or it is lost.
 * \return AKIN_ERR_INVALID: times out of range.
 */
akin_status_t akin_net_watch_peer(akin_net_t *net, uint32_t rank,
                                  int64_t interval_ns,
                                  int64_t timeout_ns) AKIN_MUST_CHECK;

/** The incarnation of a connected peer, which no other life of that rank has;
 * 0: no such peer. */
uint64_t akin_net_peer_incarnation(const akin_net_t *net, uint32_t rank);

/** Whether a peer is connected and not lost. */
int akin_net_has_peer(const akin_net_t *net, uint32_t rank);

/**
 * How a peer's slab is read, for people: "one-sided (sysv)", "rendezvous
 * (tcp)"; "none" without a peer or a slab. Static or net-owned text.
 */
const char *akin_net_path(const akin_net_t *net, uint32_t rank);

/**
 * What bytes between this rank and a peer move over, as UCX names transport and
 * device here: "rc_mlx5/mlx5_0:1", "sysv/memory", "tcp/eth0"; "unknown" where
 * UCX does not tell, "none" without a peer. Of several lanes it is the one that
 * reads, or else that carries the most. Static or net-owned text, shorter than
 * AKIN_NET_LANE_BYTES.
 */
const char *akin_net_peer_lane(const akin_net_t *net, uint32_t rank);

#define AKIN_NET_LANE_BYTES 64

/** Whether reads of that peer are one-sided. */
int akin_net_is_one_sided(const akin_net_t *net, uint32_t rank);

/**
 * Send a message; the payload is copied, the call does not wait.
 *
 * \param[in] type     any value but those above 0xff00, which are the net's.
 * \param[in] payload  may be NULL when `bytes` is 0.
 * \return AKIN_OK: it will arrive, or the peer is reported lost.
 * \return AKIN_ERR_PEER: no such peer, or it is lost.
 * \return AKIN_ERR_RANGE: longer than max_message_bytes, or a reserved type.
 * \return AKIN_ERR_FULL: the peer does not take what was sent before; nothing
 *         was sent now. The bound is 64 MiB plus one longest message, or 32768
 *         messages.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_net_send(akin_net_t *net, uint32_t rank, uint16_t type,
                            const void *payload, size_t bytes) AKIN_MUST_CHECK;

/**
 * Whether UCX still holds messages to that peer: they leave only while this
 * rank makes progress.
 */
int akin_net_has_unsent(const akin_net_t *net, uint32_t rank);

/** Told once per successful akin_net_read(), from inside wait or poll. */
typedef void (*akin_net_read_fn_t)(void *arg, akin_status_t status);

/**
 * Read a contiguous piece of a peer's slab. `local` must stay valid until the
 * callback, even after the caller has given the read up.
 *
 * \param[in] offset  into the peer's slab; offset + bytes within it.
 * \param[in] local   inside the own slab, where UCX knows the memory.
 * \return AKIN_OK: started; `done` will be called exactly once.
 * \return AKIN_ERR_PEER, AKIN_ERR_RANGE, AKIN_ERR_NOMEM, AKIN_ERR_UCX, and
 *         AKIN_ERR_FULL with 65536 reads open: not started; `done` is never
 *         called.
 */
akin_status_t akin_net_read(akin_net_t *net, uint32_t rank, uint64_t offset,
                            void *local, size_t bytes, akin_net_read_fn_t done,
                            void *arg) AKIN_MUST_CHECK;

/** Make all progress that is possible now. Returns non-zero if there was any.
 */
int akin_net_poll(akin_net_t *net);

/**
 * Have akin_net_wait() return, too, while a descriptor is readable or has come
 * to its end, until told otherwise. The net never reads it.
 *
 * \param[in] fd  not owned; -1: none.
 */
void akin_net_watch(akin_net_t *net, int fd);

/**
 * Sleep until something happened that the caller can see (a message, the end of
 * a read or the loss of a peer was told, a message has left UCX, a late one was
 * dropped), akin_net_wake() was called, the descriptor that is watched has
 * something or the deadline passed. Heartbeats do not end it. Uses no CPU while
 * nothing happens.
 *
 * \param[in] deadline_ns  akin_clock_now_ns() time; INT64_MAX: none.
 * \return AKIN_OK: one of these; there may be nothing for the caller to do.
 * \return AKIN_ERR_TIMEOUT
 * \return AKIN_ERR_UCX, AKIN_ERR_IO: the worker is broken.
 */
akin_status_t akin_net_wait(akin_net_t *net,
                            int64_t deadline_ns) AKIN_MUST_CHECK;

/** Wake the comm thread out of akin_net_wait(); any thread or signal handler.
 */
void akin_net_wake(akin_net_t *net);

/** Counters since creation. */
typedef struct akin_net_stats {
    uint64_t messages_sent;
    uint64_t messages_received;
    uint64_t messages_late; /* dropped: from or for a life that is over */
    uint64_t heartbeats_sent;
    uint64_t heartbeats_received; /* neither is a message above */
    uint64_t bytes_sent;
    uint64_t bytes_received;
    uint64_t reads_one_sided;
    uint64_t reads_rendezvous;
    uint64_t read_bytes;
    uint64_t sleeps;
} akin_net_stats_t;

void akin_net_stats(const akin_net_t *net, akin_net_stats_t *stats_p);

#ifdef __cplusplus
}
#endif

#endif
