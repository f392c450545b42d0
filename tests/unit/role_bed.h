/* Role bed: a prefill or a decode rank in its own loop, between a net and a
 * clock that a test moves and an engine that can be predicted. Stands in for
 * runtime/net and the clock. */
#ifndef AKIN_TESTS_UNIT_ROLE_BED_H
#define AKIN_TESTS_UNIT_ROLE_BED_H

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "roles/worker.h"
#include "runner.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 8u
#define VOCAB 64u
#define LAYERS 2u
#define EXPERTS 4u
#define TOP_K 2u
#define HEAD_DIM 8u
#define MAX_POSITIONS 80u
#define OWNER 1u  /* rank of the prefill worker */
#define READER 2u /* rank of the decode worker */
#define N_RANKS 3u
#define MAX_READS 64u
#define MAX_WAITS 100000u

/* What the rank has sent. */
typedef struct said {
    uint32_t to;
    uint16_t type;
    void *data;
    size_t bytes;
} said_t;

typedef struct fake_read {
    uint64_t offset;
    unsigned char *local;
    size_t bytes;
    akin_net_read_fn_t done;
    void *arg;
} fake_read_t;

struct akin_net {
    const unsigned char *remote; /* the owner's slab */
    size_t remote_bytes;
    fake_read_t reads[MAX_READS];
    uint32_t n_reads;
};

typedef struct bed {
    akin_net_t net;
    akin_engine_t engine;
    akin_kv_layout_t layout;
    akin_kv_view_t view;
    akin_job_t job;
    akin_worker_t worker;
    /* Called whenever the rank waits; it may tell the rank things. */
    void (*script)(struct bed *bed);
    void (*said)(struct bed *bed, const said_t *said);
    void *test;
    int is_held; /* the engine's step goes on when this is over */
    akin_status_t step_status;
    sem_t may_step, awake;
    int is_lost[N_RANKS];
    uint32_t n_waits;
    uint64_t n_draws;
    uint64_t key;
} bed_t;

static bed_t bed;
static _Atomic int64_t bed_now_ns;

int64_t akin_clock_now_ns(void)
{
    return atomic_load(&bed_now_ns);
}

static inline void bed_pass(int64_t ns)
{
    atomic_fetch_add(&bed_now_ns, ns);
}

static inline uint32_t bed_draw(uint32_t below)
{
    return (uint32_t)akin_rng_below(bed.key, 0, bed.n_draws++, below);
}

akin_status_t akin_net_send(akin_net_t *net, uint32_t rank, uint16_t type,
                            const void *payload, size_t bytes)
{
    (void)net;
    CU_ASSERT_FATAL(rank < N_RANKS);
    if (bed.is_lost[rank])
        return AKIN_ERR_PEER;
    said_t said = {rank, type, malloc(bytes + 1), bytes};
    memcpy(said.data, payload, bytes);
    bed.said(&bed, &said);
    free(said.data);
    return AKIN_OK;
}

akin_status_t akin_net_read(akin_net_t *net, uint32_t rank, uint64_t offset,
                            void *local, size_t bytes, akin_net_read_fn_t done,
                            void *arg)
{
    if (rank != OWNER || bed.is_lost[rank])
        return AKIN_ERR_PEER;
    if (offset > net->remote_bytes || bytes > net->remote_bytes - offset)
        return AKIN_ERR_RANGE;
    if (net->n_reads == MAX_READS)
        return AKIN_ERR_FULL;
    net->reads[net->n_reads++] = (fake_read_t){offset, local, bytes, done, arg};
    return AKIN_OK;
}

/* A read ends; without success only a part has come, or nothing. */
static inline void bed_complete(uint32_t i, akin_status_t status)
{
    akin_net_t *net = &bed.net;
    const fake_read_t read = net->reads[i];
    net->reads[i] = net->reads[--net->n_reads];
    if (status != AKIN_ERR_CANCELED)
        memcpy(read.local, net->remote + read.offset,
               status == AKIN_OK ? read.bytes : read.bytes / 3);
    read.done(read.arg, status);
}

static inline void bed_lose(uint32_t rank)
{
    bed.is_lost[rank] = 1;
    while (rank == OWNER && bed.net.n_reads > 0)
        bed_complete(0, AKIN_ERR_PEER);
    akin_worker_on_peer_lost(&bed.worker, rank, AKIN_ERR_PEER);
}

int akin_net_is_one_sided(const akin_net_t *net, uint32_t rank)
{
    (void)net;
    return rank == OWNER;
}

int akin_net_has_peer(const akin_net_t *net, uint32_t rank)
{
    (void)net;
    return !bed.is_lost[rank];
}

void akin_net_drop_peer(akin_net_t *net, uint32_t rank)
{
    (void)net;
    (void)rank;
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

void akin_net_stats(const akin_net_t *net, akin_net_stats_t *stats_p)
{
    (void)net;
    *stats_p = (akin_net_stats_t){0};
}

void akin_net_wake(akin_net_t *net)
{
    (void)net;
    (void)sem_post(&bed.awake);
}

/* A step that is not held is over when this returns. A rank that ends waits in
 * vain unless the script helps it. */
akin_status_t akin_net_wait(akin_net_t *net, int64_t deadline_ns)
{
    (void)net;
    bed_pass(AKIN_NS_PER_US);
    if (bed.n_waits++ == MAX_WAITS)
        abort(); /* the rank does not end */
    bed.script(&bed);
    if (bed.worker.stepper == NULL) {
        if (deadline_ns < INT64_MAX && deadline_ns > akin_clock_now_ns())
            atomic_store(&bed_now_ns, deadline_ns);
    } else if (!bed.is_held && akin_stepper_job(bed.worker.stepper) == NULL) {
        (void)sem_post(&bed.may_step);
        while (sem_wait(&bed.awake) != 0)
            continue;
    }
    return AKIN_OK;
}

/* The state of a sequence behind a token; all that follows depends on it. */
static inline uint64_t bed_state(uint64_t before, uint32_t token)
{
    uint64_t x = (before ^ token) + UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ (x >> 27);
}

static inline uint64_t bed_state_of(const uint32_t *tokens, uint32_t n)
{
    uint64_t state = 0;
    for (uint32_t i = 0; i < n; i++)
        state = bed_state(state, tokens[i]);
    return state;
}

/* Keys, values and experts of a token: its state, over and over. */
static inline void bed_write(const akin_kv_layout_t *l, unsigned char *slot,
                             uint32_t place, uint64_t state)
{
    if (place == 0)
        memset(akin_kv_sidecar(l, slot), 0, l->sidecar_bytes);
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        uint16_t *rows[] = {akin_kv_keys(l, slot, layer, 0),
                            akin_kv_values(l, slot, layer, 0)};
        for (int i = 0; i < 2; i++)
            for (uint32_t d = 0; d < HEAD_DIM; d++)
                rows[i][place * HEAD_DIM + d] =
                    (uint16_t)(state >> (d % 4 * 16));
        for (uint32_t k = 0; k < TOP_K; k++)
            akin_kv_sidecar(
                l, slot)[layer * EXPERTS + (state + layer + k) % EXPERTS]++;
    }
}

static inline uint64_t bed_read(const akin_kv_layout_t *l, unsigned char *slot,
                                uint32_t place)
{
    uint64_t state = 0;
    const uint16_t *row = akin_kv_keys(l, slot, 0, 0) + place * HEAD_DIM;
    for (uint32_t d = 0; d < 4; d++)
        state |= (uint64_t)row[d] << (d * 16);
    return state;
}

/* The next token is the state modulo VOCAB. What a step computes follows from
 * what lies in the slots, right or wrong. */
static akin_status_t bed_step(akin_engine_t *engine, const akin_kv_view_t *view,
                              const akin_engine_span_t *spans, uint32_t n_spans,
                              akin_engine_report_t *report)
{
    const akin_kv_layout_t *l = &bed.layout;
    (void)engine;
    (void)view;
    while (sem_wait(&bed.may_step) != 0)
        continue;
    memset(report->n_distinct, 0, LAYERS * sizeof(*report->n_distinct));
    report->n_rows = 0;
    for (uint32_t i = 0; i < n_spans; i++) {
        const akin_engine_span_t *s = &spans[i];
        uint64_t state = 0;
        for (uint32_t t = 0; t < s->n_tokens; t++) {
            uint32_t at = s->position + t;
            if (at > 0)
                state = bed_read(
                    l, akin_kv_slot(&bed.view, s->slots[(at - 1) / BLOCK]),
                    (at - 1) % BLOCK);
            state = bed_state(state, s->tokens[t]);
            bed_write(l, akin_kv_slot(&bed.view, s->slots[at / BLOCK]),
                      at % BLOCK, state);
        }
        for (uint32_t v = 0; s->logits != NULL && v < VOCAB; v++)
            s->logits[v] = v == state % VOCAB ? 1.0f : 0.0f;
        report->n_rows += s->n_tokens;
    }
    return bed.step_status;
}

static const akin_model_config_t bed_model = {.n_layers = LAYERS,
                                              .n_experts = EXPERTS,
                                              .top_k = TOP_K,
                                              .vocab_size = VOCAB,
                                              .max_positions = MAX_POSITIONS};

static void bed_describe(const akin_engine_t *engine,
                         akin_engine_info_t *info_p)
{
    const akin_kernels_t *kernels;
    (void)engine;
    if (akin_kernels_find("portable", &kernels, NULL) != AKIN_OK)
        abort();
    *info_p = (akin_engine_info_t){.name = "fake",
                                   .kernels = kernels,
                                   .n_threads = 1,
                                   .model = &bed_model};
}

static const akin_engine_ops_t bed_ops = {
    .name = "fake", .describe = bed_describe, .step = bed_step};

static void bed_init(uint32_t rank, uint32_t n_slots)
{
    static const akin_kv_shape_t shape = {.n_layers = LAYERS,
                                          .n_kv_heads = 1,
                                          .head_dim = HEAD_DIM,
                                          .n_experts = EXPERTS,
                                          .top_k = TOP_K,
                                          .block_tokens = BLOCK};
    memset(&bed, 0, sizeof(bed));
    atomic_store(&bed_now_ns, AKIN_NS_PER_S);
    (void)sem_init(&bed.may_step, 0, 0);
    (void)sem_init(&bed.awake, 0, 0);
    CU_ASSERT_EQUAL_FATAL(akin_log_configure("error", NULL), AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(akin_kv_layout_init(&shape, &bed.layout, NULL),
                          AKIN_OK);
    bed.view = (akin_kv_view_t){.layout = &bed.layout, .n_slots = n_slots};
    bed.view.base = calloc(n_slots, bed.layout.stride_bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bed.view.base);
    bed.engine.ops = &bed_ops;
    bed.job = (akin_job_t){.n_prefill = 1,
                           .n_decode = 1,
                           .ep = 1,
                           .prefill_ep = 1,
                           .lease_ns = 30 * AKIN_NS_PER_S,
                           .transfer_timeout_ns = AKIN_NS_PER_S,
                           .chunk_tokens = 20};
    bed.worker = (akin_worker_t){.job = &bed.job,
                                 .rank = rank,
                                 .max_rows = 4,
                                 .max_tokens = 20,
                                 .net = &bed.net,
                                 .engine = &bed.engine,
                                 .model = &bed_model,
                                 .view = &bed.view,
                                 .group = {.n_ranks = 1, .leader = rank}};
    if (rank == READER) {
        bed.worker.max_tokens = 0;
        bed.worker.count_routes = 0;
    }
    CU_ASSERT_EQUAL_FATAL(akin_kv_cache_create(&bed.view, 1, &bed.worker.cache),
                          AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(akini_worker_peers_create(&bed.worker), AKIN_OK);
}

static void bed_audit(void)
{
    akin_error_t err = {{0}};
    if (akin_kv_cache_audit(bed.worker.cache, &err) != AKIN_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        CU_FAIL_FATAL("audit");
    }
}

static void bed_free(void)
{
    akin_kv_cache_destroy(bed.worker.cache);
    free(bed.view.base);
    (void)sem_destroy(&bed.may_step);
    (void)sem_destroy(&bed.awake);
}

/* The rank has ended, with every slot back. */
static void bed_cleanup(void)
{
    bed_audit();
    CU_ASSERT_EQUAL(akin_kv_cache_available(bed.worker.cache),
                    bed.view.n_slots);
    bed_free();
}

/* Tells the rank what is in a packer. */
static inline void bed_tell(uint32_t from, uint16_t type, akin_packer_t *p)
{
    CU_ASSERT_EQUAL_FATAL(p->status, AKIN_OK);
    akin_worker_on_message(&bed.worker, from, type, p->data, p->bytes);
    akin_packer_cleanup(p);
}

static inline void bed_tell_id(uint32_t from, uint16_t type, uint64_t id)
{
    akin_packer_t p = {0};
    akin_message_pack_id(&p, id);
    bed_tell(from, type, &p);
}

static inline void bed_stop(void)
{
    akin_worker_on_message(&bed.worker, AKIN_ROUTER_RANK, AKIN_MESSAGE_STOP,
                           NULL, 0);
}

#endif
