/* Worker group: ranks of a worker in one process, over a net that a test
 * delivers, on engines that count. */
#include "base/clock.h"
#include "ep/exchange_local.h"
#include "roles/worker.h"
#include "runner.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 3u
#define FIRST 5u /* rank of the leader */
#define QUEUE 256u

typedef struct sent {
    uint32_t from, to;
    uint16_t type;
    unsigned char payload[16];
    size_t bytes;
} sent_t;

struct akin_net {
    uint32_t rank;
};

static sent_t queue[QUEUE];
static uint32_t n_queued;
static int is_deaf[RANKS];              /* its messages are not delivered */
static akin_message_placed_t to_router; /* the last one */
static uint32_t n_to_router;

/* Stand in for runtime/net. */
akin_status_t akin_net_send(akin_net_t *net, uint32_t rank, uint16_t type,
                            const void *payload, size_t bytes)
{
    CU_ASSERT_FATAL(bytes <= sizeof(queue[0].payload));
    if (rank == AKIN_ROUTER_RANK) {
        CU_ASSERT_EQUAL(type, AKIN_MESSAGE_PLACED);
        CU_ASSERT_EQUAL(akin_message_unpack_placed(payload, bytes, &to_router),
                        AKIN_OK);
        n_to_router++;
        return AKIN_OK;
    }
    CU_ASSERT_FATAL(n_queued < QUEUE);
    sent_t *s = &queue[n_queued++];
    *s = (sent_t){.from = net->rank, .to = rank, .type = type, .bytes = bytes};
    memcpy(s->payload, payload, bytes);
    return AKIN_OK;
}

void akin_net_drop_peer(akin_net_t *net, uint32_t rank)
{
    (void)net;
    (void)rank;
}

akin_status_t akin_net_wait(akin_net_t *net, int64_t deadline_ns)
{
    (void)net;
    (void)deadline_ns;
    return AKIN_ERR_TIMEOUT;
}

void akin_net_wake(akin_net_t *net)
{
    (void)net;
}

void akin_net_stats(const akin_net_t *net, akin_net_stats_t *stats_p)
{
    (void)net;
    *stats_p = (akin_net_stats_t){0};
}

typedef struct rank {
    akin_engine_t engine;
    akin_net_t net;
    akin_worker_t worker;
    uint32_t work;    /* rows to come */
    uint32_t n_rows;  /* computed */
    uint32_t n_steps; /* made */
    uint32_t touched; /* bit e: the weights of expert e were brought */
} rank_t;

static akin_model_config_t model = {.n_layers = 1,
                                    .n_experts = 4,
                                    .top_k = 1,
                                    .vocab_size = 4,
                                    .max_positions = 8};
static akin_kv_layout_t layout;
static const akin_kv_view_t view = {.layout = &layout, .n_slots = 1};

static void describe(const akin_engine_t *engine, akin_engine_info_t *info_p)
{
    const akin_kernels_t *kernels;
    (void)engine;
    if (akin_kernels_find("portable", &kernels, NULL) != AKIN_OK)
        abort();
    *info_p = (akin_engine_info_t){
        .name = "fake", .kernels = kernels, .n_threads = 1, .model = &model};
}

static akin_status_t step(akin_engine_t *engine, const akin_kv_view_t *v,
                          const akin_engine_span_t *spans, uint32_t n_spans,
                          akin_engine_report_t *report)
{
    (void)engine;
    (void)v;
    (void)spans;
    report->n_rows = n_spans;
    report->n_distinct[0] = 0;
    return AKIN_OK;
}

static rank_t *ranks_of_test;

static void touch_expert(const akin_engine_t *engine, uint32_t layer,
                         uint32_t expert)
{
    for (uint32_t i = 0; i < RANKS; i++)
        if (&ranks_of_test[i].engine == engine && layer == 0)
            ranks_of_test[i].touched |= 1u << expert;
}

static const akin_engine_ops_t ops = {.name = "fake",
                                      .describe = describe,
                                      .step = step,
                                      .touch_expert = touch_expert};

static int has_work(akin_worker_t *worker)
{
    return ((rank_t *)worker->state)->work > 0;
}

static void fill(akin_worker_t *worker, akin_stepper_job_t *job)
{
    static const uint32_t token, slot;
    rank_t *r = worker->state;
    if (r->work == 0)
        return;
    r->work--;
    job->rows[job->n_rows++] =
        (akin_stepper_row_t){.tokens = &token, .n_tokens = 1, .slots = &slot};
}

static const akin_worker_role_t role = {.fill = fill, .has_work = has_work};

static void wake(void *arg)
{
    (void)arg;
}

static const akin_job_t job = {.ep_timeout_ns = 10 * AKIN_NS_PER_S};

static void init(rank_t *ranks)
{
    const akin_kv_shape_t shape = {.n_layers = 1,
                                   .n_kv_heads = 1,
                                   .head_dim = 32,
                                   .n_experts = 4,
                                   .top_k = 1,
                                   .block_tokens = 16};
    CU_ASSERT_EQUAL_FATAL(akin_kv_layout_init(&shape, &layout, NULL), AKIN_OK);
    n_queued = n_to_router = 0;
    ranks_of_test = ranks;
    memset(is_deaf, 0, sizeof(is_deaf));
    for (uint32_t i = 0; i < RANKS; i++) {
        rank_t *r = &ranks[i];
        *r = (rank_t){.engine = {&ops}, .net = {FIRST + i}};
        r->worker = (akin_worker_t){
            .job = &job,
            .rank = FIRST + i,
            .net = &r->net,
            .engine = &r->engine,
            .model = &model,
            .group = {.n_ranks = RANKS, .leader = FIRST},
            .role = &role,
            .state = r,
        };
        const akin_stepper_params_t params = {
            .engine = &r->engine, .view = &view, .max_rows = 1, .wake = wake};
        CU_ASSERT_EQUAL_FATAL(akin_stepper_create(&params, &r->worker.stepper),
                              AKIN_OK);
        akini_worker_group_init(&r->worker);
    }
}

static void cleanup(rank_t *ranks)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        akin_stepper_destroy(ranks[i].worker.stepper);
        akini_worker_place_cleanup(&ranks[i].worker);
        akin_packer_cleanup(&ranks[i].worker.packer);
    }
}

static void deliver(rank_t *ranks)
{
    uint32_t kept = 0;
    const uint32_t n = n_queued;
    for (uint32_t i = 0; i < n; i++) {
        const sent_t s = queue[i];
        CU_ASSERT_FATAL(s.to >= FIRST && s.to < FIRST + RANKS);
        if (is_deaf[s.from - FIRST])
            queue[kept++] = s;
        else
            CU_ASSERT((s.type == AKIN_MESSAGE_PLACED
                           ? akini_worker_place_message
                           : akini_worker_group_message)(
                &ranks[s.to - FIRST].worker, s.from, s.type, s.payload,
                s.bytes));
    }
    n_queued = kept;
}

/* What the loop of a worker does. */
static void turn(rank_t *r)
{
    akin_worker_t *w = &r->worker;
    akin_stepper_job_t *done = akin_stepper_finished(w->stepper);
    if (done != NULL) {
        r->n_steps++;
        r->n_rows += done->n_rows;
        akini_worker_group_made(w);
    }
    if (w->failure == AKIN_OK && !w->stopping) {
        akini_worker_place_turn(w);
        akini_worker_group_turn(w);
    }
}

/* Until nothing is under way any more. */
static void settle(rank_t *ranks)
{
    for (uint32_t quiet = 0; quiet < 3;) {
        const uint32_t before = n_queued;
        deliver(ranks);
        int is_busy = n_queued != before;
        for (uint32_t i = 0; i < RANKS; i++) {
            turn(&ranks[i]);
            is_busy |= ranks[i].worker.group.is_stepping |
                       ranks[i].worker.place.is_warming;
        }
        quiet = is_busy ? 0 : quiet + 1;
        (void)sched_yield();
    }
}

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
    {"steps", steps},
    {"stop", stop},
    {"late", late},
    {"out of order", out_of_order},
    {"lost", lost},
    {"new map", new_map},
    {"dropped map", dropped_map},
};

RUNNER_MAIN("worker_group", tests)
