/* Router: a lost worker's rank is started anew, joins, and takes the place
 * again, whatever its requests were doing. */
#include "join_bed.h"

/* Ranks 1 2 prefill, 3 4 decode. */
static void init(bed_t *b, uint32_t n_requests)
{
    const akin_job_t job = join_job(1);
    join_init(b, &job, n_requests);
}

static uint32_t rank_of(const akini_flight_t *f)
{
    return f->state >= AKINI_FLIGHT_TRANSFER ? 3 + f->decode : 1 + f->prefill;
}

/* Two words that the two of the other role are connected, one before and one
 * after the rank's own. */
static void assume(bed_t *b, uint32_t rank)
{
    const uint32_t other = rank < 3 ? 3 : 1;
    join_peered(b, other, rank);
    CU_ASSERT_EQUAL(join_group(b, rank)->state, AKINI_GROUP_ASSUMING);
    join_assumed(b, rank);
    CU_ASSERT_EQUAL(join_group(b, rank)->state, AKINI_GROUP_ASSUMING);
    CU_ASSERT_PTR_NULL(akini_router_rank(b->r, rank));
    join_peered(b, other + 1, rank);
    CU_ASSERT_EQUAL(join_group(b, rank)->state, AKINI_GROUP_SERVING);
}

/* From its loss to its place; what it and the others are told, and when. */
static void recover(bed_t *b, uint32_t rank)
{
    const uint32_t other = rank < 3 ? 3 : 1, worker = rank - 1;
    const uint32_t n_new = join_lives[rank].life + 1;
    bed_clear(b);
    join_lose(b, rank);
    CU_ASSERT_EQUAL(join_group(b, rank)->state, AKINI_GROUP_LOST);
    for (uint32_t to = 1; to <= 4; to++)
        CU_ASSERT_EQUAL(join_n_lost(b, to, rank, n_new - 1), to != rank);
    CU_ASSERT(join_books_agree(b));
    join_join(b, rank, 0);
    CU_ASSERT_EQUAL(b->net.incarnations[rank], n_new);
    CU_ASSERT(b->net.is_watched[rank]);
    uint32_t n;
    akin_message_group_t group;
    const bed_sent_t *s = join_sent(b, rank, AKIN_MESSAGE_GROUP, &n);
    CU_ASSERT_EQUAL_FATAL(n, 1);
    CU_ASSERT_EQUAL_FATAL(
        akin_message_unpack_group(s->payload, s->bytes, &group), AKIN_OK);
    CU_ASSERT_EQUAL(group.n_ranks, 1);
    CU_ASSERT_EQUAL(group.ranks[0].rank, rank);
    akin_message_group_cleanup(&group);
    CU_ASSERT_EQUAL(join_n_sent(b, rank, AKIN_MESSAGE_ASSUME), 0);
    join_ready(b, rank);
    /* It is to connect to the other role, and that to it. */
    akin_message_assume_t m = join_assume_of(b, rank);
    CU_ASSERT_EQUAL(m.is_prefill, rank < 3);
    CU_ASSERT_EQUAL(m.worker, rank < 3 ? worker : worker - 2);
    CU_ASSERT_EQUAL_FATAL(m.n_peers, 2);
    for (uint32_t i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(m.peers[i].rank, other + i);
        CU_ASSERT_EQUAL(join_life_of(&m.peers[i]), join_lives[other + i].life);
        CU_ASSERT_EQUAL(b->r->processes[other + i].n_owed, 1);
    }
    CU_ASSERT_EQUAL(m.n_holders, 0);
    akin_message_assume_cleanup(&m);
    for (uint32_t to = 1; to <= 4; to++) {
        s = join_sent(b, to, AKIN_MESSAGE_PEER, &n);
        CU_ASSERT_EQUAL(n, (to < 3) != (rank < 3));
        if (n == 0)
            continue;
        CU_ASSERT_EQUAL_FATAL(
            akin_message_unpack_group(s->payload, s->bytes, &group), AKIN_OK);
        CU_ASSERT_EQUAL(group.n_ranks, 1);
        CU_ASSERT_EQUAL(group.ranks[0].rank, rank);
        CU_ASSERT_EQUAL(join_life_of(&group.ranks[0]), n_new);
        akin_message_group_cleanup(&group);
    }
    assume(b, rank);
    CU_ASSERT_EQUAL(b->r->processes[rank].life, n_new);
    CU_ASSERT(join_books_agree(b));
}

/* The loss in every state that a request can be in; the same worker serves it
 * in the end, since the other one is drained. */
static void every_state(void)
{
    for (int state = AKINI_FLIGHT_PREFILL; state < AKINI_FLIGHT_STATES;
         state++) {
        bed_t b;
        init(&b, 1);
        b.r->prefill[1].is_drained = 1;
        b.r->decode[1].is_drained = 1;
        akini_flight_t *f = bed_bring_to(&b, (akini_flight_state_t)state);
        const uint32_t lost = rank_of(f), worker = lost - 1;
        const uint32_t n_kept = f->n_tokens;
        CU_ASSERT_EQUAL(lost, state >= AKINI_FLIGHT_TRANSFER ? 3 : 1);
        recover(&b, lost);
        CU_ASSERT_EQUAL_FATAL(f->state, AKINI_FLIGHT_QUEUED);
        CU_ASSERT(f->lost_ns != 0);
        CU_ASSERT_EQUAL(f->n_start, JOIN_PROMPT + n_kept);
        CU_ASSERT(bed_books_are_empty(&b));
        CU_ASSERT_EQUAL(join_figure(&b, (int)worker, "times_lost"), 1.0);
        CU_ASSERT_EQUAL(join_figure(&b, (int)worker, "times_recovered"), 1.0);
        CU_ASSERT_EQUAL(join_figure(&b, (int)worker, "requests_restarted"),
                        1.0);
        CU_ASSERT_EQUAL(join_figure(&b, -1, "times_lost"), 1.0);
        bed_clear(&b);
        f = bed_bring_to(&b, AKINI_FLIGHT_DECODE);
        CU_ASSERT(f->prefill == 0 && f->decode == 0);
        CU_ASSERT_EQUAL(f->lost_ns, 0);
        CU_ASSERT_EQUAL(f->n_tokens, n_kept + 1);
        CU_ASSERT_EQUAL(join_n_sent(&b, 1, AKIN_MESSAGE_PREFILL), 1);
        CU_ASSERT_EQUAL(join_n_sent(&b, 3, AKIN_MESSAGE_DECODE), 1);
        while (b.r->by_id != NULL)
            bed_token(&b, 3, b.r->by_id->id);
        CU_ASSERT_EQUAL(b.r->counts.done, 1);
        CU_ASSERT_EQUAL(b.r->counts.failed, 0);
        CU_ASSERT_EQUAL(b.r->counts.tokens, 4);
        CU_ASSERT(bed_books_are_empty(&b));
        bed_cleanup(&b);
    }
}

/* Again and again; every life is told apart from the one before. */
static void many_lives(void)
{
    bed_t b;
    init(&b, 1);
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t rank = 1; rank <= 4; rank++)
            recover(&b, rank);
    for (int w = 0; w < 4; w++) {
        CU_ASSERT_EQUAL(join_figure(&b, w, "times_lost"), 3.0);
        CU_ASSERT_EQUAL(join_figure(&b, w, "times_recovered"), 3.0);
    }
    CU_ASSERT_EQUAL(b.r->failure, AKIN_OK);
    bed_cleanup(&b);
}

/* The only workers of both roles die at once: requests wait, keep what they
 * have, and go on between the new ones. */
static void both_at_once(void)
{
    bed_t b;
    init(&b, 1);
    join_lose(&b, 2);
    join_lose(&b, 4);
    akini_flight_t *f = bed_bring_to(&b, AKINI_FLIGHT_DECODE);
    const uint64_t old = f->id;
    bed_clear(&b);
    join_lose(&b, 3);
    join_lose(&b, 1);
    CU_ASSERT_EQUAL(f->state, AKINI_FLIGHT_QUEUED);
    CU_ASSERT_EQUAL(akini_router_expire_groups(b.r, b.now),
                    b.r->lost_ns[0] + b.job.recovery_timeout_ns <
                            b.r->lost_ns[2] + b.job.recovery_timeout_ns
                        ? b.r->lost_ns[0] + b.job.recovery_timeout_ns
                        : b.r->lost_ns[2] + b.job.recovery_timeout_ns);
    bed_turn(&b);
    CU_ASSERT_EQUAL(f->state, AKINI_FLIGHT_QUEUED);
    /* The decode rank is the first to be ready, and has nobody to meet. */
    join_come_back(&b, 3);
    akin_message_assume_t m = join_assume_of(&b, 3);
    CU_ASSERT_EQUAL(m.n_peers, 0);
    akin_message_assume_cleanup(&m);
    join_come_back(&b, 1);
    m = join_assume_of(&b, 1);
    CU_ASSERT_EQUAL_FATAL(m.n_peers, 1);
    CU_ASSERT_EQUAL(m.peers[0].rank, 3);
    CU_ASSERT_EQUAL(join_life_of(&m.peers[0]), 1);
    akin_message_assume_cleanup(&m);
    CU_ASSERT_EQUAL(join_n_sent(&b, 3, AKIN_MESSAGE_PEER), 1);
    /* It owes nothing for itself; the other one waits for it. */
    join_assumed(&b, 3);
    CU_ASSERT_EQUAL(join_group(&b, 3)->state, AKINI_GROUP_SERVING);
    join_assumed(&b, 1);
    CU_ASSERT_EQUAL(join_group(&b, 1)->state, AKINI_GROUP_ASSUMING);
    join_peered(&b, 3, 1);
    CU_ASSERT_EQUAL(join_group(&b, 1)->state, AKINI_GROUP_SERVING);
    CU_ASSERT(join_books_agree(&b));
    f = bed_bring_to(&b, AKINI_FLIGHT_DECODE);
    CU_ASSERT_NOT_EQUAL(f->id, old);
    bed_token(&b, 3, old); /* of nobody */
    CU_ASSERT_EQUAL(f->n_tokens, 2);
    bed_token(&b, 3, f->id);
    bed_token(&b, 3, f->id);
    CU_ASSERT_EQUAL(b.r->counts.done, 1);
    CU_ASSERT_EQUAL(b.r->failure, AKIN_OK);
    bed_cleanup(&b);
}

/* Of all that are lost two come back: one serves each role, whatever it was
 * before; else each keeps its place. */
static void one_of_each(void)
{
    static const struct {
        uint32_t first, second;   /* ranks that come back */
        uint32_t worker, another; /* that they become */
    } cases[] = {{3, 1, 2, 0}, {4, 3, 3, 0}, {2, 1, 1, 2}, {1, 4, 0, 3}};
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bed_t b;
        init(&b, 1);
        for (uint32_t rank = 1; rank <= 4; rank++)
            join_lose(&b, rank);
        bed_clear(&b);
        join_come_back(&b, cases[i].first);
        CU_ASSERT_EQUAL(join_group(&b, cases[i].first)->worker,
                        cases[i].worker);
        join_come_back(&b, cases[i].second);
        CU_ASSERT_EQUAL(join_group(&b, cases[i].second)->worker,
                        cases[i].another);
        join_peered_all(&b);
        join_assumed(&b, cases[i].second);
        join_assumed(&b, cases[i].first);
        CU_ASSERT_EQUAL(b.r->lost_ns[cases[i].worker], 0);
        CU_ASSERT_EQUAL(b.r->lost_ns[cases[i].another], 0);
        CU_ASSERT(join_books_agree(&b));
        (void)bed_bring_to(&b, AKINI_FLIGHT_TRANSFER);
        bed_cleanup(&b);
    }
}

/* A prefill rank that dies while a decode rank reads from it is that one's to
 * tell. */
static void owner_lost(void)
{
    bed_t b;
    init(&b, 1);
    akini_flight_t *f = bed_bring_to(&b, AKINI_FLIGHT_TRANSFER);
    const uint32_t decode = 3 + f->decode;
    recover(&b, 1 + f->prefill);
    CU_ASSERT_EQUAL(f->state, AKINI_FLIGHT_TRANSFER);
    bed_transferred(&b, decode, f->id, AKIN_ERR_PEER);
    CU_ASSERT_EQUAL(f->state, AKINI_FLIGHT_QUEUED);
    CU_ASSERT_EQUAL(f->n_start, JOIN_PROMPT + 1);
    CU_ASSERT(bed_books_are_empty(&b));
    bed_cleanup(&b);
}

/* Nothing is given to a rank before it has its place, and words of a life that
 * has none count for nothing. */
static void early_words(void)
{
    bed_t b;
    init(&b, 8);
    join_lose(&b, 3);
    bed_clear(&b);
    join_join(&b, 3, 0);
    bed_turn(&b);
    akini_flight_t *f, *next;
    HASH_ITER(hh, b.r->by_id, f, next)
    bed_prefilled(&b, 1 + f->prefill, f->id, JOIN_PROMPT);
    akini_router_dispatch(b.r, b.now);
    HASH_ITER(hh, b.r->by_id, f, next)
    {
        CU_ASSERT(f->state == AKINI_FLIGHT_ROUTED || f->decode == 1);
        bed_transferred(&b, 3, f->id, AKIN_OK);
        CU_ASSERT_NOT_EQUAL(f->state, AKINI_FLIGHT_DECODE);
        bed_token(&b, 3, f->id);
        CU_ASSERT_EQUAL(f->n_tokens, 1);
    }
    join_ready(&b, 3);
    akini_router_dispatch(b.r, b.now);
    CU_ASSERT_EQUAL(join_n_sent(&b, 3, AKIN_MESSAGE_DECODE), 0);
    assume(&b, 3);
    akini_router_dispatch(b.r, b.now);
    CU_ASSERT_EQUAL(join_n_sent(&b, 3, AKIN_MESSAGE_DECODE), 4);
    CU_ASSERT_EQUAL(b.r->decode[0].n_flights, 4);
    bed_cleanup(&b);
}

static const runner_test_t tests[] = {
    {"in every state", every_state},   {"many lives", many_lives},
    {"both at once", both_at_once},    {"an owner", owner_lost},
    {"one of each role", one_of_each}, {"early words", early_words},
};

RUNNER_MAIN("router_join", tests)
