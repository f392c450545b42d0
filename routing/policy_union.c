/* Policy `union`: sends a request where it adds least to everybody's time per
 * token, by the union of experts that it and the requests already there are
 * expected to activate (ALGORITHMS.md 5, one rank per worker). */
#include "routing/policy_union.h"

#include "routing/band.h"
#include "routing/dot.h"
#include "routing/float_array.h"
#include "routing/locality.h"
#include "routing/policy_impl.h"
#include "routing/union_kernel.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Requests that may leave a worker before its sums are built anew. */
#define REBUILD_PERIOD 256

/* Costs nearer than this differ by rounding alone: a tie. */
#define TIE 1e-6

/* Of the softmax over cosines that mixes the clusters' decode rates. */
#define SHARPNESS 20.0f
#define MIN_WEIGHT 1e-3f
#define MIN_EXPONENT -7.0f /* exp of less is surely below that */

typedef struct worker_state {
    float *sum;  /* [padded] S */
    float *idle; /* [padded] U = exp(-S); those of all workers are in a row */
    double distinct;
    uint32_t n_left; /* requests gone since the last rebuild */
} worker_state_t;

typedef struct union_state {
    uint32_t n_workers;
    uint32_t n_layers;
    uint32_t n_experts;
    uint32_t top_k;
    size_t cells;
    size_t padded;
    float *prior;   /* [cells] running mean of decode rates */
    float *mixed;   /* [cells] prior of the request under decision, from pbar */
    float *rates;   /* [padded] of the request under decision */
    double *costs;  /* [n_workers] of the request under decision */
    double *gains;  /* [n_band] expected distinct experts that it adds */
    uint32_t *band; /* [n_band] workers looked at, rising */
    worker_state_t *workers;
    float *arrays; /* what the pointers above lead to */
    akin_cost_t cost;
    /* With a fit. */
    const float *pbar; /* [n_workers][cells] or NULL */
    akini_locality_t locality;
    uint32_t n_band; /* of the last decision */
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

static akin_status_t create_union(const akin_policy_params_t *params,
                                  void **self_p)
{
    union_state_t *state = calloc(1, sizeof(*state));
    if (state == NULL)
        return AKIN_ERR_NOMEM;
    state->n_workers = params->n_workers;
    state->n_layers = params->n_layers;
    state->n_experts = params->n_experts;
    state->top_k = params->top_k;
    state->cells = (size_t)params->n_layers * params->n_experts;
    state->padded = akini_union_padded(state->cells);
    state->workers = calloc(params->n_workers, sizeof(*state->workers));
    state->costs = calloc(params->n_workers, sizeof(*state->costs));
    state->gains = calloc(params->n_workers, sizeof(*state->gains));
    state->band = calloc(params->n_workers, sizeof(*state->band));
    size_t n_arrays = 3 + 2 * (size_t)params->n_workers;
    state->arrays = akini_float_array_create(n_arrays, state->padded);
    if (state->workers == NULL || state->costs == NULL ||
        state->gains == NULL || state->band == NULL || state->arrays == NULL)
        goto err_destroy;

    state->prior = state->arrays;
    state->rates = state->prior + state->padded;
    state->mixed = state->rates + state->padded;
    float *next = state->mixed + state->padded;
    for (uint32_t w = 0; w < params->n_workers; w++) {
        worker_state_t *worker = &state->workers[w];
        worker->idle = next + w * state->padded;
        worker->sum = next + (params->n_workers + w) * state->padded;
        worker->distinct =
            akini_union_refresh(worker->sum, worker->idle, state->padded);
    }
    for (size_t i = 0; i < state->cells; i++)
        state->prior[i] = (float)params->top_k / (float)params->n_experts;
    akin_cost_init(&state->cost, (uint32_t)state->cells, 0.0);
    if (params->fit != NULL) {
        state->pbar = params->fit->pbar;
        if (akini_locality_init(&state->locality, params->fit) != AKIN_OK)
            goto err_destroy;
    }
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
        akin_cost_seconds(line, worker->distinct + gain, in_flight + 1.0);
    return in_flight * increase + after;
}

/* The mean decode rate of the clusters most similar to the request: a softmax
 * over the cosines; clusters far behind the nearest weigh nothing. All but the
 * last few are mixed here, those where the mixture is used. */
static akini_union_mixture_t mix_prior(union_state_t *state)
{
    const float *scores = state->locality.scores;
    float nearest = -INFINITY;
    for (uint32_t k = 0; k < state->n_workers; k++)
        nearest = fmaxf(nearest, scores[k]);
    akini_union_mixture_t mixture = {.scale = 1.0f};
    float total = 0.0f;
    for (uint32_t k = 0; k < state->n_workers; k++) {
        /* A cheap bound first: few clusters pass it where there are many. */
        float behind = SHARPNESS * (scores[k] - nearest);
        float weight = behind < MIN_EXPONENT ? 0.0f : expf(behind);
        if (weight < MIN_WEIGHT)
            continue;
        if (mixture.n_rows == AKINI_UNION_MIX_ROWS) {
            akini_union_mix(&mixture, state->mixed, state->cells);
            mixture.sum = state->mixed;
            mixture.n_rows = 0;
        }
        total += weight;
        mixture.rows[mixture.n_rows] = state->pbar + k * state->cells;
        mixture.weights[mixture.n_rows++] = weight;
    }
    mixture.scale = 1.0f / total;
    return mixture;
}

static void expect_rates(union_state_t *state,
                         const akin_policy_request_t *request)
{
    const uint16_t *counts = request->n_tokens > 0 ? request->counts : NULL;
    akini_union_mixture_t prior = {
        .rows = {state->prior}, .weights = {1.0f}, .n_rows = 1, .scale = 1.0f};
    float kappa = AKINI_UNION_KAPPA;
    if (state->pbar != NULL) {
        prior = mix_prior(state);
        kappa = AKINI_UNION_FIT_KAPPA;
    }
    akini_union_rates(counts, &prior, state->rates, state->cells,
                      (float)request->n_tokens, kappa);
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
    const double per_cosine =
        pull * state->cost.line.a_s * (double)state->cells;
    state->n_band = 0;
    for (uint32_t w = 0; w < state->n_workers; w++)
        if (eligible[w] != 0 &&
            (scores == NULL || (double)scores[w] >= floor_score))
            state->band[state->n_band++] = w;
    akini_dot_rows(state->rates, state->workers[0].idle, state->padded,
                   state->band, state->n_band, state->padded, state->gains);
    for (uint32_t w = 0, i = 0; w < state->n_workers; w++) {
        costs[w] = INFINITY;
        if (i == state->n_band || state->band[i] != w)
            continue;
        costs[w] =
            marginal_cost(&state->cost.line, &state->workers[w],
                          state->gains[i++], (double)policy->in_flight[w]);
        if (per_cosine > 0.0)
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
    if (state->pbar != NULL)
        akini_locality_scores(&state->locality, request->counts);
    expect_rates(state, request);
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
    expect_rates(state, request);
    return choose_cheapest(policy, eligible, state->locality.scores, -INFINITY,
                           policy->params.pull);
}

static uint32_t choose_union_band(const akin_policy_t *policy,
                                  const akin_policy_request_t *request,
                                  const uint8_t *eligible)
{
    union_state_t *state = policy->self;
    akini_locality_scores(&state->locality, request->counts);
    expect_rates(state, request);
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

static void refresh(const union_state_t *state, worker_state_t *worker)
{
    worker->distinct =
        akini_union_refresh(worker->sum, worker->idle, state->padded);
}

static void admit_union(akin_policy_t *policy, akini_policy_record_t *record)
{
    union_state_t *state = policy->self;
    worker_state_t *worker = &state->workers[record->worker];
    akini_union_surprise(state->rates, record->load, state->padded);
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

/* Every decode token chooses top_k experts of every layer. */
static bool are_counts_sound(const union_state_t *state, const uint16_t *counts,
                             uint32_t n_tokens)
{
    uint64_t expected = (uint64_t)n_tokens * state->top_k;
    for (uint32_t layer = 0; layer < state->n_layers; layer++) {
        const uint16_t *row = counts + (size_t)layer * state->n_experts;
        uint64_t sum = 0;
        for (uint32_t e = 0; e < state->n_experts; e++)
            sum += row[e];
        if (sum != expected)
            return false;
    }
    return true;
}

static void observe_counts_union(void *self, const uint16_t *counts,
                                 uint32_t n_tokens)
{
    union_state_t *state = self;
    if (counts == NULL || n_tokens == 0 ||
        !are_counts_sound(state, counts, n_tokens))
        return;
    float scale = 1.0f / (AKINI_UNION_MEMORY_TOKENS + (float)n_tokens);
    for (size_t i = 0; i < state->cells; i++)
        state->prior[i] =
            (AKINI_UNION_MEMORY_TOKENS * state->prior[i] + (float)counts[i]) *
            scale;
}

static double expected_distinct(const void *self, uint32_t worker)
{
    const union_state_t *state = self;
    return state->workers[worker].distinct;
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
    return state->prior;
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
    .expected_distinct = expected_distinct,
    .last_choice = last_pull,
};
