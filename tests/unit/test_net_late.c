/* What comes from lives of a rank that are over, or was meant for one. */
#include "net_bed.h"

static void give_message(void)
{
    CU_ASSERT_EQUAL(akin_net_send(other, 0, 1, "x", 1), AKIN_OK);
}

static void on_read(void *arg, akin_status_t status)
{
    *(akin_status_t *)arg = status;
}

static void wait_late(uint64_t n)
{
    int64_t limit_ns = akin_clock_now_ns() + 10 * AKIN_NS_PER_S;
    while (stats_of(own).messages_late < n && akin_clock_now_ns() < limit_ns)
        poll_all();
    CU_ASSERT_EQUAL(stats_of(own).messages_late, n);
}

/* What a life that was given up still says is counted and dropped; the next
 * life is not watched until somebody asks for it. */
static void test_late(void)
{
    start();
    akin_status_t read = AKIN_OK;
    CU_ASSERT_EQUAL(akin_net_watch_peer(own, 1, 1, 2), AKIN_OK);
    akin_net_drop_peer(own, 1);
    poll_all();
    CU_ASSERT_EQUAL(sides[0].n_lost, 1);
    CU_ASSERT_EQUAL(akin_net_peer_incarnation(own, 1), 0);
    give_message();
    give_message();
    CU_ASSERT_EQUAL(akin_net_watch_peer(other, 0, 1, 2), AKIN_OK);
    akini_heartbeats_run(other, akin_clock_now_ns());
    CU_ASSERT_EQUAL(stats_of(other).heartbeats_sent, 1);
    other->peers[0].one_sided = 0;
    CU_ASSERT_EQUAL(
        akin_net_read(other, 0, 0, akin_net_slab(other), 4096, on_read, &read),
        AKIN_OK);
    wait_late(3);
    CU_ASSERT_EQUAL(stats_of(own).messages_received, 0);
    CU_ASSERT_EQUAL(stats_of(own).heartbeats_received, 0);
    akin_net_destroy(other);
    CU_ASSERT_EQUAL(read, AKIN_ERR_CANCELED);
    other = sides[1].net = make_net(1, &sides[1]);
    CU_ASSERT_EQUAL(connect_to(own, other), AKIN_OK);
    CU_ASSERT_EQUAL(connect_to(other, own), AKIN_OK);
    akini_heartbeats_run(own, akin_clock_now_ns());
    CU_ASSERT_EQUAL(stats_of(own).heartbeats_sent, 0);
    CU_ASSERT_EQUAL(own->pulse.n_watched, 0);
    /* Meant for a life of this rank before the present one. */
    other->peers[0].incarnation--;
    give_message();
    wait_late(4);
    CU_ASSERT_EQUAL(sides[0].n_heard, 0);
    stop();
}

/* Of several lives that are over none is taken for a new one. */
static void test_older_life(void)
{
    start();
    akin_net_t *oldest = other;
    side_t quiet = {0};
    akin_net_drop_peer(own, 1);
    poll_all();
    akin_net_t *next = make_net(1, &quiet);
    CU_ASSERT_EQUAL(connect_to(own, next), AKIN_OK);
    akin_net_drop_peer(own, 1);
    poll_all();
    CU_ASSERT_EQUAL(sides[0].n_lost, 2);
    CU_ASSERT_EQUAL(akin_net_send(oldest, 0, 1, "x", 1), AKIN_OK);
    wait_late(1);
    CU_ASSERT_EQUAL(sides[0].n_heard, 0);
    CU_ASSERT_EQUAL(connect_to(own, oldest), AKIN_ERR_PEER);
    akin_net_destroy(next);
    stop();
}

static const runner_test_t tests[] = {
    {"late messages", test_late},
    {"lives that are over", test_older_life},
};
RUNNER_MAIN("net late", tests)
