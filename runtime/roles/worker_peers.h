/* Worker peers: ranks of other workers that come and go while this one
 * serves. */
#ifndef AKIN_ROLES_WORKER_PEERS_H
#define AKIN_ROLES_WORKER_PEERS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct akin_worker;
struct akin_message_identity;

/** A rank to connect to once its predecessor is gone; zero: none. */
typedef struct akini_pending_peer {
    void *identity; /* owned */
    size_t bytes;
    int is_owed; /* the router waits for PEERED */
} akini_pending_peer_t;

typedef struct akini_worker_peers {
    akini_pending_peer_t *pending; /* [n_ranks] of the job */
    uint32_t n_ranks;
} akin_worker_peers_t;

/** \return AKIN_OK, AKIN_ERR_NOMEM */
akin_status_t
akini_worker_peers_create(struct akin_worker *worker) AKIN_MUST_CHECK;
void akini_worker_peers_cleanup(struct akin_worker *worker);

/** PEER or LOST of the router. Says whether it was one of them. */
int akini_worker_peers_message(struct akin_worker *worker, uint32_t from,
                               uint16_t type, const void *payload,
                               size_t bytes);

/**
 * Connect to a rank now, or once its predecessor is gone; the router does not
 * wait for it.
 *
 * \return AKIN_OK, AKIN_ERR_NOMEM, or that of akin_net_add_peer()
 */
akin_status_t
akini_worker_peers_add(struct akin_worker *worker,
                       const struct akin_message_identity *id) AKIN_MUST_CHECK;

/** A peer is gone: its successor's turn. */
void akini_worker_peers_lost(struct akin_worker *worker, uint32_t rank);

#endif
