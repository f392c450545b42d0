/* World net: the nets of many processes of one job in one thread. Everything
 * that may happen in any order happens when a test says so. Stands in for
 * runtime/net and keeps its promises. */
#ifndef AKIN_TESTS_UNIT_WORLD_NET_H
#define AKIN_TESTS_UNIT_WORLD_NET_H

#include "net/net.h"
#include "roles/message.h"

#include "runner.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define WORLD_RANKS 24u

typedef struct world_message {
    uint64_t from_incarnation;
    uint64_t to_incarnation;
    uint16_t type;
    size_t bytes;
    struct world_message *prev, *next;
    unsigned char payload[];
} world_message_t;

typedef enum world_peer_state {
    WORLD_NONE,
    WORLD_UP,
    WORLD_CLOSING /* lost; not told yet */
} world_peer_state_t;

typedef struct world_peer {
    world_peer_state_t state;
    uint64_t incarnation;
    uint64_t retired; /* the last one that was lost */
    uint64_t stream;  /* the one that is listened to */
    uint32_t n_ready; /* closing: messages that are told before */
    akin_status_t loss;
    world_message_t *inbox; /* from that rank */
} world_peer_t;

struct akin_net {
    uint32_t rank;
    uint64_t incarnation; /* ascends from life to life of a rank */
    akin_net_events_t events;
    world_peer_t peers[WORLD_RANKS];
};

/** What a rank tells others of itself. */
typedef struct world_identity {
    uint64_t incarnation;
    uint32_t rank;
} world_identity_t;

/* The process that a rank has now; NULL: none. */
static akin_net_t *world_nets[WORLD_RANKS];
/* Messages of the lost that were taken in before; a test draws it. */
static uint32_t (*world_draw_ready)(uint32_t n);
/* What akin_net_wait() is to the router. */
static akin_status_t (*world_turn)(void);

static inline void world_fail(akin_net_t *net, uint32_t rank,
                              akin_status_t status)
{
    world_peer_t *p = &net->peers[rank];
    uint32_t n = 0;
    world_message_t *m;
    if (p->state != WORLD_UP)
        return;
    p->state = WORLD_CLOSING;
    p->retired = p->incarnation;
    p->loss = status;
    DL_FOREACH(p->inbox, m)
    {
        if (m->from_incarnation != p->incarnation)
            break;
        n++;
    }
    p->n_ready = world_draw_ready != NULL ? world_draw_ready(n) : 0;
}

static inline void world_pop(world_peer_t *p)
{
    world_message_t *m = p->inbox;
    DL_DELETE(p->inbox, m);
    free(m);
}

/** Whether the first message of a rank can be told now. Drops what comes too
 * late, and finds that a peer has a successor. */
static inline int world_can_deliver(akin_net_t *net, uint32_t from)
{
    world_peer_t *p = &net->peers[from];
    if (p->state == WORLD_CLOSING && p->n_ready > 0)
        return 1;
    while (p->inbox != NULL) {
        const world_message_t *m = p->inbox;
        const uint64_t incarnation = m->from_incarnation;
        if (m->to_incarnation != net->incarnation ||
            incarnation <= p->retired || incarnation < p->stream) {
            world_pop(p);
            continue;
        }
        if (p->state == WORLD_UP && incarnation > p->incarnation)
            world_fail(net, from, AKIN_ERR_PEER);
        if (p->state == WORLD_CLOSING)
            return 0;
        p->stream = incarnation;
        return 1;
    }
    return 0;
}

/** Tell the first message; world_can_deliver() has said so. */
static inline void world_deliver(akin_net_t *net, uint32_t from)
{
    world_peer_t *p = &net->peers[from];
    world_message_t *m = p->inbox;
    DL_DELETE(p->inbox, m);
    if (p->state == WORLD_CLOSING)
        p->n_ready--;
    net->events.message(net->events.arg, from, m->type, m->payload, m->bytes);
    free(m);
}

static inline int world_can_settle(const akin_net_t *net, uint32_t rank)
{
    return net->peers[rank].state == WORLD_CLOSING &&
           net->peers[rank].n_ready == 0;
}

/** The loss of a peer is told. */
static inline void world_settle(akin_net_t *net, uint32_t rank)
{
    world_peer_t *p = &net->peers[rank];
    p->state = WORLD_NONE;
    p->incarnation = 0;
    net->events.peer_lost(net->events.arg, rank, p->loss);
}

/** Whether the other end of a connection is no more. */
static inline int world_is_cut(const akin_net_t *net, uint32_t rank)
{
    const world_peer_t *p = &net->peers[rank];
    return p->state == WORLD_UP &&
           (world_nets[rank] == NULL ||
            world_nets[rank]->incarnation != p->incarnation);
}

static inline void world_net_cleanup(akin_net_t *net)
{
    for (uint32_t i = 0; i < WORLD_RANKS; i++)
        while (net->peers[i].inbox != NULL)
            world_pop(&net->peers[i]);
}

akin_status_t akin_net_add_peer(akin_net_t *net, uint32_t rank,
                                const void *blob, size_t bytes,
                                akin_error_t *err)
{
    world_identity_t id;
    if (rank >= WORLD_RANKS || rank == net->rank)
        return akin_error_set(err, AKIN_ERR_RANGE, "rank %u", rank);
    if (bytes != sizeof(id))
        return akin_error_set(err, AKIN_ERR_FORMAT, "no identity");
    memcpy(&id, blob, sizeof(id));
    world_peer_t *p = &net->peers[rank];
    if (id.rank != rank)
        return akin_error_set(err, AKIN_ERR_FORMAT, "of another rank");
    if (p->state == WORLD_UP)
        return akin_error_set(err, AKIN_ERR_EXISTS, "connected");
    if (p->state == WORLD_CLOSING)
        return akin_error_set(err, AKIN_ERR_BUSY, "being closed");
    if (id.incarnation <= p->retired || id.incarnation < p->stream)
        return akin_error_set(err, AKIN_ERR_PEER, "of a lost process");
    p->state = WORLD_UP;
    p->incarnation = id.incarnation;
    p->stream = id.incarnation;
    return AKIN_OK;
}

void akin_net_drop_peer(akin_net_t *net, uint32_t rank)
{
    if (rank < WORLD_RANKS)
        world_fail(net, rank, AKIN_ERR_PEER);
}

int akin_net_has_peer(const akin_net_t *net, uint32_t rank)
{
    return rank < WORLD_RANKS && net->peers[rank].state == WORLD_UP;
}

uint64_t akin_net_peer_incarnation(const akin_net_t *net, uint32_t rank)
{
    return akin_net_has_peer(net, rank) ? net->peers[rank].incarnation : 0;
}

akin_status_t akin_net_watch_peer(akin_net_t *net, uint32_t rank,
                                  int64_t interval_ns, int64_t timeout_ns)
{
    (void)interval_ns;
    (void)timeout_ns;
    return akin_net_has_peer(net, rank) ? AKIN_OK : AKIN_ERR_PEER;
}

akin_status_t akin_net_send(akin_net_t *net, uint32_t rank, uint16_t type,
                            const void *payload, size_t bytes)
{
    if (!akin_net_has_peer(net, rank))
        return AKIN_ERR_PEER;
    akin_net_t *to = world_nets[rank];
    if (world_is_cut(net, rank))
        return AKIN_OK; /* its loss will be told */
    world_message_t *m = malloc(sizeof(*m) + bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    *m = (world_message_t){.from_incarnation = net->incarnation,
                           .to_incarnation = net->peers[rank].incarnation,
                           .type = type,
                           .bytes = bytes};
    if (bytes > 0)
        memcpy(m->payload, payload, bytes);
    DL_APPEND(to->peers[net->rank].inbox, m);
    return AKIN_OK;
}

const char *akin_net_path(const akin_net_t *net, uint32_t rank)
{
    (void)net;
    (void)rank;
    return "none";
}

akin_status_t akin_net_wait(akin_net_t *net, int64_t deadline_ns)
{
    (void)net;
    (void)deadline_ns;
    return world_turn != NULL ? world_turn() : AKIN_ERR_TIMEOUT;
}

void akin_net_wake(akin_net_t *net)
{
    (void)net;
}

void akin_net_watch(akin_net_t *net, int fd)
{
    (void)net;
    (void)fd;
}

void akin_net_stats(const akin_net_t *net, akin_net_stats_t *stats_p)
{
    (void)net;
    *stats_p = (akin_net_stats_t){0};
}

#endif
