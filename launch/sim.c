/* akin sim: compare policies on workers that need not be there. */
#define _POSIX_C_SOURCE 200809L /* sigaction */
#include "launch/sim.h"

#include "base/clock.h"
#include "launch/command.h"
#include "routing/replay_placement.h"
#include "routing/sim_fit.h"

#include <argp.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    OPT_SET = 256,
    OPT_THREADS,
    OPT_KEYS,
    OPT_COST,
    OPT_JSON,
    MAX_SETTINGS = 64
};

#define MAX_THREADS 256u

/* The fit learns from requests far behind those of all seeds, and seeds lie far
 * from each other. */
#define FIT_FIRST (UINT64_C(1) << 55)
#define SEED_REQUESTS (UINT64_C(1) << 32)

/* Batch that a placement is made for. */
#define PLACEMENT_BATCH 16.0

static volatile sig_atomic_t was_stopped;

static void stop(int signal_number)
{
    (void)signal_number;
    was_stopped = 1;
}

/* The first signal ends the simulation, a second one the process. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = stop,
                               .sa_flags = (int)SA_RESETHAND};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

typedef struct options {
    const char *path;
    const char *settings[MAX_SETTINGS];
    uint32_t n_settings;
    uint32_t n_threads;
    int keys;
    int cost;
    int json;
} options_t;

static const struct argp_option arguments[] = {
    {"config", 'c', "SIM", 0, "Simulation file; --keys lists its keys", 0},
    {"set", OPT_SET, "KEY=VALUE", 0,
     "Change a key of the file; may be repeated", 0},
    {"threads", OPT_THREADS, "N", 0,
     "Runs at the same time (default 1); the table stays the same", 0},
    {"keys", OPT_KEYS, NULL, 0, "Show the keys and their values", 0},
    {"cost", OPT_COST, NULL, 0,
     "Tell on stderr what the simulation itself cost per event and decision",
     0},
    {"json", OPT_JSON, NULL, 0, "Print one JSON value", 0},
    {0}};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    char *end = NULL;
    switch (key) {
    case 'c':
        o->path = arg;
        break;
    case OPT_SET:
        if (o->n_settings == MAX_SETTINGS)
            argp_error(state, "--set: more than %d settings", MAX_SETTINGS);
        o->settings[o->n_settings++] = arg;
        break;
    case OPT_THREADS: {
        errno = 0;
        const long n = strtol(arg, &end, 10);
        if (errno != 0 || end == arg || *end != '\0' || n < 1 ||
            n > (long)MAX_THREADS)
            argp_error(state, "--threads %s: 1 to %u are possible", arg,
                       MAX_THREADS);
        o->n_threads = (uint32_t)n;
        break;
    }
    case OPT_KEYS:
        o->keys = 1;
        break;
    case OPT_COST:
        o->cost = 1;
        break;
    case OPT_JSON:
        o->json = 1;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "%s: the file is given with -c", arg);
        break;
    case ARGP_KEY_END:
        if (o->path == NULL && !o->keys)
            argp_error(state, "-c SIM is missing");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static akin_status_t read_config(const options_t *o, akin_config_t *config,
                                 akin_error_t *err)
{
    akin_status_t status = AKIN_OK;
    if (o->path != NULL)
        status = akin_config_read_file(config, o->path, err);
    for (uint32_t i = 0; i < o->n_settings && status == AKIN_OK; i++)
        status = akin_config_set(config, o->settings[i], err);
    return status == AKIN_OK && !o->keys ? akin_config_check(config, err)
                                         : status;
}

/* Runs that threads take one after another. Every result has its own place, so
 * that their order does not matter. */
typedef struct study {
    akin_sim_job_t *job;
    pthread_mutex_t lock; /* of all below */
    uint32_t next;
    uint64_t n_done; /* measured requests */
    akin_status_t status;
    akin_error_t err;
    int is_shown;
    int64_t begin_ns;
} study_t;

typedef struct run_progress {
    study_t *study;
    uint32_t n_done; /* of the run */
} run_progress_t;

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
    if (study->is_shown && study->n_done > before) {
        const double past_s = (double)(akin_clock_now_ns() - study->begin_ns) /
                              (double)AKIN_NS_PER_S;
        (void)fprintf(stderr, "\r%.0f of %.0f requests, %.0f s left\033[K",
                      done, all, past_s * (all - done) / done);
    }
    const int has_failed = study->status != AKIN_OK;
    (void)pthread_mutex_unlock(&study->lock);
    return was_stopped || has_failed;
}

static void run_one(study_t *study, uint32_t index)
{
    akin_sim_job_t *job = study->job;
    const uint32_t which = index / job->n_seeds;
    const uint32_t seed = index % job->n_seeds;
    akin_error_t err = {{0}};
    run_progress_t progress = {.study = study};
    akin_sim_params_t params = job->params;
    params.policy = job->policies[which];
    params.fit = akin_policy_needs_fit(params.policy) ? &job->fit : NULL;
    params.seed += seed;
    params.first = seed * SEED_REQUESTS;
    params.placements = job->placements;
    params.progress = note_progress;
    params.arg = &progress;
    const akin_status_t status =
        akin_sim_run(&params, &job->results[index], &err);
    (void)pthread_mutex_lock(&study->lock);
    if (status != AKIN_OK && study->status == AKIN_OK) {
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
            study->status == AKIN_OK && !was_stopped ? study->next++ : n;
        (void)pthread_mutex_unlock(&study->lock);
        if (index >= n)
            return NULL;
        run_one(study, index);
    }
}

static akin_status_t run(akin_sim_job_t *job, uint32_t n_threads,
                         akin_error_t *err)
{
    study_t study = {.job = job,
                     .status = AKIN_OK,
                     .is_shown = isatty(STDERR_FILENO),
                     .begin_ns = akin_clock_now_ns()};
    pthread_t threads[MAX_THREADS];
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
    job->seconds =
        (double)(akin_clock_now_ns() - study.begin_ns) / (double)AKIN_NS_PER_S;
    if (was_stopped)
        return AKIN_ERR_CANCELED;
    *err = study.err;
    return study.status;
}

static akin_status_t prepare(akin_sim_job_t *job, akin_error_t *err)
{
    const akin_config_t *c = job->config;
    const char *variant = akin_config_string(c, "fit.variant");
    const akin_sim_fit_params_t sample = {
        .generator = job->generator,
        .workload = &job->workload,
        .n_layers = job->shape.n_layers,
        .n_experts = job->shape.n_experts,
        .top_k = job->shape.top_k,
        .n_requests = (uint32_t)akin_config_int(c, "fit.requests"),
        .shares = job->params.shares,
        .first = FIT_FIRST,
        .max_tokens = (uint32_t)akin_config_int(c, "fit.max_tokens"),
        .n_clusters = job->params.n_decode,
        .variant = variant[5] == '\0' ? AKIN_FIT_COUNT : AKIN_FIT_COUNT_IDF,
        .seed = job->params.seed,
    };
    const akin_replay_placement_params_t place = {
        .name = job->placement,
        .fit = &job->fit,
        .n_workers = job->params.n_decode,
        .n_layers = job->shape.n_layers,
        .n_experts = job->shape.n_experts,
        .n_ranks = job->params.n_ranks,
        .n_replicas = job->n_replicas,
        .batch = PLACEMENT_BATCH,
    };
    akin_status_t status = AKIN_OK;
    if (akin_sim_job_needs_fit(job))
        status = akin_sim_fit_make(&sample, &job->fit, err);
    if (status == AKIN_OK && job->params.n_ranks > 1)
        status = akin_replay_placement_create(&place, &job->placements, err);
    return status;
}

static void print_cost(const akin_sim_job_t *job)
{
    for (uint32_t c = 0; c < job->n_cases; c++) {
        double events = 0.0, decisions = 0.0, decision_ns = 0.0;
        for (uint32_t s = 0; s < job->n_seeds; s++) {
            const akin_sim_result_t *r =
                &job->results[(size_t)c * job->n_seeds + s];
            events += (double)r->n_events;
            decisions += (double)r->n_decisions;
            decision_ns += (double)r->decision_ns;
        }
        (void)fprintf(stderr,
                      "%s: %.0f events, %.0f decisions of %.2f us each\n",
                      job->policies[c], events, decisions,
                      decisions > 0.0 ? decision_ns / decisions / 1e3 : 0.0);
    }
    (void)fprintf(stderr, "all: %.1f s\n", job->seconds);
}

static int finish(akin_status_t status, const akin_sim_job_t *job,
                  const options_t *o, const akin_error_t *err)
{
    if (status == AKIN_ERR_CANCELED) {
        (void)fprintf(stderr, "akin: stopped by a signal; nothing is shown\n");
        return AKIN_EXIT_STOPPED;
    }
    if (status != AKIN_OK)
        return akin_command_fail(status, err);
    if (o->cost)
        print_cost(job);
    return o->json ? akin_sim_print_json(job) : akin_sim_print_table(job);
}

int akin_command_sim(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        "-c SIM",
        "Compare policies on simulated prefill and decode workers of a "
        "modelled "
        "machine: Poisson arrivals, prefill queues, transfers, continuous "
        "batching, with every token's experts drawn. Times have the names and "
        "definitions of vLLM's benchmark. Equal files give equal bytes.",
        NULL,
        NULL,
        NULL};
    options_t o = {.n_threads = 1};
    akin_error_t err = {{0}};
    akin_config_t *config;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return AKIN_EXIT_USAGE;
    akin_status_t status =
        akin_config_create(akin_sim_rows, akin_sim_n_rows, &config);
    if (status != AKIN_OK)
        return akin_command_fail(status, &err);
    akin_sim_job_t job = {.path = o.path};
    status = read_config(&o, config, &err);
    int code = AKIN_EXIT_OK;
    if (status == AKIN_OK && o.keys) {
        status = akin_config_print(config, stdout);
    } else {
        catch_signals();
        if (status == AKIN_OK)
            status = akin_sim_job_init(&job, config, &err);
        job.params.clock_ns = o.cost ? akin_clock_now_ns : NULL;
        if (status == AKIN_OK)
            status = prepare(&job, &err);
        if (status == AKIN_OK)
            status = run(&job, o.n_threads, &err);
        code = finish(status, &job, &o, &err);
        status = AKIN_OK;
    }
    if (status != AKIN_OK)
        code = akin_command_fail(status, &err);
    akin_sim_job_cleanup(&job);
    akin_config_destroy(config);
    return code;
}
