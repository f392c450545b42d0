/* bench route: time of a routing decision on one core, beside a plain read of
 * the arrays that it walks through. */
#include "launch/bench_route.h"

#include "base/clock.h"
#include "routing/policy_impl.h"
#include "routing/policy_union.h"
#include "routing/union_kernel.h"

#include <stdlib.h>
#include <string.h>

#define MIN_ROUNDS 20u
#define TAU 0.1

enum {
    N_REQUESTS = 16,
    PROMPT_TOKENS = 400,
    /* Requests in flight: several per worker, but no more than are quickly
     * decided on. */
    PER_WORKER = 8,
    MAX_IN_FLIGHT = 256
};

akin_status_t akin_bench_route_init(akin_bench_route_bed_t *bed,
                                    akin_error_t *err)
{
    const akin_planted_t *planted = bed->planted;
    const size_t cells = (size_t)planted->n_layers * planted->n_experts;
    bed->counts = calloc(N_REQUESTS, cells * sizeof(*bed->counts));
    bed->request = calloc(cells, sizeof(*bed->request));
    bed->eligible = calloc(bed->n_workers, 1);
    if (bed->counts == NULL || bed->request == NULL || bed->eligible == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM,
                              "out of memory for %u workers", bed->n_workers);
    memset(bed->eligible, 1, bed->n_workers);
    for (uint32_t i = 0; i < N_REQUESTS; i++)
        akin_planted_counts(planted, AKIN_PLANTED_PREFILL, i, PROMPT_TOKENS,
                            bed->counts + i * cells);
    return akin_planted_fit(planted, bed->n_workers, &bed->fit, err);
}

void akin_bench_route_cleanup(akin_bench_route_bed_t *bed)
{
    akin_fit_cleanup(&bed->fit);
    free(bed->eligible);
    free(bed->request);
    free(bed->counts);
}

/* The router sums the counts of a prompt's blocks right before it decides: they
 * are in its cache. */
static akin_policy_request_t request_of(const akin_bench_route_bed_t *bed,
                                        uint64_t id)
{
    const akin_planted_t *planted = bed->planted;
    const size_t cells = (size_t)planted->n_layers * planted->n_experts;
    memcpy(bed->request, bed->counts + id % N_REQUESTS * cells,
           cells * sizeof(*bed->request));
    return (akin_policy_request_t){
        .id = id,
        .counts = bed->request,
        .n_tokens = PROMPT_TOKENS,
        .now_ns = akin_clock_now_ns(),
    };
}

/* A plain read of the arrays that decide how long a choice takes: the
 * centroids, or for `union` the chances of all workers, for `union-pull` both,
 * for `union-band` the chances of as many workers as its last band had. One
 * core needs no team, and a short read would be mostly its start. */
static size_t read_arrays(const akin_bench_route_bed_t *bed,
                          const akin_policy_t *policy)
{
    static volatile uint64_t sink;
    const akin_kernels_t *kernels = akin_kernels_of(akin_kernels_best());
    const size_t row = akini_union_padded(bed->fit.dim) * sizeof(float);
    size_t centroids = bed->fit.dim * bed->n_workers * sizeof(float);
    size_t chances = 0;
    if (policy->ops == &akini_policy_union) {
        centroids = 0;
        chances = bed->n_workers * row;
    } else if (policy->ops == &akini_policy_union_pull) {
        chances = bed->n_workers * row;
    } else if (policy->ops == &akini_policy_union_band) {
        chances = akin_policy_last_choice(policy).n_band * row;
    }
    uint64_t sum = 0;
    if (centroids > 0)
        sum += kernels->read(bed->fit.centroids, centroids);
    if (chances > 0)
        sum += kernels->read(akini_union_idle(policy), chances);
    sink = sum;
    (void)sink;
    return centroids + chances;
}

static double seconds_since(int64_t begin_ns)
{
    return (double)(akin_clock_now_ns() - begin_ns) / (double)AKIN_NS_PER_S;
}

static akin_status_t measure(const akin_bench_route_bed_t *bed,
                             akin_policy_t *policy,
                             akin_bench_route_figures_t *out, akin_error_t *err)
{
    static akin_bench_rounds_t rounds, whole;
    static volatile uint32_t chosen;
    uint64_t n_in_flight = (uint64_t)bed->n_workers * PER_WORKER;
    if (n_in_flight > MAX_IN_FLIGHT)
        n_in_flight = MAX_IN_FLIGHT;
    int64_t begin = 0;
    rounds.n = whole.n = 0;
    out->n_band = 0.0;
    double bytes = 0.0;
    for (uint64_t id = 0; rounds.n < AKIN_BENCH_MAX_ROUNDS; id++) {
        uint32_t worker;
        akin_policy_request_t request = request_of(bed, id);
        int64_t read_ns = akin_clock_now_ns();
        size_t n_read = read_arrays(bed, policy);
        double read = seconds_since(read_ns);
        int64_t choose_ns = akin_clock_now_ns();
        chosen = policy->ops->choose(policy, &request, bed->eligible);
        double choose = seconds_since(choose_ns);
        int64_t decide_ns = akin_clock_now_ns();
        akin_status_t status =
            akin_policy_decide(policy, &request, bed->eligible, &worker);
        double decide = seconds_since(decide_ns);
        if (status != AKIN_OK)
            return akin_error_set(err, status, "decision %llu: %s",
                                  (unsigned long long)id,
                                  akin_status_string(status));
        if (id < n_in_flight) {
            begin = akin_clock_now_ns();
            continue; /* the workers fill up */
        }
        akin_policy_finish(policy, id - n_in_flight);
        rounds.seconds[rounds.n] = choose;
        rounds.reference[rounds.n++] = read;
        whole.seconds[whole.n] = decide;
        whole.reference[whole.n++] = read;
        bytes += (double)n_read;
        out->n_band += akin_policy_last_choice(policy).n_band;
        if (rounds.n >= MIN_ROUNDS &&
            seconds_since(begin) > (double)bed->max_seconds)
            break;
    }
    (void)chosen;
    akin_bench_medians_t medians;
    akin_bench_medians(&whole, &medians);
    out->decide_seconds = medians.seconds;
    akin_bench_medians(&rounds, &out->choice);
    out->p99_seconds = akin_bench_quantile(rounds.seconds, rounds.n, 0.99);
    out->read_p99_seconds =
        akin_bench_quantile(rounds.reference, rounds.n, 0.99);
    out->n_band /= rounds.n;
    out->bytes = (size_t)(bytes / rounds.n);
    out->n = rounds.n;
    return AKIN_OK;
}

akin_status_t akin_bench_route_run(const akin_bench_route_bed_t *bed,
                                   const char *name,
                                   akin_bench_route_figures_t *figures_p,
                                   akin_error_t *err)
{
    const akin_planted_t *planted = bed->planted;
    const akin_policy_params_t params = {
        .n_workers = bed->n_workers,
        .n_layers = planted->n_layers,
        .n_experts = planted->n_experts,
        .top_k = planted->top_k,
        .seed = planted->seed,
        .fit = strcmp(name, "union") == 0 ? NULL : &bed->fit,
        .tau = TAU,
        .pull = AKIN_POLICY_PULL,
    };
    akin_policy_t *policy;
    akin_status_t status = akin_policy_create(name, &params, &policy, err);
    if (status != AKIN_OK)
        return status;
    status = measure(bed, policy, figures_p, err);
    akin_policy_destroy(policy);
    return status;
}
