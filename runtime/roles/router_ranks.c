/* The router's places: which worker a rank is of, and what is left when one is
 * lost. */
#include "roles/router_state.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

akin_status_t akini_router_create_ranks(akin_router_t *r)
{
    const akin_job_t *job = r->params.job;
    r->n_prefill = akin_job_n_prefill_ranks(job);
    r->n_decode = akin_job_n_decode_ranks(job);
    r->prefill = calloc(r->n_prefill, sizeof(*r->prefill));
    r->decode = calloc(r->n_decode, sizeof(*r->decode));
    r->places = calloc(akin_job_n_ranks(job), sizeof(akini_rank_t *));
    r->lost_ns =
        calloc((size_t)job->n_prefill + job->n_decode, sizeof(*r->lost_ns));
    if (r->prefill == NULL || r->decode == NULL || r->places == NULL ||
        r->lost_ns == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t i = 0; i < r->n_prefill; i++) {
        r->prefill[i].rank = 1 + i;
        r->prefill[i].worker = i / job->prefill_ep;
        r->places[1 + i] = &r->prefill[i];
    }
    for (uint32_t i = 0; i < r->n_decode; i++) {
        r->decode[i].rank = 1 + r->n_prefill + i;
        r->decode[i].worker = job->n_prefill + i / job->ep;
        r->places[1 + r->n_prefill + i] = &r->decode[i];
    }
    return akini_router_create_groups(r);
}

akini_rank_t *akini_router_rank(const akin_router_t *r, uint32_t rank)
{
    return rank < akin_job_n_ranks(r->params.job) ? r->places[rank] : NULL;
}

int akini_router_is_prefill(const akin_router_t *r, uint32_t rank)
{
    const akini_rank_t *place = akini_router_rank(r, rank);
    return place != NULL && place->worker < r->params.job->n_prefill;
}

int akini_router_is_decode(const akin_router_t *r, uint32_t rank)
{
    const akini_rank_t *place = akini_router_rank(r, rank);
    return place != NULL && place->worker >= r->params.job->n_prefill;
}

akini_rank_t *akini_router_places(const akin_router_t *r, uint32_t worker,
                                  uint32_t *n_p)
{
    const akin_job_t *job = r->params.job;
    if (worker < job->n_prefill) {
        *n_p = job->prefill_ep;
        return &r->prefill[(size_t)worker * job->prefill_ep];
    }
    *n_p = job->ep;
    return &r->decode[(size_t)(worker - job->n_prefill) * job->ep];
}

void akini_router_worker_name(const akin_router_t *r, uint32_t worker,
                              char name[32])
{
    const uint32_t n_prefill = r->params.job->n_prefill;
    const int is_prefill = worker < n_prefill;
    (void)snprintf(name, 32, "%s %u", is_prefill ? "prefill" : "decode",
                   is_prefill ? worker : worker - n_prefill);
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

/* Requests that a lost worker held begin again. A decode rank that reads from a
 * lost prefill rank tells so itself. */
static uint64_t restart_flights(akin_router_t *r, uint32_t worker)
{
    uint64_t n = 0;
    akini_flight_t *f, *next;
    for (int state = AKINI_FLIGHT_PREFILL; state < AKINI_FLIGHT_STATES; state++)
        DL_FOREACH_SAFE(r->lists[state], f, next)
        {
            int at_prefill = state <= AKINI_FLIGHT_ROUTED &&
                             r->prefill[f->prefill].worker == worker;
            int at_decode = state >= AKINI_FLIGHT_TRANSFER &&
                            r->decode[f->decode].worker == worker;
            if (!at_prefill && !at_decode)
                continue;
            n++;
            if (f->lost_ns == 0)
                f->lost_ns = r->lost_ns[worker];
            akini_flight_restart(r, f, "its worker is lost");
        }
    return n;
}

void akini_router_lose_worker(akin_router_t *r, uint32_t worker)
{
    uint32_t n;
    akini_rank_t *places = akini_router_places(r, worker, &n);
    for (uint32_t i = 0; i < n; i++) {
        places[i].is_lost = 1;
        r->places[places[i].rank] = NULL;
    }
    r->lost_ns[worker] = akin_clock_now_ns();
    akini_steps_forget(r->steps, worker);
    akini_router_replace_lost(r, worker);
    if (!r->is_closing)
        akin_summary_add_lost(r->summary, worker, restart_flights(r, worker));
}
