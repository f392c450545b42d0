/* Route pool: drawn by a route generator. */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include "routing/route_generator_impl.h"
#include "routing/route_pool_impl.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 64u

typedef struct maker {
    const akin_route_generator_t *generator;
    const akin_route_pool_params_t *params;
    akin_route_pool_t *pool;
    akin_route_request_t *requests; /* [n_entries] */
    akin_route_request_t *shared;   /* [n_domains] whose prompts all share */
    uint16_t *shared_counts;        /* [n_domains][cells] */
    atomic_uint next;
    atomic_bool is_stopped;
} maker_t;

static double share_of(const maker_t *m, uint32_t domain)
{
    return m->params->shares != NULL
               ? m->params->shares[domain]
               : m->generator->workload.domains[domain].share;
}

/* Requests of every domain: one for each that has a share, the others to the
 * domain that is farthest below its own. */
static void share_requests(const maker_t *m,
                           uint32_t n_of[AKIN_ROUTE_MAX_DOMAINS])
{
    const uint32_t n_domains = m->pool->n_domains;
    double sum = 0.0;
    uint32_t n = 0;
    for (uint32_t d = 0; d < n_domains; d++) {
        sum += share_of(m, d);
        n_of[d] = share_of(m, d) > 0.0;
        n += n_of[d];
    }
    for (uint32_t d = 0; d < n_domains; d++) {
        const double wanted = share_of(m, d) / sum * m->pool->n_entries;
        const uint32_t more =
            wanted > 1.0 && n_of[d] > 0 ? (uint32_t)wanted - 1 : 0;
        const uint32_t room = m->pool->n_entries - n;
        n_of[d] += more < room ? more : room;
        n += more < room ? more : room;
    }
    for (; n < m->pool->n_entries; n++) {
        uint32_t best = 0;
        double lack = -INFINITY;
        for (uint32_t d = 0; d < n_domains; d++) {
            const double of =
                share_of(m, d) / sum * m->pool->n_entries - n_of[d];
            if (share_of(m, d) > 0.0 && of > lack) {
                lack = of;
                best = d;
            }
        }
        n_of[best]++;
    }
}

static void make_request(const maker_t *m, uint64_t number, uint32_t domain,
                         akin_route_request_t *request)
{
    double shares[AKIN_ROUTE_MAX_DOMAINS] = {0.0};
    shares[domain] = 1.0;
    akin_route_request_make(m->generator, m->params->first + number, shares,
                            request);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Domains take turns, so that every stretch of the pool has all of them. */
static akin_status_t make_entries(maker_t *m, akin_error_t *err)
{
    akin_route_pool_t *pool = m->pool;
    const uint32_t most =
        m->params->counted_tokens > 0 ? m->params->counted_tokens : UINT32_MAX;
    uint32_t n_of[AKIN_ROUTE_MAX_DOMAINS] = {0};
    uint32_t n_made[AKIN_ROUTE_MAX_DOMAINS] = {0};
    share_requests(m, n_of);
    for (uint32_t d = 0; d < pool->n_domains; d++)
        make_request(m, (uint64_t)pool->n_entries + d, d, &m->shared[d]);
    for (uint32_t i = 0; i < pool->n_entries; i++) {
        uint32_t domain = 0;
        double behind = -INFINITY;
        for (uint32_t d = 0; d < pool->n_domains; d++) {
            const double of =
                (double)n_of[d] * (i + 1) / pool->n_entries - n_made[d];
            if (n_made[d] < n_of[d] && of > behind) {
                behind = of;
                domain = d;
            }
        }
        n_made[domain]++;
        akin_route_request_t *request = &m->requests[i];
        make_request(m, i, domain, request);
        const uint32_t n_prompt = m->params->shared_tokens + request->n_prompt;
        if (n_prompt > AKIN_ROUTE_MAX_TOKENS)
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "routes: a prompt has %u tokens with the %u "
                                  "that its domain shares; %u are possible",
                                  n_prompt, m->params->shared_tokens,
                                  AKIN_ROUTE_MAX_TOKENS);
        pool->entries[i] = (akin_route_entry_t){
            .domain = domain,
            .n_prompt = n_prompt,
            .n_output = request->n_output,
            .n_counted = least(n_prompt, most),
            .arrival_s = -1.0,
        };
    }
    return AKIN_OK;
}

/* Counts of the first tokens of a prompt. */
static void count_prompt(const maker_t *m, const akin_route_request_t *request,
                         uint32_t n_tokens, uint16_t *urn, uint16_t *counts)
{
    const akin_route_pool_t *pool = m->pool;
    uint16_t experts[AKIN_ROUTE_MAX_TOP_K];
    akin_route_urn_fill(m->generator, request, AKIN_ROUTE_PREFILL, urn);
    for (uint32_t t = 0; t < n_tokens; t++)
        for (uint32_t l = 0; l < pool->n_layers; l++) {
            akin_route_draw(m->generator, request, urn, t, l, experts);
            for (uint32_t i = 0; i < pool->top_k; i++)
                counts[(size_t)l * pool->n_experts + experts[i]]++;
        }
}

/* What all prompts of a domain begin with. */
static void count_shared(maker_t *m, uint32_t n_tokens, uint16_t *urn)
{
    for (uint32_t d = 0; d < m->pool->n_domains; d++) {
        m->shared[d].n_prompt = n_tokens > 0 ? n_tokens : 1;
        count_prompt(m, &m->shared[d], n_tokens, urn,
                     m->shared_counts + d * akin_route_pool_cells(m->pool));
    }
}

static void make_counts(const maker_t *m, uint32_t i, uint16_t *urn)
{
    const akin_route_pool_t *pool = m->pool;
    const akin_route_entry_t *entry = &pool->entries[i];
    const size_t cells = akin_route_pool_cells(pool);
    const uint32_t n_shared = least(m->params->shared_tokens, entry->n_counted);
    uint16_t *counts = pool->prompt_counts + i * cells;
    if (n_shared > 0)
        memcpy(counts, m->shared_counts + entry->domain * cells,
               cells * sizeof(*counts));
    count_prompt(m, &m->requests[i], entry->n_counted - n_shared, urn, counts);
    akin_route_pool_count(pool, i, 0, entry->n_output - 1,
                          pool->decode_counts + i * cells);
}

static void make_routes(const maker_t *m, uint32_t i, uint16_t *urn)
{
    const akin_route_pool_t *pool = m->pool;
    const akin_route_request_t *request = &m->requests[i];
    uint16_t experts[AKIN_ROUTE_MAX_TOP_K];
    akin_route_urn_fill(m->generator, request, AKIN_ROUTE_DECODE, urn);
    for (uint32_t t = 0; t + 1 < request->n_output; t++) {
        uint8_t *row = akini_route_pool_row(pool, pool->entries[i].row + t);
        for (uint32_t l = 0; l < pool->n_layers; l++) {
            akin_route_draw(m->generator, request, urn, request->n_prompt + t,
                            l, experts);
            akini_route_pool_put(pool, row, l, experts);
        }
    }
    if (m->params->has_counts)
        make_counts(m, i, urn);
}

/* Gives 0 unless memory is out. */
static int make_some(maker_t *m, int is_first)
{
    const akin_route_pool_params_t *params = m->params;
    uint16_t *urn =
        calloc((size_t)m->pool->n_layers * m->generator->n_slots, sizeof(*urn));
    if (urn == NULL)
        return -1;
    while (!atomic_load(&m->is_stopped)) {
        const uint32_t i = atomic_fetch_add(&m->next, 1);
        if (i >= m->pool->n_entries)
            break;
        make_routes(m, i, urn);
        if (is_first && params->progress != NULL &&
            params->progress(params->arg, i + 1))
            atomic_store(&m->is_stopped, true);
    }
    free(urn);
    return 0;
}

static void *make_thread(void *arg)
{
    /* What this thread does not make others do. */
    (void)make_some(arg, 0);
    return NULL;
}

static akin_status_t make_all(maker_t *m, akin_error_t *err)
{
    pthread_t threads[MAX_THREADS];
    uint32_t n = 0;
    const uint32_t n_threads = least(m->params->n_threads, MAX_THREADS);
    const uint32_t most =
        m->params->counted_tokens > 0 ? m->params->counted_tokens : UINT32_MAX;
    uint16_t *urn =
        calloc((size_t)m->pool->n_layers * m->generator->n_slots, sizeof(*urn));
    if (urn == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "routes: out of memory");
    count_shared(m, least(m->params->shared_tokens, most), urn);
    free(urn);
    while (n + 1 < n_threads &&
           pthread_create(&threads[n], NULL, make_thread, m) == 0)
        n++;
    const int failed = make_some(m, 1);
    for (uint32_t i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
    if (failed)
        return akin_error_set(err, AKIN_ERR_NOMEM, "routes: out of memory");
    return atomic_load(&m->is_stopped)
               ? akin_error_set(err, AKIN_ERR_CANCELED, "stopped")
               : AKIN_OK;
}

static akin_status_t make(maker_t *m, akin_error_t *err)
{
    akin_route_pool_t *pool = m->pool;
    akin_status_t status = make_entries(m, err);
    if (status != AKIN_OK)
        return status;
    for (uint32_t d = 0; d < pool->n_domains; d++) {
        const char *name = m->generator->workload.domains[d].name;
        pool->domains[d] = strdup(name != NULL ? name : "");
        if (pool->domains[d] == NULL)
            return akin_error_set(err, AKIN_ERR_NOMEM, "routes: out of memory");
    }
    akini_route_pool_sort(pool);
    status = akini_route_pool_add_rows(pool, m->params->max_bytes,
                                       m->params->has_counts, err);
    return status == AKIN_OK ? make_all(m, err) : status;
}

akin_status_t akin_route_pool_generate(const akin_route_generator_t *generator,
                                       const akin_route_pool_params_t *params,
                                       akin_route_pool_t **pool_p,
                                       akin_error_t *err)
{
    const akin_route_generator_params_t *shape = &generator->params;
    const uint32_t n_domains = generator->workload.n_domains;
    *pool_p = NULL;
    if (params->n_requests < n_domains)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "routes: %u requests are fewer than the %u "
                              "domains",
                              params->n_requests, n_domains);
    maker_t m = {.generator = generator, .params = params};
    atomic_init(&m.next, 0);
    atomic_init(&m.is_stopped, false);
    m.pool =
        akini_route_pool_create(shape->n_layers, shape->n_experts, shape->top_k,
                                params->n_requests, n_domains);
    m.requests = calloc(params->n_requests, sizeof(*m.requests));
    m.shared = calloc(n_domains, sizeof(*m.shared));
    m.shared_counts =
        calloc((size_t)n_domains * shape->n_layers * shape->n_experts,
               sizeof(*m.shared_counts));
    akin_status_t status = AKIN_ERR_NOMEM;
    if (m.pool != NULL && m.requests != NULL && m.shared != NULL &&
        m.shared_counts != NULL) {
        m.pool->shared_tokens = params->shared_tokens;
        status = make(&m, err);
    } else {
        (void)akin_error_set(err, status, "routes: out of memory");
    }
    if (status == AKIN_OK)
        *pool_p = m.pool;
    else
        akin_route_pool_destroy(m.pool);
    free(m.requests);
    free(m.shared);
    free(m.shared_counts);
    return status;
}
