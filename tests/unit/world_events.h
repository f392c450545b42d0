/* World events: what may happen next in a world, and one of it at a time. */
#ifndef AKIN_TESTS_UNIT_WORLD_EVENTS_H
#define AKIN_TESTS_UNIT_WORLD_EVENTS_H

#include "world.h"

typedef enum world_event_kind {
    WORLD_DELIVER, /* a rank takes a message of another */
    WORLD_SETTLE,  /* a rank is told of a loss */
    WORLD_NOTICE,  /* a rank's net finds a loss */
    WORLD_STEP,    /* a rank does some of its work */
    WORLD_START    /* a rank's next life begins */
} world_event_kind_t;

typedef struct world_event {
    world_event_kind_t kind;
    uint32_t rank, other;
} world_event_t;

/** A worker that the router has given up finds that out. */
static inline int world_is_fenced(const akin_net_t *net)
{
    return net->rank != 0 && akin_net_has_peer(net, 0) &&
           world_nets[0]->peers[net->rank].retired >= net->incarnation;
}

static inline int world_can_work(const world_process_t *p,
                                 const world_work_t *w)
{
    if (p->is_prefill)
        return !w->is_pinned && (w->n_left > 1 || !world.is_held);
    return !w->is_running || w->n_left > 1 || !world.is_held;
}

static inline int world_has_ended(const world_process_t *p)
{
    return p->worker.failure != AKIN_OK || p->worker.stopping ||
           p->worker.group.is_ending || p->wait.is_stopped;
}

static inline int world_can_step(const world_process_t *p)
{
    const world_message_t *m;
    const world_work_t *w;
    if (world_has_ended(p))
        return 1;
    switch (p->stage) {
    case WORLD_JOINS:
        return p->wait.group_data != NULL;
    case WORLD_LOADS:
        return 1;
    case WORLD_WAITS:
        return p->wait.assume_data != NULL;
    case WORLD_SERVES:
        DL_FOREACH(p->work, w)
        if (world_can_work(p, w))
            return 1;
        return 0;
    case WORLD_LEAVES:
        /* When what it had to tell has left. */
        DL_FOREACH(world_nets[0]->peers[p->net.rank].inbox, m)
        if (m->from_incarnation == p->net.incarnation)
            return 0;
        return 1;
    }
    return 0;
}

static inline void world_prefilled(world_process_t *p, world_work_t *w)
{
    akin_kv_descriptor_t blocks[WORLD_SLOTS] = {{0}};
    const size_t n = (size_t)world.model.n_layers * world.model.n_experts;
    uint16_t *counts = calloc(n, sizeof(*counts));
    CU_ASSERT_PTR_NOT_NULL_FATAL(counts);
    const akin_message_prefilled_t m = {
        .id = w->id,
        .token = world_next_token(w->tokens, w->n_tokens),
        .blocks = blocks,
        .n_blocks = (w->n_tokens - 1) / WORLD_BLOCK + 1,
        .counts = counts,
        .n_counts = n,
    };
    w->is_pinned = 1;
    akin_message_pack_prefilled(&p->worker.packer, &m);
    akin_worker_send(&p->worker, 0, AKIN_MESSAGE_PREFILLED);
    free(counts);
}

/* Reads the blocks, if they are still where the router says. */
static inline void world_transferred(world_process_t *p, world_work_t *w)
{
    const world_process_t *owner = world.ranks[w->owner].process;
    const world_work_t *theirs = NULL;
    akin_message_transferred_t m = {.id = w->id, .status = AKIN_ERR_PEER};
    if (akin_net_peer_incarnation(&p->net, w->owner) == w->owner_incarnation &&
        !world_is_cut(&p->net, w->owner) && w->owner_incarnation != 0) {
        theirs = world_find(owner, w->id);
        m.status =
            theirs != NULL && theirs->is_pinned ? AKIN_OK : AKIN_ERR_REFUSED;
    }
    akin_message_pack_transferred(&p->worker.packer, &m);
    akin_worker_send(&p->worker, 0, AKIN_MESSAGE_TRANSFERRED);
    akin_message_pack_id(&p->worker.packer, w->id);
    akin_worker_send(&p->worker, w->owner, AKIN_MESSAGE_RELEASE);
    w->is_running = m.status == AKIN_OK;
    if (!w->is_running)
        world_forget(p, w);
}

/* One step of all that runs. */
static inline void world_tokens(world_process_t *p)
{
    akin_message_token_t tokens[64] = {{0}};
    uint16_t served[64] = {0};
    akin_message_tokens_t m = {.step = {.number = ++p->n_steps,
                                        .served = served,
                                        .n_served = world.model.n_layers},
                               .tokens = tokens};
    world_work_t *w, *next;
    DL_FOREACH_SAFE(p->work, w, next)
    {
        if (!w->is_running || !world_can_work(p, w) || m.n_tokens == 64)
            continue;
        const uint32_t token = world_next_token(w->tokens, w->n_tokens);
        tokens[m.n_tokens++] =
            (akin_message_token_t){.id = w->id, .token = token};
        w->tokens[w->n_tokens++] = token;
        if (--w->n_left == 0)
            world_forget(p, w);
    }
    m.step.n_rows = (uint32_t)m.n_tokens;
    akin_message_pack_tokens(&p->worker.packer, &m);
    akin_worker_send(&p->worker, 0, AKIN_MESSAGE_TOKENS);
}

static inline void world_serve(world_process_t *p)
{
    uint32_t n = 0, chosen;
    world_work_t *w;
    DL_FOREACH(p->work, w)
    n += world_can_work(p, w) != 0;
    chosen = world_draw(n);
    DL_FOREACH(p->work, w)
    if (world_can_work(p, w) && chosen-- == 0)
        break;
    if (p->is_prefill)
        world_prefilled(p, w);
    else if (!w->is_running)
        world_transferred(p, w);
    else
        world_tokens(p);
}

/* What rank_join.c does with GROUP, and with ASSUME. */
static inline void world_meet(world_process_t *p)
{
    for (size_t i = 0; i < p->wait.group.n_ranks; i++)
        if (world_is_fellow(p, p->wait.group.ranks[i].rank)) {
            const akin_status_t status =
                akini_worker_peers_add(&p->worker, &p->wait.group.ranks[i]);
            CU_ASSERT(status == AKIN_OK || status == AKIN_ERR_PEER);
        }
    p->stage = WORLD_LOADS;
}

static inline void world_assume(world_process_t *p)
{
    p->is_prefill = p->wait.assume.is_prefill;
    p->worker.role = &world_role;
    p->stage = WORLD_SERVES;
    akini_worker_wait_say(&p->wait, AKIN_MESSAGE_ASSUMED, AKIN_OK);
}

static inline void world_say_stats(world_process_t *p)
{
    const akin_message_stats_t m = {.steps = p->n_steps};
    akin_message_pack_stats(&p->worker.packer, &m);
    akin_worker_send(&p->worker, 0, AKIN_MESSAGE_STATS);
}

static inline void world_step(uint32_t rank)
{
    world_process_t *p = world.ranks[rank].process;
    if (world_has_ended(p) || p->stage == WORLD_LEAVES) {
        const int is_in_order = p->worker.failure == AKIN_OK;
        if (is_in_order && p->stage == WORLD_SERVES)
            world_say_stats(p);
        world_end(rank, is_in_order);
    } else if (p->stage == WORLD_JOINS) {
        world_meet(p);
    } else if (p->stage == WORLD_LOADS) {
        p->stage = WORLD_WAITS;
        akini_worker_wait_say(&p->wait, AKIN_MESSAGE_READY, AKIN_OK);
    } else if (p->stage == WORLD_WAITS) {
        world_assume(p);
    } else {
        world_serve(p);
    }
}

/* Some ranks are slow for a while, in one way or another. */
static inline void world_draw_slow(void)
{
    world.slow_events = 5 + world_draw(5 + world_draw(500));
    world.is_idle = world_draw(UINT32_MAX);
    world.is_deaf = world_draw(UINT32_MAX) & world_draw(UINT32_MAX);
    if (world_draw(2) == 0)
        world.is_deaf &= world_draw(UINT32_MAX);
    if (world_draw(2) == 0)
        world.is_idle &= world_draw(UINT32_MAX);
}

/** Everything that may happen now, and is not too slow to; returns how much
 * there is. */
static inline uint32_t world_list(world_event_t *events)
{
    uint32_t n = 0;
    for (uint32_t rank = 0; rank < WORLD_RANKS; rank++) {
        akin_net_t *net = world_nets[rank];
        const int is_idle = (world.is_idle >> rank & 1) != 0;
        if (world.ranks[rank].is_due && !is_idle)
            events[n++] = (world_event_t){WORLD_START, rank, 0};
        if (net == NULL)
            continue;
        if (rank != 0 && !is_idle && world_can_step(world.ranks[rank].process))
            events[n++] = (world_event_t){WORLD_STEP, rank, 0};
        if ((world.is_deaf >> rank & 1) != 0)
            continue;
        for (uint32_t other = 0; other < WORLD_RANKS; other++) {
            if (world_can_deliver(net, other))
                events[n++] = (world_event_t){WORLD_DELIVER, rank, other};
            if (world_can_settle(net, other))
                events[n++] = (world_event_t){WORLD_SETTLE, rank, other};
            if (world_is_cut(net, other) ||
                (other == 0 && world_is_fenced(net)))
                events[n++] = (world_event_t){WORLD_NOTICE, rank, other};
        }
    }
    return n;
}

/** The same; nobody is so slow that nothing happens at all. */
static inline uint32_t world_list_some(world_event_t *events)
{
    if (world_draw(world.slow_events) == 0)
        world_draw_slow();
    const uint32_t n = world_list(events);
    if (n > 0)
        return n;
    world.is_idle = world.is_deaf = 0;
    return world_list(events);
}

static inline void world_happen(const world_event_t *e)
{
    switch (e->kind) {
    case WORLD_DELIVER:
        world_deliver(world_nets[e->rank], e->other);
        return;
    case WORLD_SETTLE:
        world_settle(world_nets[e->rank], e->other);
        return;
    case WORLD_NOTICE:
        world_fail(world_nets[e->rank], e->other, AKIN_ERR_TIMEOUT);
        return;
    case WORLD_STEP:
        world_step(e->rank);
        return;
    case WORLD_START:
        world_start(e->rank);
        return;
    }
}

/** A rank is killed, or the router gives up one that lives; best one that has
 * just come, or several at once. */
static inline void world_fault(void)
{
    const uint32_t n_ranks = akin_job_n_ranks(&world.job);
    do {
        uint32_t rank = 1 + world_draw(n_ranks - 1);
        for (uint32_t tries = world_draw(4); tries > 0; tries--)
            if (world.ranks[rank].process == NULL ||
                world.ranks[rank].process->stage == WORLD_SERVES)
                rank = 1 + world_draw(n_ranks - 1);
        /* Without the word of a last life only time would tell. */
        if (world.ranks[rank].process == NULL ||
            world.ranks[rank].process->stage == WORLD_LEAVES)
            continue;
        world.n_faults++;
        if (world_draw(4) == 0)
            world_fail(world_nets[0], rank, AKIN_ERR_TIMEOUT);
        else
            world_end(rank, 0);
    } while (world_draw(4) == 0);
}

#endif
