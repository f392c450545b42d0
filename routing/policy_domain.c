/* Policy `domain`: an oracle knows what kind of request each one is, and every
 * kind has workers of its own (ALGORITHMS.md 4). The mark for the policies
 * that find out by themselves. */
#include "routing/policy_impl.h"

#include <stdlib.h>
#include <string.h>

/* Neighbouring workers. */
typedef struct group {
    const char *name; /* borrowed from the fit; NULL: the rest, `misc` */
    uint64_t n_requests;
    uint64_t remainder; /* of its share, in units of 1 / n_requests of all */
    uint32_t rank;      /* in the fit's list; settles equal remainders */
    uint32_t first;
    uint32_t n_workers;
} group_t;

typedef struct domain_state {
    group_t *groups; /* [n_groups], sorted by name; the last one is `misc` */
    uint32_t n_groups;
} domain_state_t;

static void destroy_domain(void *self)
{
    domain_state_t *state = self;
    if (state == NULL)
        return;
    free(state->groups);
    free(state);
}

static int by_remainder(const void *a_p, const void *b_p)
{
    const group_t *a = a_p, *b = b_p;
    if (a->remainder != b->remainder)
        return a->remainder > b->remainder ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int by_rank(const void *a_p, const void *b_p)
{
    const group_t *a = a_p, *b = b_p;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int by_name(const void *a_p, const void *b_p)
{
    const group_t *a = a_p, *b = b_p;
    return strcmp(a->name, b->name);
}

/* Largest remainder: everybody gets the whole part of the exact share, and the
 * workers that are left go to those who lack most of a further one. */
static void share_workers(domain_state_t *state, uint64_t n_requests,
                          uint32_t n_workers)
{
    uint32_t n_left = n_workers;
    for (uint32_t i = 0; i < state->n_groups; i++) {
        group_t *group = &state->groups[i];
        uint64_t share = group->n_requests * n_workers;
        group->n_workers = (uint32_t)(share / n_requests);
        group->remainder = share % n_requests;
        n_left -= group->n_workers;
    }
    qsort(state->groups, state->n_groups, sizeof(group_t), by_remainder);
    for (uint32_t i = 0; i < n_left; i++)
        state->groups[i].n_workers++;
    qsort(state->groups, state->n_groups, sizeof(group_t), by_rank);
    uint32_t first = 0;
    for (uint32_t i = 0; i < state->n_groups; i++) {
        state->groups[i].first = first;
        first += state->groups[i].n_workers;
    }
}

static akin_status_t create_domain(const akin_policy_params_t *params,
                                   void **self_p)
{
    const akin_fit_t *fit = params->fit;
    domain_state_t *state = calloc(1, sizeof(*state));
    if (state == NULL)
        return AKIN_ERR_NOMEM;
    /* At most n_workers labels have that many requests. */
    state->groups =
        calloc((size_t)params->n_workers + 1, sizeof(*state->groups));
    if (state->groups == NULL) {
        free(state);
        return AKIN_ERR_NOMEM;
    }
    uint64_t n_labelled = 0;
    for (uint32_t i = 0; i < fit->n_domains; i++)
        n_labelled += fit->domains[i].n_requests;
    /* Requests without a label are among the rest. */
    uint64_t n_requests =
        fit->n_requests > n_labelled ? fit->n_requests : n_labelled;
    uint64_t n_rest = n_requests;
    for (uint32_t i = 0; i < fit->n_domains; i++) {
        const akin_fit_domain_t *domain = &fit->domains[i];
        if (domain->n_requests == 0 ||
            (uint64_t)domain->n_requests * params->n_workers < n_requests)
            continue;
        state->groups[state->n_groups] = (group_t){
            .name = domain->name,
            .n_requests = domain->n_requests,
            .rank = state->n_groups,
        };
        state->n_groups++;
        n_rest -= domain->n_requests;
    }
    /* A fit that knows no requests leaves all workers to the rest. */
    state->groups[state->n_groups] = (group_t){
        .n_requests = n_requests > 0 ? n_rest : 1,
        .rank = state->n_groups,
    };
    state->n_groups++;
    share_workers(state, n_requests > 0 ? n_requests : 1, params->n_workers);
    qsort(state->groups, state->n_groups - 1, sizeof(group_t), by_name);
    *self_p = state;
    return AKIN_OK;
}

static const group_t *find_group(const domain_state_t *state,
                                 const char *domain)
{
    const group_t *rest = &state->groups[state->n_groups - 1];
    if (domain == NULL)
        return rest;
    const group_t key = {.name = domain};
    const group_t *found = bsearch(&key, state->groups, state->n_groups - 1,
                                   sizeof(group_t), by_name);
    return found != NULL ? found : rest;
}

static uint32_t least_loaded(const akin_policy_t *policy,
                             const uint8_t *eligible, uint32_t first,
                             uint32_t n_workers)
{
    uint32_t best = AKIN_ROUTING_NO_WORKER;
    for (uint32_t w = first; w < first + n_workers; w++)
        if (eligible[w] != 0 &&
            (best == AKIN_ROUTING_NO_WORKER ||
             policy->in_flight[w] < policy->in_flight[best]))
            best = w;
    return best;
}

/* A group without workers, or with none that may be chosen, borrows from all
 * others: a request that waits is worse than one among strangers. */
static uint32_t choose_domain(const akin_policy_t *policy,
                              const akin_policy_request_t *request,
                              const uint8_t *eligible)
{
    const group_t *group = find_group(policy->self, request->domain);
    uint32_t worker =
        least_loaded(policy, eligible, group->first, group->n_workers);
    if (worker != AKIN_ROUTING_NO_WORKER)
        return worker;
    return least_loaded(policy, eligible, 0, policy->params.n_workers);
}

const akini_policy_ops_t akini_policy_domain = {
    .name = "domain",
    .needs_fit = 1,
    .create = create_domain,
    .destroy = destroy_domain,
    .choose = choose_domain,
};
