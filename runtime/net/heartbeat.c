/* Heartbeats: signs of life to the peers that are watched, and what their
 * silence means. */
#include "net/net_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "net/supervisor.h"

/* How many timeouts a peer has that has not spoken since it is watched. */
#define GRACE_TIMEOUTS 10

akin_status_t akin_net_watch_peer(akin_net_t *net, uint32_t rank,
                                  int64_t interval_ns, int64_t timeout_ns)
{
    /* The upper bound, 14 years, keeps sums of times in range. */
    if (interval_ns <= 0 || timeout_ns <= interval_ns ||
        timeout_ns > INT64_MAX / (2 * GRACE_TIMEOUTS))
        return AKIN_ERR_INVALID;
    if (!akin_net_has_peer(net, rank))
        return AKIN_ERR_PEER;
    akini_pulse_t *pulse = &net->pulse;
    akini_watch_t *watch = &net->peers[rank].watch;
    const int64_t now_ns = akin_clock_now_ns();
    if (pulse->n_watched == 0)
        *pulse =
            (akini_pulse_t){.looked_ns = now_ns, .interval_ns = interval_ns};
    if (interval_ns < pulse->interval_ns)
        pulse->interval_ns = interval_ns;
    pulse->n_watched += watch->interval_ns == 0;
    /* The first heartbeat leaves with the next poll. */
    pulse->due_ns = now_ns;
    *watch = (akini_watch_t){
        .interval_ns = interval_ns,
        .timeout_ns = timeout_ns,
        .unbeaten_ns = interval_ns,
        .sequence = net->peers[rank].next_sequence,
        .n_unsent = watch->n_unsent,
    };
    return AKIN_OK;
}

void akini_watch_end(akini_peer_t *peer)
{
    akini_pulse_t *pulse = &peer->net->pulse;
    if (peer->watch.interval_ns != 0 && --pulse->n_watched == 0)
        pulse->due_ns = INT64_MAX;
    peer->watch = (akini_watch_t){0};
}

/* Returns non-zero if the peer was given up. */
static int watch_listen(akini_peer_t *peer, int64_t elapsed_ns)
{
    akini_watch_t *watch = &peer->watch;
    if (watch->is_heard) {
        watch->is_heard = 0;
        watch->has_begun = 1;
        watch->silent_ns = 0;
        return 0;
    }
    watch->silent_ns += elapsed_ns;
    int64_t limit_ns = watch->timeout_ns;
    if (!watch->has_begun)
        limit_ns *= GRACE_TIMEOUTS;
    if (watch->silent_ns < limit_ns)
        return 0;
    AKIN_LOG(NET, INFO, "rank %u: silent for %lld ms", (unsigned)peer->rank,
             (long long)(watch->silent_ns / AKIN_NS_PER_MS));
    akini_peer_fail(peer, AKIN_ERR_TIMEOUT);
    return 1;
}

static void watch_beat(akini_peer_t *peer, int64_t elapsed_ns)
{
    akini_watch_t *watch = &peer->watch;
    watch->unbeaten_ns += elapsed_ns;
    /* The looks follow the shortest of all intervals, give or take a half. */
    if (watch->unbeaten_ns <
        watch->interval_ns - peer->net->pulse.interval_ns / 2)
        return;
    watch->unbeaten_ns = 0;
    /* A message says the same. One heartbeat may pass a long message that UCX
     * has not got rid of; more of them would only pile up. */
    if (peer->next_sequence == watch->sequence && watch->n_unsent == 0 &&
        akini_message_signal(peer, AKINI_FRAME_HEARTBEAT) == AKIN_OK)
        peer->net->stats.heartbeats_sent++;
    watch->sequence = peer->next_sequence;
}

void akini_heartbeats_run(akin_net_t *net, int64_t now_ns)
{
    akini_pulse_t *pulse = &net->pulse;
    const int64_t elapsed_ns = now_ns - pulse->looked_ns;
    const int64_t interval_ns = pulse->interval_ns;
    /* A heartbeat that comes shortly before the own ones are due brings them
     * forward, so that both sides of a pair keep waking up together. */
    const int is_early = now_ns < pulse->due_ns;
    const int is_called = pulse->is_called;
    pulse->is_called = 0;
    if (is_early && (!is_called || elapsed_ns < interval_ns - interval_ns / 2))
        return;
    pulse->looked_ns = now_ns;
    /* Whoever shows its peers that it lives shows its supervisor. */
    akin_supervised_beat();
    /* More time than that is time in which this rank stood still. */
    const int64_t lived_ns =
        elapsed_ns < interval_ns ? elapsed_ns : interval_ns;
    int64_t shortest_ns = INT64_MAX;
    for (uint32_t r = 0; r < net->n_ranks; r++) {
        akini_peer_t *peer = &net->peers[r];
        if (peer->watch.interval_ns == 0 || watch_listen(peer, lived_ns))
            continue;
        watch_beat(peer, elapsed_ns);
        if (peer->watch.interval_ns != 0 &&
            peer->watch.interval_ns < shortest_ns)
            shortest_ns = peer->watch.interval_ns;
    }
    if (pulse->n_watched == 0)
        return;
    pulse->interval_ns = shortest_ns;
    pulse->due_ns = now_ns + shortest_ns + (is_early ? shortest_ns / 4 : 0);
}
