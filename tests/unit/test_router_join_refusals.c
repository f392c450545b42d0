/* Router: words of ranks that come and go which make no sense, come twice, or
 * come when the run ends. */
#include "join_bed.h"

/* Ranks 1 2 prefill, 3 4 decode; two ranks each with `n_ranks` 2. */
static void init(bed_t *b, uint32_t n_ranks)
{
    const akin_job_t job = join_job(n_ranks);
    join_init(b, &job, 1);
}

static void say_bytes(bed_t *b, uint32_t from, uint16_t type, const char *data,
                      size_t bytes)
{
    akin_router_on_message(b->r, from, type, data, bytes);
}

static void say_join(bed_t *b, uint32_t from, uint32_t rank)
{
    const akin_message_join_t m = {.life = 1, .identity = join_identity(rank)};
    akin_message_pack_join(&b->packer, &m);
    bed_say(b, from, AKIN_MESSAGE_JOIN);
}

/* What cannot be read costs the sender its connection, and nobody else. */
static void unreadable(void)
{
    static const uint16_t types[] = {AKIN_MESSAGE_JOIN, AKIN_MESSAGE_READY,
                                     AKIN_MESSAGE_ASSUMED, AKIN_MESSAGE_PEERED};
    for (uint32_t i = 0; i < 4; i++)
        for (size_t bytes = 0; bytes < 16; bytes++) {
            bed_t b;
            init(&b, 1);
            say_bytes(&b, 4, types[i], "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0", bytes);
            CU_ASSERT(b.net.is_dropped[4]);
            CU_ASSERT(!b.net.is_dropped[3]);
            CU_ASSERT_EQUAL(b.r->failure, AKIN_OK);
            CU_ASSERT(join_books_agree(&b));
            join_lose_dropped(&b, 4, 1);
            CU_ASSERT_EQUAL(join_group(&b, 4)->state, AKINI_GROUP_LOST);
            join_come_back(&b, 4);
            CU_ASSERT_EQUAL(join_group(&b, 4)->state, AKINI_GROUP_ASSUMING);
            bed_cleanup(&b);
        }
}

/* JOIN of a rank that is there, or of another one than it says. */
static void wrong_join(void)
{
    bed_t b;
    init(&b, 1);
    say_join(&b, 3, 3);
    CU_ASSERT(b.net.is_dropped[3]);
    CU_ASSERT_EQUAL(join_group(&b, 3)->state, AKINI_GROUP_SERVING);
    join_lose_dropped(&b, 3, 1);
    say_join(&b, 3, 4);
    CU_ASSERT_EQUAL(join_group(&b, 3)->state, AKINI_GROUP_LOST);
    CU_ASSERT(!b.net.is_dropped[4]);
    say_join(&b, 3, 5); /* no rank of the job */
    CU_ASSERT_EQUAL(join_group(&b, 3)->state, AKINI_GROUP_LOST);
    /* An identity that the net does not take. */
    b.net.add_status = AKIN_ERR_FORMAT;
    say_join(&b, 3, 3);
    CU_ASSERT_EQUAL(join_group(&b, 3)->state, AKINI_GROUP_LOST);
    CU_ASSERT_EQUAL(join_n_sent(&b, 3, AKIN_MESSAGE_GROUP), 0);
    b.net.add_status = AKIN_OK;
    join_come_back(&b, 3);
    CU_ASSERT_EQUAL(join_group(&b, 3)->state, AKINI_GROUP_ASSUMING);
    /* Once more: it is given up. */
    say_join(&b, 3, 3);
    CU_ASSERT(b.net.is_dropped[3]);
    CU_ASSERT_EQUAL(join_group(&b, 3)->said, 0);
    bed_cleanup(&b);
}

/* Ranks that are none of the job's. */
static void no_ranks(void)
{
    bed_t b;
    init(&b, 1);
    say_join(&b, 0, 0);
    say_join(&b, 5, 5);
    say_join(&b, UINT32_MAX, 5);
    join_say(&b, 5, AKIN_MESSAGE_READY, 5, AKIN_OK);
    join_say(&b, 0, AKIN_MESSAGE_ASSUMED, 0, AKIN_OK);
    join_say(&b, UINT32_MAX, AKIN_MESSAGE_PEERED, 1, AKIN_OK);
    /* Nor is who it is about, which only a log tells. */
    b.r->processes[1].n_owed = 1;
    join_say(&b, 1, AKIN_MESSAGE_PEERED, UINT32_MAX, AKIN_ERR_UCX);
    CU_ASSERT_EQUAL(b.r->processes[1].n_owed, 0);
    CU_ASSERT_EQUAL(b.net.n_sent, 0);
    CU_ASSERT(join_books_agree(&b));
    bed_cleanup(&b);
}

/* READY, ASSUMED and PEERED of ranks that were not asked. */
static void unasked(void)
{
    bed_t b;
    init(&b, 2);
    for (uint32_t rank = 1; rank <= 8; rank++) {
        join_ready(&b, rank);
        join_assumed(&b, rank);
        join_peered(&b, rank, 5);
        CU_ASSERT_EQUAL(b.r->processes[rank].n_owed, 0);
    }
    CU_ASSERT_EQUAL(b.net.n_sent, 0);
    CU_ASSERT(join_books_agree(&b));
    /* A rank that joins says all it can. */
    join_lose(&b, 5);
    join_lose(&b, 6);
    join_join(&b, 5, 0);
    join_ready(&b, 5);
    join_assumed(&b, 5);
    join_peered(&b, 5, 1);
    CU_ASSERT_EQUAL(join_group(&b, 5)->state, AKINI_GROUP_JOINING);
    CU_ASSERT_EQUAL(join_group(&b, 5)->said, 1);
    /* So does one that has only come alive. */
    join_ready(&b, 6);
    join_assumed(&b, 6);
    join_peered(&b, 6, 1);
    CU_ASSERT_EQUAL(join_group(&b, 5)->said, 1);
    join_join(&b, 6, 0);
    join_assumed(&b, 5);
    join_assumed(&b, 6);
    CU_ASSERT_EQUAL(join_group(&b, 5)->said, 0);
    CU_ASSERT(join_books_agree(&b));
    bed_cleanup(&b);
}

/* Ranks that cannot do what they are asked for are given up, with their group;
 * nobody serves there. */
static void unable(void)
{
    for (int stage = 0; stage < 2; stage++) {
        bed_t b;
        init(&b, 2);
        join_lose(&b, 5);
        join_lose(&b, 6);
        if (stage == 0) {
            join_join(&b, 5, 0);
            join_join(&b, 6, 0);
            join_ready(&b, 5);
            join_say(&b, 6, AKIN_MESSAGE_READY, 6, AKIN_ERR_NOMEM);
        } else {
            join_come_back(&b, 5);
            join_assumed(&b, 5);
            join_say(&b, 6, AKIN_MESSAGE_ASSUMED, 6, AKIN_ERR_FORMAT);
        }
        CU_ASSERT(b.net.is_dropped[6] && !b.net.is_dropped[5]);
        CU_ASSERT_EQUAL(b.r->lost_ns[2] != 0, 1);
        join_lose_dropped(&b, 6, 1);
        CU_ASSERT_EQUAL(join_group(&b, 5)->state, AKINI_GROUP_LOST);
        CU_ASSERT_EQUAL(join_n_lost(&b, 5, 6, 1), 1);
        CU_ASSERT(join_books_agree(&b));
        bed_cleanup(&b);
    }
}

/* One that cannot connect has answered all the same. */
static void unconnected(void)
{
    bed_t b;
    init(&b, 1);
    join_lose(&b, 3);
    join_come_back(&b, 3);
    join_assumed(&b, 3);
    join_say(&b, 1, AKIN_MESSAGE_PEERED, 3, AKIN_ERR_CANCELED);
    join_say(&b, 1, AKIN_MESSAGE_PEERED, 3, AKIN_OK); /* for another one? */
    CU_ASSERT_EQUAL(join_group(&b, 3)->state, AKINI_GROUP_ASSUMING);
    join_say(&b, 2, AKIN_MESSAGE_PEERED, 3, AKIN_ERR_UCX);
    CU_ASSERT_EQUAL(join_group(&b, 3)->state, AKINI_GROUP_SERVING);
    bed_cleanup(&b);
}

/* When the run ends nobody is taken in any more: who comes is sent home, and
 * losses are no news. */
static void closing(void)
{
    bed_t b;
    init(&b, 1);
    join_lose(&b, 3);
    join_come_back(&b, 3);
    b.r->is_closing = 1;
    bed_clear(&b);
    join_lose(&b, 4);
    CU_ASSERT_EQUAL(join_figure(&b, -1, "times_lost"), 1.0);
    CU_ASSERT_EQUAL(b.net.n_sent, 0);
    CU_ASSERT(akini_router_is_awaited(b.r, 0));
    join_join(&b, 4, 0);
    CU_ASSERT_EQUAL(join_n_sent(&b, 4, AKIN_MESSAGE_STOP), 1);
    CU_ASSERT_EQUAL(b.net.n_sent, 1);
    join_lose(&b, 4);
    join_join(&b, 4, 1);
    CU_ASSERT_EQUAL(join_n_sent(&b, 4, AKIN_MESSAGE_STOP), 2);
    /* What was under way comes to nothing. */
    join_assumed(&b, 3);
    join_peered(&b, 1, 3);
    join_peered(&b, 2, 3);
    CU_ASSERT_EQUAL(join_group(&b, 3)->state, AKINI_GROUP_ASSUMING);
    CU_ASSERT_EQUAL(b.net.n_sent, 2);
    /* The last words of those that served are awaited, the ends of all. */
    for (uint32_t rank = 1; rank <= 2; rank++)
        b.r->processes[rank].has_stats = 1;
    join_lose(&b, 4);
    CU_ASSERT(!akini_router_is_awaited(b.r, 0));
    CU_ASSERT(akini_router_is_awaited(b.r, 1));
    for (uint32_t rank = 1; rank <= 3; rank++)
        join_lose(&b, rank);
    CU_ASSERT(!akini_router_is_awaited(b.r, 1));
    bed_cleanup(&b);
}

static const runner_test_t tests[] = {
    {"unreadable", unreadable}, {"wrong JOIN", wrong_join},
    {"no ranks", no_ranks},     {"unasked", unasked},
    {"unable", unable},         {"unconnected", unconnected},
    {"closing", closing},
};

RUNNER_MAIN("router_join_refusals", tests)
