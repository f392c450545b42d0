/* Worker peers: connects to the new, gives up the lost. */
#include "roles/worker_peers.h"

#include "base/log.h"
#include "roles/worker.h"

#include <stdlib.h>
#include <string.h>

akin_status_t akini_worker_peers_create(akin_worker_t *worker)
{
    akin_worker_peers_t *p = &worker->peers;
    p->n_ranks = akin_job_n_ranks(worker->job);
    p->pending = calloc(p->n_ranks, sizeof(*p->pending));
    return p->pending != NULL ? AKIN_OK : AKIN_ERR_NOMEM;
}

static void forget(akini_pending_peer_t *pending)
{
    free(pending->identity);
    *pending = (akini_pending_peer_t){0};
}

void akini_worker_peers_cleanup(akin_worker_t *worker)
{
    akin_worker_peers_t *p = &worker->peers;
    for (uint32_t i = 0; p->pending != NULL && i < p->n_ranks; i++)
        forget(&p->pending[i]);
    free(p->pending);
    p->pending = NULL;
}

static void answer(akin_worker_t *worker, uint32_t rank, akin_status_t status)
{
    const akin_message_rank_t m = {.rank = rank, .status = status};
    akin_message_pack_rank(&worker->packer, &m);
    akin_worker_send(worker, AKIN_ROUTER_RANK, AKIN_MESSAGE_PEERED);
}

/* The rank to connect to has a successor, or is lost itself. */
static void give_up(akin_worker_t *worker, uint32_t rank)
{
    akini_pending_peer_t *pending = &worker->peers.pending[rank];
    const int is_owed = pending->is_owed;
    forget(pending);
    if (is_owed)
        answer(worker, rank, AKIN_ERR_CANCELED);
}

static akin_status_t keep(akini_pending_peer_t *pending,
                          const akin_message_identity_t *id, int is_owed)
{
    pending->identity = malloc(id->net_bytes);
    if (pending->identity == NULL)
        return AKIN_ERR_NOMEM;
    memcpy(pending->identity, id->net, id->net_bytes);
    pending->bytes = id->net_bytes;
    pending->is_owed = is_owed;
    return AKIN_OK;
}

/* A rank whose predecessor is not gone yet is kept until then. */
static akin_status_t add(akin_worker_t *worker,
                         const akin_message_identity_t *id, int is_owed)
{
    akin_error_t err = {{0}};
    if (id->rank >= worker->peers.n_ranks || id->rank == worker->rank ||
        id->rank == AKIN_ROUTER_RANK)
        return AKIN_ERR_RANGE;
    give_up(worker, id->rank);
    /* The router has seen the predecessor's end, if this rank has not. */
    akin_net_drop_peer(worker->net, id->rank);
    akin_status_t status =
        akin_net_add_peer(worker->net, id->rank, id->net, id->net_bytes, &err);
    if (status == AKIN_ERR_BUSY)
        return keep(&worker->peers.pending[id->rank], id, is_owed);
    if (status != AKIN_OK)
        AKIN_LOG(ROLES, WARN, "%s", err.text);
    return status;
}

akin_status_t akini_worker_peers_add(akin_worker_t *worker,
                                     const akin_message_identity_t *id)
{
    return add(worker, id, 0);
}

void akini_worker_peers_lost(akin_worker_t *worker, uint32_t rank)
{
    akini_pending_peer_t *pending = &worker->peers.pending[rank];
    akin_error_t err = {{0}};
    if (pending->identity == NULL)
        return;
    const int is_owed = pending->is_owed;
    akin_status_t status = akin_net_add_peer(
        worker->net, rank, pending->identity, pending->bytes, &err);
    if (status != AKIN_OK)
        AKIN_LOG(ROLES, WARN, "%s", err.text);
    forget(pending);
    if (is_owed)
        answer(worker, rank, status);
}

static void on_peer(akin_worker_t *worker, const void *payload, size_t bytes)
{
    akin_message_group_t m;
    akin_status_t status = akin_message_unpack_group(payload, bytes, &m);
    if (status == AKIN_OK && m.n_ranks != 1) {
        akin_message_group_cleanup(&m);
        status = AKIN_ERR_FORMAT;
    }
    if (status != AKIN_OK) {
        akin_worker_fail(worker, status, "PEER of the router: %s",
                         akin_status_string(status));
        return;
    }
    const uint32_t rank = m.ranks[0].rank;
    status = add(worker, &m.ranks[0], 1);
    akin_message_group_cleanup(&m);
    if (status != AKIN_OK || worker->peers.pending[rank].identity == NULL)
        answer(worker, rank, status);
}

static int is_fellow(const akin_worker_t *worker, uint32_t rank)
{
    return worker->group.n_ranks > 1 && akini_worker_group_has(worker, rank);
}

static void on_lost(akin_worker_t *worker, const void *payload, size_t bytes)
{
    akin_message_rank_t m;
    akin_status_t status = akin_message_unpack_rank(payload, bytes, &m);
    if (status != AKIN_OK)
        akin_worker_fail(worker, status, "LOST of the router: %s",
                         akin_status_string(status));
    else if (is_fellow(worker, m.rank))
        akini_worker_group_lost(worker, m.rank);
    /* The router tells of a loss before it tells of a successor: this is the
     * one that was to be connected to. */
    else if (m.rank < worker->peers.n_ranks &&
             worker->peers.pending[m.rank].identity != NULL)
        give_up(worker, m.rank);
    else if (m.incarnation != 0 &&
             akin_net_peer_incarnation(worker->net, m.rank) == m.incarnation)
        akin_net_drop_peer(worker->net, m.rank);
}

int akini_worker_peers_message(akin_worker_t *worker, uint32_t from,
                               uint16_t type, const void *payload, size_t bytes)
{
    if (from != AKIN_ROUTER_RANK ||
        (type != AKIN_MESSAGE_PEER && type != AKIN_MESSAGE_LOST))
        return 0;
    if (type == AKIN_MESSAGE_PEER)
        on_peer(worker, payload, bytes);
    else
        on_lost(worker, payload, bytes);
    return 1;
}
