/* Refit: keeps the centroids of the workers near the traffic of the last
 * seconds.
 *
 * Two threads share it without a lock. `state` says whose turn it is: while it
 * is PENDING the fit's thread reads the pinned vectors and the present
 * centroids and writes `target`; at any other time it touches nothing. The
 * routing thread never waits for it. */
#include "routing/refit.h"

#include "base/clock.h"
#include "base/thread.h"
#include "routing/align.h"
#include "routing/kmeans.h"
#include "routing/window.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_NS (5 * AKIN_NS_PER_S)
#define PERIOD_NS (2500 * AKIN_NS_PER_MS)
#define MAX_ENTRIES 4096u
#define MAX_BYTES (256u << 20)
#define MAX_ROUNDS 50u

enum { IDLE, PENDING, FITTED, FAILED };

struct akini_refit {
    akini_refit_params_t params;
    size_t n_elements; /* of all centroids */
    akini_window_t window;
    const float *current;
    float *buffers[2]; /* the fit writes the one that is not current */
    float *target;
    /* Of the fit. Kept between fits: to give a hundred megabytes back would
     * hold up whichever thread meets a new page meanwhile. */
    float *points;       /* [window.capacity][dim] */
    float *fitted;       /* [n_workers][dim] */
    uint32_t *worker_of; /* [n_workers] */
    bool has_first;
    int64_t first_ns; /* of the first signature ever */
    int64_t start_ns; /* of the last fit */
    akin_policy_refits_t counts;
    atomic_int state;
    atomic_bool is_stopping;
    bool has_wake;
    bool has_thread;
    sem_t wake;
    pthread_t thread;
};

/* One round a call, so that the end of a job waits for a round at most and not
 * for fifty; the rounds themselves are the same. */
static akin_status_t fit_kmeans(void *arg, const akini_refit_input_t *input,
                                float *fitted)
{
    const akini_refit_t *refit = arg;
    const size_t n_bytes = refit->n_elements * sizeof(float);
    float *start = malloc(n_bytes);
    uint32_t *cluster = calloc(input->n_points, sizeof(*cluster));
    akin_status_t status = AKIN_OK;
    if (start == NULL || cluster == NULL)
        status = AKIN_ERR_NOMEM;
    akin_kmeans_params_t params = {
        .n_points = input->n_points,
        .n_clusters = input->n_workers,
        .dim = input->dim,
        .max_rounds = 1,
        .initial = input->current,
    };
    akin_kmeans_result_t result = {0};
    for (uint32_t round = 0;
         status == AKIN_OK && !result.has_converged && round < MAX_ROUNDS;
         round++) {
        if (atomic_load_explicit(&refit->is_stopping, memory_order_relaxed)) {
            status = AKIN_ERR_CANCELED;
            break;
        }
        if (round > 0) {
            memcpy(start, fitted, n_bytes);
            params.initial = start;
        }
        status = akin_kmeans_fit(&params, input->points, fitted, cluster,
                                 &result, NULL);
    }
    free(cluster);
    free(start);
    return status;
}

/* Give the new centroids to the workers whose old ones they resemble. What a
 * fit of one's own wrote may be anything, so it is looked at first. */
static akin_status_t align(const akini_refit_t *refit)
{
    const float *fitted = refit->fitted;
    uint32_t *worker_of = refit->worker_of;
    const size_t dim = refit->params.dim;
    const uint32_t n_workers = refit->params.n_workers;
    for (size_t i = 0; i < refit->n_elements; i++)
        if (!isfinite(fitted[i]))
            return AKIN_ERR_INVALID;
    akin_status_t status = akin_align_centroids(
        refit->current, fitted, n_workers, dim, worker_of, NULL);
    if (status != AKIN_OK)
        return status;
    for (uint32_t i = 0; i < n_workers; i++)
        memcpy(refit->target + worker_of[i] * dim, fitted + i * dim,
               dim * sizeof(*fitted));
    return AKIN_OK;
}

/* On the fit's thread: the copy of the window is made here, because the routing
 * thread has no time for it. */
static void run_fit(akini_refit_t *refit)
{
    const akini_window_t *window = &refit->window;
    const size_t dim = refit->params.dim;
    for (uint32_t i = 0; i < window->n_pinned; i++)
        memcpy(refit->points + i * dim,
               akini_window_vector(window, window->pinned[i]),
               dim * sizeof(*refit->points));
    const akini_refit_input_t input = {
        .points = refit->points,
        .n_points = window->n_pinned,
        .n_workers = refit->params.n_workers,
        .dim = dim,
        .current = refit->current,
    };
    akin_status_t status =
        refit->params.fit(refit->params.fit_arg, &input, refit->fitted);
    if (status == AKIN_OK)
        status = align(refit);
    atomic_store_explicit(&refit->state, status == AKIN_OK ? FITTED : FAILED,
                          memory_order_release);
}

static void *fit_main(void *arg)
{
    akini_refit_t *refit = arg;
    akin_thread_set_name("akin-refit");
    for (;;) {
        while (sem_wait(&refit->wake) != 0 && errno == EINTR)
            continue;
        if (atomic_load_explicit(&refit->is_stopping, memory_order_relaxed))
            return NULL;
        run_fit(refit);
    }
}

/* Signals are the business of the threads that expect them. */
static akin_status_t start_thread(akini_refit_t *refit)
{
    if (sem_init(&refit->wake, 0, 0) != 0)
        return AKIN_ERR_NOMEM;
    refit->has_wake = true;
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    refit->has_thread =
        pthread_create(&refit->thread, NULL, fit_main, refit) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return refit->has_thread ? AKIN_OK : AKIN_ERR_NOMEM;
}

static uint32_t default_entries(const akini_refit_params_t *params)
{
    size_t fit_in = MAX_BYTES / sizeof(float) / params->dim;
    uint32_t n = fit_in < MAX_ENTRIES ? (uint32_t)fit_in : MAX_ENTRIES;
    return n < params->n_workers ? params->n_workers : n;
}

akin_status_t akini_refit_create(const akini_refit_params_t *params,
                                 akini_refit_t **refit_p)
{
    *refit_p = NULL;
    akini_refit_t *refit = calloc(1, sizeof(*refit));
    if (refit == NULL)
        return AKIN_ERR_NOMEM;
    refit->params = *params;
    if (params->window_ns == 0)
        refit->params.window_ns = WINDOW_NS;
    if (params->period_ns == 0)
        refit->params.period_ns = PERIOD_NS;
    if (params->fit == NULL) {
        refit->params.fit = fit_kmeans;
        refit->params.fit_arg = refit;
    }
    uint32_t n_entries = params->max_entries != 0 ? params->max_entries
                                                  : default_entries(params);
    refit->n_elements = params->n_workers * params->dim;
    refit->current = params->centroids;
    refit->counts.is_refitting = 1;
    for (int i = 0; i < 2; i++) {
        refit->buffers[i] = calloc(refit->n_elements, sizeof(float));
        if (refit->buffers[i] == NULL)
            goto err_destroy;
    }
    if (akini_window_init(&refit->window, n_entries, params->dim) != AKIN_OK)
        goto err_destroy;
    refit->points = calloc(n_entries, params->dim * sizeof(float));
    refit->fitted = calloc(refit->n_elements, sizeof(float));
    refit->worker_of = calloc(params->n_workers, sizeof(*refit->worker_of));
    if (refit->points == NULL || refit->fitted == NULL ||
        refit->worker_of == NULL)
        goto err_destroy;
    if (!params->is_inline && start_thread(refit) != AKIN_OK)
        goto err_destroy;
    *refit_p = refit;
    return AKIN_OK;

err_destroy:
    akini_refit_destroy(refit);
    return AKIN_ERR_NOMEM;
}

void akini_refit_destroy(akini_refit_t *refit)
{
    if (refit == NULL)
        return;
    if (refit->has_thread) {
        atomic_store_explicit(&refit->is_stopping, true, memory_order_relaxed);
        (void)sem_post(&refit->wake);
        (void)pthread_join(refit->thread, NULL);
    }
    if (refit->has_wake)
        (void)sem_destroy(&refit->wake);
    akini_window_cleanup(&refit->window);
    free(refit->points);
    free(refit->fitted);
    free(refit->worker_of);
    free(refit->buffers[0]);
    free(refit->buffers[1]);
    free(refit);
}

const float *akini_refit_install(akini_refit_t *refit, int64_t now_ns)
{
    int state = atomic_load_explicit(&refit->state, memory_order_acquire);
    if (state != FITTED && state != FAILED)
        return refit->current;
    int64_t begin_ns = refit->has_thread ? akin_clock_now_ns() : 0;
    if (state == FITTED) {
        refit->current = refit->target;
        refit->counts.n_installed++;
        refit->counts.installed_ns = now_ns;
    } else {
        refit->counts.n_failed++;
    }
    akini_window_unpin(&refit->window);
    atomic_store_explicit(&refit->state, IDLE, memory_order_relaxed);
    if (refit->has_thread) {
        int64_t took_ns = akin_clock_now_ns() - begin_ns;
        if (took_ns > refit->counts.max_install_ns)
            refit->counts.max_install_ns = took_ns;
    }
    return refit->current;
}

static bool is_zero(const float *signature, size_t dim)
{
    for (size_t i = 0; i < dim; i++)
        if (signature[i] != 0.0f)
            return false;
    return true;
}

static bool is_due(const akini_refit_t *refit, int64_t now_ns)
{
    if (atomic_load_explicit(&refit->state, memory_order_relaxed) != IDLE ||
        refit->window.n_entries < refit->params.n_workers ||
        now_ns - refit->first_ns < refit->params.window_ns)
        return false;
    return refit->counts.n_started == 0 ||
           now_ns - refit->start_ns >= refit->params.period_ns;
}

static void start_fit(akini_refit_t *refit, int64_t now_ns)
{
    refit->start_ns = now_ns;
    refit->counts.n_started++;
    refit->target = refit->current == refit->buffers[0] ? refit->buffers[1]
                                                        : refit->buffers[0];
    akini_window_pin(&refit->window);
    atomic_store_explicit(&refit->state, PENDING, memory_order_relaxed);
    if (refit->has_thread)
        (void)sem_post(&refit->wake); /* publishes the above */
    else
        run_fit(refit);
}

void akini_refit_note(akini_refit_t *refit, int64_t now_ns,
                      const float *signature)
{
    akini_window_drop(&refit->window, now_ns - refit->params.window_ns);
    if (!is_zero(signature, refit->params.dim)) {
        if (!refit->has_first)
            refit->first_ns = now_ns;
        refit->has_first = true;
        akini_window_append(&refit->window, now_ns, signature);
    }
    if (is_due(refit, now_ns))
        start_fit(refit, now_ns);
}

akin_policy_refits_t akini_refit_counts(const akini_refit_t *refit)
{
    return refit->counts;
}
