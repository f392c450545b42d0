/* Workers that die in a simulation, worked out by hand, and what is conserved
 * when many do. */
#include "sim_bed.h"

#include <math.h>
#include <string.h>

static akin_route_pool_t *pool_of(uint32_t n, double prompt, double output)
{
    const akin_route_pool_params_t of = {.n_requests = n, .has_counts = true};
    return bed_pool(prompt, output, &of);
}

/* One request of 50 prompt tokens and 10 of output. */
static akin_sim_params_t lonely(const akin_route_pool_t *pool,
                                const akin_sim_fault_t *fault)
{
    akin_sim_params_t params = bed_params(pool);
    params.arrivals = AKIN_SIM_CLOSED;
    params.in_flight = 1;
    params.n_decode = 2;
    params.n_warmup = 0;
    params.n_total = params.n_measured = 1;
    params.faults.at = fault;
    params.faults.n_at = 1;
    return params;
}

/* The worker dies in the third step: of the first token and two of its own are
 * known, so that 53 tokens are prefilled elsewhere, which gives the fourth. */
static void test_decode_dies(void)
{
    akin_route_pool_t *pool = pool_of(3, 50.0, 10.0);
    const double first = bed_prefill_s(50, 0);
    const double died = first + bed_move_s(50.0) + bed_step_s(51) +
                        bed_step_s(52) + 0.5 * bed_step_s(53);
    const akin_sim_fault_t fault = {died, true, 0};
    akin_sim_params_t params = lonely(pool, &fault);
    double last = died + bed_prefill_s(53, 0) + bed_move_s(53.0);
    for (int context = 54; context <= 59; context++)
        last += bed_step_s(context);
    akin_sim_result_t result = bed_run(&params);
    CU_ASSERT_EQUAL(result.deaths, 1.0);
    CU_ASSERT_EQUAL(result.rerun, 1.0);
    CU_ASSERT_EQUAL(result.reprefilled_tokens, 53.0);
    CU_ASSERT_DOUBLE_EQUAL(result.ttft_s.mean, first, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(result.stay_s, last, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(result.tpot_s.mean, (last - first) / 9.0, 1e-9);
    /* The router knows later. */
    params.faults.detect_s = 0.25;
    result = bed_run(&params);
    CU_ASSERT_DOUBLE_EQUAL(result.stay_s, last + 0.25, 1e-9);
    /* The prompt, not what was generated, is still cached. */
    params.cache_tokens = 1000;
    params.faults.detect_s = 0.0;
    result = bed_run(&params);
    CU_ASSERT_EQUAL(result.reprefilled_tokens, 3.0);
    CU_ASSERT_DOUBLE_EQUAL(result.stay_s,
                           last - bed_prefill_s(53, 0) + bed_prefill_s(3, 50),
                           1e-9);
    akin_route_pool_destroy(pool);
}

/* Nothing runs on a dead worker: the second one has the request from then on,
 * and the first one's bins are as full as its share of the time. */
static void test_load(void)
{
    akin_route_pool_t *pool = pool_of(3, 50.0, 10.0);
    const double begun = bed_prefill_s(50, 0) + bed_move_s(50.0);
    const akin_sim_fault_t fault = {begun + 1.5 * bed_step_s(51), true, 0};
    akin_sim_params_t params = lonely(pool, &fault);
    CU_ASSERT_EQUAL_FATAL(akin_load_watch_create(2, 0, 0, &params.watch),
                          AKIN_OK);
    params.faults.detect_s = 1.0;
    (void)bed_run(&params);
    const akin_load_watch_sizes_t of = akin_load_watch_sizes(params.watch);
    double seconds = 0.0;
    for (uint32_t i = 0; i < of.n_bins; i++)
        seconds += akin_load_watch_load(params.watch, 0, i) *
                   fmin(of.bin_s, of.end_s - i * of.bin_s);
    CU_ASSERT_DOUBLE_EQUAL(seconds, fault.at_s - begun, 1e-5);
    akin_load_watch_destroy(params.watch);
    akin_route_pool_destroy(pool);
}

/* The prompt begins again on the other worker. */
static void test_prefill_dies(void)
{
    akin_route_pool_t *pool = pool_of(3, 50.0, 10.0);
    const double prefill = bed_prefill_s(50, 0);
    const akin_sim_fault_t fault = {0.5 * prefill, false, 0};
    akin_sim_params_t params = lonely(pool, &fault);
    params.n_prefill = 2;
    params.prefill_router = AKIN_SIM_LEAST_LOADED;
    params.faults.detect_s = 0.1;
    const akin_sim_result_t result = bed_run(&params);
    CU_ASSERT_EQUAL(result.rerun, 1.0);
    CU_ASSERT_EQUAL(result.reprefilled_tokens, 50.0);
    CU_ASSERT_DOUBLE_EQUAL(result.ttft_s.mean, 1.5 * prefill + 0.1, 1e-9);
    akin_route_pool_destroy(pool);
}

/* The first prefill worker dies before it begins: the wait lasts until the
 * second one does. */
static void test_queue(void)
{
    static const akin_sim_fault_t fault = {0.0, false, 0};
    akin_route_pool_t *pool = pool_of(3, 50.0, 10.0);
    akin_sim_params_t params = lonely(pool, &fault);
    params.n_prefill = 2;
    params.prefill_router = AKIN_SIM_LEAST_LOADED;
    params.faults.detect_s = 0.1;
    const akin_sim_result_t result = bed_run(&params);
    CU_ASSERT_EQUAL(result.rerun, 1.0);
    CU_ASSERT_DOUBLE_EQUAL(result.queue_s, 0.1, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(result.ttft_s.mean, 0.1 + bed_prefill_s(50, 0),
                           1e-9);
    akin_route_pool_destroy(pool);
}

/* KV that is under way, or has yet to leave, dies with the prefill worker,
 * whether or not the router knows. */
static void test_kv_dies(void)
{
    akin_route_pool_t *pool = pool_of(3, 50.0, 10.0);
    const double prefill = bed_prefill_s(50, 0);
    akin_sim_fault_t fault = {prefill + 0.5 * bed_move_s(50.0), false, 0};
    akin_sim_params_t params = lonely(pool, &fault);
    double again = bed_prefill_s(51, 0) + bed_move_s(51.0);
    double first = prefill + bed_move_s(50.0);
    for (int context = 51; context <= 59; context++) {
        again += context > 51 ? bed_step_s(context) : 0.0;
        first += bed_step_s(context);
    }
    params.faults.detect_s = params.faults.down_s = 3.0;
    akin_sim_result_t result = bed_run(&params);
    CU_ASSERT_EQUAL(result.rerun, 1.0);
    CU_ASSERT_DOUBLE_EQUAL(result.stay_s, fault.at_s + 3.0 + again, 1e-9);
    /* The second of two waits for the only place, which is free before the
     * death is known. */
    params.in_flight = 2;
    params.n_total = params.n_measured = 2;
    params.n_decode = params.max_batch = 1;
    fault.at_s = 2.0 * prefill + 1e-6;
    CU_ASSERT_TRUE(fault.at_s < first);
    for (int i = 0; i < 2; i++) {
        params.faults.detect_s = 3.0 * i;
        result = bed_run(&params);
        CU_ASSERT_EQUAL(result.rerun, 1.0);
        CU_ASSERT_DOUBLE_EQUAL(2.0 * result.stay_s,
                               first + fault.at_s + 3.0 + again, 1e-9);
    }
    akin_route_pool_destroy(pool);
}

/* A role without workers waits for one to come back, or is at its end. */
static void test_none_left(void)
{
    akin_route_pool_t *pool = pool_of(3, 50.0, 10.0);
    const double died = bed_prefill_s(50, 0) + 0.5 * bed_move_s(50.0);
    const akin_sim_fault_t faults[] = {{died, true, 0}, {0.0, false, 0}};
    akin_sim_params_t params = lonely(pool, faults);
    akin_sim_result_t result;
    akin_error_t err;
    params.n_decode = 1;
    CU_ASSERT_EQUAL(akin_sim_run(&params, &result, &err), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "all decode workers are dead"));
    params.faults.down_s = 3.0;
    double last = died + 3.0 + bed_move_s(51.0);
    for (int context = 52; context <= 59; context++)
        last += bed_step_s(context);
    CU_ASSERT_DOUBLE_EQUAL(bed_run(&params).stay_s, last, 1e-9);
    params.faults.down_s = 0.0;
    params.faults.at = &faults[1];
    CU_ASSERT_EQUAL(akin_sim_run(&params, &result, &err), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "all prefill workers are dead"));
    params.faults.down_s = 2.0;
    CU_ASSERT_DOUBLE_EQUAL(bed_run(&params).ttft_s.mean,
                           2.0 + bed_prefill_s(50, 0), 1e-9);
    /* Workers that live too briefly for a prompt. */
    params.faults = (akin_sim_faults_t){.mtbf_s = 1e-4, .down_s = 1e-3};
    CU_ASSERT_EQUAL(akin_sim_run(&params, &result, &err), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "faults.mtbf"));
    params.faults = (akin_sim_faults_t){.n_at = 1};
    const akin_sim_fault_t wrong = {1.0, true, 1};
    params.faults.at = &wrong;
    CU_ASSERT_EQUAL(akin_sim_run(&params, &result, &err), AKIN_ERR_INVALID);
    akin_route_pool_destroy(pool);
}

/* Workers die four times as fast as a prompt takes: every token needs dozens of
 * attempts, and comes. Before the first arrival none does. */
static void test_brief_lives(void)
{
    akin_route_pool_t *pool = pool_of(3, 50.0, 100.0);
    akin_sim_params_t params = lonely(pool, NULL);
    akin_sim_result_t result;
    akin_error_t err;
    const double life = bed_prefill_s(50, 0) / 4.0;
    params.faults = (akin_sim_faults_t){.mtbf_s = life, .down_s = life};
    result = bed_run(&params);
    CU_ASSERT_EQUAL(result.n_ended, 1);
    CU_ASSERT_TRUE(result.rerun > 1000.0);
    params.arrivals = AKIN_SIM_POISSON;
    params.rate = 1.0;
    params.faults = (akin_sim_faults_t){.mtbf_s = 1e-9, .down_s = 1e-9};
    CU_ASSERT_EQUAL(akin_sim_run(&params, &result, &err), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "since any request gained"));
    akin_route_pool_destroy(pool);
}

/* Many deaths: no request is lost, nor is one measured twice; as many die as
 * are to be expected; equal parameters give equal results. */
static void test_many(void)
{
    static const char *const policies[] = {"rr", "jsq", "union"};
    akin_route_pool_t *pool = pool_of(600, 32.0, 40.0);
    akin_sim_params_t params = bed_params(pool);
    params.n_prefill = 4;
    params.n_decode = 6;
    params.rate = 100.0;
    params.n_total = 6000;
    params.n_measured = 5500;
    params.cache_tokens = 500;
    params.faults =
        (akin_sim_faults_t){.mtbf_s = 4.0, .down_s = 0.5, .detect_s = 0.2};
    for (int i = 0; i < 3; i++) {
        params.policy = policies[i];
        const akin_sim_result_t result = bed_run(&params);
        CU_ASSERT_EQUAL(result.n_ended, 6000);
        /* Some 60 s of ten workers, one death in 4.5 s each. */
        CU_ASSERT_DOUBLE_EQUAL(result.deaths, 133.0, 45.0);
        CU_ASSERT_TRUE(result.rerun > result.deaths);
        CU_ASSERT_TRUE(result.reprefilled_tokens > 0.0);
        const akin_sim_result_t again = bed_run(&params);
        CU_ASSERT_EQUAL(memcmp(&result, &again, sizeof(result)), 0);
    }
    akin_route_pool_destroy(pool);
}

static const runner_test_t tests[] = {
    {"decode_dies", test_decode_dies},
    {"load", test_load},
    {"prefill_dies", test_prefill_dies},
    {"kv_dies", test_kv_dies},
    {"queue", test_queue},
    {"brief_lives", test_brief_lives},
    {"none_left", test_none_left},
    {"many", test_many},
};

RUNNER_MAIN("sim_faults", tests)
