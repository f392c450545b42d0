/* Peers bed: one rank of a job and what the router says to it, over the nets of
 * a world in which the other ranks only live and die. */
#ifndef AKIN_TESTS_UNIT_PEERS_BED_H
#define AKIN_TESTS_UNIT_PEERS_BED_H

#include "roles/worker.h"
#include "world_net.h"

/* Ranks 1 2 prefill, 3 4 decode, two by two; this is rank 3. */
#define OWN 3u
#define N_RANKS 5u

typedef struct bed {
    akin_job_t job;
    akin_worker_t worker;
    akin_packer_t packer;
    uint64_t incarnation; /* the last one that began */
} bed_t;

/* They do nothing with what they are told. */
static inline void bed_ignore(void *arg, uint32_t from, uint16_t type,
                              const void *payload, size_t bytes)
{
    (void)arg;
    (void)from;
    (void)type;
    (void)payload;
    (void)bytes;
}

static inline void bed_ignore_loss(void *arg, uint32_t rank,
                                   akin_status_t status)
{
    (void)arg;
    (void)rank;
    (void)status;
}

static inline void bed_kill(uint32_t rank)
{
    if (world_nets[rank] != NULL)
        world_net_cleanup(world_nets[rank]);
    free(world_nets[rank]);
    world_nets[rank] = NULL;
}

/** A new life of a rank. */
static inline world_identity_t bed_start(bed_t *b, uint32_t rank)
{
    bed_kill(rank);
    akin_net_t *net = calloc(1, sizeof(*net));
    CU_ASSERT_PTR_NOT_NULL_FATAL(net);
    net->rank = rank;
    net->incarnation = ++b->incarnation;
    net->events = (akin_net_events_t){.message = bed_ignore,
                                      .peer_lost = bed_ignore_loss};
    world_nets[rank] = net;
    return (world_identity_t){.incarnation = net->incarnation, .rank = rank};
}

static inline world_identity_t bed_identity(uint32_t rank)
{
    return (world_identity_t){.incarnation = world_nets[rank]->incarnation,
                              .rank = rank};
}

static inline akin_message_identity_t bed_message_of(const world_identity_t *id)
{
    return (akin_message_identity_t){
        .rank = id->rank, .net = id, .net_bytes = sizeof(*id)};
}

/** All ranks live; this one knows the router. */
static inline void bed_init(bed_t *b)
{
    *b = (bed_t){.job = {.n_prefill = 1,
                         .n_decode = 1,
                         .ep = 2,
                         .prefill_ep = 2,
                         .heartbeat_ns = 1,
                         .exchange = "ucx"}};
    CU_ASSERT_EQUAL_FATAL(akin_job_n_ranks(&b->job), N_RANKS);
    for (uint32_t rank = 0; rank < N_RANKS; rank++)
        (void)bed_start(b, rank);
    b->worker = (akin_worker_t){
        .job = &b->job,
        .rank = OWN,
        .net = world_nets[OWN],
        .group = {.n_ranks = 2, .leader = OWN},
    };
    world_nets[OWN]->events =
        (akin_net_events_t){.message = akin_worker_on_message,
                            .peer_lost = akin_worker_on_peer_lost,
                            .arg = &b->worker};
    CU_ASSERT_EQUAL_FATAL(akini_worker_peers_create(&b->worker), AKIN_OK);
    const world_identity_t router = bed_identity(0), own = bed_identity(OWN);
    CU_ASSERT_EQUAL_FATAL(
        akin_net_add_peer(b->worker.net, 0, &router, sizeof(router), NULL),
        AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(
        akin_net_add_peer(world_nets[0], OWN, &own, sizeof(own), NULL),
        AKIN_OK);
}

static inline void bed_cleanup(bed_t *b)
{
    akini_worker_peers_cleanup(&b->worker);
    akin_packer_cleanup(&b->worker.packer);
    akin_packer_cleanup(&b->packer);
    for (uint32_t rank = 0; rank < N_RANKS; rank++)
        bed_kill(rank);
}

/** What is in the packer, from a rank. */
static inline void bed_say(bed_t *b, uint32_t from, uint16_t type)
{
    akin_worker_on_message(&b->worker, from, type, b->packer.data,
                           b->packer.bytes);
    akin_packer_reset(&b->packer);
}

static inline void bed_say_peer(bed_t *b, const world_identity_t *id)
{
    akin_message_identity_t rank = bed_message_of(id);
    const akin_message_group_t m = {.ranks = &rank, .n_ranks = 1};
    akin_message_pack_group(&b->packer, &m);
    bed_say(b, 0, AKIN_MESSAGE_PEER);
}

static inline void bed_say_lost(bed_t *b, const world_identity_t *id)
{
    const akin_message_rank_t m = {.rank = id->rank,
                                   .incarnation = id->incarnation,
                                   .status = AKIN_ERR_PEER};
    akin_message_pack_rank(&b->packer, &m);
    bed_say(b, 0, AKIN_MESSAGE_LOST);
}

/** The next word to the router, which has to be this one. */
static inline void bed_expect(bed_t *b, uint16_t type, uint32_t rank,
                              akin_status_t status)
{
    akin_message_rank_t m;
    (void)b;
    world_peer_t *p = &world_nets[0]->peers[OWN];
    CU_ASSERT_PTR_NOT_NULL_FATAL(p->inbox);
    CU_ASSERT_EQUAL(p->inbox->type, type);
    CU_ASSERT_EQUAL(
        akin_message_unpack_rank(p->inbox->payload, p->inbox->bytes, &m),
        AKIN_OK);
    CU_ASSERT_EQUAL(m.rank, rank);
    CU_ASSERT_EQUAL(m.status, (int32_t)status);
    world_pop(p);
}

static inline int bed_is_silent(void)
{
    return world_nets[0]->peers[OWN].inbox == NULL;
}

/** The net tells of a loss. */
static inline void bed_settle(bed_t *b, uint32_t rank)
{
    CU_ASSERT_FATAL(world_can_settle(b->worker.net, rank));
    world_settle(b->worker.net, rank);
}

/** Whether this rank is connected to that life. */
static inline int bed_knows(const bed_t *b, const world_identity_t *id)
{
    return akin_net_peer_incarnation(b->worker.net, id->rank) ==
           id->incarnation;
}

#endif
