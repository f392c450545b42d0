/* Policies that look at no load: random, and round robin. */
#include "routing/policy_impl.h"

#include "base/rng.h"

static uint32_t choose_random(const akin_policy_t *policy,
                              const akin_policy_request_t *request,
                              const uint8_t *eligible)
{
    (void)request;
    uint32_t count = akini_policy_count_eligible(policy, eligible);
    if (count == 0)
        return AKIN_ROUTING_NO_WORKER;
    uint64_t rank = akin_rng_below(policy->params.seed, AKINI_STREAM_RANDOM,
                                   policy->n_decisions, count);
    return akini_policy_nth_eligible(policy, eligible, rank);
}

/* The turn passes over a worker that may not be chosen; it is not saved up. */
static uint32_t choose_rr(const akin_policy_t *policy,
                          const akin_policy_request_t *request,
                          const uint8_t *eligible)
{
    (void)request;
    uint32_t n = policy->params.n_workers;
    uint32_t first = policy->last_worker == AKIN_ROUTING_NO_WORKER
                         ? 0
                         : policy->last_worker + 1;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t w = (first + i) % n;
        if (eligible[w] != 0)
            return w;
    }
    return AKIN_ROUTING_NO_WORKER;
}

const akini_policy_ops_t akini_policy_random = {
    .name = "random",
    .choose = choose_random,
};

const akini_policy_ops_t akini_policy_rr = {
    .name = "rr",
    .choose = choose_rr,
};
