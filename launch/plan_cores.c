/* Plan cores: which cores of a node a rank gets, once it has a seat. */
#include "launch/plan_seats.h"

#include <stdlib.h>

/* Whether a NUMA node is that of a NIC which ranks may use. */
static int has_nic(const akin_node_t *node, uint32_t numa)
{
    for (uint32_t i = 0; i < node->n_nics; i++)
        if (node->nics[i].numa == numa && akini_plan_nic_suits(node, i))
            return 1;
    return 0;
}

/* A place for the router: a NUMA node with cores and the pool it is of. */
typedef struct spot {
    uint32_t numa;
    int has_room; /* a core for every rank, the router's, too */
    int has_nic;
} spot_t;

static spot_t spot_at(const akini_plan_seats_t *s, uint32_t numa)
{
    const akini_plan_pool_t *pool = &s->pools[s->pool_of[numa]];
    return (spot_t){numa, pool->n_cores > pool->n_ranks,
                    has_nic(s->node, numa)};
}

static int is_better(const akini_plan_seats_t *s, spot_t a, spot_t b)
{
    const akini_plan_pool_t *pa = &s->pools[s->pool_of[a.numa]];
    const akini_plan_pool_t *pb = &s->pools[s->pool_of[b.numa]];
    if (a.has_room != b.has_room)
        return a.has_room;
    if (a.has_nic != b.has_nic)
        return a.has_nic;
    return (uint64_t)pa->n_cores * (pb->n_ranks + 1) >
           (uint64_t)pb->n_cores * (pa->n_ranks + 1);
}

static void choose_router_pool(akini_plan_seats_t *s)
{
    spot_t best = spot_at(s, s->node->cores[0].numa);
    for (uint32_t i = 1; i < s->node->n_cores; i++) {
        const uint32_t numa = s->node->cores[i].numa;
        if (numa == s->node->cores[i - 1].numa)
            continue;
        const spot_t spot = spot_at(s, numa);
        if (is_better(s, spot, best))
            best = spot;
    }
    s->router_numa = best.numa;
    s->router_pool = s->pool_of[best.numa];
}

static akin_status_t add_core(akin_plan_rank_t *rank,
                              const akin_node_core_t *core)
{
    if (hwloc_bitmap_or(rank->cores, rank->cores, core->pus) != 0)
        return AKIN_ERR_NOMEM;
    rank->n_cores++;
    return AKIN_OK;
}

/* The first cores of the router's NUMA node; `taken` marks them. */
static akin_status_t give_router(const akini_plan_seats_t *s, uint8_t *taken)
{
    const akini_plan_pool_t *pool = &s->pools[s->router_pool];
    akin_plan_rank_t *router = &s->plan->ranks[0];
    uint32_t n = pool->n_cores / (pool->n_ranks + 1);
    akin_status_t status = AKIN_OK;
    if (n > AKINI_PLAN_ROUTER_CORES)
        n = AKINI_PLAN_ROUTER_CORES;
    for (uint32_t i = 0; i < s->node->n_cores && n > 0 && status == AKIN_OK;
         i++)
        if (s->node->cores[i].numa == s->router_numa) {
            status = add_core(router, &s->node->cores[i]);
            taken[i] = 1;
            n--;
        }
    router->numa = s->router_numa;
    return status;
}

/* Cores of a pool that the router has left, in order. */
static uint32_t list_cores(const akini_plan_seats_t *s, uint32_t pool,
                           const uint8_t *taken, uint32_t *cores)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->node->n_cores; i++)
        if (!taken[i] && s->pool_of[s->node->cores[i].numa] == pool)
            cores[n++] = i;
    return n;
}

/* The NUMA node of most of cores[0 .. n), the first one of equals. */
static uint32_t main_numa(const akini_plan_seats_t *s, const uint32_t *cores,
                          uint32_t n)
{
    uint32_t best = s->node->cores[cores[0]].numa, most = 0, run = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t numa = s->node->cores[cores[i]].numa;
        run = i > 0 && s->node->cores[cores[i - 1]].numa == numa ? run + 1 : 1;
        if (run > most) {
            most = run;
            best = numa;
        }
    }
    return best;
}

/* Every rank of a pool gets an equal share of neighbours. */
static akin_status_t share_out(const akini_plan_seats_t *s, uint32_t pool,
                               const uint32_t *cores, uint32_t n_cores)
{
    const uint32_t n_ranks = s->pools[pool].n_ranks;
    uint32_t nth = 0;
    for (uint32_t i = 0; i < s->n_seats; i++) {
        if (s->seat_rank[i] == UINT32_MAX ||
            s->pool_of[s->seat_numa[i]] != pool)
            continue;
        akin_plan_rank_t *rank = &s->plan->ranks[s->seat_rank[i]];
        const uint32_t from = (uint32_t)((uint64_t)nth * n_cores / n_ranks);
        const uint32_t to = (uint32_t)((uint64_t)(nth + 1) * n_cores / n_ranks);
        for (uint32_t c = from; c < to; c++)
            if (add_core(rank, &s->node->cores[cores[c]]) != AKIN_OK)
                return AKIN_ERR_NOMEM;
        rank->numa = main_numa(s, &cores[from], to - from);
        nth++;
    }
    return AKIN_OK;
}

/* A rank of a pool that is too small may run on any core of it, so that the
 * system balances them, and counts on one. */
static akin_status_t share(const akini_plan_seats_t *s, uint32_t pool,
                           akin_plan_rank_t *rank)
{
    const int is_empty = s->pools[pool].n_cores == 0;
    for (uint32_t i = 0; i < s->node->n_cores; i++)
        if ((is_empty || s->pool_of[s->node->cores[i].numa] == pool) &&
            add_core(rank, &s->node->cores[i]) != AKIN_OK)
            return AKIN_ERR_NOMEM;
    rank->n_cores = 1;
    rank->numa = is_empty ? s->node->cores[0].numa : s->pools[pool].numa;
    return AKIN_OK;
}

static akin_status_t share_pool(const akini_plan_seats_t *s, uint32_t pool)
{
    akin_status_t status = AKIN_OK;
    s->plan->shares_cores = 1;
    if (s->has_router && s->router_pool == pool)
        status = share(s, pool, &s->plan->ranks[0]);
    for (uint32_t i = 0; i < s->n_seats && status == AKIN_OK; i++)
        if (s->seat_rank[i] != UINT32_MAX &&
            s->pool_of[s->seat_numa[i]] == pool)
            status = share(s, pool, &s->plan->ranks[s->seat_rank[i]]);
    return status;
}

static akin_status_t too_few(const akini_plan_seats_t *s, uint32_t pool,
                             uint32_t n_needed, akin_error_t *err)
{
    const akini_plan_pool_t *p = &s->pools[pool];
    const int is_routers = s->has_router && s->router_pool == pool;
    return akin_error_set(
        err, AKIN_ERR_CONFIG,
        "%s: NUMA node %u has %u core%s that may be used, but its %u ranks%s "
        "need %u: give the job more cores of this node, or let ranks share "
        "them with launch.oversubscribe = true",
        s->place, p->numa, p->n_cores, p->n_cores == 1 ? "" : "s", n_needed,
        is_routers ? ", with the router," : "", n_needed);
}

static akin_status_t seat_pool(akini_plan_seats_t *s, uint32_t pool,
                               uint8_t *taken, uint32_t *cores,
                               akin_error_t *err)
{
    const akini_plan_pool_t *p = &s->pools[pool];
    const int is_routers = s->has_router && s->router_pool == pool;
    const uint32_t n_needed = p->n_ranks + (is_routers ? 1 : 0);
    akin_status_t status = AKIN_OK;
    if (p->n_cores < n_needed && s->job->oversubscribe)
        return share_pool(s, pool);
    if (p->n_cores < n_needed)
        return too_few(s, pool, n_needed, err);
    if (is_routers)
        status = give_router(s, taken);
    if (status == AKIN_OK && p->n_ranks > 0)
        status = share_out(s, pool, cores, list_cores(s, pool, taken, cores));
    return status;
}

akin_status_t akini_plan_seat_cores(akini_plan_seats_t *seats,
                                    akin_error_t *err)
{
    uint8_t *taken = calloc(seats->node->n_cores, sizeof(*taken));
    uint32_t *cores = calloc(seats->node->n_cores, sizeof(*cores));
    akin_status_t status =
        taken != NULL && cores != NULL ? AKIN_OK : AKIN_ERR_NOMEM;
    if (seats->has_router)
        choose_router_pool(seats);
    for (uint32_t i = 0; i < seats->n_pools && status == AKIN_OK; i++)
        status = seat_pool(seats, i, taken, cores, err);
    free(taken);
    free(cores);
    return status;
}
