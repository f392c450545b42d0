/* Router books: what has to hold in a router between any two events. */
#ifndef AKIN_TESTS_UNIT_ROUTER_BOOKS_H
#define AKIN_TESTS_UNIT_ROUTER_BOOKS_H

#include "roles/router_state.h"

#include <utlist.h>

/** Groups that serve have the places of their worker, and nobody else has any;
 * a worker is lost exactly when no group is it. */
static inline int books_of_places_agree(const akin_router_t *r)
{
    const akin_job_t *job = r->params.job;
    int agree = 1;
    for (uint32_t w = 0; w < job->n_prefill + job->n_decode; w++) {
        uint32_t n, n_serve = 0, n_assume = 0;
        const akini_rank_t *places = akini_router_places(r, w, &n);
        for (uint32_t g = 0; g < r->n_groups; g++) {
            const akini_group_t *group = &r->groups[g];
            n_assume +=
                group->state == AKINI_GROUP_ASSUMING && group->worker == w;
            if (group->state != AKINI_GROUP_SERVING || group->worker != w)
                continue;
            n_serve++;
            for (uint32_t i = 0; i < n; i++)
                agree &= places[i].rank == group->first + i;
        }
        agree &= n_serve == (r->lost_ns[w] == 0);
        agree &= n_assume + n_serve <= 1;
        for (uint32_t i = 0; i < n; i++) {
            agree &= places[i].is_lost == (r->lost_ns[w] != 0);
            agree &= places[i].worker == w;
            if (!places[i].is_lost)
                agree &= r->places[places[i].rank] == &places[i];
        }
    }
    for (uint32_t g = 0; g < r->n_groups; g++) {
        const akini_group_t *group = &r->groups[g];
        agree &= (group->said & ~(UINT64_MAX >> (64 - group->n_ranks))) == 0;
        for (uint32_t i = 0; i < group->n_ranks; i++)
            agree &= (r->places[group->first + i] != NULL) ==
                     (group->state == AKINI_GROUP_SERVING);
    }
    return agree;
}

/** Places count the requests that have them, no more and no fewer; none of a
 * lost worker has any. */
static inline int books_of_requests_agree(const akin_router_t *r)
{
    const akin_job_t *job = r->params.job;
    uint32_t n_in = 0, n_all = 0, n_at[64] = {0}, load[64] = {0};
    uint32_t n_held = 0, n_slots[64] = {0};
    int agree = r->n_prefill + r->n_decode <= 64;
    for (int state = 0; state < AKINI_FLIGHT_STATES && agree; state++) {
        const akini_flight_t *f;
        uint32_t n = 0;
        DL_FOREACH(r->lists[state], f)
        {
            n++;
            agree &= (int)f->state == state;
            agree &= f->n_start >= f->request->n_prompt &&
                     f->n_start <= f->request->n_prompt + f->n_tokens;
            agree &= f->n_tokens < f->request->max_tokens;
            if (state == AKINI_FLIGHT_PREFILL) {
                n_at[f->prefill]++;
                load[f->prefill] += f->n_start;
            }
            if (state == AKINI_FLIGHT_PREFILL || state == AKINI_FLIGHT_ROUTED)
                agree &= !r->prefill[f->prefill].is_lost;
            if (state < AKINI_FLIGHT_TRANSFER)
                continue;
            n_held++;
            n_at[r->n_prefill + f->decode]++;
            n_slots[f->decode] += f->n_slots;
            agree &= !r->decode[f->decode].is_lost;
        }
        agree &= r->n_in[state] == n;
        n_in += n;
    }
    for (uint32_t i = 0; i < r->n_prefill; i++)
        agree &=
            r->prefill[i].n_flights == n_at[i] && r->prefill[i].load == load[i];
    for (uint32_t i = 0; i < r->n_decode; i++)
        agree &= r->decode[i].n_flights == n_at[r->n_prefill + i] &&
                 r->decode[i].n_reserved == n_slots[i];
    for (uint32_t w = 0; w < job->n_decode; w++)
        n_all += akin_policy_in_flight(r->policy, w);
    return agree && n_all == n_held && n_in == HASH_COUNT(r->by_id);
}

#endif
