/* Policy `union`: sends a request where it adds least to everybody's time per
 * token, by the union of experts that it and the requests already there are
 * expected to activate (ALGORITHMS.md 5, one rank per worker). */
#include "routing/policy_union.h"

#include "routing/dot.h"
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

typedef struct worker_state {
    float *sum;  /* [padded] S */
    float *idle; /* [padded] U = exp(-S) */
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
    float *prior;  /* [cells] running mean of decode rates */
    float *rates;  /* [padded] of the request under decision */
    double *costs; /* [n_workers] of the request under decision */
    worker_state_t *workers;
    float *arrays; /* what the pointers above lead to */
    akin_cost_t cost;
} union_state_t;

static void destroy_union(void *self)
{
    union_state_t *state = self;
    if (state == NULL)
        return;
    free(state->arrays);
    free(state->workers);
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
    size_t n_arrays = 2 + 2 * (size_t)params->n_workers;
    state->arrays = calloc(n_arrays, state->padded * sizeof(float));
    if (state->workers == NULL || state->costs == NULL || state->arrays == NULL)
        goto err_destroy;

    state->prior = state->arrays;
    state->rates = state->prior + state->padded;
    float *next = state->rates + state->padded;
    for (uint32_t w = 0; w < params->n_workers; w++) {
        worker_state_t *worker = &state->workers[w];
        worker->sum = next;
        worker->idle = next + state->padded;
        next += 2 * state->padded;
        worker->distinct =
            akini_union_refresh(worker->sum, worker->idle, state->padded);
    }
    for (size_t i = 0; i < state->cells; i++)
        state->prior[i] = (float)params->top_k / (float)params->n_experts;
    akin_cost_init(&state->cost, (uint32_t)state->cells, 0.0);
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

static uint32_t choose_union(const akin_policy_t *policy,
                             const akin_policy_request_t *request,
                             const uint8_t *eligible)
{
    union_state_t *state = policy->self;
    const uint16_t *counts = request->n_tokens > 0 ? request->counts : NULL;
    akini_union_rates(counts, state->prior, state->rates, state->cells,
                      (float)request->n_tokens, AKINI_UNION_KAPPA);

    double *costs = state->costs;
    double least = DBL_MAX;
    for (uint32_t w = 0; w < state->n_workers; w++) {
        if (eligible[w] == 0)
            continue;
        const worker_state_t *worker = &state->workers[w];
        double gain = akini_dot(worker->idle, state->rates, state->padded);
        costs[w] = marginal_cost(&state->cost.line, worker, gain,
                                 (double)policy->in_flight[w]);
        if (costs[w] < least)
            least = costs[w];
    }
    uint32_t best = AKIN_ROUTING_NO_WORKER;
    for (uint32_t w = 0; w < state->n_workers; w++) {
        if (eligible[w] == 0 || costs[w] > least * (1.0 + TIE))
            continue;
        if (best == AKIN_ROUTING_NO_WORKER ||
            policy->in_flight[w] < policy->in_flight[best])
            best = w;
    }
    return best;
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
