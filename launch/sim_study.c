/* Sim study: the runs of all policies and seeds, several at a time. */
#define _POSIX_C_SOURCE 200809L /* isatty, clock_gettime */
#include "launch/sim.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Runs that threads take one after another. Every result has its own place, so
 * that their order does not matter. */
typedef struct study {
    akin_sim_job_t *job;
    int (*stop)(void);
    pthread_mutex_t lock; /* of all below */
    uint32_t next;
    uint64_t n_done;      /* measured requests */
    uint32_t failed;      /* the first run that did; UINT32_MAX: none */
    akin_status_t status; /* of that */
    akin_error_t err;
    int is_shown;
    int64_t begin_ns;
} study_t;

typedef struct run_progress {
    study_t *study;
    uint32_t index;
    uint32_t n_done; /* of the run */
} run_progress_t;

static double seconds_since(int64_t begin_ns)
{
    return (double)(akin_clock_now_ns() - begin_ns) / (double)AKIN_NS_PER_S;
}

int64_t akin_sim_processor_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * AKIN_NS_PER_S + (int64_t)now.tv_nsec;
}

static int note_progress(void *arg, uint32_t n_done)
{
    run_progress_t *run = arg;
    study_t *study = run->study;
    const akin_sim_job_t *job = study->job;
    (void)pthread_mutex_lock(&study->lock);
    const uint64_t before = study->n_done;
    study->n_done += n_done - run->n_done;
    run->n_done = n_done;
    const double all =
        (double)job->params.n_measured * job->n_cases * job->n_seeds;
    const double done = (double)study->n_done;
    if (study->is_shown && study->n_done > before)
        (void)fprintf(stderr, "\r%.0f of %.0f requests, %.0f s left\033[K",
                      done, all,
                      seconds_since(study->begin_ns) * (all - done) / done);
    /* Those before a failed run go on: the error is that of the first one,
     * whichever thread is faster. */
    const int is_needless = study->failed < run->index;
    (void)pthread_mutex_unlock(&study->lock);
    return study->stop() || is_needless;
}

/* The first seed's run of every policy is watched. */
static akin_status_t watch(akin_sim_job_t *job, uint32_t which,
                           akin_sim_params_t *params, akin_error_t *err)
{
    const akin_status_t status =
        akin_load_watch_create(params->n_decode, job->shape.n_layers,
                               job->shape.n_experts, &job->watches[which]);
    params->watch = job->watches[which];
    return status == AKIN_OK ? status
                             : akin_error_set(err, status, "out of memory");
}

static void run_one(study_t *study, uint32_t index)
{
    akin_sim_job_t *job = study->job;
    const uint32_t which = index / job->n_seeds;
    const uint32_t seed = index % job->n_seeds;
    akin_error_t err = {{0}};
    run_progress_t progress = {.study = study, .index = index};
    akin_sim_params_t params = job->params;
    const int64_t begin_ns = akin_sim_processor_ns();
    akin_status_t status = AKIN_OK;
    params.policy = job->policies[which];
    params.fit = akin_policy_needs_fit(params.policy) ? &job->fit : NULL;
    params.seed += seed;
    params.pool = job->pool;
    params.placements = job->placements;
    params.progress = note_progress;
    params.arg = &progress;
    if (seed == 0 && job->is_watched)
        status = watch(job, which, &params, &err);
    if (status == AKIN_OK)
        status = akin_sim_run(&params, &job->results[index], &err);
    job->run_s[index] =
        (double)(akin_sim_processor_ns() - begin_ns) / (double)AKIN_NS_PER_S;
    (void)pthread_mutex_lock(&study->lock);
    if (status != AKIN_OK && index < study->failed) {
        study->failed = index;
        study->status = status;
        (void)akin_error_set(&study->err, status, "%s: %s", params.policy,
                             err.text);
    }
    study->n_done += job->params.n_measured - progress.n_done;
    (void)pthread_mutex_unlock(&study->lock);
}

static void *run_thread(void *arg)
{
    study_t *study = arg;
    const uint32_t n = study->job->n_cases * study->job->n_seeds;
    for (;;) {
        (void)pthread_mutex_lock(&study->lock);
        const uint32_t index =
            study->status == AKIN_OK && !study->stop() ? study->next++ : n;
        (void)pthread_mutex_unlock(&study->lock);
        if (index >= n)
            return NULL;
        run_one(study, index);
    }
}

akin_status_t akin_sim_job_run(akin_sim_job_t *job, uint32_t n_threads,
                               int (*stop)(void), akin_error_t *err)
{
    study_t study = {.job = job,
                     .stop = stop,
                     .failed = UINT32_MAX,
                     .status = AKIN_OK,
                     .is_shown = isatty(STDERR_FILENO),
                     .begin_ns = akin_clock_now_ns()};
    pthread_t threads[AKIN_SIM_MAX_THREADS];
    uint32_t n = 0;
    if (pthread_mutex_init(&study.lock, NULL) != 0)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    /* This thread works too: with no other the study takes longer. */
    while (n + 1 < n_threads &&
           pthread_create(&threads[n], NULL, run_thread, &study) == 0)
        n++;
    (void)run_thread(&study);
    for (uint32_t i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
    (void)pthread_mutex_destroy(&study.lock);
    if (study.is_shown)
        (void)fprintf(stderr, "\r\033[K");
    job->seconds = seconds_since(study.begin_ns);
    if (stop())
        return AKIN_ERR_CANCELED;
    *err = study.err;
    return study.status;
}
