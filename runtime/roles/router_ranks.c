/* The router's ranks: which worker a rank is of, and what is left when one is
 * lost. */
#include "roles/router_state.h"

#include <stdlib.h>

akin_status_t akini_router_create_ranks(akin_router_t *r)
{
    const akin_job_t *job = r->params.job;
    r->n_prefill = akin_job_n_prefill_ranks(job);
    r->n_decode = akin_job_n_decode_ranks(job);
    r->prefill = calloc(r->n_prefill, sizeof(*r->prefill));
    r->decode = calloc(r->n_decode, sizeof(*r->decode));
    if (r->prefill == NULL || r->decode == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t i = 0; i < r->n_prefill; i++) {
        r->prefill[i].rank = 1 + i;
        r->prefill[i].worker = i / job->prefill_ep;
    }
    for (uint32_t i = 0; i < r->n_decode; i++) {
        r->decode[i].rank = 1 + r->n_prefill + i;
        r->decode[i].worker = job->n_prefill + i / job->ep;
    }
    return AKIN_OK;
}

int akini_router_is_prefill(const akin_router_t *r, uint32_t rank)
{
    return rank >= 1 && rank - 1 < r->n_prefill;
}

int akini_router_is_decode(const akin_router_t *r, uint32_t rank)
{
    return rank > r->n_prefill && rank - 1 - r->n_prefill < r->n_decode;
}

akini_rank_t *akini_router_rank(const akin_router_t *r, uint32_t rank)
{
    return akini_router_is_prefill(r, rank)
               ? &r->prefill[rank - 1]
               : &r->decode[rank - 1 - r->n_prefill];
}

uint32_t akini_router_decode_worker(const akin_router_t *r, uint32_t decode)
{
    return r->decode[decode].worker - r->params.job->n_prefill;
}

uint32_t akini_router_alive(const akini_rank_t *ranks, uint32_t n)
{
    uint32_t alive = 0;
    for (uint32_t i = 0; i < n; i++)
        alive += !ranks[i].is_lost;
    return alive;
}

void akini_router_lose_worker(akin_router_t *r, uint32_t worker)
{
    for (uint32_t i = 0; i < r->n_prefill; i++)
        r->prefill[i].is_lost |= r->prefill[i].worker == worker;
    for (uint32_t i = 0; i < r->n_decode; i++)
        r->decode[i].is_lost |= r->decode[i].worker == worker;
}
