/* Tests of the replay study: splits, fits and sizes. */
#include "replay_bed.h"
#include "runner.h"

#include "routing/replay_study.h"

#include <math.h>
#include <string.h>

enum { N = 32, SEEDS = 4 };

static const akin_trace_shape_t shape = {
    .n_layers = 2, .n_experts = 64, .top_k = 2};

static const akin_replay_case_t cases[] = {
    {.policy = "jsq"},
    {.policy = "eldr-static", .tau = 0.1},
    {.policy = "union-pull", .pull = 0.16},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static akin_replay_study_params_t params_of(const replay_bed_t *bed)
{
    return (akin_replay_study_params_t){
        .trace = bed->trace,
        .set = bed->set,
        .cases = cases,
        .n_cases = CASES,
        .n_seeds = SEEDS,
        .seed = 1,
        .n_fit = 12,
        .variant = AKIN_FIT_COUNT,
        .replay =
            {
                .n_workers = 3,
                .in_flight = 4,
                .cost = {.t0_s = 1e-3, .a_s = 1e-4, .b_s = 1e-5},
            },
    };
}

/* Requests that share no expert. */
static void init_apart(replay_bed_t *bed)
{
    replay_bed_request_t requests[N];
    for (uint32_t i = 0; i < N; i++)
        requests[i] = (replay_bed_request_t){
            .n_prompt = 3, .n_decode = 4, .first = 2 * i};
    replay_bed_init_set(bed, &shape, requests, N);
}

static void init_drawn(replay_bed_t *bed)
{
    replay_bed_request_t requests[N];
    for (uint32_t i = 0; i < N; i++)
        requests[i] = (replay_bed_request_t){
            .n_prompt = 40, .n_decode = 9 + i % 3, .key = 1 + i};
    replay_bed_init_set(bed, &shape, requests, N);
}

static void run(const akin_replay_study_params_t *params,
                akin_replay_result_t *results, double *rho)
{
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_replay_study_run(params, results, rho, &err),
                          AKIN_OK);
}

/* A request that shares no expert with those of the fit has a cosine of 0 with
 * every centroid; one that is measured and fitted would have more. */
static void test_disjoint(void)
{
    replay_bed_t bed;
    akin_replay_result_t r[CASES * SEEDS];
    init_apart(&bed);
    akin_replay_study_params_t params = params_of(&bed);
    run(&params, r, NULL);
    for (uint32_t s = 0; s < SEEDS; s++) {
        CU_ASSERT_EQUAL(r[SEEDS + s].similarity, 0.0);
        CU_ASSERT_EQUAL(r[2 * SEEDS + s].similarity, 0.0);
        CU_ASSERT_EQUAL(r[SEEDS + s].n_band, 3.0);
    }
    replay_bed_cleanup(&bed);
}

/* A fit from outside measures all requests: those that it knows are near. */
static void test_given_fit(void)
{
    replay_bed_t bed;
    akin_replay_result_t r[CASES * SEEDS];
    double rho[SEEDS];
    akin_error_t err = {{0}};
    init_apart(&bed);
    akin_calibration_t *calibration;
    const akin_calibration_params_t which = {0};
    CU_ASSERT_EQUAL_FATAL(
        akin_calibration_create(bed.trace, &which, &calibration, &err),
        AKIN_OK);
    const akin_fit_make_params_t make = {.calibration = calibration,
                                         .n_clusters = 3,
                                         .variant = AKIN_FIT_COUNT,
                                         .seed = 1};
    akin_fit_t fit;
    CU_ASSERT_EQUAL_FATAL(akin_fit_make(&make, &fit, NULL, &err), AKIN_OK);
    akin_replay_study_params_t params = params_of(&bed);
    params.fit = &fit;
    run(&params, r, rho);
    for (uint32_t s = 0; s < SEEDS; s++) {
        /* 32 orthogonal requests in 3 clusters: 1 / sqrt(11), or of 10. */
        CU_ASSERT(r[SEEDS + s].similarity >= 0.30);
        CU_ASSERT(r[SEEDS + s].similarity <= 0.32);
        CU_ASSERT(isnan(rho[s]));
    }
    akin_fit_cleanup(&fit);
    akin_calibration_destroy(calibration);
    replay_bed_cleanup(&bed);
}

static void test_sizes(void)
{
    replay_bed_t bed;
    init_apart(&bed);
    akin_replay_study_params_t params = params_of(&bed);
    akin_replay_study_set_sizes(&params);
    CU_ASSERT_EQUAL(params.replay.n_measured, 4 * 20);
    CU_ASSERT_EQUAL(params.replay.n_warmup, 3 * 3 * 4);
    params.replay.n_measured = 7;
    params.replay.n_warmup = 0;
    params.replay.rate = 1.0;
    akin_replay_study_set_sizes(&params);
    CU_ASSERT_EQUAL(params.replay.n_measured, 7);
    CU_ASSERT_EQUAL(params.replay.n_warmup, 3 * 20);
    const akin_fit_t fit = {0};
    params.fit = &fit;
    params.replay.n_measured = 0;
    akin_replay_study_set_sizes(&params);
    CU_ASSERT_EQUAL(params.replay.n_measured, 4 * 32);
    replay_bed_cleanup(&bed);
}

/* Equal seeds give equal results; each seed splits and orders anew, and the
 * next study's first seed is this one's second. */
static void test_seeds(void)
{
    replay_bed_t bed;
    akin_replay_result_t a[CASES * SEEDS], b[CASES * SEEDS];
    double rho_a[SEEDS], rho_b[SEEDS];
    init_drawn(&bed);
    akin_replay_study_params_t params = params_of(&bed);
    run(&params, a, rho_a);
    run(&params, b, rho_b);
    CU_ASSERT_EQUAL(memcmp(a, b, sizeof(a)), 0);
    CU_ASSERT_EQUAL(memcmp(rho_a, rho_b, sizeof(rho_a)), 0);
    CU_ASSERT(isfinite(rho_a[0]) && rho_a[0] != rho_a[1]);
    CU_ASSERT_NOT_EQUAL(a[0].tpot_mean_s, a[1].tpot_mean_s);
    params.seed = 2;
    run(&params, b, rho_b);
    for (uint32_t s = 0; s + 1 < SEEDS; s++) {
        CU_ASSERT_EQUAL(rho_b[s], rho_a[s + 1]);
        for (uint32_t c = 0; c < CASES; c++)
            CU_ASSERT_EQUAL(b[c * SEEDS + s].tpot_mean_s,
                            a[c * SEEDS + s + 1].tpot_mean_s);
    }
    replay_bed_cleanup(&bed);
}

/* A case sees the same requests, in the same order, beside any others. */
static void test_cases_apart(void)
{
    replay_bed_t bed;
    akin_replay_result_t a[CASES * SEEDS], b[SEEDS];
    double rho[SEEDS];
    init_drawn(&bed);
    akin_replay_study_params_t params = params_of(&bed);
    run(&params, a, NULL);
    params.n_cases = 1;
    for (uint32_t c = 0; c < CASES; c++) {
        params.cases = &cases[c];
        run(&params, b, rho);
        CU_ASSERT_EQUAL(memcmp(b, a + (size_t)c * SEEDS, sizeof(b)), 0);
        /* Nothing is fitted for load balancers. */
        CU_ASSERT_EQUAL(isnan(rho[0]) != 0, c == 0);
    }
    replay_bed_cleanup(&bed);
}

/* The requests to use all activate the same experts, the others do not. */
static void test_some(void)
{
    replay_bed_request_t requests[N];
    uint32_t of[N / 2];
    replay_bed_t bed;
    akin_replay_result_t r[SEEDS];
    for (uint32_t i = 0; i < N; i++) {
        requests[i] = (replay_bed_request_t){
            .n_prompt = 3, .n_decode = 4, .first = i % 2 != 0 ? 2 * i : 0};
        if (i % 2 == 0)
            of[i / 2] = i;
    }
    replay_bed_init_set(&bed, &shape, requests, N);
    akin_replay_study_params_t params = params_of(&bed);
    params.n_cases = 1;
    params.of = of;
    params.n_of = N / 2;
    params.n_fit = 3;
    run(&params, r, NULL);
    for (uint32_t s = 0; s < SEEDS; s++)
        CU_ASSERT_EQUAL(r[s].distinct, 2.0);
    replay_bed_cleanup(&bed);
}

typedef struct calls {
    uint32_t n;
    uint32_t stop_at;
} calls_t;

static int count_calls(void *arg, uint32_t n_done, uint32_t n_total)
{
    calls_t *calls = arg;
    CU_ASSERT_EQUAL(n_done, ++calls->n);
    CU_ASSERT_EQUAL(n_total, CASES * SEEDS);
    return n_done == calls->stop_at;
}

static void test_progress(void)
{
    replay_bed_t bed;
    akin_replay_result_t r[CASES * SEEDS];
    akin_error_t err = {{0}};
    calls_t calls = {0};
    init_drawn(&bed);
    akin_replay_study_params_t params = params_of(&bed);
    params.progress = count_calls;
    params.arg = &calls;
    run(&params, r, NULL);
    CU_ASSERT_EQUAL(calls.n, CASES * SEEDS);
    calls = (calls_t){.stop_at = 5};
    CU_ASSERT_EQUAL(akin_replay_study_run(&params, r, NULL, &err),
                    AKIN_ERR_CANCELED);
    CU_ASSERT_EQUAL(calls.n, 5);
    replay_bed_cleanup(&bed);
}

static void refuse(const akin_replay_study_params_t *params, const char *text)
{
    akin_replay_result_t r[CASES * SEEDS];
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_replay_study_run(params, r, NULL, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, text));
}

static void test_refused(void)
{
    replay_bed_t bed;
    init_drawn(&bed);
    akin_replay_study_params_t params = params_of(&bed);
    params.n_fit = N;
    refuse(&params, "32 of 32 requests for fitting leave none to measure");
    params.n_fit = 0;
    refuse(&params, "no requests for fitting");
    params.n_fit = 2; /* of 3 workers */
    refuse(&params, "2");
    params.n_fit = 21;
    refuse(&params, "3 workers x 4 in flight need more than 12 different "
                    "requests");
    replay_bed_cleanup(&bed);
}

static const runner_test_t tests[] = {
    {"splits are disjoint", test_disjoint},
    {"a given fit", test_given_fit},
    {"sizes", test_sizes},
    {"seeds", test_seeds},
    {"cases alone and together", test_cases_apart},
    {"some requests of a set", test_some},
    {"progress", test_progress},
    {"what is refused", test_refused},
};

RUNNER_MAIN("replay study", tests)
