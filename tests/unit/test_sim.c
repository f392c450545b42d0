/* Simulation against queueing theory, the cost model by hand and conservation
 * laws. */
#include "sim_bed.h"

#include "routing/sim_fit.h"

#include <math.h>
#include <string.h>

static akin_route_pool_t *pool_of(double prompt, double output, uint32_t n)
{
    const akin_route_pool_params_t params = {.n_requests = n,
                                             .has_counts = true};
    return bed_pool(prompt, output, &params);
}

/* Every prompt is alike, so prefill is a queue of Poisson arrivals with a fixed
 * service time: W = rho s / (2 (1 - rho)) (Pollaczek and Khinchine). */
static void test_prefill_wait(void)
{
    akin_route_pool_t *pool = pool_of(64.0, 1.0, 50);
    akin_sim_params_t params = bed_params(pool);
    const akin_cost_chunk_t chunk = {.tokens = 64};
    const double service = akin_cost_model_prefill(&params.cost, &chunk, NULL);
    params.chunk_tokens = 64; /* no two of them in one step */
    params.n_warmup = 20000;
    params.n_measured = 200000;
    for (int i = 3; i <= 8; i += 5) {
        const double rho = i / 10.0;
        params.rate = rho / service;
        const akin_sim_result_t result = bed_run(&params);
        const double wait = rho * service / (2.0 * (1.0 - rho));
        CU_ASSERT_DOUBLE_EQUAL(result.queue_s / wait, 1.0, 0.03);
        CU_ASSERT_DOUBLE_EQUAL(result.ttft_s.mean - result.queue_s, service,
                               1e-9);
        /* Of one token each there is no time between two. */
        CU_ASSERT_TRUE(isnan(result.tpot_s.mean) && isnan(result.itl_s.p99));
        CU_ASSERT_TRUE(isnan(result.tpot_percentiles_s[10]));
        CU_ASSERT_TRUE(isnan(result.distinct) && isnan(result.batch));
    }
    akin_route_pool_destroy(pool);
}

/* A chunk's cost is that of its tokens after those before it. */
static void test_prefill_chunks(void)
{
    akin_route_pool_t *pool = pool_of(100.0, 1.0, 3);
    akin_sim_params_t params = bed_params(pool);
    const akin_cost_chunk_t chunks[] = {{.tokens = 40},
                                        {.tokens = 40, .context_tokens = 40},
                                        {.tokens = 20, .context_tokens = 80}};
    double seconds = 0.0;
    for (int i = 0; i < 3; i++)
        seconds += akin_cost_model_prefill(&params.cost, &chunks[i], NULL);
    params.chunk_tokens = 40;
    params.rate = 1e-3;
    params.n_measured = 5;
    params.n_warmup = 0;
    CU_ASSERT_DOUBLE_EQUAL(bed_run(&params).ttft_s.mean, seconds, 1e-6);
    akin_route_pool_destroy(pool);
}

/*
 * Alone, a request's tokens activate top_k experts of each layer: prefill of 50
 * tokens, transfer of 50 kB, then 9 steps of context 51 to 59.
 */
static void test_lonely_request(void)
{
    akin_route_pool_t *pool = pool_of(50.0, 10.0, 20);
    akin_sim_params_t params = bed_params(pool);
    params.rate = 1e-4;
    params.n_measured = 20;
    params.n_warmup = 0;
    /* 1 ms + 2 (0.1 + 0.1) ms, 1 MB in 0.1 ms, 2 x 4 MB in 0.8 ms, and a kB
     * per token of context, 55 in the mean, in 0.1 us each. */
    const double step_s = 1.4e-3 + 0.1e-3 + 0.8e-3 + 55.0 * 1e-7;
    const double transfer_s = 1e-3 + 50.0 * 1000.0 / 1e8;
    const akin_sim_result_t result = bed_run(&params);
    CU_ASSERT_DOUBLE_EQUAL(result.tpot_s.p50, step_s + transfer_s / 9.0, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(result.tpot_s.p99, result.tpot_s.p50, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(result.itl_s.mean, result.tpot_s.mean, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(result.itl_s.p50, step_s, 2e-3 * step_s);
    CU_ASSERT_EQUAL(result.distinct, 4.0);
    CU_ASSERT_EQUAL(result.batch, 1.0);
    akin_route_pool_destroy(pool);
}

/* Requests inside = rate x stay (Little), also when places are scarce. */
static void test_little(void)
{
    akin_route_pool_t *pool = pool_of(32.0, 40.0, 600);
    akin_sim_params_t params = bed_params(pool);
    params.n_prefill = 8;
    params.rate = 100.0;
    params.n_warmup = 2000;
    params.n_measured = 20000;
    params.policy = "jsq";
    const akin_sim_result_t roomy = bed_run(&params);
    const double rate = (params.n_measured - 1) / roomy.window_s;
    CU_ASSERT_DOUBLE_EQUAL(rate / params.rate, 1.0, 0.03);
    CU_ASSERT_DOUBLE_EQUAL(roomy.inside / (rate * roomy.stay_s), 1.0, 0.02);
    params.max_batch = 8;
    const akin_sim_result_t scarce = bed_run(&params);
    CU_ASSERT_DOUBLE_EQUAL(scarce.inside * scarce.window_s /
                               ((params.n_measured - 1) * scarce.stay_s),
                           1.0, 0.02);
    CU_ASSERT_TRUE(scarce.batch <= 8.0);
    CU_ASSERT_TRUE(scarce.stay_s > roomy.stay_s);
    /* 72 tokens each: two at a time. */
    params.max_batch = 0;
    params.kv_tokens = 200;
    params.rate = 20.0;
    CU_ASSERT_TRUE(bed_run(&params).batch <= 2.0);
    akin_route_pool_destroy(pool);
}

static void test_refusals(void)
{
    akin_route_pool_t *pool = pool_of(32.0, 40.0, 600);
    akin_sim_params_t params = bed_params(pool);
    akin_sim_result_t result;
    akin_error_t err;
    params.kv_tokens = 71;
    CU_ASSERT_EQUAL(akin_sim_run(&params, &result, &err), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "72 tokens"));
    params = bed_params(pool);
    params.rate = 1e6;
    params.n_measured = 1000000;
    CU_ASSERT_EQUAL(akin_sim_run(&params, &result, &err), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot keep up"));
    params = bed_params(pool);
    params.policy = "eldr";
    CU_ASSERT_EQUAL(akin_sim_run(&params, &result, &err), AKIN_ERR_INVALID);
    params.policy = "rr";
    params.n_decode = 0;
    CU_ASSERT_EQUAL(akin_sim_run(&params, &result, &err), AKIN_ERR_INVALID);
    akin_route_pool_destroy(pool);
}

/* On planted domains a policy that knows experts has fewer per step and faster
 * tokens than round robin; equal parameters give equal results. */
static void test_policies(void)
{
    static const char *const policies[] = {"eldr-static", "eldr", "union",
                                           "union-band"};
    akin_route_pool_t *pool = pool_of(32.0, 40.0, 600);
    akin_route_generator_t *generator = bed_generator(32.0, 40.0);
    const akin_sim_fit_params_t sample = {
        .generator = generator,
        .workload = &bed_workload,
        .n_layers = bed_shape.n_layers,
        .n_experts = bed_shape.n_experts,
        .top_k = bed_shape.top_k,
        .n_requests = 120,
        .first = UINT64_C(1) << 40,
        .n_clusters = 3,
        .variant = AKIN_FIT_COUNT_IDF,
        .seed = 1,
    };
    akin_fit_t fit;
    akin_error_t err;
    CU_ASSERT_EQUAL_FATAL(akin_sim_fit_make(&sample, &fit, &err), AKIN_OK);
    CU_ASSERT_TRUE(fit.rho > 0.6);
    akin_sim_params_t params = bed_params(pool);
    params.n_prefill = 8;
    params.rate = 200.0;
    const akin_sim_result_t rr = bed_run(&params);
    for (int i = 0; i < 4; i++) {
        params.policy = policies[i];
        params.fit = akin_policy_needs_fit(policies[i]) ? &fit : NULL;
        const akin_sim_result_t result = bed_run(&params);
        CU_ASSERT_TRUE(result.distinct < 0.9 * rr.distinct);
        CU_ASSERT_TRUE(result.tpot_s.p50 < 0.97 * rr.tpot_s.p50);
        const akin_sim_result_t again = bed_run(&params);
        CU_ASSERT_EQUAL(memcmp(&result, &again, sizeof(result)), 0);
    }
    akin_fit_cleanup(&fit);
    akin_route_generator_destroy(generator);
    akin_route_pool_destroy(pool);
}

/* Two ranks that hold half of the experts each: the busiest has at least half
 * of what a step activates, and steps are faster than those of one rank. */
static void test_ranks(void)
{
    akin_route_pool_t *pool = pool_of(32.0, 40.0, 600);
    akin_sim_params_t params = bed_params(pool);
    const akin_placement_params_t place = {
        .kind = AKIN_PLACEMENT_LINEAR,
        .n_layers = bed_shape.n_layers,
        .n_experts = bed_shape.n_experts,
        .n_ranks = 2,
    };
    akin_placement_t placements[3];
    akin_error_t err;
    for (int w = 0; w < 3; w++)
        CU_ASSERT_EQUAL_FATAL(akin_placement_make(&place, &placements[w], &err),
                              AKIN_OK);
    params.rate = 60.0;
    const akin_sim_result_t one = bed_run(&params);
    params.placements = placements;
    params.n_ranks = 2;
    const akin_sim_result_t two = bed_run(&params);
    CU_ASSERT_TRUE(two.busiest > 0.5 * two.distinct);
    CU_ASSERT_TRUE(two.busiest < 0.9 * two.distinct);
    CU_ASSERT_EQUAL(one.busiest, one.distinct);
    CU_ASSERT_TRUE(two.tpot_s.p50 < one.tpot_s.p50);
    for (int w = 0; w < 3; w++)
        akin_placement_cleanup(&placements[w]);
    akin_route_pool_destroy(pool);
}

/* The mix turns from its own to the first domain alone: before it is that of a
 * run without drift, after it that of a run of the first domain. */
static void test_drift(void)
{
    static const double first_alone[] = {1.0, 0.0, 0.0};
    akin_route_pool_t *pool = pool_of(32.0, 40.0, 600);
    akin_sim_params_t params = bed_params(pool);
    params.n_prefill = 8;
    params.rate = 100.0;
    params.n_measured = 6000;
    const akin_sim_result_t all = bed_run(&params);
    params.shares = first_alone;
    const akin_sim_result_t alone = bed_run(&params);
    params.shares = NULL;
    params.later_shares = first_alone;
    const akin_sim_result_t drift = bed_run(&params);
    const double before = drift.phases[0].distinct;
    const double during = drift.phases[1].distinct;
    const double after = drift.phases[2].distinct;
    CU_ASSERT_TRUE(alone.distinct < 0.8 * all.distinct);
    CU_ASSERT_DOUBLE_EQUAL(before / all.distinct, 1.0, 0.04);
    CU_ASSERT_DOUBLE_EQUAL(after / alone.distinct, 1.0, 0.04);
    CU_ASSERT_TRUE(during < before && during > after);
    CU_ASSERT_DOUBLE_EQUAL(drift.phases[2].tpot_s.p50 / alone.tpot_s.p50, 1.0,
                           0.04);
    /* The thirds hold all measured requests. */
    double mean = 0.0;
    for (int p = 0; p < 3; p++)
        mean += drift.phases[p].tpot_s.mean / 3.0;
    CU_ASSERT_DOUBLE_EQUAL(mean, drift.tpot_s.mean, 1e-9);
    akin_route_pool_destroy(pool);
}

static const runner_test_t tests[] = {
    {"prefill_wait", test_prefill_wait},
    {"prefill_chunks", test_prefill_chunks},
    {"lonely_request", test_lonely_request},
    {"little", test_little},
    {"refusals", test_refusals},
    {"policies", test_policies},
    {"ranks", test_ranks},
    {"drift", test_drift},
};

RUNNER_MAIN("sim", tests)
