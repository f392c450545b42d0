/* Policy union against a second implementation in double precision. */
#include "planted_requests.h"
#include "runner.h"

#include "routing/policy_union.h"

#include <math.h>
#include <stdlib.h>

enum {
    N_WORKERS = 4,
    N_LAYERS = 3,
    N_EXPERTS = 24,
    TOP_K = 3,
    N_CELLS = N_LAYERS * N_EXPERTS,
    MAX_LIVE = 48
};

static const planted_shape_t shape = {N_LAYERS, N_EXPERTS, TOP_K, 4};
static const uint8_t all[N_WORKERS] = {1, 1, 1, 1};

static akin_policy_t *make_union(uint32_t n_workers, uint32_t n_layers,
                                 uint32_t n_experts, uint32_t top_k)
{
    const akin_policy_params_t params = {
        .n_workers = n_workers,
        .n_layers = n_layers,
        .n_experts = n_experts,
        .top_k = top_k,
        .seed = 1,
    };
    akin_policy_t *policy = NULL;
    CU_ASSERT_EQUAL_FATAL(akin_policy_create("union", &params, &policy, NULL),
                          AKIN_OK);
    return policy;
}

/* The second implementation: keeps every request's rates, no running sums. */
typedef struct member {
    uint64_t id;
    uint32_t worker;
    double rates[N_CELLS];
} member_t;

typedef struct model {
    double prior[N_CELLS];
    member_t live[MAX_LIVE];
    uint32_t n_live;
} model_t;

static void model_init(model_t *model)
{
    memset(model, 0, sizeof(*model));
    for (int c = 0; c < N_CELLS; c++)
        model->prior[c] = (double)TOP_K / N_EXPERTS;
}

static void model_rates(const model_t *model, const uint16_t *counts,
                        uint32_t n_tokens, double *rates)
{
    for (int c = 0; c < N_CELLS; c++)
        rates[c] = fmin((counts[c] + 8.0 * model->prior[c]) / (n_tokens + 8.0),
                        1.0 - 1e-6);
}

/* Chance that no request of a worker activates a cell. */
static double model_idle(const model_t *model, uint32_t worker, int cell)
{
    double idle = 1.0;
    for (uint32_t i = 0; i < model->n_live; i++)
        if (model->live[i].worker == worker)
            idle *= 1.0 - model->live[i].rates[cell];
    return idle;
}

static double model_distinct(const model_t *model, uint32_t worker)
{
    double distinct = 0.0;
    for (int c = 0; c < N_CELLS; c++)
        distinct += 1.0 - model_idle(model, worker, c);
    return distinct;
}

/* Seconds per token of everybody after the admission, less those before. */
static double model_cost(const model_t *model, uint32_t worker,
                         uint32_t in_flight, const double *rates,
                         const akin_cost_line_t *line)
{
    double before = 0.0, after = 0.0;
    for (int c = 0; c < N_CELLS; c++) {
        double idle = model_idle(model, worker, c);
        before += 1.0 - idle;
        after += 1.0 - idle * (1.0 - rates[c]);
    }
    double t_before = line->t0_s + line->a_s * before + line->b_s * in_flight;
    double t_after =
        line->t0_s + line->a_s * after + line->b_s * (in_flight + 1.0);
    return (in_flight + 1.0) * t_after - in_flight * t_before;
}

/* Is the policy's choice the cheapest, within what floats can tell, and the
 * first by (in flight, index) where costs are the same? */
static int is_right_choice(const model_t *model, const akin_policy_t *policy,
                           const double *rates, const uint8_t *eligible,
                           uint32_t choice)
{
    const akin_cost_line_t *line = &akini_union_cost(policy)->line;
    double costs[N_WORKERS];
    double least = INFINITY;
    for (uint32_t w = 0; w < N_WORKERS; w++) {
        costs[w] = model_cost(model, w,
                              akin_policy_in_flight(policy, w) - (w == choice),
                              rates, line);
        if (eligible[w])
            least = fmin(least, costs[w]);
    }
    return choice < N_WORKERS && eligible[choice] &&
           costs[choice] <= least * (1.0 + 3e-6);
}

static void test_against_brute_force(void)
{
    static model_t model;
    static uint16_t counts[N_CELLS];
    akin_policy_t *policy = make_union(N_WORKERS, N_LAYERS, N_EXPERTS, TOP_K);
    model_init(&model);
    int wrong_choice = 0, not_jsq = 0;
    double worst_distinct = 0.0, worst_prior = 0.0;
    for (uint64_t i = 0; i < 4000; i++) {
        uint64_t bits = akin_rng_u64(21, 0, i);
        if (i % 50 == 49) {
            /* Decode counts of some tokens shift the prior. */
            uint32_t n = 200 + (uint32_t)(bits % 200);
            planted_counts(&shape, 22, i, n, counts);
            akin_policy_observe_counts(policy, counts, n);
            for (int c = 0; c < N_CELLS; c++)
                model.prior[c] =
                    (4096.0 * model.prior[c] + counts[c]) / (4096.0 + n);
        }
        if (i % 3 == 0)
            akin_policy_observe(policy, (uint32_t)(bits % N_WORKERS),
                                &(akin_policy_step_t){
                                    1 + (uint32_t)(bits >> 8 & 15),
                                    (double)(bits >> 16 & 63),
                                    1e-3 + 1e-4 * (double)(bits >> 16 & 63) +
                                        2e-4 * (double)(1 + (bits >> 8 & 15))});
        if (model.n_live == MAX_LIVE || (model.n_live > 0 && bits >> 60 < 7)) {
            uint32_t victim = (uint32_t)(bits >> 32 & 0xffff) % model.n_live;
            akin_policy_finish(policy, model.live[victim].id);
            model.live[victim] = model.live[--model.n_live];
        } else {
            uint8_t eligible[N_WORKERS];
            uint32_t least = UINT32_MAX;
            for (uint32_t w = 0; w < N_WORKERS; w++) {
                eligible[w] = (bits >> (48 + w) & 1) || w == i % N_WORKERS;
                if (eligible[w] && akin_policy_in_flight(policy, w) < least)
                    least = akin_policy_in_flight(policy, w);
            }
            uint32_t n_tokens = 1 + (uint32_t)(bits >> 40 & 63);
            planted_counts(&shape, 23, i, n_tokens, counts);
            member_t *member = &model.live[model.n_live];
            model_rates(&model, counts, n_tokens, member->rates);
            akin_policy_request_t request = {
                .id = i, .counts = counts, .n_tokens = n_tokens};
            uint32_t worker = 0;
            CU_ASSERT_EQUAL_FATAL(
                akin_policy_decide(policy, &request, eligible, &worker),
                AKIN_OK);
            wrong_choice += !is_right_choice(&model, policy, member->rates,
                                             eligible, worker);
            not_jsq += akin_policy_in_flight(policy, worker) != least + 1;
            member->id = i;
            member->worker = worker;
            model.n_live++;
        }
        for (uint32_t w = 0; w < N_WORKERS; w++)
            worst_distinct = fmax(
                worst_distinct, fabs(akin_policy_expected_distinct(policy, w) -
                                     model_distinct(&model, w)));
    }
    for (int c = 0; c < N_CELLS; c++)
        worst_prior =
            fmax(worst_prior,
                 fabs((double)akini_union_prior(policy)[c] - model.prior[c]));
    CU_ASSERT_EQUAL(wrong_choice, 0);
    /* Were every choice jsq's, the test would not see the experts. */
    CU_ASSERT(not_jsq > 200);
    CU_ASSERT(worst_distinct < 1e-3);
    CU_ASSERT(worst_prior < 1e-5);
    CU_ASSERT(akini_union_cost(policy)->fitted);
    akin_policy_destroy(policy);
}

/*
 * Expected distinct experts by enumeration: five requests on one worker, each
 * cell on or off in each, all 2^5 outcomes weighed by their chance.
 */
static void test_enumeration(void)
{
    enum {
        LAYERS = 2,
        EXPERTS = 6,
        CELLS = LAYERS * EXPERTS,
        N = 5,
        TOKENS = 10
    };
    const planted_shape_t tiny = {LAYERS, EXPERTS, 2, 2};
    akin_policy_t *policy = make_union(1, LAYERS, EXPERTS, 2);
    double rates[N][CELLS];
    for (uint32_t r = 0; r < N; r++) {
        uint16_t counts[CELLS];
        planted_counts(&tiny, 31, r, TOKENS, counts);
        akin_policy_request_t request = {
            .id = r, .counts = counts, .n_tokens = TOKENS};
        uint32_t worker = 1;
        CU_ASSERT_EQUAL(akin_policy_decide(policy, &request, all, &worker),
                        AKIN_OK);
        for (int c = 0; c < CELLS; c++)
            rates[r][c] =
                fmin((counts[c] + 8.0 / 3.0) / (TOKENS + 8.0), 1.0 - 1e-6);
    }
    double expected = 0.0;
    for (int c = 0; c < CELLS; c++)
        for (unsigned outcome = 1; outcome < 1u << N; outcome++) {
            double chance = 1.0;
            for (int r = 0; r < N; r++)
                chance *= outcome >> r & 1 ? rates[r][c] : 1.0 - rates[r][c];
            expected += chance;
        }
    CU_ASSERT_DOUBLE_EQUAL(akin_policy_expected_distinct(policy, 0), expected,
                           1e-5);
    akin_policy_destroy(policy);
}

/*
 * Two workers of equal load, one with the domain of the request: it goes
 * there, and the other domain goes the other way.
 */
static void test_follows_experts(void)
{
    static uint16_t counts[N_CELLS];
    akin_policy_t *policy = make_union(2, N_LAYERS, N_EXPERTS, TOP_K);
    uint32_t worker = 2;
    for (uint64_t r = 0; r < 8; r++) {
        const uint8_t only[2] = {r % 2 == 0, r % 2 == 1};
        planted_counts(&shape, 41, r % 2, 100, counts);
        akin_policy_request_t request = {
            .id = r, .counts = counts, .n_tokens = 100};
        CU_ASSERT_EQUAL(akin_policy_decide(policy, &request, only, &worker),
                        AKIN_OK);
    }
    for (uint64_t domain = 0; domain < 2; domain++) {
        planted_counts(&shape, 42, domain, 100, counts);
        akin_policy_request_t request = {
            .id = 100 + domain, .counts = counts, .n_tokens = 100};
        CU_ASSERT_EQUAL(akin_policy_decide(policy, &request, all, &worker),
                        AKIN_OK);
        CU_ASSERT_EQUAL(worker, domain);
    }
    akin_policy_destroy(policy);
}

static void test_no_drift(void)
{
    enum { N_REQUESTS = 100000, N_KINDS = 64 };
    static uint16_t counts[N_KINDS][N_CELLS];
    static uint64_t live[MAX_LIVE];
    static uint32_t workers[MAX_LIVE];
    akin_policy_t *policy = make_union(N_WORKERS, N_LAYERS, N_EXPERTS, TOP_K);
    for (uint64_t kind = 0; kind < N_KINDS; kind++)
        planted_counts(&shape, 61, kind, 5 + (uint32_t)kind, counts[kind]);
    uint32_t n_live = 0;
    int negative = 0;
    for (uint64_t i = 0; i < N_REQUESTS; i++) {
        if (n_live == MAX_LIVE) {
            uint32_t victim = (uint32_t)akin_rng_below(62, 0, i, n_live);
            akin_policy_finish(policy, live[victim]);
            n_live--;
            live[victim] = live[n_live];
            workers[victim] = workers[n_live];
        }
        uint64_t kind = i % N_KINDS;
        akin_policy_request_t request = {
            .id = i, .counts = counts[kind], .n_tokens = 5 + (uint32_t)kind};
        CU_ASSERT_EQUAL_FATAL(
            akin_policy_decide(policy, &request, all, &workers[n_live]),
            AKIN_OK);
        live[n_live++] = i;
        if (i % 97 == 0)
            for (uint32_t w = 0; w < N_WORKERS; w++)
                for (int c = 0; c < N_CELLS; c++)
                    negative += !(akini_union_state(policy, w)[c] >= 0.0f);
    }
    double worst = 0.0;
    for (uint32_t w = 0; w < N_WORKERS; w++)
        for (int c = 0; c < N_CELLS; c++) {
            double sum = 0.0;
            for (uint32_t i = 0; i < n_live; i++) {
                uint64_t kind = live[i] % N_KINDS;
                double rate =
                    fmin((counts[kind][c] + 1.0) / (13.0 + (double)kind),
                         1.0 - 1e-6);
                sum -= workers[i] == w ? log1p(-rate) : 0.0;
            }
            worst = fmax(worst,
                         fabs((double)akini_union_state(policy, w)[c] - sum));
        }
    CU_ASSERT_EQUAL(negative, 0);
    CU_ASSERT(worst < 1e-3);
    for (uint32_t i = 0; i < n_live; i++)
        akin_policy_finish(policy, live[i]);
    for (uint32_t w = 0; w < N_WORKERS; w++)
        CU_ASSERT_EQUAL(akin_policy_expected_distinct(policy, w), 0.0);
    akin_policy_destroy(policy);
}

/* Damaged input is bounded (a count above the tokens) or ignored. */
static void test_damaged_counts(void)
{
    static uint16_t counts[N_CELLS];
    akin_policy_t *policy = make_union(N_WORKERS, N_LAYERS, N_EXPERTS, TOP_K);
    memset(counts, 0xff, sizeof(counts));
    akin_policy_observe_counts(policy, counts, 10);
    planted_counts(&shape, 71, 0, 50, counts);
    akin_policy_observe_counts(policy, counts, 0);
    akin_policy_observe_counts(policy, counts, 49);
    akin_policy_observe_counts(policy, NULL, 50);
    counts[N_CELLS - 1]++;
    akin_policy_observe_counts(policy, counts, 50);
    for (int c = 0; c < N_CELLS; c++)
        CU_ASSERT_EQUAL(akini_union_prior(policy)[c], 0.125f);

    memset(counts, 0xff, sizeof(counts));
    const akin_policy_request_t wild[] = {
        {.id = 1, .counts = counts, .n_tokens = 1},
        {.id = 2, .counts = counts, .n_tokens = 0},
        {.id = 3, .counts = NULL, .n_tokens = 7},
        {.id = 4, .counts = NULL, .n_tokens = 0}};
    for (int i = 0; i < 4; i++) {
        uint32_t worker = 0;
        CU_ASSERT_EQUAL(akin_policy_decide(policy, &wild[i], all, &worker),
                        AKIN_OK);
        double distinct = akin_policy_expected_distinct(policy, worker);
        CU_ASSERT(distinct > 0.0 && distinct <= N_CELLS);
        akin_policy_finish(policy, wild[i].id);
    }
    akin_policy_destroy(policy);
}

static const runner_test_t tests[] = {
    {"against brute force", test_against_brute_force},
    {"enumeration", test_enumeration},
    {"follows experts", test_follows_experts},
    {"no drift", test_no_drift},
    {"damaged counts", test_damaged_counts},
};

RUNNER_MAIN("policy_union", tests)
