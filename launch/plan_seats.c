/* Plan seats: which GPU a rank gets, or which NUMA node's cores without. */
#include "launch/plan_seats.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t least_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Free seats of a NUMA node. */
static uint32_t n_free(const akini_plan_seats_t *s, uint32_t numa)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_seats; i++)
        n += s->seat_numa[i] == numa && s->seat_rank[i] == UINT32_MAX;
    return n;
}

/* A worker's part on this node: ranks[start .. start + n). */
typedef struct part {
    uint32_t start, n;
} part_t;

/* Mark n free seats of a NUMA node; the ranks follow in seat_part(). */
static void mark(akini_plan_seats_t *s, uint32_t numa, uint32_t n)
{
    for (uint32_t i = 0; i < s->n_seats && n > 0; i++)
        if (s->seat_numa[i] == numa && s->seat_rank[i] == UINT32_MAX) {
            s->seat_rank[i] = UINT32_MAX - 1;
            n--;
        }
}

/* In one NUMA node if one has room, the emptiest; else over few of them. */
static void seat_part(akini_plan_seats_t *s, part_t part)
{
    uint32_t left = part.n;
    while (left > 0) {
        uint32_t best = 0, room = 0;
        for (uint32_t m = 0; m < s->node->n_numa; m++) {
            const uint32_t n = n_free(s, m);
            if (n > room) {
                best = m;
                room = n;
            }
        }
        if (room == 0)
            break; /* there is a seat for every rank */
        mark(s, best, least_u32(room, left));
        left -= least_u32(room, left);
    }
    uint32_t next = part.start;
    for (uint32_t i = 0; i < s->n_seats; i++)
        if (s->seat_rank[i] == UINT32_MAX - 1)
            s->seat_rank[i] = s->ranks[next++];
}

static int are_one_worker(const akin_plan_t *plan, uint32_t a, uint32_t b)
{
    return plan->ranks[a].role == plan->ranks[b].role &&
           plan->ranks[a].worker == plan->ranks[b].worker;
}

/* Large workers first, in the order of ranks among equals. */
static akin_status_t seat_parts(akini_plan_seats_t *s)
{
    part_t *parts = calloc((size_t)s->n_ranks + 1, sizeof(*parts));
    uint32_t n = 0, most = 0;
    if (parts == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t i = 0; i < s->n_ranks; i++) {
        if (i == 0 || !are_one_worker(s->plan, s->ranks[i - 1], s->ranks[i]))
            parts[n++].start = i;
        most = ++parts[n - 1].n > most ? parts[n - 1].n : most;
    }
    for (uint32_t size = most; size > 0; size--)
        for (uint32_t i = 0; i < n; i++)
            if (parts[i].n == size)
                seat_part(s, parts[i]);
    free(parts);
    return AKIN_OK;
}

static akin_status_t alloc_seats(akini_plan_seats_t *s, uint32_t n)
{
    s->n_seats = n;
    s->seat_numa = calloc((size_t)n + 1, sizeof(*s->seat_numa));
    s->seat_rank = calloc((size_t)n + 1, sizeof(*s->seat_rank));
    if (s->seat_numa == NULL || s->seat_rank == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t i = 0; i < n; i++)
        s->seat_rank[i] = UINT32_MAX;
    return AKIN_OK;
}

static akin_status_t seat_on_gpus(akini_plan_seats_t *s)
{
    akin_status_t status = alloc_seats(s, s->job->n_gpus);
    if (status != AKIN_OK)
        return status;
    for (uint32_t i = 0; i < s->n_seats; i++)
        s->seat_numa[i] = s->node->gpus[i].numa;
    status = seat_parts(s);
    for (uint32_t i = 0; i < s->n_seats && status == AKIN_OK; i++)
        if (s->seat_rank[i] != UINT32_MAX) {
            s->plan->ranks[s->seat_rank[i]].gpu = i;
            s->plan->ranks[s->seat_rank[i]].numa = s->seat_numa[i];
        }
    return status;
}

/* Seats of the NUMA nodes in proportion to their cores, by the greatest
 * remainders. */
static void deal_seats(akini_plan_seats_t *s, const uint32_t *n_cores)
{
    uint32_t at = 0, n_dealt = 0;
    const uint32_t n_numa = s->node->n_numa;
    assert(s->node->n_cores > 0); /* akin_plan_make() has seen to it */
    for (uint32_t m = 0; m < n_numa; m++)
        n_dealt +=
            (uint32_t)((uint64_t)s->n_seats * n_cores[m] / s->node->n_cores);
    const uint32_t n_over = s->n_seats - n_dealt;
    for (uint32_t m = 0; m < n_numa; m++) {
        const uint64_t product = (uint64_t)s->n_seats * n_cores[m];
        const uint64_t rest = product % s->node->n_cores;
        uint32_t n = (uint32_t)(product / s->node->n_cores), n_before = 0;
        for (uint32_t k = 0; k < n_numa; k++) {
            const uint64_t other =
                (uint64_t)s->n_seats * n_cores[k] % s->node->n_cores;
            n_before += other > rest || (other == rest && k < m);
        }
        n += n_before < n_over;
        for (uint32_t i = 0; i < n && at < s->n_seats; i++)
            s->seat_numa[at++] = m;
    }
}

/* Fewer ranks than NUMA nodes: each has several, neighbours together. */
static void join_numa(akini_plan_seats_t *s, const uint32_t *n_cores,
                      uint32_t n_live)
{
    uint32_t at = 0;
    for (uint32_t m = 0; m < s->node->n_numa; m++) {
        const uint32_t pool = (uint32_t)((uint64_t)least_u32(at, n_live - 1) *
                                         s->n_ranks / n_live);
        s->pool_of[m] = pool;
        at += n_cores[m] > 0;
    }
    /* Backwards, so that a pool's first NUMA node with cores is left. */
    for (uint32_t m = s->node->n_numa; m-- > 0;)
        if (n_cores[m] > 0)
            s->seat_numa[s->pool_of[m]] = m;
    s->n_pools = s->n_ranks;
    for (uint32_t i = 0; i < s->n_ranks; i++)
        s->seat_rank[i] = s->ranks[i];
}

static akin_status_t seat_on_cores(akini_plan_seats_t *s)
{
    uint32_t *n_cores = calloc(s->node->n_numa, sizeof(*n_cores));
    uint32_t n_live = 0;
    akin_status_t status =
        n_cores != NULL ? alloc_seats(s, s->n_ranks) : AKIN_ERR_NOMEM;
    if (status == AKIN_OK) {
        for (uint32_t i = 0; i < s->node->n_cores; i++)
            n_live += n_cores[s->node->cores[i].numa]++ == 0;
        if (s->n_ranks > 0 && s->n_ranks < n_live) {
            join_numa(s, n_cores, n_live);
        } else {
            deal_seats(s, n_cores);
            status = seat_parts(s);
        }
    }
    free(n_cores);
    return status;
}

static akin_status_t fill_pools(akini_plan_seats_t *s)
{
    s->pools = calloc(s->n_pools, sizeof(*s->pools));
    if (s->pools == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t i = s->node->n_cores; i-- > 0;) {
        akini_plan_pool_t *pool = &s->pools[s->pool_of[s->node->cores[i].numa]];
        pool->n_cores++;
        pool->numa = s->node->cores[i].numa;
    }
    for (uint32_t m = 0; m < s->node->n_numa; m++)
        if (s->pools[s->pool_of[m]].n_cores == 0)
            s->pools[s->pool_of[m]].numa = m;
    for (uint32_t i = 0; i < s->n_seats; i++)
        if (s->seat_rank[i] != UINT32_MAX)
            s->pools[s->pool_of[s->seat_numa[i]]].n_ranks++;
    return AKIN_OK;
}

static akin_status_t list_ranks(akini_plan_seats_t *s, uint32_t node)
{
    s->ranks = calloc(s->plan->n_ranks, sizeof(*s->ranks));
    s->pool_of = calloc(s->node->n_numa, sizeof(*s->pool_of));
    if (s->ranks == NULL || s->pool_of == NULL)
        return AKIN_ERR_NOMEM;
    s->n_pools = s->node->n_numa;
    for (uint32_t m = 0; m < s->node->n_numa; m++)
        s->pool_of[m] = m;
    s->has_router = s->plan->ranks[0].node == node;
    for (uint32_t r = 1; r < s->plan->n_ranks; r++)
        if (s->plan->ranks[r].node == node)
            s->ranks[s->n_ranks++] = r;
    return AKIN_OK;
}

akin_status_t akini_plan_seat(const akin_plan_params_t *params, uint32_t node,
                              akin_plan_t *plan, akin_error_t *err)
{
    akini_plan_seats_t s = {.job = params->job,
                            .node = params->nodes[node],
                            .is_alone = params->n_nodes == 1,
                            .plan = plan};
    const char *host = plan->hosts != NULL ? plan->hosts[node] : NULL;
    (void)snprintf(s.place, sizeof(s.place), "node %u (%s%s%.200s)", node,
                   host != NULL ? host : "", host != NULL ? ", " : "",
                   s.node->origin);
    akin_status_t status = list_ranks(&s, node);
    if (status == AKIN_OK && (s.has_router || s.n_ranks > 0)) {
        status = s.job->n_gpus > 0 ? seat_on_gpus(&s) : seat_on_cores(&s);
        if (status == AKIN_OK)
            status = fill_pools(&s);
        if (status == AKIN_OK)
            status = akini_plan_seat_cores(&s, err);
        if (status == AKIN_OK)
            status = akini_plan_seat_nics(&s, err);
    }
    free(s.ranks);
    free(s.seat_numa);
    free(s.seat_rank);
    free(s.pools);
    free(s.pool_of);
    return status;
}
