/* Replay: what a watch is told of it, by laws of conservation. */
#include "replay_bed.h"
#include "runner.h"

#include "routing/replay.h"

#include <string.h>

enum { N = 16, DECODE = 4, MEASURED = 200 };

static const akin_trace_shape_t shape = {
    .n_layers = 2, .n_experts = 64, .top_k = 2};

static uint32_t all[N];

/* Requests that share no expert. */
static void init_apart(replay_bed_t *bed)
{
    replay_bed_request_t requests[N];
    for (uint32_t i = 0; i < N; i++) {
        requests[i] = (replay_bed_request_t){
            .n_prompt = 3, .n_decode = DECODE, .first = 2 * i};
        all[i] = i;
    }
    replay_bed_init_set(bed, &shape, requests, N);
}

static akin_replay_params_t params_of(const replay_bed_t *bed,
                                      akin_load_watch_t *watch)
{
    return (akin_replay_params_t){
        .set = bed->set,
        .requests = all,
        .n_requests = N,
        .policy = "jsq",
        .n_workers = 2,
        .in_flight = 3,
        .n_measured = MEASURED,
        .cost = {.t0_s = 1e-3, .a_s = 1e-4, .b_s = 1e-5},
        .seed = 1,
        .watch = watch,
    };
}

/* By batch size or not, the steps, tokens and experts are the same. */
static void check_steps(const akin_load_watch_t *watch,
                        const akin_replay_result_t *result)
{
    uint64_t n_steps = 0, n_requests = 0, distinct = 0;
    for (uint32_t batch = 1; batch <= 6; batch++) {
        const akin_load_watch_batch_t of = akin_load_watch_batch(watch, batch);
        n_steps += of.n_steps;
        n_requests += of.n_requests;
        distinct += of.distinct;
    }
    CU_ASSERT_EQUAL(n_steps, result->n_steps);
    CU_ASSERT_EQUAL(n_requests, result->n_tokens);
    CU_ASSERT_DOUBLE_EQUAL((double)distinct,
                           result->distinct * 2 * (double)n_steps, 1e-6);
}

/* In a closed loop the workers always have all requests together, and every
 * token of those that ended has chosen top_k experts of each layer. */
static void test_closed_loop(void)
{
    replay_bed_t bed;
    akin_load_watch_t *watch;
    akin_replay_result_t result, unwatched;
    akin_error_t err;
    init_apart(&bed);
    CU_ASSERT_EQUAL_FATAL(akin_load_watch_create(2, 2, 64, &watch), AKIN_OK);
    akin_replay_params_t params = params_of(&bed, watch);
    CU_ASSERT_EQUAL_FATAL(akin_replay_run(&params, &result, &err), AKIN_OK);
    const akin_load_watch_sizes_t sizes = akin_load_watch_sizes(watch);
    CU_ASSERT_DOUBLE_EQUAL(sizes.end_s, result.seconds, 1e-6);
    CU_ASSERT(sizes.n_bins > 60);
    check_steps(watch, &result);
    for (uint32_t b = 0; b < sizes.n_bins; b++)
        CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_load(watch, 0, b) +
                                   akin_load_watch_load(watch, 1, b),
                               6.0, 1e-9);
    for (uint32_t l = 0; l < 2; l++) {
        uint64_t n = 0;
        for (uint32_t e = 0; e < 64; e++)
            n += akin_load_watch_choices(watch, 0, l, e) +
                 akin_load_watch_choices(watch, 1, l, e);
        /* Those that end with the last step count too: up to one batch. */
        CU_ASSERT(n >= MEASURED * DECODE * 2);
        CU_ASSERT(n < (MEASURED + 6) * DECODE * 2);
        CU_ASSERT_EQUAL(n % (DECODE * 2), 0);
    }
    /* Experts beyond those of the requests were never chosen. */
    for (uint32_t e = 2 * N; e < 64; e++)
        CU_ASSERT_EQUAL(akin_load_watch_choices(watch, 0, 0, e), 0);
    params.watch = NULL;
    CU_ASSERT_EQUAL_FATAL(akin_replay_run(&params, &unwatched, &err), AKIN_OK);
    CU_ASSERT_EQUAL(memcmp(&result, &unwatched, sizeof(result)), 0);
    akin_load_watch_destroy(watch);
    replay_bed_cleanup(&bed);
}

/* One worker that has one request at a time: a rare one leaves it idle. With
 * 2 layers of 2 experts each a step takes 1.41 ms, a request 5.64 ms. */
static void test_open_loop(void)
{
    replay_bed_t bed;
    akin_load_watch_t *watch;
    akin_replay_result_t result;
    akin_error_t err;
    init_apart(&bed);
    CU_ASSERT_EQUAL_FATAL(akin_load_watch_create(1, 2, 64, &watch), AKIN_OK);
    akin_replay_params_t params = params_of(&bed, watch);
    params.n_workers = 1;
    params.max_batch = 1;
    params.rate = 20.0;
    CU_ASSERT_EQUAL_FATAL(akin_replay_run(&params, &result, &err), AKIN_OK);
    const akin_load_watch_sizes_t sizes = akin_load_watch_sizes(watch);
    double busy_s = 0.0;
    for (uint32_t b = 0; b < sizes.n_bins; b++) {
        const double load = akin_load_watch_load(watch, 0, b);
        const double left_s = sizes.end_s - b * sizes.bin_s;
        CU_ASSERT(load <= 1.0);
        busy_s += load * (left_s < sizes.bin_s ? left_s : sizes.bin_s);
    }
    CU_ASSERT_DOUBLE_EQUAL(busy_s, MEASURED * DECODE * 1.41e-3,
                           MEASURED * 1e-6);
    akin_load_watch_destroy(watch);
    replay_bed_cleanup(&bed);
}

static const runner_test_t tests[] = {
    {"closed loop", test_closed_loop},
    {"open loop", test_open_loop},
};

RUNNER_MAIN("replay_watch", tests)
