/* Join bed: a router bed whose ranks are lost, are started anew and join. Ranks
 * 1.. prefill, then decode, then spare, in groups of one size. */
#ifndef AKIN_TESTS_UNIT_JOIN_BED_H
#define AKIN_TESTS_UNIT_JOIN_BED_H

#include "router_bed.h"
#include "router_books.h"

#include <jansson.h>

#define JOIN_PROMPT 20u /* two blocks */

/** A rank's life, as the others are told of it. */
typedef struct join_life {
    uint32_t rank;
    uint32_t life;
} join_life_t;

static join_life_t join_lives[BED_RANKS];
static akin_message_identity_t join_identities[BED_RANKS];

static inline akin_message_identity_t join_identity(uint32_t rank)
{
    return (akin_message_identity_t){
        .rank = rank,
        .net = &join_lives[rank],
        .net_bytes = sizeof(join_life_t),
        .exchange = &join_lives[rank].life,
        .exchange_bytes = sizeof(uint32_t),
    };
}

/** The life that an identity in a message is of; the rank has to fit. */
static inline uint32_t join_life_of(const akin_message_identity_t *id)
{
    join_life_t life;
    CU_ASSERT_EQUAL_FATAL(id->net_bytes, sizeof(life));
    memcpy(&life, id->net, sizeof(life));
    CU_ASSERT_EQUAL(life.rank, id->rank);
    return life.life;
}

/** A running job of two prefill and two decode workers, with so many requests
 * of four tokens. */
static inline void join_init(bed_t *b, const akin_job_t *job, uint32_t n)
{
    char id[16];
    FILE *file = fopen(scratch_path("in"), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    for (uint32_t i = 0; i < n; i++) {
        (void)snprintf(id, sizeof(id), "r%u", i);
        bed_write_request(file, id, JOIN_PROMPT, 4);
    }
    CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
    CU_ASSERT_FATAL(akin_job_n_ranks(job) <= BED_RANKS);
    for (uint32_t rank = 0; rank < BED_RANKS; rank++) {
        join_lives[rank] = (join_life_t){.rank = rank};
        join_identities[rank] = join_identity(rank);
    }
    bed_init_job(b, job, join_identities, NULL, 0);
    CU_ASSERT_EQUAL_FATAL(akini_router_start_groups(b->r), AKIN_OK);
}

/** A job with groups of so many ranks that starts lost ranks anew. */
static inline akin_job_t join_job(uint32_t n_ranks)
{
    akin_job_t job = bed_job(n_ranks);
    job.recovery = AKIN_RECOVERY_RESPAWN;
    return job;
}

static inline akini_group_t *join_group(const bed_t *b, uint32_t rank)
{
    return &b->r->groups[(rank - 1) / b->job.ep];
}

/** What the router sent a rank of a type, and how often. */
static inline const bed_sent_t *join_sent(const bed_t *b, uint32_t rank,
                                          uint16_t type, uint32_t *n_p)
{
    const bed_sent_t *last = NULL;
    *n_p = 0;
    for (uint32_t i = 0; i < b->net.n_sent; i++)
        if (b->net.sent[i].rank == rank && b->net.sent[i].type == type) {
            last = &b->net.sent[i];
            ++*n_p;
        }
    return last;
}

static inline uint32_t join_n_sent(const bed_t *b, uint32_t rank, uint16_t type)
{
    uint32_t n;
    (void)join_sent(b, rank, type, &n);
    return n;
}

/** How often a rank was told that another is lost, in that life. */
static inline uint32_t join_n_lost(const bed_t *b, uint32_t to, uint32_t rank,
                                   uint64_t incarnation)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->net.n_sent; i++) {
        const bed_sent_t *s = &b->net.sent[i];
        akin_message_rank_t m;
        if (s->rank != to || s->type != AKIN_MESSAGE_LOST)
            continue;
        CU_ASSERT_EQUAL(akin_message_unpack_rank(s->payload, s->bytes, &m),
                        AKIN_OK);
        n += m.rank == rank && m.incarnation == incarnation;
    }
    return n;
}

/** The net finds a rank's process gone. */
static inline void join_lose(bed_t *b, uint32_t rank)
{
    b->net.is_dropped[rank] = 1;
    akin_router_on_peer_lost(b->r, rank, AKIN_ERR_PEER);
}

/** All that the router has given up, and has not been told of yet. */
static inline void join_lose_dropped(bed_t *b, uint32_t first, uint32_t n)
{
    for (uint32_t rank = first; rank < first + n; rank++)
        if (b->net.is_dropped[rank])
            akin_router_on_peer_lost(b->r, rank, AKIN_ERR_PEER);
}

/** The next process of a rank says JOIN. */
static inline void join_join(bed_t *b, uint32_t rank, int is_last)
{
    join_lives[rank].life++;
    const akin_message_join_t m = {.life = join_lives[rank].life,
                                   .is_last = is_last != 0,
                                   .identity = join_identity(rank)};
    akin_message_pack_join(&b->packer, &m);
    bed_say(b, rank, AKIN_MESSAGE_JOIN);
}

/** READY or ASSUMED of a rank, or PEERED about another one. */
static inline void join_say(bed_t *b, uint32_t from, uint16_t type,
                            uint32_t about, akin_status_t status)
{
    const akin_message_rank_t m = {.rank = about, .status = status};
    akin_message_pack_rank(&b->packer, &m);
    bed_say(b, from, type);
}

static inline void join_ready(bed_t *b, uint32_t rank)
{
    join_say(b, rank, AKIN_MESSAGE_READY, rank, AKIN_OK);
}

static inline void join_assumed(bed_t *b, uint32_t rank)
{
    join_say(b, rank, AKIN_MESSAGE_ASSUMED, rank, AKIN_OK);
}

static inline void join_peered(bed_t *b, uint32_t from, uint32_t about)
{
    join_say(b, from, AKIN_MESSAGE_PEERED, about, AKIN_OK);
}

/** Everybody answers the PEER that it was sent since the last bed_clear(). */
static inline void join_peered_all(bed_t *b)
{
    for (uint32_t i = 0; i < b->net.n_sent; i++) {
        const bed_sent_t s = b->net.sent[i];
        akin_message_group_t m;
        if (s.type != AKIN_MESSAGE_PEER)
            continue;
        CU_ASSERT_EQUAL_FATAL(akin_message_unpack_group(s.payload, s.bytes, &m),
                              AKIN_OK);
        const uint32_t about = m.ranks[0].rank;
        akin_message_group_cleanup(&m);
        join_peered(b, s.rank, about);
    }
}

/** A lost group comes back as far as it can without a place. */
static inline void join_come_back(bed_t *b, uint32_t first)
{
    for (uint32_t i = 0; i < b->job.ep; i++)
        join_join(b, first + i, 0);
    for (uint32_t i = 0; i < b->job.ep; i++)
        join_ready(b, first + i);
}

/** The only ASSUME of a rank; the caller frees it. */
static inline akin_message_assume_t join_assume_of(const bed_t *b,
                                                   uint32_t rank)
{
    uint32_t n;
    akin_message_assume_t m = {0};
    const bed_sent_t *sent = join_sent(b, rank, AKIN_MESSAGE_ASSUME, &n);
    CU_ASSERT_EQUAL_FATAL(n, 1);
    CU_ASSERT_EQUAL_FATAL(
        akin_message_unpack_assume(sent->payload, sent->bytes, &m), AKIN_OK);
    return m;
}

/** A figure of the summary's recovery, or of a worker by its number. */
static inline double join_figure(const bed_t *b, int worker, const char *key)
{
    json_t *json = akin_summary_json(b->r->summary);
    const json_t *of =
        worker < 0
            ? json
            : json_array_get(json_object_get(json, "workers"), (size_t)worker);
    const json_t *value = json_object_get(of, key);
    CU_ASSERT_TRUE(json_is_number(value));
    const double number = json_number_value(value);
    json_decref(json);
    return number;
}

/** Whether the router's books agree with each other. */
static inline int join_books_agree(const bed_t *b)
{
    return books_of_places_agree(b->r);
}

#endif
