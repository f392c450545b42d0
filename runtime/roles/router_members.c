/* The router's workers: how a group that waits becomes one that is lost. */
#include "roles/router_state.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>

static int is_prefill(const akin_router_t *r, uint32_t worker)
{
    return worker < r->params.job->n_prefill;
}

static akin_message_identity_t identity_of(const akin_router_t *r,
                                           uint32_t rank)
{
    return (akin_message_identity_t){.rank = rank,
                                     .net = r->processes[rank].net,
                                     .net_bytes = r->processes[rank].net_bytes};
}

/* Whether the group is, or is about to be, a worker of that role. */
static int has_role(const akin_router_t *r, const akini_group_t *g,
                    int of_prefill)
{
    return (g->state == AKINI_GROUP_SERVING ||
            g->state == AKINI_GROUP_ASSUMING) &&
           is_prefill(r, g->worker) == of_prefill;
}

/* The ranks of the other role, which a new worker connects to; and each of them
 * to it. */
static uint32_t tell_peers(akin_router_t *r, const akini_group_t *g,
                           akin_message_identity_t *peers)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n_groups; i++) {
        const akini_group_t *other = &r->groups[i];
        if (!has_role(r, other, !is_prefill(r, g->worker)))
            continue;
        for (uint32_t k = 0; k < other->n_ranks; k++) {
            const uint32_t rank = other->first + k;
            peers[n++] = identity_of(r, rank);
            for (uint32_t own = 0; own < g->n_ranks; own++) {
                akin_message_identity_t id = identity_of(r, g->first + own);
                const akin_message_group_t m = {.ranks = &id, .n_ranks = 1};
                akin_message_pack_group(&r->packer, &m);
                akini_router_send(r, rank, AKIN_MESSAGE_PEER);
                r->processes[rank].n_owed++;
            }
        }
    }
    return n;
}

static const akin_placement_t *map_of(const akin_router_t *r, uint32_t worker)
{
    if (is_prefill(r, worker))
        return r->params.prefill_placement;
    return r->params.placements != NULL
               ? &r->params.placements[worker - r->params.job->n_prefill]
               : NULL;
}

/* Returns zero when out of memory: nothing was said. */
static int assume(akin_router_t *r, akini_group_t *g, uint32_t worker)
{
    const uint32_t n_ranks = akin_job_n_ranks(r->params.job);
    akin_message_identity_t *peers = calloc(n_ranks, sizeof(*peers));
    if (peers == NULL)
        return 0;
    g->worker = worker;
    g->state = AKINI_GROUP_ASSUMING;
    g->said = 0;
    g->deadline_ns = akin_clock_now_ns() + r->params.job->start_timeout_ns;
    const akin_placement_t *map = map_of(r, worker);
    const int has_map = map != NULL && map->holders != NULL;
    const akin_message_assume_t m = {
        .is_prefill = is_prefill(r, worker) != 0,
        .worker =
            is_prefill(r, worker) ? worker : worker - r->params.job->n_prefill,
        .epoch = has_map ? map->epoch : 0,
        .peers = peers,
        .n_peers = tell_peers(r, g, peers),
        .holders = has_map ? map->holders : NULL,
        .n_holders = has_map ? (size_t)map->n_layers * map->n_experts : 0,
    };
    for (uint32_t i = 0; i < g->n_ranks; i++) {
        akin_message_pack_assume(&r->packer, &m);
        akini_router_send(r, g->first + i, AKIN_MESSAGE_ASSUME);
    }
    free(peers);
    return 1;
}

/* Whether a group is about to become that worker. */
static int is_promised(const akin_router_t *r, uint32_t worker)
{
    for (uint32_t i = 0; i < r->n_groups; i++)
        if (r->groups[i].state == AKINI_GROUP_ASSUMING &&
            r->groups[i].worker == worker)
            return 1;
    return 0;
}

/* Whether a role has a worker, or is about to have one. */
static int has_worker(const akin_router_t *r, int of_prefill)
{
    for (uint32_t i = 0; i < r->n_groups; i++)
        if (has_role(r, &r->groups[i], of_prefill))
            return 1;
    return 0;
}

/* How much it is to be wished that a group becomes a worker. Without any worker
 * of a role nothing goes on at all; else groups stay what they were, since
 * others of the same place in the cluster have what they had. */
static uint32_t worth(const akin_router_t *r, const akini_group_t *g,
                      uint32_t worker)
{
    const int of_prefill = is_prefill(r, worker);
    uint32_t n_ranks;
    (void)akini_router_places(r, worker, &n_ranks);
    if (g->state != AKINI_GROUP_WAITING || g->n_ranks != n_ranks)
        return 0;
    const int had_role = g->worker != AKIN_ROUTING_NO_WORKER &&
                         is_prefill(r, g->worker) == of_prefill;
    return 1 + (has_worker(r, of_prefill) ? 0u : 4u) +
           (g->worker == worker ? 2u : 0u) + (had_role ? 1u : 0u);
}

/* The best of all that a group which waits can become; says whether there is
 * anything. */
static int choose(akin_router_t *r, akini_group_t **group_p, uint32_t *worker_p)
{
    const akin_job_t *job = r->params.job;
    uint32_t best = 0;
    for (uint32_t w = 0; w < job->n_prefill + job->n_decode; w++) {
        if (r->lost_ns[w] == 0 || is_promised(r, w))
            continue;
        for (uint32_t i = 0; i < r->n_groups; i++) {
            const uint32_t value = worth(r, &r->groups[i], w);
            if (value <= best)
                continue;
            best = value;
            *group_p = &r->groups[i];
            *worker_p = w;
        }
    }
    return best > 0;
}

void akini_router_fill_places(akin_router_t *r)
{
    akini_group_t *g = NULL;
    uint32_t worker = 0;
    while (!r->is_closing && choose(r, &g, &worker))
        if (!assume(r, g, worker))
            return; /* it is tried again at the next turn */
}

/* The first rank, from one on, that has yet to connect to the group; 0: none.
 */
static uint32_t next_debtor(const akin_router_t *r, const akini_group_t *g,
                            uint32_t from)
{
    for (uint32_t i = 0; i < r->n_groups; i++) {
        const akini_group_t *other = &r->groups[i];
        if (!has_role(r, other, !is_prefill(r, g->worker)))
            continue;
        for (uint32_t k = 0; k < other->n_ranks; k++)
            if (other->first + k >= from &&
                r->processes[other->first + k].n_owed > 0)
                return other->first + k;
    }
    return 0;
}

void akini_router_drop_debtors(akin_router_t *r, const akini_group_t *g)
{
    for (uint32_t rank = next_debtor(r, g, 1); rank != 0;
         rank = next_debtor(r, g, rank + 1)) {
        AKIN_LOG(ROLES, ERROR,
                 "rank %u has not connected to a new worker in time", rank);
        akin_net_drop_peer(r->net, rank);
    }
}

void akini_router_settle_group(akin_router_t *r, akini_group_t *g)
{
    char name[32];
    uint32_t n;
    if (g->state != AKINI_GROUP_ASSUMING ||
        g->said != UINT64_MAX >> (64 - g->n_ranks) || next_debtor(r, g, 1) != 0)
        return;
    akini_rank_t *places = akini_router_places(r, g->worker, &n);
    for (uint32_t i = 0; i < n; i++) {
        places[i].rank = g->first + i;
        places[i].is_lost = 0;
        r->places[g->first + i] = &places[i];
    }
    g->state = AKINI_GROUP_SERVING;
    const int64_t ns = akin_clock_now_ns() - r->lost_ns[g->worker];
    r->lost_ns[g->worker] = 0;
    akini_router_replace_back(r, g->worker);
    akin_summary_add_recovered(r->summary, g->worker, ns);
    akini_router_worker_name(r, g->worker, name);
    AKIN_LOG(ROLES, WARN, "%s is back after %.2f s, on rank %u, life %u", name,
             (double)ns / (double)AKIN_NS_PER_S, g->first,
             r->processes[g->first].life);
}
