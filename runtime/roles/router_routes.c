/* Routes: the experts that a request's tokens chose, row by row, as its workers
 * tell them, for a run that records them. */
#include "roles/router_state.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

static size_t row_size(const akin_router_t *r)
{
    return (size_t)r->params.model->n_layers * r->params.model->top_k;
}

/* Rows that a request may have from the worker that has it now: the prompt's
 * from its prefill worker, then, but for the last token, those of the answer
 * from its decode worker; 0: `from` has not got it. */
static uint64_t end_of_rows(const akin_router_t *r, const akini_flight_t *f,
                            uint32_t from)
{
    if (f->state == AKINI_FLIGHT_PREFILL && r->prefill[f->prefill].rank == from)
        return f->request->n_prompt;
    if (f->state == AKINI_FLIGHT_DECODE && r->decode[f->decode].rank == from)
        return (uint64_t)f->request->n_prompt + f->request->max_tokens - 1;
    return 0;
}

static int is_sound(const akin_router_t *r, const akini_flight_t *f,
                    const akin_message_routes_t *m, uint64_t end)
{
    if (m->first != f->n_routed || (uint64_t)m->first + m->n_tokens > end ||
        m->n_routes != m->n_tokens * row_size(r))
        return 0;
    for (size_t i = 0; i < m->n_routes; i++)
        if (m->routes[i] >= r->params.model->n_experts)
            return 0;
    return 1;
}

static void take_rows(akin_router_t *r, akini_flight_t *f,
                      const akin_message_routes_t *m)
{
    if (f->routes == NULL) {
        const size_t n =
            (size_t)f->request->n_prompt + f->request->max_tokens - 1;
        f->routes = calloc(n * row_size(r), sizeof(*f->routes));
        if (f->routes == NULL) {
            akini_router_fail(r, f, 500, "out_of_memory", "out of memory");
            return;
        }
    }
    memcpy(f->routes + f->n_routed * row_size(r), m->routes,
           m->n_routes * sizeof(*f->routes));
    f->n_routed += m->n_tokens;
}

akin_status_t akini_router_on_routes(akin_router_t *r, uint32_t from,
                                     const void *payload, size_t bytes)
{
    akin_message_routes_t m;
    akin_status_t status = akin_message_unpack_routes(payload, bytes, &m);
    if (status != AKIN_OK)
        return status;
    akini_flight_t *f = akini_flight_find(r, m.id);
    const uint64_t end = f != NULL ? end_of_rows(r, f, from) : 0;
    /* A request that ended or began again has nothing to do with them. */
    if (end > 0) {
        if (is_sound(r, f, &m, end))
            take_rows(r, f, &m);
        else
            akini_router_fail(r, f, 500, "routes_refused",
                              "the experts that its worker told make no sense");
    }
    free(m.routes);
    return AKIN_OK;
}

int akini_router_routes_agree(const akin_router_t *r, const akini_flight_t *f,
                              const uint16_t *counts)
{
    const akin_model_config_t *c = r->params.model;
    const size_t n_cells = (size_t)c->n_layers * c->n_experts;
    if (f->n_routed != f->request->n_prompt)
        return 0;
    uint16_t *left = malloc(n_cells * sizeof(*left));
    if (left == NULL)
        return 0;
    memcpy(left, counts, n_cells * sizeof(*left));
    const uint16_t *route = f->routes;
    for (uint32_t t = 0; t < f->n_routed; t++)
        for (uint32_t l = 0; l < c->n_layers; l++)
            for (uint32_t j = 0; j < c->top_k; j++)
                left[l * c->n_experts + *route++]--;
    int agree = 1;
    for (size_t i = 0; i < n_cells; i++)
        agree &= left[i] == 0;
    free(left);
    return agree;
}
