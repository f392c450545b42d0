/* Worker group: ranks of a worker step together, end together, and know who is
 * late or out of order. */
#include "worker_bed.h"

static void steps(void)
{
    rank_t ranks[RANKS];
    init(ranks);
    settle(ranks);
    CU_ASSERT_EQUAL(ranks[0].n_steps, 0); /* nobody has work: all sleep */
    CU_ASSERT_EQUAL(akini_worker_group_expire(&ranks[0].worker, INT64_MAX - 1),
                    INT64_MAX);
    ranks[1].work = 3; /* the others take part without rows */
    settle(ranks);
    for (uint32_t i = 0; i < RANKS; i++) {
        CU_ASSERT_EQUAL(ranks[i].n_steps, 3);
        CU_ASSERT_EQUAL(ranks[i].n_rows, i == 1 ? 3 : 0);
        CU_ASSERT_EQUAL(ranks[i].worker.group.number, 3);
    }
    for (uint32_t i = 0; i < RANKS; i++)
        ranks[i].work = 4;
    settle(ranks);
    for (uint32_t i = 0; i < RANKS; i++) {
        CU_ASSERT_EQUAL(ranks[i].n_rows, i == 1 ? 7 : 4);
        CU_ASSERT_EQUAL(ranks[i].n_steps, ranks[0].n_steps);
    }
    CU_ASSERT(ranks[0].n_steps >= 7 && ranks[0].n_steps <= 9);
    CU_ASSERT_EQUAL(n_queued, 0);
    cleanup(ranks);
}

/* STOP reaches the ranks at other times than a step does: all make the same
 * steps, and then all end. */
static void stop(void)
{
    rank_t ranks[RANKS];
    init(ranks);
    ranks[2].work = 1;
    turn(&ranks[2]);
    deliver(ranks); /* READY */
    akini_worker_group_stop(&ranks[1].worker);
    turn(&ranks[0]); /* the leader begins the step */
    akini_worker_group_stop(&ranks[0].worker);
    settle(ranks);
    for (uint32_t i = 0; i < RANKS; i++) {
        CU_ASSERT_EQUAL(ranks[i].n_steps, 1);
        CU_ASSERT(ranks[i].worker.stopping);
        CU_ASSERT_EQUAL(ranks[i].worker.failure, AKIN_OK);
    }
    cleanup(ranks);
}

/* The leader waits for a rank for so long, and the ranks for the leader. */
static void late(void)
{
    rank_t ranks[RANKS];
    init(ranks);
    ranks[0].work = 1;
    is_deaf[2] = 1; /* what rank 7 says does not come through */
    settle(ranks);
    akin_worker_t *leader = &ranks[0].worker, *member = &ranks[1].worker;
    const int64_t end = leader->group.deadline_ns;
    CU_ASSERT(end < INT64_MAX);
    CU_ASSERT_EQUAL(akini_worker_group_expire(leader, end - 1), end);
    CU_ASSERT_EQUAL(leader->failure, AKIN_OK);
    ranks[1].work = 1;
    settle(ranks); /* it tells the leader, who cannot begin */
    CU_ASSERT_EQUAL(member->group.is_ready, 1);
    CU_ASSERT(member->group.deadline_ns > end);
    (void)akini_worker_group_expire(leader, end);
    CU_ASSERT_EQUAL(leader->failure, AKIN_ERR_TIMEOUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(leader->error.text, "rank 7"));
    (void)akini_worker_group_expire(member, member->group.deadline_ns);
    CU_ASSERT_EQUAL(member->failure, AKIN_ERR_TIMEOUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(member->error.text, "leader"));
    cleanup(ranks);
}

static void say(rank_t *to, uint32_t from, uint16_t type, uint64_t number)
{
    akin_packer_t p = {0};
    if (type == AKIN_MESSAGE_EP_DONE) {
        const akin_message_ep_done_t m = {.number = number};
        akin_message_pack_ep_done(&p, &m);
    } else if (type == AKIN_MESSAGE_EP_STEP) {
        const akin_message_ep_step_t m = {.number = number};
        akin_message_pack_ep_step(&p, &m);
    } else {
        akin_message_pack_id(&p, number);
    }
    CU_ASSERT(
        akini_worker_group_message(&to->worker, from, type, p.data, p.bytes));
    akin_packer_cleanup(&p);
}

/* Who does not keep the order ends the worker; who is not of it is not heard.
 */
static void out_of_order(void)
{
    rank_t ranks[RANKS];
    init(ranks);
    say(&ranks[1], FIRST + 2, AKIN_MESSAGE_EP_STEP, 1); /* not the leader */
    say(&ranks[1], FIRST + RANKS, AKIN_MESSAGE_EP_END, 0);
    say(&ranks[0], FIRST + RANKS, AKIN_MESSAGE_EP_READY, 0);
    say(&ranks[1], FIRST, AKIN_MESSAGE_EP_DONE, 1); /* to a member */
    settle(ranks);
    for (uint32_t i = 0; i < RANKS; i++) {
        CU_ASSERT_EQUAL(ranks[i].worker.failure, AKIN_OK);
        CU_ASSERT_EQUAL(ranks[i].n_steps, 0);
        CU_ASSERT(!ranks[i].worker.stopping);
    }
    say(&ranks[1], FIRST, AKIN_MESSAGE_EP_STEP, 2);
    CU_ASSERT_EQUAL(ranks[1].worker.failure, AKIN_ERR_FORMAT);
    say(&ranks[0], FIRST + 1, AKIN_MESSAGE_EP_DONE, 1);
    CU_ASSERT_EQUAL(ranks[0].worker.failure, AKIN_ERR_FORMAT);
    CU_ASSERT(akini_worker_group_message(&ranks[2].worker, FIRST,
                                         AKIN_MESSAGE_EP_STEP, "", 1));
    CU_ASSERT_EQUAL(ranks[2].worker.failure, AKIN_ERR_FORMAT);
    /* What is not of steps is the role's. */
    CU_ASSERT(!akini_worker_group_message(&ranks[2].worker, 0,
                                          AKIN_MESSAGE_DECODE, "", 1));
    cleanup(ranks);
}

/* A loss ends the worker; the end of ranks that were told to end does not. */
static void lost(void)
{
    rank_t ranks[RANKS];
    init(ranks);
    akini_worker_group_lost(&ranks[0].worker, FIRST + 1);
    CU_ASSERT_EQUAL(ranks[0].worker.failure, AKIN_ERR_PEER);
    CU_ASSERT_PTR_NOT_NULL(strstr(ranks[0].worker.error.text, "rank 6"));
    say(&ranks[2], FIRST, AKIN_MESSAGE_EP_END, 0);
    akini_worker_group_lost(&ranks[2].worker, FIRST);
    CU_ASSERT_EQUAL(ranks[2].worker.failure, AKIN_OK);
    cleanup(ranks);
}

static const runner_test_t tests[] = {
    {"steps", steps}, {"stop", stop},
    {"late", late},   {"out of order", out_of_order},
    {"lost", lost},
};

RUNNER_MAIN("worker_group", tests)
