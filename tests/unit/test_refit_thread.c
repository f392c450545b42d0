/* Refit on its own thread: decisions never wait for a fit, and a build with
 * ThreadSanitizer watches the hand-over. */
#include "planted_fit.h"
#include "runner.h"

#include "base/clock.h"
#include "routing/refit.h"

#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    N_WORKERS = 8,
    N_DECISIONS = 10000,
    MIN_INSTALLED = 3,
    N_KINDS = 64,
    K = 2,
    DIM = 4
};

static const planted_shape_t shape = {4, 32, 4, N_WORKERS};

static void nap(void)
{
    const struct timespec ms = {.tv_nsec = 1000000};
    (void)nanosleep(&ms, NULL);
}

/* 10,000 decisions at 5 ms of the requests' clock each, with up to 1,000
 * signatures in the window; then on until fits were installed under load. */
static void test_load(void)
{
    const uint32_t n_cells = shape.n_layers * shape.n_experts;
    static const uint8_t all[N_WORKERS] = {1, 1, 1, 1, 1, 1, 1, 1};
    akin_fit_t fit = planted_fit(&shape, N_WORKERS);
    const akin_policy_params_t params = {
        .n_workers = N_WORKERS,
        .n_layers = shape.n_layers,
        .n_experts = shape.n_experts,
        .top_k = shape.top_k,
        .fit = &fit,
        .tau = 0.1,
    };
    akin_policy_t *policy = NULL;
    CU_ASSERT_EQUAL_FATAL(akin_policy_create("eldr", &params, &policy, NULL),
                          AKIN_OK);
    uint16_t *counts = calloc(N_KINDS * n_cells, sizeof(*counts));
    CU_ASSERT_PTR_NOT_NULL_FATAL(counts);
    for (uint64_t i = 0; i < N_KINDS; i++)
        planted_counts(&shape, 9, i, 40, counts + i * n_cells);

    int64_t deadline_ns = akin_clock_now_ns() + 60 * AKIN_NS_PER_S;
    akin_policy_refits_t refits = {0};
    int n_wrong = 0;
    uint64_t id = 0;
    while (id < N_DECISIONS || (refits.n_installed < MIN_INSTALLED &&
                                akin_clock_now_ns() < deadline_ns)) {
        const akin_policy_request_t request = {
            .id = id,
            .counts = counts + (id % N_KINDS) * n_cells,
            .n_tokens = 40,
            .now_ns = (int64_t)id * 5 * AKIN_NS_PER_MS,
        };
        uint32_t worker;
        n_wrong +=
            akin_policy_decide(policy, &request, all, &worker) != AKIN_OK ||
            worker >= N_WORKERS;
        if (id >= 128)
            akin_policy_finish(policy, id - 128);
        id++;
        akin_policy_choice_t choice = akin_policy_last_choice(policy);
        n_wrong += choice.n_band < 1 || choice.n_band > N_WORKERS ||
                   !(choice.similarity > 0.0 && choice.similarity < 1.001);
        refits = akin_policy_refits(policy);
        n_wrong += refits.n_started < refits.n_installed + refits.n_failed ||
                   refits.n_started > refits.n_installed + refits.n_failed + 1;
        if (id >= N_DECISIONS)
            nap();
    }
    CU_ASSERT_EQUAL(n_wrong, 0);
    CU_ASSERT_EQUAL(refits.n_failed, 0);
    CU_ASSERT(refits.n_installed >= MIN_INSTALLED);
    printf(" %llu decisions, %llu fits, longest installation %.1f us ",
           (unsigned long long)id, (unsigned long long)refits.n_installed,
           (double)refits.max_install_ns / 1e3);
    akin_policy_destroy(policy);
    akin_fit_cleanup(&fit);
    free(counts);
}

/* A fit that lasts until it is told to end. */
typedef struct held_fit {
    sem_t has_begun;
    sem_t may_end;
    uint32_t n_points;
    float sum; /* of the points, when it may end */
} held_fit_t;

static akin_status_t hold(void *arg, const akini_refit_input_t *input,
                          float *fitted)
{
    held_fit_t *held = arg;
    (void)sem_post(&held->has_begun);
    (void)sem_wait(&held->may_end);
    held->n_points = input->n_points;
    held->sum = 0.0f;
    for (uint32_t i = 0; i < input->n_points; i++)
        held->sum += input->points[(size_t)i * input->dim];
    memcpy(fitted, input->current,
           input->n_workers * input->dim * sizeof(*fitted));
    return AKIN_OK;
}

/* Requests go on by the thousand while one fit holds its signatures. */
static void test_slow_fit(void)
{
    static const float centroids[K * DIM] = {1, 0, 0, 0, 0, 1, 0, 0};
    held_fit_t held = {.n_points = 0};
    (void)sem_init(&held.has_begun, 0, 0);
    (void)sem_init(&held.may_end, 0, 0);
    const akini_refit_params_t params = {
        .n_workers = K,
        .dim = DIM,
        .centroids = centroids,
        .window_ns = 100,
        .period_ns = 50,
        .max_entries = 64,
        .fit = hold,
        .fit_arg = &held,
    };
    akini_refit_t *refit = NULL;
    CU_ASSERT_EQUAL_FATAL(akini_refit_create(&params, &refit), AKIN_OK);
    int64_t now = 0;
    for (; now <= 100; now++) {
        const float v[DIM] = {(float)now, 1, 0, 0};
        CU_ASSERT_PTR_EQUAL(akini_refit_install(refit, now), centroids);
        akini_refit_note(refit, now, v);
    }
    (void)sem_wait(&held.has_begun);
    for (; now < 5000; now++) {
        const float v[DIM] = {-1, 1, 0, 0};
        CU_ASSERT_PTR_EQUAL(akini_refit_install(refit, now), centroids);
        akini_refit_note(refit, now, v);
    }
    CU_ASSERT_EQUAL(akini_refit_counts(refit).n_started, 1);
    (void)sem_post(&held.may_end);
    int64_t deadline_ns = akin_clock_now_ns() + 60 * AKIN_NS_PER_S;
    while (akini_refit_install(refit, now) == centroids &&
           akin_clock_now_ns() < deadline_ns)
        nap();
    CU_ASSERT_EQUAL(akini_refit_counts(refit).n_installed, 1);
    /* The 64 latest of 0..100: 37 + 38 + ... + 100. */
    CU_ASSERT_EQUAL(held.n_points, 64);
    CU_ASSERT_EQUAL(held.sum, 4384.0f);
    /* The next one is under way when all ends. */
    const float v[DIM] = {1, 1, 0, 0};
    akini_refit_note(refit, now, v);
    CU_ASSERT_EQUAL(akini_refit_counts(refit).n_started, 2);
    (void)sem_post(&held.may_end);
    akini_refit_destroy(refit);
    (void)sem_destroy(&held.has_begun);
    (void)sem_destroy(&held.may_end);
}

static const runner_test_t tests[] = {
    {"load", test_load},
    {"slow fit", test_slow_fit},
};

RUNNER_MAIN("refit thread", tests)
