/* Router: groups of several ranks that are lost and come back, with further
 * losses at every stage of that. */
#include "join_bed.h"

/* Ranks 1 2, 3 4 prefill; 5 6, 7 8 decode. */
static void init(bed_t *b)
{
    const akin_job_t job = join_job(2);
    join_init(b, &job, 8);
}

static void expect_state(const bed_t *b, uint32_t rank,
                         akini_group_state_t state, uint64_t said)
{
    CU_ASSERT_EQUAL(join_group(b, rank)->state, state);
    CU_ASSERT_EQUAL(join_group(b, rank)->said, said);
}

/* Both ranks of decode 0 are gone; the router knows. */
static void lose_both(bed_t *b)
{
    join_lose(b, 5);
    join_lose(b, 6);
    expect_state(b, 5, AKINI_GROUP_LOST, 0);
    bed_clear(b);
}

/* GROUP came to both, with the ranks and lives of the two. */
static void expect_group(const bed_t *b, uint32_t life_5, uint32_t life_6)
{
    for (uint32_t rank = 5; rank <= 6; rank++) {
        uint32_t n;
        akin_message_group_t m;
        const bed_sent_t *s = join_sent(b, rank, AKIN_MESSAGE_GROUP, &n);
        CU_ASSERT_EQUAL_FATAL(n, 1);
        CU_ASSERT_EQUAL_FATAL(
            akin_message_unpack_group(s->payload, s->bytes, &m), AKIN_OK);
        CU_ASSERT_EQUAL_FATAL(m.n_ranks, 2);
        CU_ASSERT(m.ranks[0].rank == 5 && m.ranks[1].rank == 6);
        CU_ASSERT_EQUAL(join_life_of(&m.ranks[0]), life_5);
        CU_ASSERT_EQUAL(join_life_of(&m.ranks[1]), life_6);
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t life;
            CU_ASSERT_EQUAL_FATAL(m.ranks[i].exchange_bytes, sizeof(life));
            memcpy(&life, m.ranks[i].exchange, sizeof(life));
            CU_ASSERT_EQUAL(life, join_lives[5 + i].life);
        }
        akin_message_group_cleanup(&m);
    }
}

/* From READY of both to the place; how often the prefill ranks have to answer.
 */
static void finish(bed_t *b, uint32_t n_owed)
{
    for (uint32_t rank = 1; rank <= 4; rank++) {
        CU_ASSERT_EQUAL(b->r->processes[rank].n_owed, n_owed);
        for (uint32_t i = 0; i < n_owed; i++)
            join_peered(b, rank, 5 + i % 2);
    }
    join_assumed(b, 6);
    expect_state(b, 5, AKINI_GROUP_ASSUMING, 2);
    join_assumed(b, 6); /* once more is not both */
    expect_state(b, 5, AKINI_GROUP_ASSUMING, 2);
    join_assumed(b, 5);
    CU_ASSERT_EQUAL(join_group(b, 5)->state, AKINI_GROUP_SERVING);
    CU_ASSERT(join_books_agree(b));
    CU_ASSERT_EQUAL(join_figure(b, 2, "times_lost"), 1.0);
    CU_ASSERT_EQUAL(join_figure(b, 2, "times_recovered"), 1.0);
}

/* The first loss dooms the others, which are told, and whose ends are no
 * further losses of the worker. */
static void fellows(void)
{
    bed_t b;
    init(&b);
    bed_turn(&b);
    bed_clear(&b);
    join_lose(&b, 6);
    expect_state(&b, 5, AKINI_GROUP_LOST, 0);
    for (uint32_t to = 1; to <= 8; to++)
        CU_ASSERT_EQUAL(join_n_lost(&b, to, 6, 0), to != 6);
    CU_ASSERT(b.r->processes[5].is_doomed && !b.r->processes[7].is_doomed);
    /* The other's next life comes while this one still ends. */
    join_join(&b, 6, 0);
    expect_state(&b, 5, AKINI_GROUP_JOINING, 2);
    join_ready(&b, 5);
    join_assumed(&b, 5);
    expect_state(&b, 5, AKINI_GROUP_JOINING, 2);
    join_lose(&b, 5);
    expect_state(&b, 5, AKINI_GROUP_JOINING, 2);
    CU_ASSERT_EQUAL(join_n_lost(&b, 6, 5, 0), 0); /* which it never met */
    CU_ASSERT_EQUAL(join_n_lost(&b, 1, 5, 0), 1);
    CU_ASSERT_EQUAL(join_n_sent(&b, 6, AKIN_MESSAGE_GROUP), 0);
    join_join(&b, 5, 0);
    CU_ASSERT(!b.r->processes[5].is_doomed);
    expect_group(&b, 1, 1);
    join_ready(&b, 6);
    join_ready(&b, 5);
    finish(&b, 2);
    CU_ASSERT_EQUAL(join_figure(&b, -1, "times_lost"), 1.0);
    bed_cleanup(&b);
}

/* The second rank dies before both have joined: the first one waits on. */
static void lost_before_all(void)
{
    bed_t b;
    init(&b);
    lose_both(&b);
    join_join(&b, 6, 0);
    join_join(&b, 5, 0);
    expect_group(&b, 1, 1);
    bed_cleanup(&b);
    init(&b);
    lose_both(&b);
    join_join(&b, 5, 0);
    join_lose(&b, 5);
    expect_state(&b, 5, AKINI_GROUP_JOINING, 0);
    join_join(&b, 6, 0);
    expect_state(&b, 5, AKINI_GROUP_JOINING, 2);
    join_join(&b, 5, 0);
    expect_group(&b, 2, 1);
    CU_ASSERT_EQUAL(join_n_lost(&b, 1, 5, 1), 1);
    join_ready(&b, 5);
    join_ready(&b, 6);
    finish(&b, 2);
    bed_cleanup(&b);
}

/* It dies while both load, or with one of them ready: the other one knows it by
 * the exchange of the dead, and ends as well. */
static void lost_loading(void)
{
    for (int n_ready = 0; n_ready < 2; n_ready++) {
        bed_t b;
        init(&b);
        lose_both(&b);
        join_join(&b, 5, 0);
        join_join(&b, 6, 0);
        if (n_ready > 0)
            join_ready(&b, 5);
        expect_state(&b, 5, AKINI_GROUP_JOINING, (uint64_t)n_ready);
        bed_clear(&b);
        join_lose(&b, 6);
        expect_state(&b, 5, AKINI_GROUP_LOST, 0);
        CU_ASSERT_EQUAL(join_n_lost(&b, 5, 6, 1), 1);
        CU_ASSERT(b.r->processes[5].is_doomed);
        join_ready(&b, 5); /* on its way before it knew */
        join_join(&b, 6, 0);
        expect_state(&b, 5, AKINI_GROUP_JOINING, 2);
        CU_ASSERT_EQUAL(join_n_sent(&b, 6, AKIN_MESSAGE_GROUP), 0);
        join_lose(&b, 5);
        bed_clear(&b);
        join_join(&b, 5, 0);
        expect_group(&b, 2, 2);
        join_ready(&b, 5);
        join_ready(&b, 6);
        finish(&b, 2);
        bed_cleanup(&b);
    }
}

/* It dies when it has the place in all but name. Those that were to connect to
 * it still answer for it. */
static void lost_assuming(void)
{
    for (int n_assumed = 0; n_assumed < 2; n_assumed++) {
        bed_t b;
        init(&b);
        lose_both(&b);
        join_come_back(&b, 5);
        CU_ASSERT_EQUAL(join_n_sent(&b, 5, AKIN_MESSAGE_ASSUME), 1);
        CU_ASSERT_EQUAL(join_n_sent(&b, 6, AKIN_MESSAGE_ASSUME), 1);
        if (n_assumed > 0)
            join_assumed(&b, 5);
        bed_clear(&b);
        join_lose(&b, 6);
        expect_state(&b, 5, AKINI_GROUP_LOST, 0);
        CU_ASSERT(b.r->lost_ns[2] != 0);
        CU_ASSERT_EQUAL(join_n_lost(&b, 5, 6, 1), 1);
        CU_ASSERT_EQUAL(join_n_lost(&b, 4, 6, 1), 1);
        join_assumed(&b, 5);
        join_lose(&b, 5);
        expect_state(&b, 5, AKINI_GROUP_LOST, 0);
        CU_ASSERT_EQUAL(join_figure(&b, 2, "times_recovered"), 0.0);
        join_come_back(&b, 5);
        finish(&b, 4);
        bed_cleanup(&b);
    }
}

/* A rank that is not started any more takes its whole group with it: those that
 * have come are sent home, those that come later too. */
static void is_last(void)
{
    bed_t b;
    init(&b);
    lose_both(&b);
    join_join(&b, 6, 0);
    CU_ASSERT_EQUAL(join_n_sent(&b, 6, AKIN_MESSAGE_STOP), 0);
    join_join(&b, 5, 1);
    CU_ASSERT_EQUAL(join_group(&b, 5)->state, AKINI_GROUP_GONE);
    CU_ASSERT_EQUAL(join_n_sent(&b, 5, AKIN_MESSAGE_STOP), 1);
    CU_ASSERT_EQUAL(join_n_sent(&b, 6, AKIN_MESSAGE_STOP), 1);
    CU_ASSERT_EQUAL(join_n_sent(&b, 5, AKIN_MESSAGE_GROUP), 0);
    join_lose(&b, 5);
    join_lose(&b, 6);
    join_join(&b, 6, 0);
    CU_ASSERT_EQUAL(join_n_sent(&b, 6, AKIN_MESSAGE_STOP), 2);
    CU_ASSERT_EQUAL(join_group(&b, 5)->state, AKINI_GROUP_GONE);
    /* One that ends anyway is left alone. */
    join_lose(&b, 7);
    CU_ASSERT(akini_router_expire_groups(b.r, b.now) > b.now);
    CU_ASSERT_EQUAL(b.r->failure, AKIN_OK);
    bed_clear(&b);
    join_join(&b, 7, 1);
    CU_ASSERT_EQUAL(join_n_sent(&b, 7, AKIN_MESSAGE_STOP), 1);
    CU_ASSERT_EQUAL(join_n_sent(&b, 8, AKIN_MESSAGE_STOP), 0);
    /* No decode worker will ever come. */
    (void)akini_router_expire_groups(b.r, b.now);
    CU_ASSERT_EQUAL(b.r->failure, AKIN_ERR_PEER);
    CU_ASSERT_PTR_NOT_NULL(strstr(b.r->error.text, "no decode worker"));
    bed_cleanup(&b);
}

/* As many ranks as a group can have. */
static void sixty_four(void)
{
    bed_t b;
    const akin_job_t job = join_job(64);
    join_init(&b, &job, 1);
    const uint32_t first = 1 + 64;
    join_lose(&b, first + 63);
    expect_state(&b, first, AKINI_GROUP_LOST, 0);
    for (uint32_t i = 0; i < 63; i++) {
        bed_clear(&b);
        CU_ASSERT(b.r->processes[first + i].is_doomed);
        join_lose(&b, first + i);
    }
    bed_clear(&b);
    for (uint32_t i = 64; i-- > 0;) {
        expect_state(&b, first,
                     i == 63 ? AKINI_GROUP_LOST : AKINI_GROUP_JOINING,
                     i == 63 ? 0 : UINT64_MAX << (i + 1));
        join_join(&b, first + i, 0);
    }
    CU_ASSERT_EQUAL(join_n_sent(&b, first, AKIN_MESSAGE_GROUP), 1);
    CU_ASSERT_EQUAL(join_n_sent(&b, first + 63, AKIN_MESSAGE_GROUP), 1);
    bed_clear(&b);
    for (uint32_t i = 0; i < 63; i++)
        join_ready(&b, first + i);
    expect_state(&b, first, AKINI_GROUP_JOINING, UINT64_MAX >> 1);
    /* 128 decode ranks are told of 64 new ones: taken in turns. */
    b.net.is_silent = 1;
    join_ready(&b, first + 63);
    b.net.is_silent = 0;
    expect_state(&b, first, AKINI_GROUP_ASSUMING, 0);
    for (uint32_t rank = 129; rank <= 256; rank++) {
        CU_ASSERT_EQUAL(b.r->processes[rank].n_owed, 64);
        for (uint32_t i = 0; i < 64; i++)
            join_peered(&b, rank, first + i);
    }
    for (uint32_t i = 0; i < 64; i++) {
        expect_state(&b, first, AKINI_GROUP_ASSUMING,
                     i == 0 ? 0 : UINT64_MAX >> (64 - i));
        join_assumed(&b, first + i);
    }
    CU_ASSERT_EQUAL(join_group(&b, first)->state, AKINI_GROUP_SERVING);
    CU_ASSERT(join_books_agree(&b));
    bed_cleanup(&b);
}

static const runner_test_t tests[] = {
    {"fellows", fellows},
    {"lost before all have joined", lost_before_all},
    {"lost while they load", lost_loading},
    {"lost while they assume", lost_assuming},
    {"is last", is_last},
    {"64 ranks", sixty_four},
};

RUNNER_MAIN("router_join_groups", tests)
