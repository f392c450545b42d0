/* Policies that look at the requests in flight alone: join the shortest
 * queue, and the shorter of two queues drawn at random. */
#include "routing/policy_impl.h"

#include "base/rng.h"
#include "routing/policy_scan.h"

static uint32_t choose_jsq(const akin_policy_t *policy,
                           const akin_policy_request_t *request,
                           const uint8_t *eligible)
{
    (void)request;
    const uint32_t n = policy->params.n_workers;
    uint32_t n_least;
    const uint32_t least =
        akini_scan_least(policy->in_flight, eligible, n, &n_least);
    if (n_least == 0)
        return AKIN_ROUTING_NO_WORKER;
    const uint64_t rank = akin_rng_below(policy->params.seed, AKINI_STREAM_JSQ,
                                         policy->n_decisions, n_least);
    return akini_scan_nth_at(policy->in_flight, eligible, n, least, rank);
}

static uint32_t choose_p2c(const akin_policy_t *policy,
                           const akin_policy_request_t *request,
                           const uint8_t *eligible)
{
    (void)request;
    uint32_t count = akini_policy_count_eligible(policy, eligible);
    if (count < 2)
        return akini_policy_nth_eligible(policy, eligible, 0);
    uint64_t rank_a =
        akin_rng_below(policy->params.seed, AKINI_STREAM_P2C_FIRST,
                       policy->n_decisions, count);
    uint64_t rank_b =
        akin_rng_below(policy->params.seed, AKINI_STREAM_P2C_SECOND,
                       policy->n_decisions, count - 1);
    if (rank_b >= rank_a)
        rank_b++;
    uint32_t a = akini_policy_nth_eligible(policy, eligible, rank_a);
    uint32_t b = akini_policy_nth_eligible(policy, eligible, rank_b);
    return policy->in_flight[a] <= policy->in_flight[b] ? a : b;
}

const akini_policy_ops_t akini_policy_jsq = {
    .name = "jsq",
    .choose = choose_jsq,
};

const akini_policy_ops_t akini_policy_p2c = {
    .name = "p2c",
    .choose = choose_p2c,
};
