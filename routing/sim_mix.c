/* Sim mix: entries of the pool, domain by domain or by time. */
#include "routing/sim_mix.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

enum { STREAM_DOMAIN = 105, STREAM_ORDER = 106 };

/* Of entries that came at the same time the one that the pool has first. */
typedef struct arrival {
    double time_s;
    uint32_t entry;
} arrival_t;

static int by_time(const void *a_p, const void *b_p)
{
    const arrival_t *a = a_p, *b = b_p;
    if (a->time_s < b->time_s || a->time_s > b->time_s)
        return a->time_s < b->time_s ? -1 : 1;
    return (a->entry > b->entry) - (a->entry < b->entry);
}

static akin_status_t sort_by_time(akini_sim_mix_t *mix)
{
    const akin_route_pool_t *pool = mix->params->pool;
    arrival_t *arrivals = calloc(pool->n_entries, sizeof(*arrivals));
    if (arrivals == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t i = 0; i < pool->n_entries; i++)
        arrivals[i] = (arrival_t){pool->entries[i].arrival_s, i};
    qsort(arrivals, pool->n_entries, sizeof(*arrivals), by_time);
    for (uint32_t i = 0; i < pool->n_entries; i++)
        mix->order[i] = arrivals[i].entry;
    free(arrivals);
    return AKIN_OK;
}

/* Fisher and Yates' shuffle.
 * \param[in] n_before  draws that were made before. */
static void shuffle(const akini_sim_mix_t *mix, uint32_t *order, uint32_t n,
                    uint64_t n_before)
{
    for (; n > 1; n--) {
        const uint64_t i =
            akin_rng_below(mix->params->seed, STREAM_ORDER, n_before++, n);
        const uint32_t last = order[n - 1];
        order[n - 1] = order[i];
        order[i] = last;
    }
}

/* Where the mix is given, domain by domain; else the mix is the pool's, and
 * none comes again before all others have. */
static void shuffle_all(akini_sim_mix_t *mix)
{
    const akin_route_pool_t *pool = mix->params->pool;
    for (uint32_t i = 0; i < pool->n_entries; i++)
        mix->order[i] = pool->by_domain[i];
    if (mix->n_domains == 0)
        shuffle(mix, mix->order, pool->n_entries, 0);
    for (uint32_t d = 0; d < mix->n_domains; d++)
        shuffle(mix, mix->order + pool->first[d],
                pool->first[d + 1] - pool->first[d], pool->first[d]);
}

akin_status_t akini_sim_mix_init(akini_sim_mix_t *mix,
                                 const akin_sim_params_t *params)
{
    const akin_route_pool_t *pool = params->pool;
    *mix = (akini_sim_mix_t){
        .params = params,
        .order = calloc(pool->n_entries, sizeof(*mix->order)),
        .n_taken = calloc(pool->n_domains, sizeof(*mix->n_taken)),
        .parts = calloc(pool->n_domains, sizeof(*mix->parts)),
    };
    if (mix->order == NULL || mix->n_taken == NULL || mix->parts == NULL)
        return AKIN_ERR_NOMEM;
    if (params->arrivals == AKIN_SIM_TRACE)
        return sort_by_time(mix);
    if (params->shares != NULL || params->later_shares != NULL)
        mix->n_domains = pool->n_domains;
    shuffle_all(mix);
    return AKIN_OK;
}

void akini_sim_mix_cleanup(akini_sim_mix_t *mix)
{
    free(mix->order);
    free(mix->n_taken);
    free(mix->parts);
}

/* Of the way through the measured requests, from 0 to 1. */
static double way(const akin_sim_params_t *params, uint64_t index)
{
    if (index < params->n_warmup)
        return 0.0;
    return fmin((double)(index - params->n_warmup) / params->n_measured, 1.0);
}

uint32_t akini_sim_mix_phase(const akin_sim_params_t *params, uint64_t index)
{
    const double third = floor(3.0 * way(params, index));
    return (uint32_t)fmin(third, AKIN_SIM_PHASES - 1);
}

/* Parts of the domains at that time; one without entries has none. */
static double find_parts(akini_sim_mix_t *mix, uint64_t index)
{
    const akin_sim_params_t *params = mix->params;
    const akin_route_pool_t *pool = params->pool;
    const double past = fmin(fmax(3.0 * way(params, index) - 1.0, 0.0), 1.0);
    double sum = 0.0;
    for (uint32_t d = 0; d < mix->n_domains; d++) {
        const uint32_t n = pool->first[d + 1] - pool->first[d];
        const double before = params->shares != NULL
                                  ? params->shares[d]
                                  : (double)n / pool->n_entries;
        const double after =
            params->later_shares != NULL ? params->later_shares[d] : before;
        mix->parts[d] = n > 0 ? (1.0 - past) * before + past * after : 0.0;
        sum += mix->parts[d];
    }
    return sum;
}

uint32_t akini_sim_mix_take(akini_sim_mix_t *mix, uint64_t index)
{
    const akin_sim_params_t *params = mix->params;
    const akin_route_pool_t *pool = params->pool;
    if (mix->n_domains == 0)
        return mix->order[index % pool->n_entries];
    double left = find_parts(mix, index) *
                  akin_rng_uniform(params->seed, STREAM_DOMAIN, index);
    uint32_t domain = 0;
    for (uint32_t d = 0; d < mix->n_domains; d++) {
        if (!(mix->parts[d] > 0.0))
            continue;
        domain = d;
        left -= mix->parts[d];
        if (left < 0.0)
            break;
    }
    const uint32_t n = pool->first[domain + 1] - pool->first[domain];
    return mix->order[pool->first[domain] + mix->n_taken[domain]++ % n];
}

double akini_sim_mix_arrival(const akini_sim_mix_t *mix, uint64_t index)
{
    const akin_route_pool_t *pool = mix->params->pool;
    const uint32_t n = pool->n_entries;
    const double first_s = pool->entries[mix->order[0]].arrival_s;
    const double last_s = pool->entries[mix->order[n - 1]].arrival_s;
    /* The last one is as far from the next first one as any two in the mean. */
    const double pass_s = n > 1 ? (last_s - first_s) * n / (n - 1) : 1.0;
    const uint64_t passes = index / n;
    return pool->entries[mix->order[index % n]].arrival_s - first_s +
           (double)passes * pass_s;
}
