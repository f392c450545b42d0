/* World: all processes of a job but the router's, with the supervisors that
 * start them anew, over the nets of world_net.h. Workers compute nothing: the
 * next token is a hash of those before it, so that an answer shows whether its
 * request went on from the right place. */
#ifndef AKIN_TESTS_UNIT_WORLD_H
#define AKIN_TESTS_UNIT_WORLD_H

#include "roles/router_state.h"
#include "roles/worker.h"
#include "roles/worker_wait.h"
#include "world_net.h"

#include "draw.h"

#define WORLD_BLOCK 16u
#define WORLD_SLOTS 64u

/** A request at a worker. */
typedef struct world_work {
    uint64_t id;
    uint32_t *tokens;
    uint32_t n_tokens;
    uint32_t n_left; /* that may follow */
    uint32_t owner;  /* decode: of the blocks, and its process */
    uint64_t owner_incarnation;
    int is_pinned;  /* prefill: computed */
    int is_running; /* decode: has its blocks */
    struct world_work *prev, *next;
} world_work_t;

typedef enum world_stage {
    WORLD_JOINS, /* waits for its group */
    WORLD_LOADS,
    WORLD_WAITS, /* for a role */
    WORLD_SERVES,
    WORLD_LEAVES /* only told of a death */
} world_stage_t;

typedef struct world_process {
    akin_net_t net;
    akin_worker_t worker;
    akini_worker_wait_t wait;
    world_stage_t stage;
    int is_prefill;
    uint32_t life;
    world_work_t *work;
    uint64_t n_steps;
} world_process_t;

/** What has become of a rank. */
typedef struct world_rank {
    world_process_t *process; /* NULL: none */
    uint32_t n_lives;
    int is_due;  /* another life is to come */
    int is_last; /* and it is the last one */
} world_rank_t;

typedef struct world {
    akin_job_t job;
    akin_model_config_t model;
    uint64_t seed, n_draws;
    uint64_t incarnation;
    uint32_t max_lives; /* that serve, of a rank */
    int is_held;        /* no request gets its last token */
    world_identity_t router;
    world_rank_t ranks[WORLD_RANKS];
    akin_router_t *r;
    uint64_t n_faults;
    uint32_t slow_events; /* for about so long */
    uint32_t is_idle;     /* bit: that rank does none of its work for a while */
    uint32_t is_deaf;     /* bit: nor takes messages, or hears of losses */
} world_t;

static world_t world;

static inline uint32_t world_draw(uint32_t n)
{
    return draw_below(world.seed, world.n_draws++, n);
}

static inline uint32_t world_draw_upto(uint32_t n)
{
    return world_draw(n + 1);
}

/** The token that follows. */
static inline uint32_t world_next_token(const uint32_t *tokens, uint32_t n)
{
    uint64_t h = n;
    for (uint32_t i = 0; i < n; i++)
        h = draw_bits(h, tokens[i]);
    return 10 + (uint32_t)(h % 500);
}

static inline void world_forget(world_process_t *p, world_work_t *w)
{
    DL_DELETE(p->work, w);
    free(w->tokens);
    free(w);
}

static inline world_work_t *world_find(const world_process_t *p, uint64_t id)
{
    world_work_t *w;
    DL_FOREACH(p->work, w)
    if (w->id == id)
        return w;
    return NULL;
}

static inline void world_take(world_process_t *p, uint64_t id, uint32_t *tokens,
                              size_t n_tokens, uint32_t n_left, uint32_t owner)
{
    world_work_t *w = calloc(1, sizeof(*w));
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    CU_ASSERT_PTR_NULL(world_find(p, id));
    *w = (world_work_t){
        .id = id,
        .tokens = realloc(tokens, (n_tokens + n_left) * sizeof(*tokens)),
        .n_tokens = (uint32_t)n_tokens,
        .n_left = n_left,
        .owner = owner};
    CU_ASSERT_PTR_NOT_NULL_FATAL(w->tokens);
    /* Whom the router sends for blocks is one that it has had connected: where
     * both serve, and are not lost meanwhile. */
    const akin_net_t *router = world_nets[0];
    w->owner_incarnation = akin_net_peer_incarnation(&p->net, owner);
    if (akini_router_is_prefill(world.r, owner) &&
        akini_router_is_decode(world.r, p->net.rank) &&
        akin_net_peer_incarnation(router, p->net.rank) == p->net.incarnation &&
        akin_net_has_peer(router, owner) && !world_is_cut(router, owner))
        CU_ASSERT_EQUAL(w->owner_incarnation, router->peers[owner].incarnation);
    DL_APPEND(p->work, w);
}

static inline void world_message(akin_worker_t *worker, uint32_t from,
                                 uint16_t type, const void *payload,
                                 size_t bytes)
{
    world_process_t *p = worker->state;
    akin_message_prefill_t prefill;
    akin_message_decode_t decode;
    uint64_t id = 0;
    if (type == AKIN_MESSAGE_PREFILL) {
        CU_ASSERT_FATAL(p->is_prefill);
        CU_ASSERT_EQUAL_FATAL(
            akin_message_unpack_prefill(payload, bytes, &prefill), AKIN_OK);
        world_take(p, prefill.id, prefill.tokens, prefill.n_tokens,
                   prefill.how.max_tokens, 0);
        return;
    }
    if (type == AKIN_MESSAGE_DECODE) {
        CU_ASSERT_FATAL(!p->is_prefill);
        CU_ASSERT_EQUAL_FATAL(
            akin_message_unpack_decode(payload, bytes, &decode), AKIN_OK);
        free(decode.blocks);
        world_take(p, decode.id, decode.tokens, decode.n_tokens,
                   decode.how.max_tokens - 1, decode.owner);
        return;
    }
    CU_ASSERT(type == AKIN_MESSAGE_CANCEL || type == AKIN_MESSAGE_RELEASE ||
              type == AKIN_MESSAGE_KEEP);
    CU_ASSERT(from == 0 || type == AKIN_MESSAGE_RELEASE);
    CU_ASSERT_EQUAL_FATAL(akin_message_unpack_id(payload, bytes, &id), AKIN_OK);
    world_work_t *w = world_find(p, id);
    if (w != NULL && type != AKIN_MESSAGE_KEEP)
        world_forget(p, w);
}

static inline void world_peer_lost(akin_worker_t *worker, uint32_t rank)
{
    (void)worker;
    (void)rank;
}

static const akin_worker_role_t world_role = {.message = world_message,
                                              .peer_lost = world_peer_lost};

/** A process is no more; of what it sent last, some may never arrive. */
static inline void world_end(uint32_t rank, int is_in_order)
{
    world_rank_t *of = &world.ranks[rank];
    world_process_t *p = of->process;
    for (uint32_t to = 0; to < WORLD_RANKS; to++) {
        world_message_t *m, *next;
        uint32_t n = 0, n_kept;
        if (world_nets[to] == NULL || to == rank)
            continue;
        DL_FOREACH(world_nets[to]->peers[rank].inbox, m)
        n += m->from_incarnation == p->net.incarnation;
        n_kept = is_in_order ? n : world_draw_upto(n);
        if (n_kept < world_nets[to]->peers[rank].n_ready)
            n_kept = world_nets[to]->peers[rank].n_ready;
        DL_FOREACH_SAFE(world_nets[to]->peers[rank].inbox, m, next)
        if (m->from_incarnation == p->net.incarnation && n_kept-- == 0) {
            n_kept = 0;
            DL_DELETE(world_nets[to]->peers[rank].inbox, m);
            free(m);
        }
    }
    world_nets[rank] = NULL;
    of->process = NULL;
    of->is_due = !is_in_order && !of->is_last;
    while (p->work != NULL)
        world_forget(p, p->work);
    akini_worker_wait_end(&p->wait);
    akini_worker_peers_cleanup(&p->worker);
    akin_packer_cleanup(&p->worker.packer);
    world_net_cleanup(&p->net);
    free(p);
}

static inline world_identity_t world_identity(uint32_t rank)
{
    return (world_identity_t){.incarnation = world_nets[rank]->incarnation,
                              .rank = rank};
}

static inline void world_connect(uint32_t from, uint32_t to)
{
    const world_identity_t id = world_identity(to);
    CU_ASSERT_EQUAL_FATAL(
        akin_net_add_peer(world_nets[from], to, &id, sizeof(id), NULL),
        AKIN_OK);
}

/** A process that knows nobody yet. */
static inline world_process_t *world_fork(uint32_t rank)
{
    world_rank_t *of = &world.ranks[rank];
    const akin_job_place_t place = akin_job_place(&world.job, rank);
    world_process_t *p = calloc(1, sizeof(*p));
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    of->process = p;
    of->is_due = 0;
    p->life = of->n_lives++;
    p->is_prefill = place.role == AKIN_JOB_PREFILL;
    p->net.rank = rank;
    p->net.incarnation = ++world.incarnation;
    p->net.events = (akin_net_events_t){.message = akin_worker_on_message,
                                        .peer_lost = akin_worker_on_peer_lost,
                                        .arg = &p->worker};
    p->worker = (akin_worker_t){
        .job = &world.job,
        .rank = rank,
        .net = &p->net,
        .group = {.n_ranks = place.n_ranks, .leader = place.first},
        .model = &world.model,
        .state = p,
    };
    CU_ASSERT_EQUAL_FATAL(akini_worker_peers_create(&p->worker), AKIN_OK);
    world_nets[rank] = &p->net;
    return p;
}

static inline int world_is_fellow(const world_process_t *p, uint32_t rank)
{
    const uint32_t first = p->worker.group.leader, own = p->net.rank;
    return rank != own && rank >= first &&
           rank - first < p->worker.group.n_ranks &&
           (rank == first || own == first);
}

/** The first lives of all ranks, connected as they are without recovery. */
static inline void world_begin(akin_net_t *router)
{
    const uint32_t n_ranks = akin_job_n_ranks(&world.job);
    world.router = (world_identity_t){.incarnation = ++world.incarnation};
    router->incarnation = world.router.incarnation;
    world_nets[0] = router;
    for (uint32_t rank = 1; rank < n_ranks; rank++)
        (void)world_fork(rank);
    for (uint32_t rank = 1; rank < n_ranks; rank++) {
        world_process_t *p = world.ranks[rank].process;
        const akin_job_role_t role = akin_job_place(&world.job, rank).role;
        world_connect(rank, 0);
        world_connect(0, rank);
        for (uint32_t to = 1; to < n_ranks; to++) {
            const akin_job_role_t other = akin_job_place(&world.job, to).role;
            if (world_is_fellow(p, to) ||
                (role != other && role != AKIN_JOB_SPARE &&
                 other != AKIN_JOB_SPARE))
                world_connect(rank, to);
        }
        if (role == AKIN_JOB_SPARE) {
            p->stage = WORLD_WAITS;
            akini_worker_wait_begin(&p->wait, &p->worker);
        } else {
            p->stage = WORLD_SERVES;
            p->worker.role = &world_role;
        }
    }
}

/** The supervisor starts the next life. */
static inline void world_start(uint32_t rank)
{
    world_rank_t *of = &world.ranks[rank];
    of->is_last = of->n_lives > world.max_lives;
    world_process_t *p = world_fork(rank);
    p->stage = of->is_last ? WORLD_LEAVES : WORLD_JOINS;
    akini_worker_wait_begin(&p->wait, &p->worker);
    CU_ASSERT_EQUAL_FATAL(akin_net_add_peer(&p->net, 0, &world.router,
                                            sizeof(world.router), NULL),
                          AKIN_OK);
    const world_identity_t id = world_identity(rank);
    const akin_message_join_t m = {
        .life = p->life,
        .is_last = of->is_last != 0,
        .identity = {.rank = rank, .net = &id, .net_bytes = sizeof(id)},
    };
    akin_message_pack_join(&p->worker.packer, &m);
    akin_worker_send(&p->worker, 0, AKIN_MESSAGE_JOIN);
}

#endif
