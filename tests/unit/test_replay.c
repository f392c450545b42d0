/* Tests of the replay: pools that can be worked out by hand, laws of queues,
 * and what is refused. */
#include "planted_fit.h"
#include "replay_bed.h"
#include "runner.h"

#include "routing/replay.h"

#include <math.h>
#include <string.h>

enum { N = 32, DECODE = 4 };

/* 64 experts, so that 32 requests can have experts of their own. */
static const akin_trace_shape_t shape = {
    .n_layers = 2, .n_experts = 64, .top_k = 2};

/* 1 ms, 0.1 ms per distinct expert, 0.01 ms per request. A request alone
 * activates 4: 1.41 ms. Two that share nothing: 1.82 ms. */
static const akin_cost_line_t line = {.t0_s = 1e-3, .a_s = 1e-4, .b_s = 1e-5};

#define SOLO_S 1.41e-3
#define PAIR_S 1.82e-3
#define NEAR 1e-9

static uint32_t all[N];

/* n requests that share no expert. */
static void init_apart(replay_bed_t *bed, uint32_t n)
{
    replay_bed_request_t requests[N];
    for (uint32_t i = 0; i < n; i++) {
        requests[i] = (replay_bed_request_t){
            .n_prompt = 3, .n_decode = DECODE, .first = 2 * i};
        all[i] = i;
    }
    replay_bed_init_set(bed, &shape, requests, n);
}

/* N requests of drawn experts, of 5 to 9 tokens or all of DECODE. */
static void init_drawn(replay_bed_t *bed, int are_equal)
{
    replay_bed_request_t requests[N];
    for (uint32_t i = 0; i < N; i++) {
        requests[i] =
            (replay_bed_request_t){.n_prompt = 3,
                                   .n_decode = are_equal ? DECODE : 5 + i % 5,
                                   .key = 100 + i,
                                   .domain = i % 3 != 0 ? "law" : "code"};
        all[i] = i;
    }
    replay_bed_init_set(bed, &shape, requests, N);
}

static akin_replay_params_t params_of(const replay_bed_t *bed,
                                      const char *policy)
{
    return (akin_replay_params_t){
        .set = bed->set,
        .requests = all,
        .n_requests = bed->set->n_requests,
        .policy = policy,
        .tau = AKIN_POLICY_TAU,
        .pull = AKIN_POLICY_PULL,
        .n_workers = 1,
        .in_flight = 1,
        .n_measured = 100,
        .cost = line,
        .seed = 1,
    };
}

static akin_replay_result_t run(const akin_replay_params_t *params)
{
    akin_replay_result_t result = {0};
    akin_error_t err = {{0}};
    akin_status_t status = akin_replay_run(params, &result, &err);
    CU_ASSERT_EQUAL_FATAL(status, AKIN_OK);
    return result;
}

static void refuse(const akin_replay_params_t *params, const char *text)
{
    akin_replay_result_t result;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_replay_run(params, &result, &err), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, text));
}

static void test_alone(void)
{
    replay_bed_t bed;
    init_apart(&bed, 2);
    akin_replay_params_t params = params_of(&bed, "rr");
    akin_replay_result_t r = run(&params);
    CU_ASSERT_DOUBLE_EQUAL(r.tpot_p50_s, SOLO_S, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(r.tpot_mean_s, SOLO_S, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(r.tpot_p99_s, SOLO_S, NEAR);
    CU_ASSERT_EQUAL(r.distinct, 2.0);
    CU_ASSERT_EQUAL(r.batch, 1.0);
    CU_ASSERT_EQUAL(r.spread, 1.0);
    CU_ASSERT_EQUAL(r.n_tokens, 100 * DECODE);
    CU_ASSERT_EQUAL(r.n_steps, 100 * DECODE);
    CU_ASSERT_DOUBLE_EQUAL(r.seconds, 100 * DECODE * SOLO_S, 1e-7);
    replay_bed_cleanup(&bed);
}

/* Three requests that share nothing, two at a time. The first steps alone once,
 * because the second comes while it does; then 7 steps of two. */
static void test_by_hand(void)
{
    replay_bed_t bed;
    init_apart(&bed, 3);
    akin_replay_params_t params = params_of(&bed, "jsq");
    params.in_flight = 2;
    params.n_measured = 3;
    akin_replay_result_t r = run(&params);
    const double first = (SOLO_S + 3 * PAIR_S) / 4;
    const double second = (SOLO_S + 4 * PAIR_S) / 4;
    CU_ASSERT_DOUBLE_EQUAL(r.tpot_mean_s, (first + second + PAIR_S) / 3, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(r.tpot_p50_s, PAIR_S, NEAR);
    /* 0.98 of the way between the second and the third of three. */
    CU_ASSERT_DOUBLE_EQUAL(r.tpot_p99_s, PAIR_S + 0.98 * (second - PAIR_S),
                           NEAR);
    CU_ASSERT_EQUAL(r.n_steps, 8);
    CU_ASSERT_EQUAL(r.n_tokens, 15);
    CU_ASSERT_DOUBLE_EQUAL(r.batch, 15.0 / 8, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(r.distinct, (4 + 7 * 8) / 8.0 / 2, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(r.seconds, SOLO_S + 7 * PAIR_S, NEAR);
    replay_bed_cleanup(&bed);
}

/* All but one of the requests run at any time. A copy in flight would lower
 * the distinct experts of a step below 2 per request and layer. */
static void test_no_copies(void)
{
    replay_bed_t bed;
    init_apart(&bed, 9);
    akin_replay_params_t params = params_of(&bed, "random");
    params.in_flight = 8;
    params.n_measured = 2000;
    params.n_warmup = 100;
    akin_replay_result_t r = run(&params);
    CU_ASSERT_EQUAL(r.batch, 8.0);
    CU_ASSERT_EQUAL(r.distinct, 16.0);
    replay_bed_cleanup(&bed);
}

/* Little's law: what is in flight is the rate of requests times the time that
 * each stays, whatever the policy. With equal lengths that is the rate of
 * tokens times the time per token. */
static void test_littles_law(void)
{
    static const char *const policies[] = {"random", "rr", "jsq", "p2c",
                                           "union"};
    replay_bed_t bed;
    init_drawn(&bed, 1);
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        akin_replay_params_t params = params_of(&bed, policies[i]);
        params.n_workers = 3;
        params.in_flight = 5;
        params.n_measured = 8000;
        params.n_warmup = 200;
        akin_replay_result_t r = run(&params);
        CU_ASSERT_DOUBLE_EQUAL((double)r.n_tokens / r.seconds * r.tpot_mean_s,
                               15.0, 0.06);
        /* Those measured, and at either edge some others. */
        CU_ASSERT_DOUBLE_EQUAL((double)r.n_tokens, 8000.0 * DECODE,
                               80.0 * DECODE);
        CU_ASSERT_DOUBLE_EQUAL(r.batch * (double)r.n_steps, (double)r.n_tokens,
                               1e-6 * (double)r.n_tokens);
        CU_ASSERT(r.spread >= 1.0 && r.spread <= 3.0);
        CU_ASSERT(r.tpot_p50_s <= r.tpot_p95_s && r.tpot_p95_s <= r.tpot_p99_s);
    }
    replay_bed_cleanup(&bed);
}

/* Where every token activates every expert, a step costs what its batch does,
 * and `union` has nothing but the load to go by. */
static void test_union_is_jsq(void)
{
    static const akin_trace_shape_t full = {
        .n_layers = 2, .n_experts = 4, .top_k = 4};
    replay_bed_request_t requests[N];
    replay_bed_t bed;
    akin_replay_result_t r[2];
    for (uint32_t i = 0; i < N; i++)
        requests[i] = (replay_bed_request_t){.n_prompt = 3, .n_decode = DECODE};
    replay_bed_init_set(&bed, &full, requests, N);
    for (int i = 0; i < 2; i++) {
        akin_replay_params_t params = params_of(&bed, i ? "union" : "jsq");
        params.n_workers = 4;
        params.in_flight = 6;
        params.n_measured = 1000;
        r[i] = run(&params);
        CU_ASSERT_EQUAL(r[i].distinct, 4.0);
    }
    CU_ASSERT_DOUBLE_EQUAL(r[1].tpot_mean_s, r[0].tpot_mean_s, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(r[1].tpot_p99_s, r[0].tpot_p99_s, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(r[1].spread, r[0].spread, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(r[1].batch, r[0].batch, 1e-9);
    replay_bed_cleanup(&bed);
}

/* Requests that come once in 100 s meet hardly anybody. */
static void test_rare(void)
{
    replay_bed_t bed;
    init_apart(&bed, 5);
    akin_replay_params_t params = params_of(&bed, "p2c");
    params.n_workers = 3;
    params.rate = 0.01;
    params.n_measured = 2000;
    akin_replay_result_t r = run(&params);
    CU_ASSERT_DOUBLE_EQUAL(r.tpot_p50_s, SOLO_S, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(r.tpot_mean_s, SOLO_S, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(r.tpot_p99_s, SOLO_S, NEAR);
    CU_ASSERT_EQUAL(r.wait_s, 0.0);
    /* One request on one of three workers, but for a chance meeting. */
    CU_ASSERT_DOUBLE_EQUAL(r.spread, 3.0, 0.01);
    CU_ASSERT_EQUAL(r.n_tokens, 2000 * DECODE);
    /* 2,000 exponential gaps: four standard deviations are 9 %. */
    CU_ASSERT_DOUBLE_EQUAL(r.seconds, 2e5, 1.8e4);
    replay_bed_cleanup(&bed);
}

/* One worker that serves one request at a time is a queue with Poisson arrivals
 * and equal services: at load rho they wait rho / (2 (1 - rho)) services
 * (Pollaczek and Khinchine). */
static void test_queue(void)
{
    static const double loads[] = {0.3, 0.5, 0.7};
    replay_bed_t bed;
    init_apart(&bed, N);
    for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
        const double rho = loads[i], service_s = DECODE * SOLO_S;
        akin_replay_params_t params = params_of(&bed, "jsq");
        params.rate = rho / service_s;
        params.max_batch = 1;
        params.n_measured = 60000;
        params.n_warmup = 100;
        akin_replay_result_t r = run(&params);
        const double wait_s = service_s * rho / (2.0 * (1.0 - rho));
        CU_ASSERT_DOUBLE_EQUAL(r.wait_s, wait_s, 0.05 * wait_s);
        CU_ASSERT_DOUBLE_EQUAL(r.tpot_mean_s, SOLO_S, NEAR);
        CU_ASSERT_EQUAL(r.batch, 1.0);
    }
    replay_bed_cleanup(&bed);
}

static void test_max_batch(void)
{
    replay_bed_t bed;
    init_drawn(&bed, 0);
    akin_replay_params_t params = params_of(&bed, "random");
    params.n_workers = 4;
    params.in_flight = 5;
    params.max_batch = 5;
    params.n_measured = 500;
    params.n_warmup = 50;
    /* Every worker is full in every step, so no choice is left. The spread is
     * above 1 only while one of several that ended at once is replaced. */
    akin_replay_result_t r = run(&params);
    CU_ASSERT_EQUAL(r.batch, 5.0);
    CU_ASSERT(r.spread >= 1.0 && r.spread < 1.1);
    replay_bed_cleanup(&bed);
}

static void test_seeds(void)
{
    static const char *const policies[] = {
        "random",      "rr",   "jsq",   "p2c",        "domain",
        "eldr-static", "eldr", "union", "union-band", "union-pull"};
    const planted_shape_t planted = {.n_layers = shape.n_layers,
                                     .n_experts = shape.n_experts,
                                     .top_k = shape.top_k,
                                     .n_domains = 4};
    akin_fit_t fit = planted_fit(&planted, 4);
    replay_bed_t bed;
    init_drawn(&bed, 0);
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        akin_replay_params_t params = params_of(&bed, policies[i]);
        params.n_workers = 4;
        params.in_flight = 5;
        /* Seconds of replayed time, for `eldr` to fit anew. */
        params.cost.t0_s = 1e-2;
        params.n_measured = 4000;
        params.n_warmup = 50;
        params.fit = akin_policy_needs_fit(policies[i]) ? &fit : NULL;
        const akin_replay_result_t a = run(&params), b = run(&params);
        CU_ASSERT_EQUAL(memcmp(&a, &b, sizeof(a)), 0);
        CU_ASSERT(a.seconds > 5.0);
        params.seed = 2;
        const akin_replay_result_t c = run(&params);
        CU_ASSERT_NOT_EQUAL(a.tpot_mean_s, c.tpot_mean_s);
        /* All serve the same kind of load. */
        CU_ASSERT_DOUBLE_EQUAL(c.tpot_mean_s / a.tpot_mean_s, 1.0, 0.1);
    }
    akin_fit_cleanup(&fit);
    replay_bed_cleanup(&bed);
}

static void test_subset(void)
{
    static const uint32_t some[] = {3, 1};
    static const uint32_t foreign[] = {0, 4};
    replay_bed_t bed;
    replay_bed_request_t requests[4];
    for (uint32_t i = 0; i < 4; i++)
        requests[i] = (replay_bed_request_t){
            .n_prompt = 3,
            .n_decode = DECODE,
            .key = i % 2 == 0 ? 7 + i : 0,
        };
    replay_bed_init_set(&bed, &shape, requests, 4);
    akin_replay_params_t params = params_of(&bed, "jsq");
    params.n_requests = 2;
    params.requests = some;
    CU_ASSERT_EQUAL(run(&params).distinct, 2.0);
    params.requests = foreign;
    refuse(&params, "no request 4");
    replay_bed_cleanup(&bed);
}

static void test_refused(void)
{
    replay_bed_t bed;
    init_apart(&bed, 8);
    akin_replay_params_t good = params_of(&bed, "jsq"), p = good;
    p.n_workers = 4;
    p.in_flight = 2;
    refuse(&p, "4 workers x 2 in flight need more than 8 different requests");
    p = good;
    p.in_flight = 0;
    refuse(&p, "need more than 0");
    p.in_flight = UINT32_MAX;
    p.n_workers = UINT32_MAX;
    refuse(&p, "there are 8");
    p = good;
    p.n_workers = 0;
    refuse(&p, "above 0");
    p = good;
    p.n_measured = 0;
    refuse(&p, "above 0");
    p = good;
    p.n_requests = 0;
    refuse(&p, "above 0");
    p = good;
    p.in_flight = 3;
    p.max_batch = 2;
    refuse(&p, "no room for 3");
    p = good;
    p.policy = "jsqq";
    refuse(&p, "jsqq");
    p.policy = "union-band";
    refuse(&p, "fit");
    p = good;
    p.rate = 1e6;
    refuse(&p, "all 8 requests of the trace run at once");
    p.max_batch = 1;
    refuse(&p, "8 requests wait");
    replay_bed_cleanup(&bed);
}

static const runner_test_t tests[] = {
    {"one request at a time", test_alone},
    {"by hand", test_by_hand},
    {"no copies", test_no_copies},
    {"Little's law", test_littles_law},
    {"union without a choice is jsq", test_union_is_jsq},
    {"rare requests", test_rare},
    {"a queue", test_queue},
    {"full workers", test_max_batch},
    {"seeds", test_seeds},
    {"some requests of a set", test_subset},
    {"what is refused", test_refused},
};

RUNNER_MAIN("replay", tests)
