/* Route pool: taken from a trace. */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include "routing/calibration.h"
#include "routing/route_pool_impl.h"

#include <stdlib.h>
#include <string.h>

/* Requests without a label have a domain of their own, the last one. */
static akin_status_t take_domains(akin_route_pool_t *pool,
                                  const akin_calibration_t *c)
{
    for (uint32_t d = 0; d < pool->n_domains; d++) {
        pool->domains[d] = strdup(d < c->n_domains ? c->domains[d] : "");
        if (pool->domains[d] == NULL)
            return AKIN_ERR_NOMEM;
    }
    return AKIN_OK;
}

static void take_entries(akin_route_pool_t *pool, const akin_trace_t *trace,
                         const akin_calibration_t *c, uint32_t n_counted)
{
    uint32_t n;
    const akin_trace_record_t *records = akin_trace_records(trace, &n);
    for (uint32_t i = 0; i < pool->n_entries; i++)
        pool->entries[i] = (akin_route_entry_t){
            .domain = c->domain[i] != AKIN_CALIBRATION_NO_DOMAIN ? c->domain[i]
                                                                 : c->n_domains,
            .n_prompt = c->n_prompt[i],
            .n_output = c->n_decode[i] + 1,
            .n_counted = n_counted > 0 && n_counted < c->n_prompt[i]
                             ? n_counted
                             : c->n_prompt[i],
            .arrival_s = records[c->records[i]].arrival_s,
        };
}

static akin_status_t take_routes(akin_route_pool_t *pool,
                                 const akin_trace_t *trace,
                                 const akin_calibration_t *c)
{
    const size_t n_ids = (size_t)pool->n_layers * pool->top_k;
    uint16_t *routes = calloc(n_ids, sizeof(*routes));
    if (routes == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t i = 0; i < pool->n_entries; i++)
        for (uint32_t t = 0; t < c->n_decode[i]; t++) {
            uint8_t *row = akini_route_pool_row(pool, pool->entries[i].row + t);
            akin_trace_routes(trace, c->records[i], c->n_prompt[i] + t, 1,
                              routes);
            for (uint32_t l = 0; l < pool->n_layers; l++)
                akini_route_pool_put(pool, row, l,
                                     routes + (size_t)l * pool->top_k);
        }
    free(routes);
    return AKIN_OK;
}

static void take_counts(const akin_route_pool_t *pool,
                        const akin_trace_t *trace, const akin_calibration_t *c)
{
    const size_t cells = akin_route_pool_cells(pool);
    for (uint32_t i = 0; i < pool->n_entries; i++) {
        akin_trace_count(trace, c->records[i], 0, pool->entries[i].n_counted,
                         pool->prompt_counts + i * cells);
        akin_trace_count(trace, c->records[i], c->n_prompt[i], c->n_decode[i],
                         pool->decode_counts + i * cells);
    }
}

static akin_status_t fill(akin_route_pool_t *pool, const akin_trace_t *trace,
                          const akin_route_pool_trace_t *params,
                          const akin_calibration_t *c, akin_error_t *err)
{
    take_entries(pool, trace, c, params->counted_tokens);
    akini_route_pool_sort(pool);
    akin_status_t status = akini_route_pool_add_rows(pool, params->max_bytes,
                                                     params->has_counts, err);
    if (status != AKIN_OK)
        return status;
    if (params->has_counts)
        take_counts(pool, trace, c);
    status = take_domains(pool, c);
    if (status == AKIN_OK)
        status = take_routes(pool, trace, c);
    return status == AKIN_OK
               ? status
               : akin_error_set(err, status, "routes: out of memory");
}

akin_status_t akin_route_pool_read(const akin_trace_t *trace,
                                   const akin_route_pool_trace_t *params,
                                   akin_route_pool_t **pool_p,
                                   akin_error_t *err)
{
    /* Counts take memory whose bound is known once the lengths are. */
    const akin_calibration_params_t count = {
        .records = params->records,
        .n_records = params->n_records,
        .prompt_tokens = params->prompt_tokens,
        .no_counts = true,
    };
    akin_calibration_t *c;
    *pool_p = NULL;
    akin_status_t status = akin_calibration_create(trace, &count, &c, err);
    if (status != AKIN_OK)
        return status;
    uint32_t n_domains = c->n_domains;
    for (uint32_t i = 0; i < c->n_requests && n_domains == c->n_domains; i++)
        n_domains += c->domain[i] == AKIN_CALIBRATION_NO_DOMAIN;
    akin_route_pool_t *pool = akini_route_pool_create(
        c->n_layers, c->n_experts, c->top_k, c->n_requests, n_domains);
    status = pool != NULL
                 ? fill(pool, trace, params, c, err)
                 : akin_error_set(err, AKIN_ERR_NOMEM, "routes: out of memory");
    if (status == AKIN_OK)
        *pool_p = pool;
    else
        akin_route_pool_destroy(pool);
    akin_calibration_destroy(c);
    return status;
}
