/* Refit: when fits start, what they see, and what becomes of their result. */
#include "runner.h"

#include "routing/refit.h"

#include "base/rng.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { K = 2, DIM = 3, WINDOW = 100, PERIOD = 50, MAX_POINTS = 512 };

/* What a played fit saw, and what it is to do. */
typedef struct played_fit {
    uint32_t n_calls;
    uint32_t n_points;
    float points[MAX_POINTS * DIM];
    float current[K * DIM];
    akin_status_t status;
    float fitted[K * DIM];
} played_fit_t;

static akin_status_t play(void *arg, const akini_refit_input_t *input,
                          float *fitted)
{
    played_fit_t *played = arg;
    played->n_calls++;
    played->n_points = input->n_points;
    if (input->n_points <= MAX_POINTS)
        memcpy(played->points, input->points,
               input->n_points * DIM * sizeof(float));
    memcpy(played->current, input->current, sizeof(played->current));
    memcpy(fitted, played->fitted, sizeof(played->fitted));
    return played->status;
}

static const float first[K * DIM] = {1, 0, 0, 0, 1, 0};
static const float along_x[DIM] = {1, 0, 0}, along_y[DIM] = {0, 1, 0};
static const float zero[DIM] = {0};

static akini_refit_t *make(played_fit_t *played)
{
    const akini_refit_params_t params = {
        .n_workers = K,
        .dim = DIM,
        .centroids = first,
        .window_ns = WINDOW,
        .period_ns = PERIOD,
        .is_inline = 1,
        .fit = play,
        .fit_arg = played,
    };
    akini_refit_t *refit = NULL;
    CU_ASSERT_EQUAL_FATAL(akini_refit_create(&params, &refit), AKIN_OK);
    return refit;
}

/* As the router does for one request. */
static const float *request(akini_refit_t *refit, int64_t now_ns,
                            const float *signature)
{
    const float *centroids = akini_refit_install(refit, now_ns);
    akini_refit_note(refit, now_ns, signature);
    return centroids;
}

static void test_first_start(void)
{
    played_fit_t played = {.fitted = {1, 0, 0, 0, 1, 0}};
    akini_refit_t *refit = make(&played);
    /* The clock of the first signature starts with one that is not zero. */
    (void)request(refit, 1000, zero);
    (void)request(refit, 1050, along_x);
    (void)request(refit, 1149, along_y);
    CU_ASSERT_EQUAL(played.n_calls, 0);
    /* Exactly a window after it: the first entry is at the edge and stays. */
    (void)request(refit, 1150, zero);
    CU_ASSERT_EQUAL(played.n_calls, 1);
    CU_ASSERT_EQUAL(played.n_points, 2);
    CU_ASSERT_EQUAL(memcmp(played.points, along_x, sizeof(along_x)), 0);
    CU_ASSERT_EQUAL(memcmp(played.current, first, sizeof(first)), 0);
    akini_refit_destroy(refit);
}

static void test_edge_passes(void)
{
    played_fit_t played = {.fitted = {1, 0, 0, 0, 1, 0}};
    akini_refit_t *refit = make(&played);
    (void)request(refit, 1050, along_x);
    (void)request(refit, 1100, along_y);
    /* One nanosecond later it is gone, and one entry is less than K. */
    (void)request(refit, 1151, zero);
    CU_ASSERT_EQUAL(played.n_calls, 0);
    (void)request(refit, 1152, along_y);
    CU_ASSERT_EQUAL(played.n_calls, 1);
    CU_ASSERT_EQUAL(played.n_points, 2);
    CU_ASSERT_EQUAL(memcmp(played.points, along_y, sizeof(along_y)), 0);
    akini_refit_destroy(refit);
}

static void test_period(void)
{
    played_fit_t played = {.fitted = {1, 0, 0, 0, 1, 0}};
    akini_refit_t *refit = make(&played);
    (void)request(refit, 0, along_x);
    (void)request(refit, 100, along_y);
    CU_ASSERT_EQUAL(played.n_calls, 1);
    (void)request(refit, 149, along_y);
    CU_ASSERT_EQUAL(played.n_calls, 1);
    (void)request(refit, 150, along_y);
    CU_ASSERT_EQUAL(played.n_calls, 2);
    (void)request(refit, 199, along_y);
    CU_ASSERT_EQUAL(played.n_calls, 2);
    CU_ASSERT_EQUAL(akini_refit_counts(refit).n_started, 2);
    CU_ASSERT_EQUAL(akini_refit_counts(refit).n_installed, 2);
    akini_refit_destroy(refit);
}

/* The fitted centroids come in any order and go to the workers whose old ones
 * they resemble, by the request after the one that started the fit. */
static void test_install(void)
{
    played_fit_t played = {.fitted = {0, 0.8f, 0.6f, 0.6f, 0, 0.8f}};
    akini_refit_t *refit = make(&played);
    (void)request(refit, 0, along_x);
    const float *centroids = request(refit, 100, along_y);
    CU_ASSERT_EQUAL(memcmp(centroids, first, sizeof(first)), 0);
    CU_ASSERT_EQUAL(akini_refit_counts(refit).n_installed, 0);
    centroids = request(refit, 101, along_y);
    CU_ASSERT_EQUAL(memcmp(centroids, played.fitted + DIM, sizeof(zero)), 0);
    CU_ASSERT_EQUAL(memcmp(centroids + DIM, played.fitted, sizeof(zero)), 0);
    akin_policy_refits_t counts = akini_refit_counts(refit);
    CU_ASSERT_EQUAL(counts.n_installed, 1);
    CU_ASSERT_EQUAL(counts.installed_ns, 101);
    CU_ASSERT_EQUAL(counts.max_install_ns, 0);
    /* The next fit starts from them. */
    (void)request(refit, 150, along_y);
    CU_ASSERT_EQUAL(memcmp(played.current, played.fitted + DIM, sizeof(zero)),
                    0);
    akini_refit_destroy(refit);
}

static void test_failed(void)
{
    played_fit_t played = {.status = AKIN_ERR_NOMEM,
                           .fitted = {0, 0, 1, 0, 1, 0}};
    akini_refit_t *refit = make(&played);
    (void)request(refit, 0, along_x);
    (void)request(refit, 100, along_y);
    const float *centroids = request(refit, 149, along_y);
    CU_ASSERT_EQUAL(memcmp(centroids, first, sizeof(first)), 0);
    CU_ASSERT_EQUAL(akini_refit_counts(refit).n_failed, 1);
    CU_ASSERT_EQUAL(played.n_calls, 1);
    /* Retried a period after its start; numbers that are none fail, too. */
    played.status = AKIN_OK;
    played.fitted[2] = NAN;
    (void)request(refit, 150, along_y);
    CU_ASSERT_EQUAL(played.n_calls, 2);
    centroids = request(refit, 151, along_y);
    CU_ASSERT_EQUAL(memcmp(centroids, first, sizeof(first)), 0);
    CU_ASSERT_EQUAL(akini_refit_counts(refit).n_failed, 2);
    played.fitted[2] = 0.0f;
    (void)request(refit, 200, along_y);
    (void)request(refit, 201, along_y);
    akin_policy_refits_t counts = akini_refit_counts(refit);
    CU_ASSERT_EQUAL(counts.n_started, 3);
    CU_ASSERT_EQUAL(counts.n_failed, 2);
    CU_ASSERT_EQUAL(counts.n_installed, 1);
    CU_ASSERT_EQUAL(counts.installed_ns, 201);
    akini_refit_destroy(refit);
}

/* ALGORITHMS.md 4 written once more, with lists that are searched from end to
 * end. */
static void test_schedule(void)
{
    enum { N = 4000 };
    static int64_t times[N];
    static float vectors[N][DIM];
    played_fit_t played = {.fitted = {1, 0, 0, 0, 1, 0}};
    akini_refit_t *refit = make(&played);
    uint32_t n_kept = 0, n_expected = 0;
    int64_t now = 0, first_seen = -1, last_start = INT64_MIN / 2;
    int n_wrong = 0;
    for (uint64_t i = 0; i < N; i++) {
        /* Bursts, and gaps longer than the window. */
        now += (int64_t)akin_rng_below(
            11, 0, i, akin_rng_below(11, 1, i, 50) == 0 ? 300 : 7);
        float v[DIM] = {(float)i + 1.0f, 0, 0};
        if (akin_rng_below(11, 2, i, 4) == 0)
            v[0] = 0.0f;
        else if (first_seen < 0)
            first_seen = now;
        if (v[0] != 0.0f) {
            times[n_kept] = now;
            memcpy(vectors[n_kept++], v, sizeof(v));
        }
        uint32_t n_in = 0;
        uint32_t oldest = n_kept;
        for (uint32_t j = n_kept; j > 0; j--)
            if (times[j - 1] >= now - WINDOW) {
                n_in++;
                oldest = j - 1;
            }
        bool is_due = n_in >= K && now - first_seen >= WINDOW &&
                      now - last_start >= PERIOD;
        (void)request(refit, now, v);
        if (is_due) {
            last_start = now;
            n_expected++;
            n_wrong += played.n_points != n_in;
            n_wrong +=
                memcmp(played.points, vectors[oldest], n_in * sizeof(v)) != 0;
        }
        n_wrong += played.n_calls != n_expected;
    }
    CU_ASSERT_EQUAL(n_wrong, 0);
    CU_ASSERT(n_expected > 100);
    akini_refit_destroy(refit);
}

/* A full window keeps the latest. */
static void test_cap(void)
{
    played_fit_t played = {.fitted = {1, 0, 0, 0, 1, 0}};
    akini_refit_params_t params = {
        .n_workers = K,
        .dim = DIM,
        .centroids = first,
        .window_ns = WINDOW,
        .period_ns = PERIOD,
        .max_entries = 5,
        .is_inline = 1,
        .fit = play,
        .fit_arg = &played,
    };
    akini_refit_t *refit = NULL;
    CU_ASSERT_EQUAL_FATAL(akini_refit_create(&params, &refit), AKIN_OK);
    for (int64_t t = 0; t <= 100; t += 10) {
        const float v[DIM] = {(float)t + 1.0f, 0, 0};
        (void)request(refit, t, v);
    }
    CU_ASSERT_EQUAL(played.n_points, 5);
    for (int i = 0; i < 5; i++)
        CU_ASSERT_EQUAL(played.points[i * DIM], 61.0f + 10.0f * (float)i);
    akini_refit_destroy(refit);
    akini_refit_destroy(NULL);
}

/* With the real fit: two heaps of signatures, off the first centroids. */
static void test_kmeans(void)
{
    const float heaps[K * DIM] = {0.8f, 0, 0.6f, 0, 0.8f, 0.6f};
    const akini_refit_params_t params = {
        .n_workers = K,
        .dim = DIM,
        .centroids = first,
        .window_ns = WINDOW,
        .is_inline = 1,
    };
    akini_refit_t *refit = NULL;
    CU_ASSERT_EQUAL_FATAL(akini_refit_create(&params, &refit), AKIN_OK);
    for (int64_t t = 0; t <= 101; t++)
        (void)request(refit, t, heaps + (t % K) * DIM);
    const float *centroids = akini_refit_install(refit, 101);
    CU_ASSERT_EQUAL(akini_refit_counts(refit).n_installed, 1);
    for (int i = 0; i < K * DIM; i++)
        CU_ASSERT_DOUBLE_EQUAL(centroids[i], heaps[i], 1e-6);
    akini_refit_destroy(refit);
}

static const runner_test_t tests[] = {
    {"first start", test_first_start},
    {"edge passes", test_edge_passes},
    {"period", test_period},
    {"install", test_install},
    {"failed", test_failed},
    {"schedule", test_schedule},
    {"cap", test_cap},
    {"k-means", test_kmeans},
};

RUNNER_MAIN("refit", tests)
