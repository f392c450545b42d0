/* Batch jobs, caches and arrivals of a simulation, worked out by hand. */
#include "scratch_file.h"
#include "sim_bed.h"

#include "routing/trace_writer.h"

#include <math.h>
#include <string.h>

/* Prompts of 50 tokens, 10 tokens of output: prefill, transfer and the nine
 * steps of a request that is alone on its worker. */
static void find_times(double times[3])
{
    times[0] = bed_prefill_s(50, 0);
    times[1] = bed_move_s(50.0);
    times[2] = 0.0;
    for (int context = 51; context <= 59; context++)
        times[2] += bed_step_s(context);
}

static akin_sim_params_t batch_params(const akin_route_pool_t *pool)
{
    akin_sim_params_t params = bed_params(pool);
    params.arrivals = AKIN_SIM_CLOSED;
    params.in_flight = 1;
    params.n_decode = 2;
    params.n_warmup = 0;
    return params;
}

static void test_one_at_a_time(void)
{
    const akin_route_pool_params_t of = {.n_requests = 10};
    akin_route_pool_t *pool = bed_pool(50.0, 10.0, &of);
    akin_sim_params_t params = batch_params(pool);
    double t[3];
    find_times(t);
    params.n_total = params.n_measured = 5;
    const akin_sim_result_t result = bed_run(&params);
    CU_ASSERT_EQUAL(result.n_ended, 5);
    CU_ASSERT_EQUAL(result.n_left, 0);
    CU_ASSERT_EQUAL(result.n_steps, 5 * 9);
    CU_ASSERT_DOUBLE_EQUAL(result.ttft_s.mean, t[0], 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(result.tpot_s.p99, (t[1] + t[2]) / 9.0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(result.window_s, 5 * (t[0] + t[1] + t[2]), 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(result.inside, 1.0, 1e-12);
    akin_route_pool_destroy(pool);
}

/* Two in flight, one prefill worker, two decode workers in turns: the second
 * prompt waits for the first; each end admits the next. */
static void test_two_at_a_time(void)
{
    const akin_route_pool_params_t of = {.n_requests = 10};
    akin_route_pool_t *pool = bed_pool(50.0, 10.0, &of);
    akin_sim_params_t params = batch_params(pool);
    double t[3];
    find_times(t);
    params.in_flight = 2;
    params.n_total = params.n_measured = 4;
    const akin_sim_result_t result = bed_run(&params);
    CU_ASSERT_DOUBLE_EQUAL(result.ttft_s.mean, 5.0 * t[0] / 4.0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(result.queue_s, t[0] / 4.0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(result.window_s, 3.0 * t[0] + 2.0 * (t[1] + t[2]),
                           1e-9);
    CU_ASSERT_EQUAL(result.batch, 1.0);
    /* The tail is not measured, nor is what warms up. */
    params.n_warmup = 1;
    params.n_measured = 2;
    const akin_sim_result_t middle = bed_run(&params);
    CU_ASSERT_EQUAL(middle.n_ended, 4);
    CU_ASSERT_DOUBLE_EQUAL(middle.ttft_s.mean, 3.0 * t[0] / 2.0, 1e-12);
    params.n_measured = 4;
    akin_sim_result_t none;
    akin_error_t err;
    CU_ASSERT_EQUAL(akin_sim_run(&params, &none, &err), AKIN_ERR_INVALID);
    akin_route_pool_destroy(pool);
}

/* Three prompts of 50 tokens at once: the first begins, the others go on
 * together, cut where a step is full. */
static void test_prompts_together(void)
{
    const akin_route_pool_params_t of = {.n_requests = 10};
    akin_route_pool_t *pool = bed_pool(50.0, 10.0, &of);
    akin_sim_params_t params = batch_params(pool);
    const double first = bed_prefill_s(50, 0);
    params.in_flight = params.n_measured = 3;
    params.n_total = 3;
    params.chunk_tokens = 100;
    akin_sim_result_t result = bed_run(&params);
    CU_ASSERT_DOUBLE_EQUAL(3.0 * result.ttft_s.mean,
                           first + 2.0 * (first + bed_prefill_s(100, 0)),
                           1e-12);
    CU_ASSERT_DOUBLE_EQUAL(3.0 * result.queue_s, 2.0 * first, 1e-12);
    params.chunk_tokens = 70;
    result = bed_run(&params);
    const double second = first + bed_prefill_s(70, 0);
    CU_ASSERT_DOUBLE_EQUAL(3.0 * result.ttft_s.mean,
                           first + second + second + bed_prefill_s(30, 20),
                           1e-12);
    akin_route_pool_destroy(pool);
}

/* There are never more inside than may be, and never fewer while requests
 * come. */
static void test_closed_loop(void)
{
    const akin_route_pool_params_t of = {.n_requests = 300};
    akin_route_pool_t *pool = bed_pool(50.0, 10.0, &of);
    akin_sim_params_t params = batch_params(pool);
    params.in_flight = 24;
    params.n_warmup = 50;
    params.n_measured = 200;
    const akin_sim_result_t result = bed_run(&params);
    CU_ASSERT_DOUBLE_EQUAL(result.inside, 24.0, 1e-9);
    /* At an end the next ones have yet to come, which takes no time: as many as
     * a decode worker's step ended. */
    CU_ASSERT(result.n_left < 24 && result.n_left >= 24 - 24 / 2);
    CU_ASSERT_EQUAL(result.copies, 0.0);
    akin_route_pool_destroy(pool);
}

/* Where all measured requests come at time 0 there is nothing between the first
 * and the last of them; a run with an end has a window. */
static void test_no_window(void)
{
    const akin_route_pool_params_t of = {.n_requests = 300};
    akin_route_pool_t *pool = bed_pool(50.0, 10.0, &of);
    akin_sim_params_t params = batch_params(pool);
    akin_sim_result_t result;
    akin_error_t err;
    params.in_flight = params.n_measured = 20;
    CU_ASSERT_EQUAL(akin_sim_run(&params, &result, &err), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "requests.total"));
    params.n_total = 20;
    CU_ASSERT_TRUE(bed_run(&params).batch > 1.0);
    /* One request that comes by itself has times, but no window either. */
    params.arrivals = AKIN_SIM_POISSON;
    params.n_measured = 1;
    params.n_total = 0;
    result = bed_run(&params);
    CU_ASSERT_TRUE(result.tpot_s.mean > 0.0);
    CU_ASSERT_TRUE(isnan(result.distinct) && isnan(result.busiest));
    CU_ASSERT_TRUE(isnan(result.inside) && isnan(result.copies));
    CU_ASSERT_TRUE(isnan(result.phases[1].tpot_s.p50));
    CU_ASSERT_TRUE(isnan(result.phases[1].distinct));
    akin_route_pool_destroy(pool);
}

/* Six in flight of three different requests: copies meet in every step of a
 * single worker that all are in. */
static void test_copies(void)
{
    const akin_route_pool_params_t of = {.n_requests = 3};
    akin_route_pool_t *pool = bed_pool(50.0, 100.0, &of);
    akin_sim_params_t params = batch_params(pool);
    params.n_decode = 1;
    params.in_flight = 6;
    params.n_warmup = 10;
    params.n_measured = 50;
    const akin_sim_result_t result = bed_run(&params);
    CU_ASSERT_TRUE(result.copies > 0.9 && result.copies <= 1.0);
    akin_route_pool_destroy(pool);
}

/* Two prompts of one domain in turns, of 30 tokens that they share and 20 of
 * their own. */
static void test_cache(void)
{
    static const double first_alone[] = {1.0, 0.0, 0.0};
    const akin_route_pool_params_t of = {
        .n_requests = 3, .shares = first_alone, .shared_tokens = 30};
    akin_route_pool_t *pool = bed_pool(20.0, 10.0, &of);
    akin_sim_params_t params = batch_params(pool);
    const double whole = bed_prefill_s(50, 0), own = bed_prefill_s(20, 30);
    const double last = bed_prefill_s(1, 49);
    params.n_total = params.n_measured = 6;
    CU_ASSERT_DOUBLE_EQUAL(bed_run(&params).ttft_s.mean, whole, 1e-12);
    CU_ASSERT_EQUAL(bed_run(&params).cached, 0.0);
    /* Room for all: the first is new, two have a new rest, then a token is
     * computed of every one. */
    params.cache_tokens = 1000;
    akin_sim_result_t result = bed_run(&params);
    CU_ASSERT_DOUBLE_EQUAL(result.ttft_s.mean,
                           (whole + 2.0 * own + 3.0 * last) / 6.0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(result.cached, (2 * 30 + 3 * 49) / 300.0, 1e-12);
    /* Room for what is shared and one rest, which the next one drives out. */
    params.cache_tokens = 60;
    result = bed_run(&params);
    CU_ASSERT_DOUBLE_EQUAL(result.ttft_s.mean, (whole + 5.0 * own) / 6.0,
                           1e-12);
    CU_ASSERT_DOUBLE_EQUAL(result.cached, 5 * 30 / 300.0, 1e-12);
    akin_route_pool_destroy(pool);
}

/* Prompts that begin alike go to one worker, which has them; by load they take
 * turns, and both have to learn them. */
static void test_prefill_routers(void)
{
    static const double first_alone[] = {1.0, 0.0, 0.0};
    const akin_route_pool_params_t of = {
        .n_requests = 3, .shares = first_alone, .shared_tokens = 300};
    akin_route_pool_t *pool = bed_pool(20.0, 1.0, &of);
    akin_sim_params_t params = batch_params(pool);
    params.n_prefill = 2;
    params.cache_tokens = 300;
    params.in_flight = 1;
    params.n_total = params.n_measured = 10;
    CU_ASSERT_DOUBLE_EQUAL(bed_run(&params).cached, 9 * 300 / 3200.0, 1e-12);
    params.in_flight = 2;
    params.prefill_router = AKIN_SIM_LEAST_LOADED;
    CU_ASSERT_DOUBLE_EQUAL(bed_run(&params).cached, 8 * 300 / 3200.0, 1e-12);
    akin_route_pool_destroy(pool);
}

/* Arrivals of a trace at 0, 2 and 10 s: at 15, 17 and 25 s again, as 5 s are
 * the mean between two. */
static void test_trace_arrivals(void)
{
    const akin_trace_writer_params_t of = {
        .path = scratch_path("t.json"), .model = "m", .shape = {2, 64, 4, 0}};
    static const double arrivals[] = {12.0, 2.0, 4.0};
    static const char *const ids[] = {"a", "b", "c"};
    uint16_t routes[3 * 8];
    akin_trace_writer_t *writer;
    akin_trace_t *trace;
    akin_route_pool_t *pool;
    akin_error_t err;
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_create(&of, &writer, &err),
                          AKIN_OK);
    for (uint32_t i = 0; i < 3 * 8; i++)
        routes[i] = (uint16_t)(i % 4);
    for (uint32_t r = 0; r < 3; r++) {
        const akin_trace_record_t record = {.id = ids[r],
                                            .domain = "",
                                            .n_tokens = 3,
                                            .n_prompt = 2,
                                            .arrival_s = arrivals[r]};
        CU_ASSERT_EQUAL_FATAL(
            akin_trace_writer_append(writer, &record, routes, &err), AKIN_OK);
    }
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_finish(writer, &err), AKIN_OK);
    akin_trace_writer_destroy(writer);
    CU_ASSERT_EQUAL_FATAL(akin_trace_open(of.path, &trace, &err), AKIN_OK);
    const akin_route_pool_trace_t all = {0};
    CU_ASSERT_EQUAL_FATAL(akin_route_pool_read(trace, &all, &pool, &err),
                          AKIN_OK);
    akin_trace_close(trace);
    akin_sim_params_t params = batch_params(pool);
    params.arrivals = AKIN_SIM_TRACE;
    params.n_total = params.n_measured = 6;
    const double alone = bed_prefill_s(2, 0) + bed_move_s(2.0) + bed_step_s(3);
    const akin_sim_result_t result = bed_run(&params);
    CU_ASSERT_DOUBLE_EQUAL(result.window_s, 25.0 + alone, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(result.inside * result.window_s, 6.0 * alone, 1e-9);
    /* Routes without arrivals cannot tell. */
    for (uint32_t i = 0; i < 3; i++)
        pool->entries[i].arrival_s = -1.0;
    akin_sim_result_t none;
    CU_ASSERT_EQUAL(akin_sim_run(&params, &none, &err), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "arrival_s"));
    akin_route_pool_destroy(pool);
}

static const runner_test_t tests[] = {
    {"one_at_a_time", test_one_at_a_time},
    {"two_at_a_time", test_two_at_a_time},
    {"prompts_together", test_prompts_together},
    {"closed_loop", test_closed_loop},
    {"no_window", test_no_window},
    {"copies", test_copies},
    {"cache", test_cache},
    {"prefill_routers", test_prefill_routers},
    {"trace_arrivals", test_trace_arrivals},
};

RUNNER_MAIN("sim_batch", tests)
