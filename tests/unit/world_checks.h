/* World checks: what has to hold between a router and a world after every
 * event, and at the end. */
#ifndef AKIN_TESTS_UNIT_WORLD_CHECKS_H
#define AKIN_TESTS_UNIT_WORLD_CHECKS_H

#include "router_books.h"
#include "world.h"

/* What a rank owes is what is under way to it, waits there, or is under way
 * back. */
static inline void world_check_debts(const akin_router_t *r)
{
    const uint32_t n_ranks = akin_job_n_ranks(&world.job);
    for (uint32_t rank = 1; rank < n_ranks; rank++) {
        const akin_net_t *net = world_nets[rank];
        const world_message_t *m;
        uint32_t n = 0;
        if (!akin_net_has_peer(world_nets[0], rank) ||
            world_is_cut(world_nets[0], rank)) {
            CU_ASSERT(r->processes[rank].n_owed <= 4 * n_ranks * n_ranks);
            continue;
        }
        DL_FOREACH(net->peers[0].inbox, m)
        n += m->type == AKIN_MESSAGE_PEER &&
             m->to_incarnation == net->incarnation;
        for (uint32_t i = 0; i < n_ranks; i++)
            n +=
                world.ranks[rank].process->worker.peers.pending[i].is_owed != 0;
        DL_FOREACH(world_nets[0]->peers[rank].inbox, m)
        n += m->type == AKIN_MESSAGE_PEERED &&
             m->from_incarnation == net->incarnation;
        CU_ASSERT_EQUAL(r->processes[rank].n_owed, n);
    }
}

/* Groups that are whole have all their ranks, as far as the net has told. */
static inline void world_check_groups(const akin_router_t *r)
{
    for (uint32_t g = 0; g < r->n_groups; g++) {
        const akini_group_t *group = &r->groups[g];
        const int is_whole =
            group->state == AKINI_GROUP_SERVING ||
            group->state == AKINI_GROUP_WAITING ||
            group->state == AKINI_GROUP_ASSUMING ||
            (group->state == AKINI_GROUP_JOINING && group->is_complete);
        for (uint32_t i = 0; i < group->n_ranks && is_whole; i++) {
            CU_ASSERT_NOT_EQUAL(world_nets[0]->peers[group->first + i].state,
                                WORLD_NONE);
            CU_ASSERT(!r->processes[group->first + i].is_doomed);
        }
    }
}

static inline void world_check(const akin_router_t *r)
{
    if (r->is_closing)
        return;
    CU_ASSERT(books_of_places_agree(r));
    CU_ASSERT(books_of_requests_agree(r));
    world_check_debts(r);
    world_check_groups(r);
}

/* Whether all that can serve does, and the rest waits or is gone. */
static inline int world_is_well(const akin_router_t *r)
{
    int is_vacant = 0, has_waiting = 0;
    for (uint32_t w = 0; w < world.job.n_prefill + world.job.n_decode; w++)
        is_vacant |= r->lost_ns[w] != 0;
    for (uint32_t g = 0; g < r->n_groups; g++) {
        has_waiting |= r->groups[g].state == AKINI_GROUP_WAITING;
        if (r->groups[g].state == AKINI_GROUP_LOST ||
            r->groups[g].state == AKINI_GROUP_JOINING ||
            r->groups[g].state == AKINI_GROUP_ASSUMING)
            return 0;
    }
    return !is_vacant || !has_waiting;
}

/* A role has nobody left, and nobody who might come. */
static inline int world_has_reason(const akin_router_t *r)
{
    int is_gone[2] = {1, 1};
    for (uint32_t g = 0; g < r->n_groups; g++) {
        const akini_group_t *group = &r->groups[g];
        if (group->state == AKINI_GROUP_GONE)
            continue;
        if (group->state != AKINI_GROUP_SERVING)
            return 0;
        is_gone[group->worker < world.job.n_prefill] = 0;
    }
    return is_gone[0] || is_gone[1];
}

#endif
