/* Worker peers: ranks that a worker is told to connect to and to give up, in
 * every order in which that and what the net finds can come. */
#include "peers_bed.h"

static void lost(akin_worker_t *worker, uint32_t rank)
{
    (void)worker;
    (void)rank;
}

static const akin_worker_role_t role = {.peer_lost = lost};

/* Connected to both prefill ranks, and with a role or without. */
static void init(bed_t *b, int has_role)
{
    bed_init(b);
    for (uint32_t rank = 1; rank <= 2; rank++) {
        const world_identity_t id = bed_identity(rank);
        bed_say_peer(b, &id);
        bed_expect(b, AKIN_MESSAGE_PEERED, rank, AKIN_OK);
        CU_ASSERT(bed_knows(b, &id));
    }
    if (has_role)
        b->worker.role = &role;
}

/* A successor is connected to when its predecessor is gone, and the router
 * learns of it then; whoever notices first. */
static void successor(void)
{
    for (int has_role = 0; has_role < 2; has_role++)
        for (int i = 0; i < 3; i++) {
            bed_t b;
            init(&b, has_role);
            const world_identity_t old = bed_identity(1);
            const world_identity_t new = bed_start(&b, 1);
            if (i == 1)
                bed_say_lost(&b, &old);
            if (i == 2)
                world_fail(b.worker.net, 1, AKIN_ERR_PEER);
            CU_ASSERT_EQUAL(bed_knows(&b, &old), i == 0);
            bed_say_peer(&b, &new);
            CU_ASSERT(bed_is_silent());
            CU_ASSERT(!akin_net_has_peer(b.worker.net, 1));
            bed_settle(&b, 1);
            bed_expect(&b, AKIN_MESSAGE_PEERED, 1, AKIN_OK);
            CU_ASSERT(bed_knows(&b, &new));
            CU_ASSERT(bed_is_silent());
            /* Its end is no one else's turn. */
            world_fail(b.worker.net, 1, AKIN_ERR_PEER);
            bed_settle(&b, 1);
            CU_ASSERT(bed_is_silent());
            CU_ASSERT_EQUAL(b.worker.failure, AKIN_OK);
            bed_cleanup(&b);
        }
}

/* Every PEER is answered once, also that of a life which is over before it
 * could be connected to. */
static void overtaken(void)
{
    for (int is_told = 0; is_told < 2; is_told++) {
        bed_t b;
        init(&b, 1);
        const world_identity_t second = bed_start(&b, 1);
        bed_say_peer(&b, &second);
        const world_identity_t third = bed_start(&b, 1);
        if (is_told) {
            bed_say_lost(&b, &second);
            bed_expect(&b, AKIN_MESSAGE_PEERED, 1, AKIN_ERR_CANCELED);
        }
        bed_say_peer(&b, &third);
        if (!is_told)
            bed_expect(&b, AKIN_MESSAGE_PEERED, 1, AKIN_ERR_CANCELED);
        CU_ASSERT(bed_is_silent());
        bed_settle(&b, 1);
        bed_expect(&b, AKIN_MESSAGE_PEERED, 1, AKIN_OK);
        CU_ASSERT(bed_knows(&b, &third));
        /* That of a life before is refused, and spoils nothing for the next. */
        bed_say_peer(&b, &second);
        CU_ASSERT(bed_is_silent());
        bed_settle(&b, 1);
        bed_expect(&b, AKIN_MESSAGE_PEERED, 1, AKIN_ERR_PEER);
        CU_ASSERT(!akin_net_has_peer(b.worker.net, 1));
        bed_cleanup(&b);
    }
}

/* A life that was lost before it was connected to is not connected to. */
static void lost_before(void)
{
    bed_t b;
    init(&b, 1);
    const world_identity_t second = bed_start(&b, 1);
    bed_say_peer(&b, &second);
    bed_say_lost(&b, &second);
    bed_expect(&b, AKIN_MESSAGE_PEERED, 1, AKIN_ERR_CANCELED);
    bed_settle(&b, 1);
    CU_ASSERT(!akin_net_has_peer(b.worker.net, 1));
    CU_ASSERT(bed_is_silent());
    bed_cleanup(&b);
}

/* LOST ends the connection to that life, and to no other one. */
static void told(void)
{
    bed_t b;
    init(&b, 1);
    const world_identity_t old = bed_identity(1), other = bed_identity(2);
    const world_identity_t new = bed_start(&b, 1);
    bed_say_lost(&b, &new); /* which this rank was never told of */
    CU_ASSERT(bed_knows(&b, &old));
    bed_say_lost(&b, &(world_identity_t){.rank = 1});
    CU_ASSERT(bed_knows(&b, &old));
    bed_say_lost(&b, &old);
    CU_ASSERT(!akin_net_has_peer(b.worker.net, 1));
    CU_ASSERT(bed_knows(&b, &other));
    bed_settle(&b, 1);
    bed_say_peer(&b, &new);
    bed_expect(&b, AKIN_MESSAGE_PEERED, 1, AKIN_OK);
    bed_say_lost(&b, &old);
    CU_ASSERT(bed_knows(&b, &new));
    bed_say_lost(&b, &(world_identity_t){.rank = 99, .incarnation = 1});
    CU_ASSERT_EQUAL(b.worker.failure, AKIN_OK);
    bed_cleanup(&b);
}

/* A rank of the own group cannot be done without. */
static void fellow(void)
{
    for (int has_role = 0; has_role < 2; has_role++) {
        bed_t b;
        init(&b, has_role);
        const world_identity_t id = bed_identity(4);
        bed_say_lost(&b, &id);
        CU_ASSERT_EQUAL(b.worker.failure, AKIN_ERR_PEER);
        CU_ASSERT_PTR_NOT_NULL(strstr(b.worker.error.text, "rank 4"));
        bed_cleanup(&b);
    }
}

/* Ranks and identities that cannot be are refused, not believed. */
static void senseless(void)
{
    static const uint32_t ranks[] = {0, OWN, N_RANKS, 23, 24, UINT32_MAX};
    bed_t b;
    init(&b, 1);
    for (uint32_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        const world_identity_t id = {.rank = ranks[i], .incarnation = 99};
        bed_say_peer(&b, &id);
        bed_expect(&b, AKIN_MESSAGE_PEERED, ranks[i], AKIN_ERR_RANGE);
    }
    CU_ASSERT(akin_net_has_peer(b.worker.net, 0));
    /* The net does not know such an identity, at once or later. */
    for (int is_later = 0; is_later < 2; is_later++) {
        akin_message_identity_t id = {.rank = 1, .net = "?", .net_bytes = 1};
        const akin_message_group_t m = {.ranks = &id, .n_ranks = 1};
        if (!is_later) {
            world_fail(b.worker.net, 1, AKIN_ERR_PEER);
            bed_settle(&b, 1);
        }
        akin_message_pack_group(&b.packer, &m);
        bed_say(&b, 0, AKIN_MESSAGE_PEER);
        bed_expect(&b, AKIN_MESSAGE_PEERED, 1, AKIN_ERR_FORMAT);
        const world_identity_t new = bed_start(&b, 1);
        bed_say_peer(&b, &new);
        if (is_later)
            bed_settle(&b, 1);
        bed_expect(&b, AKIN_MESSAGE_PEERED, 1, AKIN_OK);
    }
    CU_ASSERT_EQUAL(b.worker.failure, AKIN_OK);
    /* Others than the router have no say. */
    CU_ASSERT(
        !akini_worker_peers_message(&b.worker, 1, AKIN_MESSAGE_PEER, "", 0));
    CU_ASSERT(
        !akini_worker_peers_message(&b.worker, 0, AKIN_MESSAGE_GROUP, "", 0));
    CU_ASSERT(bed_is_silent());
    bed_cleanup(&b);
}

/* A router that makes no sense is one that this rank cannot work for. */
static void unreadable(void)
{
    static const uint16_t types[] = {AKIN_MESSAGE_PEER, AKIN_MESSAGE_LOST};
    for (uint32_t i = 0; i < 3; i++) {
        bed_t b;
        init(&b, 1);
        const world_identity_t id = bed_identity(1);
        akin_message_identity_t two[] = {bed_message_of(&id),
                                         bed_message_of(&id)};
        const akin_message_group_t m = {.ranks = two, .n_ranks = 2};
        akin_message_pack_group(&b.packer, &m);
        if (i < 2)
            b.packer.bytes = 3;
        bed_say(&b, 0, types[i % 2]);
        CU_ASSERT_EQUAL(b.worker.failure, AKIN_ERR_FORMAT);
        CU_ASSERT_PTR_NOT_NULL(
            strstr(b.worker.error.text, akin_message_name(types[i % 2])));
        CU_ASSERT(bed_knows(&b, &id));
        CU_ASSERT(bed_is_silent());
        bed_cleanup(&b);
    }
}

/* A rank that ends with somebody still to connect to leaves nothing behind. */
static void ends(void)
{
    bed_t b;
    init(&b, 1);
    const world_identity_t new = bed_start(&b, 1);
    bed_say_peer(&b, &new);
    CU_ASSERT_PTR_NOT_NULL(b.worker.peers.pending[1].identity);
    bed_cleanup(&b);
    CU_ASSERT_PTR_NULL(b.worker.peers.pending);
    akini_worker_peers_cleanup(&b.worker);
}

static const runner_test_t tests[] = {
    {"a successor", successor},   {"overtaken", overtaken},
    {"lost before", lost_before}, {"told", told},
    {"a fellow", fellow},         {"senseless", senseless},
    {"unreadable", unreadable},   {"ends", ends},
};

RUNNER_MAIN("worker_peers", tests)
