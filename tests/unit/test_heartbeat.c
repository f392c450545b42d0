/* Heartbeats under a clock of the test's own: the peers are looked at at the
 * times that the test names. */
#include "net_bed.h"

#define INTERVAL (100 * AKIN_NS_PER_MS)
#define TIMEOUT (1000 * AKIN_NS_PER_MS)
#define HOUR (3600 * AKIN_NS_PER_S)

/* Watch, and look for the first time: returns the time of that. */
static int64_t watch(akin_net_t *net, uint32_t rank, int64_t interval_ns)
{
    CU_ASSERT_EQUAL_FATAL(
        akin_net_watch_peer(net, rank, interval_ns, 10 * interval_ns), AKIN_OK);
    int64_t at_ns = net->pulse.due_ns;
    akini_heartbeats_run(net, at_ns);
    return at_ns;
}

static void test_refused(void)
{
    start();
    CU_ASSERT_EQUAL(akin_net_watch_peer(own, 1, 0, TIMEOUT), AKIN_ERR_INVALID);
    CU_ASSERT_EQUAL(akin_net_watch_peer(own, 1, -1, TIMEOUT), AKIN_ERR_INVALID);
    CU_ASSERT_EQUAL(akin_net_watch_peer(own, 1, TIMEOUT, TIMEOUT),
                    AKIN_ERR_INVALID);
    CU_ASSERT_EQUAL(akin_net_watch_peer(own, 1, 1, INT64_MAX),
                    AKIN_ERR_INVALID);
    CU_ASSERT_EQUAL(akin_net_watch_peer(own, 0, INTERVAL, TIMEOUT),
                    AKIN_ERR_PEER);
    CU_ASSERT_EQUAL(akin_net_watch_peer(own, N_NETS, INTERVAL, TIMEOUT),
                    AKIN_ERR_PEER);
    CU_ASSERT_EQUAL(own->pulse.n_watched, 0);
    CU_ASSERT_EQUAL(akin_net_peer_incarnation(own, 1), other->incarnation);
    CU_ASSERT_EQUAL(akin_net_peer_incarnation(own, 0), 0);
    CU_ASSERT_EQUAL(akin_net_peer_incarnation(own, N_NETS), 0);
    stop();
}

static void test_beats(void)
{
    start();
    int64_t t = watch(own, 1, INTERVAL);
    wait_beats(other, 1);
    akini_heartbeats_run(own, t + INTERVAL - 1);
    wait_beats(other, 1);
    akini_heartbeats_run(own, t + INTERVAL);
    wait_beats(other, 2);
    /* A message says as much. */
    CU_ASSERT_EQUAL(akin_net_send(own, 1, 1, "x", 1), AKIN_OK);
    akini_heartbeats_run(own, t + 2 * INTERVAL);
    wait_heard(&sides[1], 1);
    wait_beats(other, 2);
    akini_heartbeats_run(own, t + 3 * INTERVAL);
    wait_beats(other, 3);
    /* Late, it beats once and does not make up for what it missed. */
    akini_heartbeats_run(own, t + 20 * INTERVAL);
    akini_heartbeats_run(own, t + 21 * INTERVAL - 1);
    wait_beats(other, 4);
    CU_ASSERT_EQUAL(stats_of(own).heartbeats_sent, 4);
    CU_ASSERT_EQUAL(stats_of(own).messages_sent, 1);
    CU_ASSERT_EQUAL(stats_of(other).messages_received, 1);
    CU_ASSERT_EQUAL(sides[1].n_heard, 1);
    /* Who is not watched gets none. */
    CU_ASSERT_EQUAL(stats_of(sides[2].net).heartbeats_received, 0);
    stop();
}

/* One wake-up serves peers of several intervals. */
static void test_intervals(void)
{
    start();
    (void)watch(own, 2, 3 * INTERVAL);
    int64_t t = watch(own, 1, INTERVAL);
    wait_beats(sides[2].net, 1);
    for (int i = 1; i <= 9; i++) {
        CU_ASSERT_EQUAL(own->pulse.due_ns, t + i * INTERVAL);
        akini_heartbeats_run(own, t + i * INTERVAL);
    }
    wait_beats(other, 10);
    CU_ASSERT(stats_of(sides[2].net).heartbeats_received >= 3);
    CU_ASSERT(stats_of(sides[2].net).heartbeats_received <= 4);
    akin_net_drop_peer(own, 1);
    poll_all();
    CU_ASSERT_EQUAL(own->pulse.n_watched, 1);
    /* The longer interval is the only one left. */
    akini_heartbeats_run(own, t + 10 * INTERVAL);
    CU_ASSERT_EQUAL(own->pulse.due_ns, t + 13 * INTERVAL);
    stop();
}

/* A heartbeat that comes in the second half of the interval is answered at
 * once, and then the other side goes first. */
static void test_early(void)
{
    start();
    int64_t t = watch(own, 1, INTERVAL);
    (void)watch(other, 0, INTERVAL);
    wait_beats(own, 1);
    akini_heartbeats_run(own, t + INTERVAL / 2 - 1);
    CU_ASSERT_EQUAL(stats_of(own).heartbeats_sent, 1);
    /* It was called too early for the first; that one is forgotten. */
    akini_heartbeats_run(own, t + INTERVAL / 2);
    CU_ASSERT_EQUAL(stats_of(own).heartbeats_sent, 1);
    akini_heartbeats_run(other, other->pulse.due_ns);
    wait_beats(own, 2);
    akini_heartbeats_run(own, t + INTERVAL / 2);
    CU_ASSERT_EQUAL(stats_of(own).heartbeats_sent, 2);
    CU_ASSERT_EQUAL(own->pulse.due_ns,
                    t + INTERVAL / 2 + INTERVAL + INTERVAL / 4);
    stop();
}

static void give_message(void)
{
    CU_ASSERT_EQUAL(akin_net_send(other, 0, 1, "x", 1), AKIN_OK);
}

static void give_heartbeat(void)
{
    (void)watch(other, 0, INTERVAL);
}

static int n_read;

static void on_read(void *arg, akin_status_t status)
{
    (void)arg;
    CU_ASSERT_EQUAL(status, AKIN_OK);
    n_read++;
}

static void give_request(void)
{
    other->peers[0].one_sided = 0;
    CU_ASSERT_EQUAL(
        akin_net_read(other, 0, 0, akin_net_slab(other), 4096, on_read, NULL),
        AKIN_OK);
}

static void give_answer(void)
{
    own->peers[1].one_sided = 0;
    CU_ASSERT_EQUAL(
        akin_net_read(own, 1, 0, akin_net_slab(own), 4096, on_read, NULL),
        AKIN_OK);
}

/* The last look found a sign; the peer is lost after the timeout exactly. */
static void expect_loss(int64_t t)
{
    for (int i = 1; i < TIMEOUT / INTERVAL; i++) {
        akini_heartbeats_run(own, t + i * INTERVAL);
        poll_all();
        CU_ASSERT(akin_net_has_peer(own, 1));
    }
    akini_heartbeats_run(own, t + TIMEOUT);
    CU_ASSERT_FALSE(akin_net_has_peer(own, 1));
    CU_ASSERT_EQUAL(sides[0].n_lost, 0);
    poll_all();
    CU_ASSERT_EQUAL(sides[0].n_lost, 1);
    CU_ASSERT_EQUAL(sides[0].loss, AKIN_ERR_TIMEOUT);
    CU_ASSERT_EQUAL(own->pulse.n_watched, 0);
    CU_ASSERT_EQUAL(own->pulse.due_ns, INT64_MAX);
    akini_heartbeats_run(own, t + HOUR);
    poll_all();
    CU_ASSERT_EQUAL(sides[0].n_lost, 1);
}

static void test_signs(void)
{
    void (*const give[])(void) = {give_message, give_heartbeat, give_request,
                                  give_answer};
    for (size_t i = 0; i < sizeof(give) / sizeof(give[0]); i++) {
        start();
        int64_t t = watch(own, 1, INTERVAL);
        give[i]();
        poll_all();
        akini_heartbeats_run(own, t + INTERVAL);
        expect_loss(t + INTERVAL);
        stop();
    }
    CU_ASSERT_EQUAL(n_read, 2);
}

/* A peer that has never spoken has ten times as long. */
static void test_grace(void)
{
    start();
    int64_t t = watch(own, 1, INTERVAL);
    for (int i = 1; i < 10 * TIMEOUT / INTERVAL; i++)
        akini_heartbeats_run(own, t + i * INTERVAL);
    poll_all();
    CU_ASSERT(akin_net_has_peer(own, 1));
    akini_heartbeats_run(own, t + 10 * TIMEOUT);
    CU_ASSERT_FALSE(akin_net_has_peer(own, 1));
    stop();
}

/* However long this rank stood still, it is one interval to it. */
static void test_own_stop(void)
{
    start();
    int64_t t = watch(own, 1, INTERVAL);
    give_message();
    poll_all();
    akini_heartbeats_run(own, t + INTERVAL);
    t += INTERVAL;
    for (int i = 1; i < TIMEOUT / INTERVAL; i++) {
        t += HOUR;
        akini_heartbeats_run(own, t);
        CU_ASSERT(akin_net_has_peer(own, 1));
    }
    /* A sign wins over the last interval. */
    give_message();
    poll_all();
    t += HOUR;
    akini_heartbeats_run(own, t);
    expect_loss(t);
    stop();
}

/* A peer that takes nothing holds up one heartbeat, not one per interval, and
 * gets everything in order when it goes on. */
static void test_bounded(void)
{
    start();
    int64_t t = watch(own, 1, INTERVAL);
    int n = 0;
    while (!akin_net_has_unsent(own, 1) && n < 30000) {
        CU_ASSERT_EQUAL(akin_net_send(own, 1, 1, "x", 1), AKIN_OK);
        n++;
    }
    CU_ASSERT(akin_net_has_unsent(own, 1));
    for (int i = 1; i <= 100; i++) {
        own->peers[1].watch.is_heard = 1;
        akini_heartbeats_run(own, t + i * INTERVAL);
    }
    CU_ASSERT_EQUAL(own->peers[1].watch.n_unsent, 1);
    CU_ASSERT_EQUAL(stats_of(own).heartbeats_sent, 2);
    wait_heard(&sides[1], n);
    wait_beats(other, 2);
    CU_ASSERT_EQUAL(own->peers[1].watch.n_unsent, 0);
    own->peers[1].watch.is_heard = 1;
    akini_heartbeats_run(own, t + 101 * INTERVAL);
    wait_beats(other, 3);
    stop();
}

static const runner_test_t tests[] = {
    {"times and peers that are refused", test_refused},
    {"one heartbeat per interval without a message", test_beats},
    {"peers of several intervals", test_intervals},
    {"a heartbeat is answered", test_early},
    {"what is a sign of life", test_signs},
    {"the first sign may take longer", test_grace},
    {"a rank that stood still", test_own_stop},
    {"a peer that takes nothing", test_bounded},
};
RUNNER_MAIN("heartbeat", tests)
