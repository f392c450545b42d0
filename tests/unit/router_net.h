/* Router net: a net that notes what a router sends, and fails as a test wants.
 * Stands in for runtime/net. */
#ifndef AKIN_TESTS_UNIT_ROUTER_NET_H
#define AKIN_TESTS_UNIT_ROUTER_NET_H

#include "net/net.h"
#include "roles/message.h"

#include "runner.h"

#include <stdlib.h>
#include <string.h>

#define BED_RANKS 321u /* router, and five groups of up to 64 ranks */
#define BED_SENT 1024u

typedef struct bed_sent {
    uint32_t rank;
    uint16_t type;
    uint64_t id; /* the first field of all that a router sends but STOP */
    void *payload;
    size_t bytes;
} bed_sent_t;

struct akin_net {
    bed_sent_t sent[BED_SENT];
    uint32_t n_sent;
    int is_full[BED_RANKS];    /* takes nothing any more */
    int is_dropped[BED_RANKS]; /* or lost */
    int is_watched[BED_RANKS];
    uint64_t incarnations[BED_RANKS];
    int last_is_fresh;        /* of the last PREFILL */
    int is_silent;            /* nothing is noted */
    akin_status_t add_status; /* of akin_net_add_peer() */
};

akin_status_t akin_net_send(akin_net_t *net, uint32_t rank, uint16_t type,
                            const void *payload, size_t bytes)
{
    if (net->is_full[rank])
        return AKIN_ERR_FULL;
    if (net->is_silent)
        return AKIN_OK;
    CU_ASSERT_FATAL(net->n_sent < BED_SENT);
    bed_sent_t *sent = &net->sent[net->n_sent++];
    *sent = (bed_sent_t){.rank = rank, .type = type, .bytes = bytes};
    if (bytes >= sizeof(sent->id))
        memcpy(&sent->id, payload, sizeof(sent->id));
    sent->payload = malloc(bytes + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(sent->payload);
    if (bytes > 0)
        memcpy(sent->payload, payload, bytes);
    akin_message_prefill_t m;
    if (type == AKIN_MESSAGE_PREFILL &&
        akin_message_unpack_prefill(payload, bytes, &m) == AKIN_OK) {
        net->last_is_fresh = m.fresh;
        free(m.tokens);
    }
    return AKIN_OK;
}

void akin_net_drop_peer(akin_net_t *net, uint32_t rank)
{
    net->is_dropped[rank] = 1;
}

int akin_net_has_peer(const akin_net_t *net, uint32_t rank)
{
    return !net->is_dropped[rank];
}

uint64_t akin_net_peer_incarnation(const akin_net_t *net, uint32_t rank)
{
    return net->incarnations[rank];
}

akin_status_t akin_net_watch_peer(akin_net_t *net, uint32_t rank,
                                  int64_t interval_ns, int64_t timeout_ns)
{
    (void)interval_ns;
    (void)timeout_ns;
    net->is_watched[rank] = 1;
    return AKIN_OK;
}

akin_status_t akin_net_add_peer(akin_net_t *net, uint32_t rank,
                                const void *blob, size_t bytes,
                                akin_error_t *err)
{
    (void)blob;
    (void)bytes;
    (void)err;
    if (net->add_status != AKIN_OK)
        return net->add_status;
    CU_ASSERT_TRUE(net->is_dropped[rank]);
    net->is_dropped[rank] = 0;
    net->is_watched[rank] = 0;
    net->incarnations[rank]++;
    return AKIN_OK;
}

void akin_net_stats(const akin_net_t *net, akin_net_stats_t *stats_p)
{
    (void)net;
    *stats_p = (akin_net_stats_t){0};
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
    return AKIN_ERR_TIMEOUT;
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

#endif
