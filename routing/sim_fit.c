/* Sim fit: a calibration of generated requests. */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include "routing/sim_fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static akin_status_t allocate(akin_calibration_t *c,
                              const akin_sim_fit_params_t *params)
{
    const size_t n = params->n_requests;
    const size_t n_cells = n * params->n_layers * params->n_experts;
    c->n_requests = params->n_requests;
    c->n_layers = params->n_layers;
    c->n_experts = params->n_experts;
    c->top_k = params->top_k;
    c->prefill = calloc(n_cells, sizeof(*c->prefill));
    c->decode = calloc(n_cells, sizeof(*c->decode));
    c->n_prompt = calloc(n, sizeof(*c->n_prompt));
    c->n_decode = calloc(n, sizeof(*c->n_decode));
    c->records = calloc(n, sizeof(*c->records));
    c->ids = calloc(n, sizeof(*c->ids));
    c->domain = calloc(n, sizeof(*c->domain));
    c->domains = calloc(params->workload->n_domains, sizeof(*c->domains));
    if (c->prefill == NULL || c->decode == NULL || c->n_prompt == NULL ||
        c->n_decode == NULL || c->records == NULL || c->ids == NULL ||
        c->domain == NULL || c->domains == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t d = 0; d < params->workload->n_domains; d++) {
        c->domains[d] = strdup(params->workload->domains[d].name);
        if (c->domains[d] == NULL)
            return AKIN_ERR_NOMEM;
        c->n_domains++;
    }
    return AKIN_OK;
}

static uint32_t at_most(uint32_t n, uint32_t most)
{
    return most > 0 && n > most ? most : n;
}

/* Count the experts of n tokens from one on, all of the same phase. */
static void count_tokens(const akin_sim_fit_params_t *params,
                         const akin_route_request_t *route, const uint16_t *urn,
                         uint32_t from, uint32_t n, uint16_t *counts)
{
    uint16_t experts[AKIN_ROUTE_MAX_TOP_K];
    for (uint32_t t = from; t < from + n; t++)
        for (uint32_t l = 0; l < params->n_layers; l++) {
            akin_route_draw(params->generator, route, urn, t, l, experts);
            for (uint32_t i = 0; i < params->top_k; i++)
                counts[(size_t)l * params->n_experts + experts[i]]++;
        }
}

static akin_status_t add_request(akin_calibration_t *c,
                                 const akin_sim_fit_params_t *params,
                                 uint32_t i, uint16_t *urn)
{
    const size_t n_cells = (size_t)params->n_layers * params->n_experts;
    char id[32];
    akin_route_request_t route;
    akin_route_request_make(params->generator, params->first + i,
                            params->shares, &route);
    (void)snprintf(id, sizeof(id), "%u", i);
    c->ids[i] = strdup(id);
    if (c->ids[i] == NULL)
        return AKIN_ERR_NOMEM;
    c->records[i] = i;
    c->domain[i] = route.domain;
    c->n_prompt[i] = at_most(route.n_prompt, params->max_tokens);
    c->n_decode[i] = at_most(route.n_output, params->max_tokens);
    akin_route_urn_fill(params->generator, &route, AKIN_ROUTE_PREFILL, urn);
    count_tokens(params, &route, urn, 0, c->n_prompt[i],
                 c->prefill + i * n_cells);
    akin_route_urn_fill(params->generator, &route, AKIN_ROUTE_DECODE, urn);
    count_tokens(params, &route, urn, route.n_prompt, c->n_decode[i],
                 c->decode + i * n_cells);
    return AKIN_OK;
}

static akin_status_t draw_calibration(akin_calibration_t *c,
                                      const akin_sim_fit_params_t *params)
{
    uint16_t *urn =
        calloc((size_t)params->n_layers * akin_route_slots(params->generator),
               sizeof(*urn));
    akin_status_t status = urn != NULL ? allocate(c, params) : AKIN_ERR_NOMEM;
    for (uint32_t i = 0; status == AKIN_OK && i < params->n_requests; i++)
        status = add_request(c, params, i, urn);
    free(urn);
    return status;
}

akin_status_t akin_sim_fit_make(const akin_sim_fit_params_t *params,
                                akin_fit_t *fit, akin_error_t *err)
{
    *fit = (akin_fit_t){0};
    akin_calibration_t *calibration = calloc(1, sizeof(*calibration));
    akin_status_t status = calibration != NULL
                               ? draw_calibration(calibration, params)
                               : AKIN_ERR_NOMEM;
    if (status == AKIN_OK) {
        const akin_fit_make_params_t make = {
            .calibration = calibration,
            .n_clusters = params->n_clusters,
            .variant = params->variant,
            .is_plain = params->is_plain,
            .seed = params->seed,
        };
        status = akin_fit_make(&make, fit, NULL, err);
    } else {
        status = akin_error_set(err, status, "fit: out of memory");
    }
    akin_calibration_destroy(calibration);
    return status;
}
