/* Policy `union`: sends a request where it adds least to everybody's time per
 * token, by the union of experts that it and the requests already there are
 * expected to activate (ALGORITHMS.md 5), and, where a worker has several
 * ranks, by what the busiest of them is expected to activate (ALGORITHMS.md 6).
 */
#include "routing/policy_union.h"

#include "ep/placement_load.h"
#include "routing/band.h"
#include "routing/dot.h"
#include "routing/float_array.h"
#include "routing/locality.h"
#include "routing/policy_impl.h"
#include "routing/union_kernel.h"
#include "routing/union_rates.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Requests that may leave a worker before its sums are built anew. */
#define REBUILD_PERIOD 256

/* Costs nearer than this differ by rounding alone: a tie. */
#define TIE 1e-6

typedef struct worker_state {
    float *sum;  /* [padded] S */
    float *idle; /* [padded] U = exp(-S); those of all workers are in a row */
    double load; /* expected experts of the busiest rank, over the layers */
    uint32_t n_left; /* requests gone since the last rebuild */
} worker_state_t;

typedef struct union_state {
    uint32_t n_workers;
    size_t cells;
    size_t padded;
    akini_union_rates_source_t source; /* rates of the request at hand */
    double *costs;  /* [n_workers] of the request under decision */
    double *gains;  /* [n_band] what it adds to their loads */
    uint32_t *band; /* [n_band] workers looked at, rising */
    const akin_placement_t *placements; /* [n_workers]; NULL: one rank each */
    float *idle_after; /* [padded] scratch: U with the request */
    worker_state_t *workers;
    float *arrays; /* what the pointers above lead to */
    akin_cost_t cost;
    akini_locality_t locality; /* with a fit */
    uint32_t n_band;           /* of the last decision */
} union_state_t;

static void destroy_union(void *self)
{
    union_state_t *state = self;
    if (state == NULL)
        return;
    akini_locality_cleanup(&state->locality);
    free(state->arrays);
    free(state->workers);
    free(state->band);
    free(state->gains);
    free(state->costs);
    free(state);
}

static void refresh(const union_state_t *state, worker_state_t *worker)
{
    double distinct =
        akini_union_refresh(worker->sum, worker->idle, state->padded);
    worker->load =
        state->placements == NULL
            ? distinct
            : akin_placement_load(&state->placements[worker - state->workers],
                                  worker->idle);
}

static void init_workers(union_state_t *state, float *arrays)
{
    for (uint32_t w = 0; w < state->n_workers; w++) {
        worker_state_t *worker = &state->workers[w];
        worker->idle = arrays + w * state->padded;
        worker->sum = arrays + (state->n_workers + w) * state->padded;
        refresh(state, worker);
    }
}

/* Arrays besides the workers' own: three of the rates, and idle_after. */
enum { N_SHARED_ARRAYS = 4 };

static akin_status_t create_union(const akin_policy_params_t *params,
                                  void **self_p)
{
    union_state_t *state = calloc(1, sizeof(*state));
    if (state == NULL)
        return AKIN_ERR_NOMEM;
    state->n_workers = params->n_workers;
    state->cells = (size_t)params->n_layers * params->n_experts;
    state->padded = akini_union_padded(state->cells);
    state->placements = params->placements;
    state->workers = calloc(params->n_workers, sizeof(*state->workers));
    state->costs = calloc(params->n_workers, sizeof(*state->costs));
    state->gains = calloc(params->n_workers, sizeof(*state->gains));
    state->band = calloc(params->n_workers, sizeof(*state->band));
    state->arrays = akini_float_array_create(
        N_SHARED_ARRAYS + 2 * (size_t)params->n_workers, state->padded);
    if (state->workers == NULL || state->costs == NULL ||
        state->gains == NULL || state->band == NULL || state->arrays == NULL)
        goto err_destroy;

    akini_union_rates_init(&state->source, params, state->arrays,
                           state->padded);
    state->idle_after = state->arrays + 3 * state->padded;
    init_workers(state, state->arrays + N_SHARED_ARRAYS * state->padded);
    uint32_t n_ranks =
        params->placements != NULL ? params->placements->n_ranks : 1;
    akin_cost_init(&state->cost, (uint32_t)(state->cells / n_ranks), 0.0);
    if (params->fit != NULL &&
        akini_locality_init(&state->locality, params->fit) != AKIN_OK)
        goto err_destroy;
    *self_p = state;
    return AKIN_OK;

err_destroy:
    destroy_union(state);
    return AKIN_ERR_NOMEM;
}

static size_t record_floats(const void *self)
{
    const union_state_t *state = self;
    return state->padded;
}

/* What the request costs all requests of a worker, itself included. */
static double marginal_cost(const akin_cost_line_t *line,
                            const worker_state_t *worker, double gain,
                            double in_flight)
{
    double increase = line->a_s * gain + line->b_s;
    double after =
        akin_cost_seconds(line, worker->load + gain, in_flight + 1.0);
    return in_flight * increase + after;
}

/* What the request adds to the load of every worker in the band. With one rank
 * that is the sum of the chances that it wakes an idle expert. */
static void find_gains(union_state_t *state)
{
    const float *rates = state->source.rates;
    if (state->placements == NULL) {
        akini_dot_rows(rates, state->workers[0].idle, state->padded,
                       state->band, state->n_band, state->padded, state->gains);
        return;
    }
    for (uint32_t i = 0; i < state->n_band; i++) {
        const worker_state_t *worker = &state->workers[state->band[i]];
        akini_union_still_idle(worker->idle, rates, state->idle_after,
                               state->padded);
        state->gains[i] =
            akin_placement_load(&state->placements[state->band[i]],
                                state->idle_after) -
            worker->load;
    }
}

/* The worker of least cost among those with a score of at least the floor, if
 * there are scores. A cosine less than 1 costs what `pull` makes of it. */
static uint32_t choose_cheapest(const akin_policy_t *policy,
                                const uint8_t *eligible, const float *scores,
                                double floor_score, double pull)
{
    union_state_t *state = policy->self;
    double *costs = state->costs;
    double least = DBL_MAX;
    const double per_cosine = pull * state->cost.line.a_s * state->cost.cells;
    state->n_band = 0;
    for (uint32_t w = 0; w < state->n_workers; w++)
        if (eligible[w] != 0 &&
            (scores == NULL || (double)scores[w] >= floor_score))
            state->band[state->n_band++] = w;
    find_gains(state);
    for (uint32_t w = 0, i = 0; w < state->n_workers; w++) {
        costs[w] = INFINITY;
        if (i == state->n_band || state->band[i] != w)
            continue;
        costs[w] =
            marginal_cost(&state->cost.line, &state->workers[w],
                          state->gains[i++], (double)policy->in_flight[w]);
        if (scores != NULL && per_cosine > 0.0)
            costs[w] += per_cosine * (1.0 - (double)scores[w]);
        if (costs[w] < least)
            least = costs[w];
    }
    if (state->n_band == 0)
        return AKIN_ROUTING_NO_WORKER;
    uint32_t best = AKIN_ROUTING_NO_WORKER;
    for (uint32_t w = 0; w < state->n_workers; w++) {
        if (costs[w] > least * (1.0 + TIE))
            continue;
        if (best == AKIN_ROUTING_NO_WORKER ||
            policy->in_flight[w] < policy->in_flight[best])
            best = w;
    }
    return best;
}

static uint32_t choose_union(const akin_policy_t *policy,
                             const akin_policy_request_t *request,
                             const uint8_t *eligible)
{
    union_state_t *state = policy->self;
    if (akini_union_rates_need_scores(&state->source))
        akini_locality_scores(&state->locality, request->counts);
    akini_union_rates_expect(&state->source, &state->locality, request);
    return choose_cheapest(policy, eligible, NULL, 0.0, 0.0);
}

/* The centroids give the workers lasting identities, which a greedy choice
 * lacks: what a request adds now is weighed against where its like will go. */
static uint32_t choose_union_pull(const akin_policy_t *policy,
                                  const akin_policy_request_t *request,
                                  const uint8_t *eligible)
{
    union_state_t *state = policy->self;
    akini_locality_scores(&state->locality, request->counts);
    akini_union_rates_expect(&state->source, &state->locality, request);
    return choose_cheapest(policy, eligible, state->locality.scores, -INFINITY,
                           policy->params.pull);
}

static uint32_t choose_union_band(const akin_policy_t *policy,
                                  const akin_policy_request_t *request,
                                  const uint8_t *eligible)
{
    union_state_t *state = policy->self;
    akini_locality_scores(&state->locality, request->counts);
    akini_union_rates_expect(&state->source, &state->locality, request);
    double floor_score = akin_band_floor(state->locality.scores, eligible,
                                         state->n_workers, policy->params.tau);
    return choose_cheapest(policy, eligible, state->locality.scores,
                           floor_score, 0.0);
}

static akin_policy_choice_t last_choice(const akin_policy_t *policy)
{
    const union_state_t *state = policy->self;
    if (policy->last_worker == AKIN_ROUTING_NO_WORKER)
        return (akin_policy_choice_t){0};
    return (akin_policy_choice_t){
        .n_band = state->n_band,
        .similarity = (double)state->locality.scores[policy->last_worker],
    };
}

/* Nobody is outside of the pull, so there is no band to tell of. */
static akin_policy_choice_t last_pull(const akin_policy_t *policy)
{
    akin_policy_choice_t choice = last_choice(policy);
    choice.n_band = 0;
    return choice;
}

static void admit_union(akin_policy_t *policy, akini_policy_record_t *record)
{
    union_state_t *state = policy->self;
    worker_state_t *worker = &state->workers[record->worker];
    akini_union_surprise(state->source.rates, record->load, state->padded);
    akini_union_add(worker->sum, record->load, state->padded);
    refresh(state, worker);
}

static void finish_union(akin_policy_t *policy, akini_policy_record_t *record)
{
    union_state_t *state = policy->self;
    worker_state_t *worker = &state->workers[record->worker];
    const akini_policy_record_t *member = policy->members[record->worker];
    worker->n_left++;
    if (member != NULL && worker->n_left < REBUILD_PERIOD) {
        akini_union_subtract(worker->sum, record->load, state->padded);
    } else {
        memset(worker->sum, 0, state->padded * sizeof(float));
        for (; member != NULL; member = member->next)
            akini_union_add(worker->sum, member->load, state->padded);
        worker->n_left = 0;
    }
    refresh(state, worker);
}

static void observe_union(void *self, const akin_policy_step_t *step)
{
    union_state_t *state = self;
    (void)akin_cost_observe(&state->cost, step->batch, step->distinct,
                            step->seconds);
}

static void observe_counts_union(void *self, const uint16_t *counts,
                                 uint32_t n_tokens)
{
    union_state_t *state = self;
    akini_union_rates_observe(&state->source, counts, n_tokens);
}

static void placement_changed(void *self, uint32_t worker)
{
    union_state_t *state = self;
    refresh(state, &state->workers[worker]);
}

static double expected_distinct(const void *self, uint32_t worker)
{
    const union_state_t *state = self;
    return state->workers[worker].load;
}

const float *akini_union_state(const akin_policy_t *policy, uint32_t worker)
{
    const union_state_t *state = policy->self;
    return state->workers[worker].sum;
}

const float *akini_union_idle(const akin_policy_t *policy)
{
    const union_state_t *state = policy->self;
    return state->workers[0].idle;
}

const float *akini_union_prior(const akin_policy_t *policy)
{
    const union_state_t *state = policy->self;
    return state->source.prior;
}

const akin_cost_t *akini_union_cost(const akin_policy_t *policy)
{
    const union_state_t *state = policy->self;
    return &state->cost;
}

const akini_policy_ops_t akini_policy_union = {
    .name = "union",
    .create = create_union,
    .destroy = destroy_union,
    .record_floats = record_floats,
    .choose = choose_union,
    .admit = admit_union,
    .finish = finish_union,
    .observe = observe_union,
    .observe_counts = observe_counts_union,
    .placement_changed = placement_changed,
    .expected_distinct = expected_distinct,
};

const akini_policy_ops_t akini_policy_union_band = {
    .name = "union-band",
    .needs_fit = 1,
    .create = create_union,
    .destroy = destroy_union,
    .record_floats = record_floats,
    .choose = choose_union_band,
    .admit = admit_union,
    .finish = finish_union,
    .observe = observe_union,
    .observe_counts = observe_counts_union,
    .placement_changed = placement_changed,
    .expected_distinct = expected_distinct,
    .last_choice = last_choice,
};

const akini_policy_ops_t akini_policy_union_pull = {
    .name = "union-pull",
    .needs_fit = 1,
    .create = create_union,
    .destroy = destroy_union,
    .record_floats = record_floats,
    .choose = choose_union_pull,
    .admit = admit_union,
    .finish = finish_union,
    .observe = observe_union,
    .observe_counts = observe_counts_union,
    .placement_changed = placement_changed,
    .expected_distinct = expected_distinct,
    .last_choice = last_pull,
};
