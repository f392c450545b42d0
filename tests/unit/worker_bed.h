/* Worker bed: ranks of a worker in one process, over a net that a test
 * delivers, on engines that count. Stands in for runtime/net. */
#ifndef AKIN_TESTS_UNIT_WORKER_BED_H
#define AKIN_TESTS_UNIT_WORKER_BED_H

#include "base/clock.h"
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

int akin_net_has_peer(const akin_net_t *net, uint32_t rank)
{
    return rank != net->rank;
}

uint64_t akin_net_peer_incarnation(const akin_net_t *net, uint32_t rank)
{
    (void)net;
    return rank + UINT64_C(1);
}

akin_status_t akin_net_add_peer(akin_net_t *net, uint32_t rank,
                                const void *blob, size_t bytes,
                                akin_error_t *err)
{
    (void)net;
    (void)rank;
    (void)blob;
    (void)bytes;
    (void)err;
    return AKIN_OK;
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

#endif
