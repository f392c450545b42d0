/* Plan nodes: which worker runs on which node. */
#include "launch/plan_nodes.h"

#include <stdlib.h>
#include <string.h>

/* The workers of a role. */
typedef struct crew {
    uint32_t first; /* rank of the first worker's leader */
    uint32_t n_workers;
    uint32_t n_ranks; /* of a worker */
} crew_t;

enum { N_CREWS = 3 };

typedef struct spread {
    const akini_plan_room_t *room;
    uint32_t most;   /* room of the roomiest node */
    int64_t *left;   /* [n_nodes] */
    uint64_t *of_us; /* [n_nodes] ranks of the crew that is being placed */
    uint32_t *node_of;
} spread_t;

/* Large workers come first, since small ones fit into what these leave. */
static void list_crews(const akin_job_t *job, crew_t crews[N_CREWS])
{
    const uint32_t first_decode = 1 + akin_job_n_prefill_ranks(job);
    const uint32_t first_spare = first_decode + akin_job_n_decode_ranks(job);
    crews[0] = (crew_t){1, job->n_prefill, job->prefill_ep};
    crews[1] = (crew_t){first_decode, job->n_decode, job->ep};
    crews[2] = (crew_t){first_spare, job->n_spare, job->ep};
    for (int i = 1; i < N_CREWS; i++)
        for (int k = i; k > 0 && crews[k].n_ranks > crews[k - 1].n_ranks; k--) {
            const crew_t other = crews[k];
            crews[k] = crews[k - 1];
            crews[k - 1] = other;
        }
}

/* How much a node would bear with a worker more: ranks of its role count twice,
 * so that every role is spread, but not on nodes that are full of others. */
static uint64_t load_of(const spread_t *s, uint32_t node, uint32_t n_ranks)
{
    const int64_t used = (int64_t)s->room->ranks[node] - s->left[node];
    return (uint64_t)used + s->of_us[node] + 2 * (uint64_t)n_ranks;
}

/* Whether node a suits a further worker better than b, for its size. */
static int suits_better(const spread_t *s, uint32_t a, uint32_t b,
                        uint32_t n_ranks)
{
    return load_of(s, a, n_ranks) * s->room->ranks[b] <
           load_of(s, b, n_ranks) * s->room->ranks[a];
}

static void take(spread_t *s, uint32_t node, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        s->node_of[first + i] = node;
    s->left[node] -= n;
    s->of_us[node] += n;
}

/* A worker on one node: where it suits best, or, packed, on the first one. */
static akin_status_t place_whole(spread_t *s, uint32_t first, uint32_t n_ranks,
                                 int is_packed)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < s->room->n_nodes; i++) {
        if (s->room->ranks[i] == 0 ||
            (!s->room->is_unbounded && s->left[i] < n_ranks))
            continue;
        if (best == UINT32_MAX ||
            (!is_packed && suits_better(s, i, best, n_ranks)))
            best = i;
    }
    if (best == UINT32_MAX)
        return AKIN_ERR_FULL;
    take(s, best, first, n_ranks);
    return AKIN_OK;
}

/* A worker that is larger than a node takes whole nodes, and for its rest the
 * fullest one that has room. */
static akin_status_t place_over_nodes(spread_t *s, uint32_t first,
                                      uint32_t n_ranks)
{
    while (n_ranks > 0) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < s->room->n_nodes; i++) {
            const int holds = s->left[i] >= n_ranks;
            const int best_holds = s->left[best] >= n_ranks;
            if (holds != best_holds ? holds
                : holds             ? s->left[i] < s->left[best]
                                    : s->left[i] > s->left[best])
                best = i;
        }
        if (s->left[best] <= 0)
            return AKIN_ERR_FULL;
        const uint32_t n =
            s->left[best] < n_ranks ? (uint32_t)s->left[best] : n_ranks;
        take(s, best, first, n);
        first += n;
        n_ranks -= n;
    }
    return AKIN_OK;
}

static akin_status_t place_crews(spread_t *s, const crew_t crews[N_CREWS],
                                 int is_packed)
{
    const uint32_t n_nodes = s->room->n_nodes;
    for (uint32_t i = 0; i < n_nodes; i++)
        s->left[i] = s->room->ranks[i];
    for (int c = 0; c < N_CREWS; c++) {
        (void)memset(s->of_us, 0, n_nodes * sizeof(*s->of_us));
        for (uint32_t w = 0; w < crews[c].n_workers; w++) {
            const uint32_t n_ranks = crews[c].n_ranks;
            const uint32_t first = crews[c].first + w * n_ranks;
            const akin_status_t status =
                n_ranks <= s->most || s->room->is_unbounded
                    ? place_whole(s, first, n_ranks, is_packed)
                    : place_over_nodes(s, first, n_ranks);
            if (status != AKIN_OK)
                return status;
        }
    }
    return AKIN_OK;
}

akin_status_t akini_plan_spread(const akin_job_t *job,
                                const akini_plan_room_t *room,
                                uint32_t *node_of)
{
    crew_t crews[N_CREWS];
    spread_t s = {.room = room,
                  .left = calloc(room->n_nodes, sizeof(*s.left)),
                  .of_us = calloc(room->n_nodes, sizeof(*s.of_us)),
                  .node_of = node_of};
    akin_status_t status = AKIN_ERR_NOMEM;
    if (s.left != NULL && s.of_us != NULL) {
        for (uint32_t i = 0; i < room->n_nodes; i++)
            if (room->ranks[i] > s.most)
                s.most = room->ranks[i];
        node_of[0] = 0;
        list_crews(job, crews);
        status = place_crews(&s, crews, 0);
        /* Workers of different sizes may fit only if packed. */
        if (status == AKIN_ERR_FULL)
            status = place_crews(&s, crews, 1);
    }
    free(s.left);
    free(s.of_us);
    return status;
}
