/* Worker wait: what a rank without a role is told, until it has one. */
#include "peers_bed.h"

#include "roles/worker_wait.h"

typedef struct waiting {
    bed_t b;
    akini_worker_wait_t wait;
} waiting_t;

static void init(waiting_t *w)
{
    bed_init(&w->b);
    akini_worker_wait_begin(&w->wait, &w->b.worker);
}

static void cleanup(waiting_t *w)
{
    akini_worker_wait_end(&w->wait);
    CU_ASSERT_PTR_NULL(w->wait.group_data);
    CU_ASSERT_PTR_NULL(w->wait.assume_data);
    akini_worker_wait_end(&w->wait);
    bed_cleanup(&w->b);
}

/* Says what is in the packer from memory that is gone when it has been heard.
 */
static void say(waiting_t *w, uint16_t type)
{
    const size_t bytes = w->b.packer.bytes;
    unsigned char *data = malloc(bytes > 0 ? bytes : 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(data);
    if (bytes > 0)
        memcpy(data, w->b.packer.data, bytes);
    akin_worker_on_message(&w->b.worker, 0, type, data, bytes);
    memset(data, 0xff, bytes);
    free(data);
    akin_packer_reset(&w->b.packer);
}

static void say_group(waiting_t *w)
{
    akin_message_identity_t ranks[2];
    const world_identity_t ids[] = {bed_identity(3), bed_identity(4)};
    for (uint32_t i = 0; i < 2; i++) {
        ranks[i] = bed_message_of(&ids[i]);
        ranks[i].exchange = "way";
        ranks[i].exchange_bytes = 4;
    }
    const akin_message_group_t m = {.ranks = ranks, .n_ranks = 2};
    akin_message_pack_group(&w->b.packer, &m);
    say(w, AKIN_MESSAGE_GROUP);
}

/* To be decode worker 7 under placement 5, with these peers. */
static void say_assume(waiting_t *w, const world_identity_t *ids, uint32_t n)
{
    akin_message_identity_t peers[4];
    uint64_t holders[] = {1, 2, 3};
    for (uint32_t i = 0; i < n; i++)
        peers[i] = bed_message_of(&ids[i]);
    const akin_message_assume_t m = {.worker = 7,
                                     .epoch = 5,
                                     .peers = peers,
                                     .n_peers = n,
                                     .holders = holders,
                                     .n_holders = 3};
    akin_message_pack_assume(&w->b.packer, &m);
    say(w, AKIN_MESSAGE_ASSUME);
}

/* GROUP and ASSUME are kept until the rank can act on them; it knows its peers
 * at once. */
static void kept(void)
{
    waiting_t w;
    init(&w);
    CU_ASSERT_PTR_NULL(w.wait.group_data);
    say_group(&w);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w.wait.group_data);
    CU_ASSERT_EQUAL_FATAL(w.wait.group.n_ranks, 2);
    CU_ASSERT_EQUAL(w.wait.group.ranks[1].rank, 4);
    world_identity_t fourth;
    CU_ASSERT_EQUAL_FATAL(w.wait.group.ranks[1].net_bytes, sizeof(fourth));
    memcpy(&fourth, w.wait.group.ranks[1].net, sizeof(fourth));
    CU_ASSERT_EQUAL(fourth.incarnation, bed_identity(4).incarnation);
    CU_ASSERT_STRING_EQUAL(w.wait.group.ranks[0].exchange, "way");
    akini_worker_wait_say(&w.wait, AKIN_MESSAGE_READY, AKIN_OK);
    bed_expect(&w.b, AKIN_MESSAGE_READY, OWN, AKIN_OK);
    const world_identity_t ids[] = {bed_identity(1), bed_identity(2)};
    say_assume(&w, ids, 2);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w.wait.assume_data);
    CU_ASSERT(!w.wait.assume.is_prefill);
    CU_ASSERT(w.wait.assume.worker == 7 && w.wait.assume.epoch == 5);
    CU_ASSERT_EQUAL_FATAL(w.wait.assume.n_holders, 3);
    CU_ASSERT_EQUAL(w.wait.assume.holders[2], 3);
    CU_ASSERT(bed_knows(&w.b, &ids[0]) && bed_knows(&w.b, &ids[1]));
    CU_ASSERT(bed_is_silent()); /* it owes nothing for these */
    akini_worker_wait_say(&w.wait, AKIN_MESSAGE_ASSUMED, AKIN_ERR_FORMAT);
    bed_expect(&w.b, AKIN_MESSAGE_ASSUMED, OWN, AKIN_ERR_FORMAT);
    CU_ASSERT_EQUAL(w.b.worker.failure, AKIN_OK);
    CU_ASSERT(!w.wait.is_stopped);
    cleanup(&w);
}

/* What is said after ASSUME counts after it, though the rank acts on ASSUME
 * later: it ends with the life that the router named last. */
static void order(void)
{
    for (int is_told = 0; is_told < 2; is_told++) {
        waiting_t w;
        init(&w);
        const world_identity_t old = bed_identity(1);
        say_assume(&w, &old, 1);
        const world_identity_t new = bed_start(&w.b, 1);
        if (is_told)
            bed_say_lost(&w.b, &old);
        bed_say_peer(&w.b, &new);
        bed_settle(&w.b, 1);
        bed_expect(&w.b, AKIN_MESSAGE_PEERED, 1, AKIN_OK);
        CU_ASSERT(bed_knows(&w.b, &new));
        CU_ASSERT(bed_is_silent());
        cleanup(&w);
    }
}

/* Peers that are gone do not keep it from its place. */
static void gone_peers(void)
{
    waiting_t w;
    init(&w);
    const world_identity_t ids[] = {
        bed_identity(1),
        {.rank = N_RANKS, .incarnation = 1},
        {.rank = 0, .incarnation = 1},
        bed_identity(2),
    };
    bed_say_peer(&w.b, &ids[0]);
    bed_expect(&w.b, AKIN_MESSAGE_PEERED, 1, AKIN_OK);
    bed_say_lost(&w.b, &ids[0]);
    bed_settle(&w.b, 1);
    say_assume(&w, ids, 4);
    CU_ASSERT_EQUAL(w.b.worker.failure, AKIN_OK);
    CU_ASSERT(!akin_net_has_peer(w.b.worker.net, 1));
    CU_ASSERT(akin_net_has_peer(w.b.worker.net, 0));
    CU_ASSERT(bed_knows(&w.b, &ids[3]));
    cleanup(&w);
}

/* Neither can be said twice. */
static void twice(void)
{
    waiting_t w;
    init(&w);
    say_group(&w);
    say_group(&w);
    CU_ASSERT_EQUAL(w.b.worker.failure, AKIN_ERR_EXISTS);
    CU_ASSERT_PTR_NOT_NULL(strstr(w.b.worker.error.text, "GROUP"));
    CU_ASSERT_EQUAL(w.wait.group.n_ranks, 2);
    cleanup(&w);
    init(&w);
    say_assume(&w, NULL, 0);
    say_assume(&w, NULL, 0);
    CU_ASSERT_EQUAL(w.b.worker.failure, AKIN_ERR_EXISTS);
    CU_ASSERT_PTR_NOT_NULL(strstr(w.b.worker.error.text, "ASSUME"));
    CU_ASSERT_EQUAL(w.wait.assume.worker, 7);
    cleanup(&w);
}

/* What cannot be read ends the rank; what is for others is dropped. */
static void senseless(void)
{
    static const uint16_t types[] = {AKIN_MESSAGE_GROUP, AKIN_MESSAGE_ASSUME};
    for (uint32_t i = 0; i < 2; i++)
        for (size_t bytes = 0; bytes < 12; bytes++) {
            waiting_t w;
            init(&w);
            for (size_t k = 0; k < bytes; k++)
                akin_packer_u8(&w.b.packer, 0x77);
            say(&w, types[i]);
            CU_ASSERT_EQUAL(w.b.worker.failure, AKIN_ERR_FORMAT);
            CU_ASSERT_PTR_NOT_NULL(
                strstr(w.b.worker.error.text, akin_message_name(types[i])));
            cleanup(&w);
        }
    waiting_t w;
    init(&w);
    for (int type = 0; type < AKIN_MESSAGE_TYPES + 2; type++)
        if (type != AKIN_MESSAGE_GROUP && type != AKIN_MESSAGE_ASSUME &&
            type != AKIN_MESSAGE_STOP && type != AKIN_MESSAGE_PEER &&
            type != AKIN_MESSAGE_LOST)
            akin_worker_on_message(&w.b.worker, 0, (uint16_t)type, "abcdefgh",
                                   8);
    for (int type = 0; type < AKIN_MESSAGE_TYPES + 2; type++)
        akin_worker_on_message(&w.b.worker, 1, (uint16_t)type, "abcdefgh", 8);
    CU_ASSERT_EQUAL(w.b.worker.failure, AKIN_OK);
    CU_ASSERT(w.wait.group_data == NULL && w.wait.assume_data == NULL);
    CU_ASSERT(!w.wait.is_stopped);
    akin_worker_on_message(&w.b.worker, 0, AKIN_MESSAGE_STOP, NULL, 0);
    CU_ASSERT(w.wait.is_stopped);
    cleanup(&w);
}

/* It needs its router, and the other ranks of its group. */
static void losses(void)
{
    for (uint32_t rank = 0; rank < N_RANKS; rank++) {
        waiting_t w;
        if (rank == OWN)
            continue;
        init(&w);
        if (rank != 0) {
            const world_identity_t id = bed_identity(rank);
            CU_ASSERT_EQUAL_FATAL(
                akin_net_add_peer(w.b.worker.net, rank, &id, sizeof(id), NULL),
                AKIN_OK);
        }
        world_fail(w.b.worker.net, rank, AKIN_ERR_TIMEOUT);
        bed_settle(&w.b, rank);
        CU_ASSERT_EQUAL(w.b.worker.failure,
                        rank == 0 || rank == 4 ? AKIN_ERR_PEER : AKIN_OK);
        cleanup(&w);
    }
}

static const runner_test_t tests[] = {
    {"kept", kept},   {"in order", order},      {"gone peers", gone_peers},
    {"twice", twice}, {"senseless", senseless}, {"losses", losses},
};

RUNNER_MAIN("worker_wait", tests)
