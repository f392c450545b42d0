/* Worker place: all ranks of a worker take a new map before the same step, or
 * none does. */
#include "ep/exchange_local.h"
#include "worker_bed.h"

/* Experts 0 1 | 2 3 | 0 2 on the three ranks, as of epoch 4. */
static const uint64_t first_map[] = {5, 1, 6, 2};
static const uint64_t next_map[] = {4, 5, 3, 2};

static void join(rank_t *ranks, akin_ep_local_t **local_p,
                 akin_ep_exchange_t **exchanges)
{
    uint64_t holders[4];
    memcpy(holders, first_map, sizeof(holders));
    const akin_placement_t map = {.n_layers = 1,
                                  .n_experts = 4,
                                  .n_ranks = RANKS,
                                  .n_replicas = 2,
                                  .epoch = 4,
                                  .holders = holders};
    CU_ASSERT_EQUAL_FATAL(akin_ep_local_create(RANKS, local_p), AKIN_OK);
    for (uint32_t i = 0; i < RANKS; i++) {
        CU_ASSERT_EQUAL_FATAL(
            akin_ep_exchange_local_create(*local_p, i, &exchanges[i]), AKIN_OK);
        const akin_ep_group_params_t params = {.exchange = exchanges[i],
                                               .placement = &map};
        CU_ASSERT_EQUAL_FATAL(
            akin_ep_group_create(&params, &ranks[i].worker.ep_group, NULL),
            AKIN_OK);
    }
}

static void leave(rank_t *ranks, akin_ep_local_t *local,
                  akin_ep_exchange_t **exchanges)
{
    cleanup(ranks);
    for (uint32_t i = 0; i < RANKS; i++) {
        akin_ep_group_destroy(ranks[i].worker.ep_group);
        akin_ep_exchange_destroy(exchanges[i]);
    }
    akin_ep_local_destroy(local);
}

/* The router's word to one rank. */
static void place(rank_t *to, uint64_t epoch, const uint64_t *map)
{
    akin_packer_t p = {0};
    uint64_t holders[4];
    memcpy(holders, map, sizeof(holders));
    const akin_message_place_t m = {
        .epoch = epoch, .holders = holders, .n_holders = 4};
    akin_message_pack_place(&p, &m);
    CU_ASSERT(akini_worker_place_message(&to->worker, AKIN_ROUTER_RANK,
                                         AKIN_MESSAGE_PLACE, p.data, p.bytes));
    akin_packer_cleanup(&p);
}

static int has_map(const rank_t *r, uint64_t epoch, const uint64_t *map)
{
    const akin_placement_t *now = akin_ep_group_placement(r->worker.ep_group);
    return now->epoch == epoch && memcmp(now->holders, map, 32) == 0;
}

/* All ranks change between the same two steps, once all have the weights. */
static void new_map(void)
{
    rank_t ranks[RANKS];
    akin_ep_local_t *local;
    akin_ep_exchange_t *exchanges[RANKS];
    init(ranks);
    join(ranks, &local, exchanges);
    ranks[1].work = 2;
    settle(ranks);
    place(&ranks[1], 6, next_map); /* before the leader */
    place(&ranks[0], 6, next_map);
    ranks[1].work = 2;
    settle(ranks); /* one rank has not heard of it */
    for (uint32_t i = 0; i < RANKS; i++) {
        CU_ASSERT_EQUAL(ranks[i].n_steps, 4);
        CU_ASSERT(has_map(&ranks[i], 4, first_map));
    }
    CU_ASSERT_EQUAL(n_to_router, 0);
    place(&ranks[2], 6, next_map);
    settle(ranks); /* and without a step nothing changes */
    CU_ASSERT(has_map(&ranks[0], 4, first_map));
    CU_ASSERT_EQUAL(akini_worker_place_expire(&ranks[0].worker, INT64_MAX - 1),
                    INT64_MAX);
    ranks[2].work = 1;
    settle(ranks);
    for (uint32_t i = 0; i < RANKS; i++) {
        CU_ASSERT_EQUAL(ranks[i].worker.failure, AKIN_OK);
        CU_ASSERT_EQUAL(ranks[i].n_steps, 5);
        CU_ASSERT(has_map(&ranks[i], 6, next_map));
    }
    CU_ASSERT_EQUAL(n_to_router, 1);
    CU_ASSERT(to_router.epoch == 6 && to_router.status == AKIN_OK);
    /* Only what is new was brought. */
    CU_ASSERT_EQUAL(ranks[0].touched, 1u << 2);
    CU_ASSERT_EQUAL(ranks[1].touched, 0);
    CU_ASSERT_EQUAL(ranks[2].touched, 1u << 1);
    leave(ranks, local, exchanges);
}

/* A change that a rank refuses or is late for is dropped by the leader, once,
 * and gives way to the next. */
static void dropped_map(void)
{
    static const uint64_t no_map[] = {0, 5, 3, 2};
    rank_t ranks[RANKS];
    akin_ep_local_t *local;
    akin_ep_exchange_t *exchanges[RANKS];
    init(ranks);
    join(ranks, &local, exchanges);
    for (uint32_t i = 0; i < RANKS; i++)
        place(&ranks[RANKS - 1 - i], 5, no_map);
    settle(ranks);
    CU_ASSERT_EQUAL(n_to_router, 1);
    CU_ASSERT(to_router.epoch == 5 && to_router.status == AKIN_ERR_INVALID);
    place(&ranks[2], 4, next_map); /* an epoch that was */
    settle(ranks);
    place(&ranks[0], 4, next_map);
    CU_ASSERT_EQUAL(n_to_router, 2);

    place(&ranks[0], 7, next_map);
    place(&ranks[1], 7, next_map);
    settle(ranks);
    akin_worker_t *leader = &ranks[0].worker;
    const int64_t end = leader->place.deadline_ns;
    CU_ASSERT_EQUAL(akini_worker_place_expire(&ranks[1].worker, end),
                    INT64_MAX); /* the leader's to say */
    CU_ASSERT_EQUAL(akini_worker_place_expire(leader, end - 1), end);
    CU_ASSERT_EQUAL(akini_worker_place_expire(leader, end), INT64_MAX);
    CU_ASSERT_EQUAL(n_to_router, 3);
    CU_ASSERT(to_router.epoch == 7 && to_router.status == AKIN_ERR_TIMEOUT);
    place(&ranks[2], 7, next_map); /* too late */
    ranks[0].work = 2;
    settle(ranks);
    for (uint32_t i = 0; i < RANKS; i++)
        CU_ASSERT(has_map(&ranks[i], 4, first_map));
    for (uint32_t i = 0; i < RANKS; i++)
        place(&ranks[i], 8, next_map);
    settle(ranks);
    ranks[0].work = 1;
    settle(ranks);
    for (uint32_t i = 0; i < RANKS; i++) {
        CU_ASSERT_EQUAL(ranks[i].worker.failure, AKIN_OK);
        CU_ASSERT(has_map(&ranks[i], 8, next_map));
    }
    CU_ASSERT_EQUAL(n_to_router, 4);

    /* A step under a placement that a rank has not got ends it. */
    akini_worker_place_apply(&ranks[1].worker, 9);
    CU_ASSERT_EQUAL(ranks[1].worker.failure, AKIN_ERR_FORMAT);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(ranks[1].worker.error.text, "epoch out of order"));
    leave(ranks, local, exchanges);
}

static const runner_test_t tests[] = {
    {"new map", new_map},
    {"dropped map", dropped_map},
};

RUNNER_MAIN("worker_place", tests)
