/* Router: spare workers take over, and how long the router waits for whom. */
#include "join_bed.h"

/* Ranks 1 2 prefill, 3 4 decode, then spare ones. */
static void init(bed_t *b, uint32_t n_spare)
{
    akin_job_t job = join_job(1);
    job.recovery = AKIN_RECOVERY_SPARE;
    job.n_spare = n_spare;
    join_init(b, &job, 1);
}

static void expect_assume(const bed_t *b, uint32_t rank, int of_prefill,
                          uint32_t worker)
{
    akin_message_assume_t m = join_assume_of(b, rank);
    CU_ASSERT_EQUAL(m.is_prefill, of_prefill);
    CU_ASSERT_EQUAL(m.worker, worker);
    akin_message_assume_cleanup(&m);
    CU_ASSERT_EQUAL(join_group(b, rank)->state, AKINI_GROUP_ASSUMING);
}

static void expect_rank(const bed_t *b, uint32_t worker, uint32_t rank)
{
    uint32_t n;
    CU_ASSERT_EQUAL(b->r->lost_ns[worker], 0);
    CU_ASSERT_EQUAL(akini_router_places(b->r, worker, &n)->rank, rank);
    CU_ASSERT_EQUAL(join_group(b, rank)->worker, worker);
    CU_ASSERT(join_books_agree(b));
}

static void settle(bed_t *b, uint32_t rank)
{
    join_peered_all(b);
    join_assumed(b, rank);
    bed_clear(b);
}

/* A spare becomes what was lost at once; what was lost becomes the next spare,
 * for either role. */
static void take_over(void)
{
    bed_t b;
    init(&b, 1);
    CU_ASSERT_EQUAL(join_group(&b, 5)->state, AKINI_GROUP_WAITING);
    akini_flight_t *f = bed_bring_to(&b, AKINI_FLIGHT_DECODE);
    const uint32_t lost = 3 + f->decode;
    bed_clear(&b);
    join_lose(&b, lost);
    expect_assume(&b, 5, 0, lost - 3);
    settle(&b, 5);
    expect_rank(&b, lost - 1, 5);
    CU_ASSERT(akini_router_is_decode(b.r, 5));
    CU_ASSERT(!akini_router_is_decode(b.r, lost));
    CU_ASSERT_EQUAL(join_figure(&b, (int)lost - 1, "times_recovered"), 1.0);
    join_come_back(&b, lost);
    CU_ASSERT_EQUAL(join_group(&b, lost)->state, AKINI_GROUP_WAITING);
    CU_ASSERT_EQUAL(join_n_sent(&b, lost, AKIN_MESSAGE_ASSUME), 0);
    join_lose(&b, 1);
    expect_assume(&b, lost, 1, 0);
    settle(&b, lost);
    expect_rank(&b, 0, lost);
    CU_ASSERT(akini_router_is_prefill(b.r, lost));
    /* All of it goes over the two. */
    join_lose(&b, 2);
    join_lose(&b, lost == 3 ? 4 : 3);
    f = bed_bring_to(&b, AKINI_FLIGHT_DECODE);
    CU_ASSERT_EQUAL(join_n_sent(&b, lost, AKIN_MESSAGE_PREFILL), 1);
    CU_ASSERT_EQUAL(join_n_sent(&b, 5, AKIN_MESSAGE_DECODE), 1);
    bed_token(&b, 5, f->id);
    bed_token(&b, 5, f->id);
    CU_ASSERT_EQUAL(b.r->counts.done, 1);
    CU_ASSERT_EQUAL(b.r->failure, AKIN_OK);
    bed_cleanup(&b);
}

/* Two vacancies, one spare: the first loss has it, the second waits for
 * whatever comes back. */
static void two_vacancies(void)
{
    bed_t b;
    init(&b, 1);
    join_lose(&b, 4);
    join_lose(&b, 2);
    expect_assume(&b, 5, 0, 1);
    CU_ASSERT(b.r->lost_ns[1] != 0 && b.r->lost_ns[3] != 0);
    settle(&b, 5);
    expect_rank(&b, 3, 5);
    CU_ASSERT(b.r->lost_ns[1] != 0);
    join_come_back(&b, 4);
    expect_assume(&b, 4, 1, 1);
    settle(&b, 4);
    expect_rank(&b, 1, 4);
    join_come_back(&b, 2);
    CU_ASSERT_EQUAL(join_group(&b, 2)->state, AKINI_GROUP_WAITING);
    bed_cleanup(&b);
}

/* A spare that dies while it waits or takes over is no worker's loss, and
 * another one takes over in its place. */
static void lost_spares(void)
{
    bed_t b;
    init(&b, 2);
    join_lose(&b, 5);
    CU_ASSERT_EQUAL(join_group(&b, 5)->state, AKINI_GROUP_LOST);
    CU_ASSERT_EQUAL(join_figure(&b, -1, "times_lost"), 0.0);
    join_come_back(&b, 5);
    CU_ASSERT_EQUAL(join_group(&b, 5)->state, AKINI_GROUP_WAITING);
    join_lose(&b, 3);
    const uint32_t first = join_n_sent(&b, 5, AKIN_MESSAGE_ASSUME) > 0 ? 5 : 6;
    bed_clear(&b);
    join_lose(&b, first);
    CU_ASSERT_EQUAL(join_figure(&b, -1, "times_lost"), 1.0);
    expect_assume(&b, 11 - first, 0, 0);
    settle(&b, 11 - first);
    CU_ASSERT_EQUAL(join_group(&b, 11 - first)->state, AKINI_GROUP_ASSUMING);
    /* What the dead one was told of is answered for, too. */
    join_peered(&b, 1, first);
    join_peered(&b, 2, first);
    expect_rank(&b, 2, 11 - first);
    bed_cleanup(&b);
}

/* Nobody waits for the word of a rank that dies owing it. */
static void lost_debtor(void)
{
    bed_t b;
    init(&b, 1);
    join_lose(&b, 3);
    join_assumed(&b, 5);
    join_peered(&b, 2, 5);
    CU_ASSERT_EQUAL(join_group(&b, 5)->state, AKINI_GROUP_ASSUMING);
    join_lose(&b, 1);
    expect_rank(&b, 2, 5);
    CU_ASSERT_EQUAL(b.r->processes[1].n_owed, 0);
    bed_cleanup(&b);
}

/* Those that are late are given up: ranks of the group that say nothing, or
 * else those that do not connect to it; never the others. */
static void late(void)
{
    bed_t b;
    init(&b, 1);
    join_lose(&b, 3);
    const int64_t due = join_group(&b, 5)->deadline_ns;
    CU_ASSERT(due - akin_clock_now_ns() > 59 * AKIN_NS_PER_S);
    CU_ASSERT_EQUAL(akini_router_expire_groups(b.r, due - 1), due);
    CU_ASSERT(!b.net.is_dropped[5]);
    (void)akini_router_expire_groups(b.r, due);
    CU_ASSERT(b.net.is_dropped[5]);
    CU_ASSERT(!b.net.is_dropped[1] && !b.net.is_dropped[2]);
    join_lose_dropped(&b, 5, 1);
    CU_ASSERT_EQUAL(join_group(&b, 5)->state, AKINI_GROUP_LOST);
    bed_cleanup(&b);
    init(&b, 1);
    join_lose(&b, 3);
    join_assumed(&b, 5);
    join_peered(&b, 2, 5);
    (void)akini_router_expire_groups(b.r, join_group(&b, 5)->deadline_ns);
    CU_ASSERT(!b.net.is_dropped[5] && !b.net.is_dropped[2]);
    CU_ASSERT(b.net.is_dropped[1]);
    join_lose_dropped(&b, 1, 1);
    expect_rank(&b, 2, 5);
    bed_cleanup(&b);
}

/* A rank that joins has its time to load, all of it from when it can begin. */
static void late_to_load(void)
{
    bed_t b;
    const akin_job_t job = join_job(2);
    join_init(&b, &job, 1);
    join_lose(&b, 5);
    join_lose(&b, 6);
    join_join(&b, 5, 0);
    CU_ASSERT_EQUAL(join_group(&b, 5)->deadline_ns, INT64_MAX);
    (void)akini_router_expire_groups(b.r, b.now + 3600 * AKIN_NS_PER_S);
    CU_ASSERT(!b.net.is_dropped[5]);
    const int64_t before = akin_clock_now_ns();
    join_join(&b, 6, 0);
    const int64_t due = join_group(&b, 5)->deadline_ns;
    CU_ASSERT(due > before + job.start_timeout_ns);
    join_ready(&b, 5);
    CU_ASSERT_EQUAL(akini_router_expire_groups(b.r, due - 1), due);
    CU_ASSERT(!b.net.is_dropped[6]);
    (void)akini_router_expire_groups(b.r, due);
    CU_ASSERT(b.net.is_dropped[6] && !b.net.is_dropped[5]);
    bed_clear(&b);
    join_lose_dropped(&b, 6, 1);
    CU_ASSERT_EQUAL(join_n_lost(&b, 5, 6, 1), 1);
    bed_cleanup(&b);
}

/* When the run is broken off for want of decode workers. */
static void expect_end(bed_t *b, int64_t due_ns)
{
    CU_ASSERT_EQUAL(akini_router_expire_groups(b->r, due_ns - 1), due_ns);
    CU_ASSERT_EQUAL(b->r->failure, AKIN_OK);
    (void)akini_router_expire_groups(b->r, due_ns);
    CU_ASSERT_EQUAL(b->r->failure, AKIN_ERR_PEER);
    CU_ASSERT_PTR_NOT_NULL(strstr(b->r->error.text, "no decode worker"));
}

/* Without a worker of a role the job waits for one that may come, for a while;
 * not for one of which only a part has come. */
static void no_worker(void)
{
    bed_t b;
    init(&b, 0);
    join_lose(&b, 3);
    CU_ASSERT_EQUAL(akini_router_expire_groups(b.r, b.now), INT64_MAX);
    join_lose(&b, 4);
    const int64_t since =
        b.r->lost_ns[3] > b.r->lost_ns[2] ? b.r->lost_ns[3] : b.r->lost_ns[2];
    expect_end(&b, since + b.job.recovery_timeout_ns);
    bed_cleanup(&b);
    /* Those that load are waited for. */
    init(&b, 0);
    join_lose(&b, 3);
    join_lose(&b, 4);
    join_join(&b, 4, 0);
    (void)akini_router_expire_groups(b.r, b.r->lost_ns[3] +
                                              b.job.recovery_timeout_ns);
    CU_ASSERT_EQUAL(b.r->failure, AKIN_OK);
    bed_cleanup(&b);
    const akin_job_t job = join_job(2);
    join_init(&b, &job, 1);
    for (uint32_t rank = 5; rank <= 8; rank++)
        join_lose(&b, rank);
    join_join(&b, 6, 0);
    join_join(&b, 7, 0);
    expect_end(&b, b.r->lost_ns[3] + b.job.recovery_timeout_ns);
    bed_cleanup(&b);
}

/* A job that shrinks ends at once, and tells no rank to come in. */
static void shrinks(void)
{
    bed_t b;
    akin_job_t job = join_job(1);
    job.recovery = AKIN_RECOVERY_SHRINK;
    join_init(&b, &job, 1);
    join_lose(&b, 3);
    CU_ASSERT_EQUAL(join_group(&b, 3)->state, AKINI_GROUP_GONE);
    CU_ASSERT_EQUAL(akini_router_expire_groups(b.r, b.now), INT64_MAX);
    bed_clear(&b);
    join_join(&b, 3, 1);
    CU_ASSERT_EQUAL(join_n_sent(&b, 3, AKIN_MESSAGE_STOP), 1);
    CU_ASSERT_EQUAL(b.net.n_sent, 1);
    join_lose(&b, 4);
    (void)akini_router_expire_groups(b.r, b.now);
    CU_ASSERT_EQUAL(b.r->failure, AKIN_ERR_PEER);
    bed_cleanup(&b);
}

static const runner_test_t tests[] = {
    {"take over", take_over},
    {"two vacancies", two_vacancies},
    {"lost spares", lost_spares},
    {"a lost debtor", lost_debtor},
    {"late ranks", late},
    {"late to load", late_to_load},
    {"no worker is left", no_worker},
    {"shrinks", shrinks},
};

RUNNER_MAIN("router_join_spares", tests)
