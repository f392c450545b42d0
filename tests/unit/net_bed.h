/* Net bed: three nets in one process, connected to each other, whose progress
 * the test makes. */
#ifndef AKIN_TESTS_UNIT_NET_BED_H
#define AKIN_TESTS_UNIT_NET_BED_H

#include "net/net_internal.h"

#include "base/clock.h"
#include "runner.h"

#include <stdlib.h>
#include <string.h>

#define N_NETS 3u

typedef struct side {
    akin_net_t *net;
    int n_heard;
    int n_lost;
    akin_status_t loss;
} side_t;

static side_t sides[N_NETS];
static akin_net_t *own, *other; /* ranks 0 and 1 */

static inline void on_message(void *arg, uint32_t from, uint16_t type,
                              const void *payload, size_t bytes)
{
    side_t *side = arg;
    (void)from;
    (void)type;
    (void)payload;
    (void)bytes;
    side->n_heard++;
}

static inline void on_lost(void *arg, uint32_t rank, akin_status_t status)
{
    side_t *side = arg;
    (void)rank;
    side->n_lost++;
    side->loss = status;
}

static inline akin_net_t *make_net(uint32_t rank, side_t *side)
{
    const akin_net_params_t params = {
        .rank = rank,
        .n_ranks = N_NETS,
        .slab_bytes = 8192,
        .events = {.message = on_message, .peer_lost = on_lost, .arg = side},
    };
    akin_net_t *net = NULL;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_net_create(&params, &net, &err), AKIN_OK);
    return net;
}

static inline akin_status_t connect_to(akin_net_t *net, akin_net_t *peer)
{
    void *blob;
    size_t bytes;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_net_identity(peer, &blob, &bytes, &err),
                          AKIN_OK);
    akin_status_t status =
        akin_net_add_peer(net, peer->rank, blob, bytes, &err);
    free(blob);
    return status;
}

static inline void start(void)
{
    memset(sides, 0, sizeof(sides));
    for (uint32_t r = 0; r < N_NETS; r++)
        sides[r].net = make_net(r, &sides[r]);
    for (uint32_t r = 0; r < N_NETS; r++)
        for (uint32_t p = 0; p < N_NETS; p++)
            if (p != r)
                CU_ASSERT_EQUAL_FATAL(connect_to(sides[r].net, sides[p].net),
                                      AKIN_OK);
    own = sides[0].net;
    other = sides[1].net;
}

static inline void stop(void)
{
    for (uint32_t r = 0; r < N_NETS; r++)
        akin_net_destroy(sides[r].net);
}

/* What akin_net_poll() does, but for the look at the clock. */
static inline void poll_without_clock(akin_net_t *net)
{
    net->dispatching = 1;
    while (ucp_worker_progress(net->worker) != 0)
        continue;
    akini_messages_dispatch(net);
    akini_reads_answer(net);
    akini_reads_dispatch(net);
    akini_peers_settle(net);
    net->dispatching = 0;
}

static inline void poll_all(void)
{
    for (int i = 0; i < 50; i++)
        for (uint32_t r = 0; r < N_NETS; r++)
            poll_without_clock(sides[r].net);
}

static inline akin_net_stats_t stats_of(const akin_net_t *net)
{
    akin_net_stats_t stats;
    akin_net_stats(net, &stats);
    return stats;
}

/* Until the net has so many heartbeats. */
static inline void wait_beats(const akin_net_t *net, uint64_t n)
{
    int64_t limit_ns = akin_clock_now_ns() + 10 * AKIN_NS_PER_S;
    do
        poll_all();
    while (stats_of(net).heartbeats_received < n &&
           akin_clock_now_ns() < limit_ns);
    CU_ASSERT_EQUAL(stats_of(net).heartbeats_received, n);
}

static inline void wait_heard(const side_t *side, int n)
{
    int64_t limit_ns = akin_clock_now_ns() + 10 * AKIN_NS_PER_S;
    do
        poll_all();
    while (side->n_heard < n && akin_clock_now_ns() < limit_ns);
    CU_ASSERT_EQUAL(side->n_heard, n);
}

#endif
