/* replay: recorded requests on a pool of workers, under several policies. */
#include "launch/replay.h"

#include "base/clock.h"
#include "launch/command.h"
#include "launch/replay_print.h"
#include "routing/replay_placement.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Of all requests, what the fits take where --split does not say. */
#define SPLIT_SHARE 0.4
#define MS_PER_S 1e3

static volatile sig_atomic_t was_stopped;

static void stop(int signal_number)
{
    (void)signal_number;
    was_stopped = 1;
}

/* The first signal ends the study after its present replay, a second one the
 * process. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = stop,
                               .sa_flags = (int)SA_RESETHAND};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

typedef struct progress {
    int is_shown;
    int64_t begin_ns;
} progress_t;

static int note_progress(void *arg, uint32_t n_done, uint32_t n_total)
{
    const progress_t *p = arg;
    if (p->is_shown) {
        double past_s =
            (double)(akin_clock_now_ns() - p->begin_ns) / (double)AKIN_NS_PER_S;
        (void)fprintf(stderr, "\r%u/%u replays, %.0f s left\033[K", n_done,
                      n_total, past_s * (n_total - n_done) / n_done);
    }
    return was_stopped;
}

static akin_status_t open_trace(akin_replay_job_t *job, akin_error_t *err)
{
    const akin_replay_options_t *o = &job->options;
    akin_status_t status = akin_trace_open(o->path, &job->trace, err);
    if (status != AKIN_OK)
        return status;
    status = akin_replay_set_create(job->trace, o->prompt_tokens, o->min_tokens,
                                    &job->set, err);
    if (status != AKIN_OK)
        return akin_error_prefix(err, status, "%s: ", o->path);
    if (o->prompt_tokens > 0 && job->set->n_stand_in == 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: all requests know their prompts: leave "
                              "--prompt-tokens out",
                              o->path);
    job->stands_in =
        job->set->n_stand_in > 0 || akin_trace_prompt_stands_in(job->trace);
    return AKIN_OK;
}

static akin_status_t read_fit(akin_replay_job_t *job, akin_error_t *err)
{
    const akin_replay_options_t *o = &job->options;
    const akin_trace_shape_t *shape = &job->set->shape;
    akin_status_t status = akin_fit_read(o->fit_path, &job->fit, err);
    if (status != AKIN_OK)
        return status;
    status = akin_fit_match(&job->fit, o->n_workers, shape->n_layers,
                            shape->n_experts, shape->top_k, err);
    return status == AKIN_OK
               ? status
               : akin_error_prefix(err, status, "%s: ", o->fit_path);
}

static int needs_fit(const akin_replay_job_t *job)
{
    for (uint32_t c = 0; c < job->n_cases; c++)
        if (akin_policy_needs_fit(job->cases[c].policy) ||
            (job->cases[c].placement != NULL &&
             akin_replay_placement_needs_fit(job->cases[c].placement)))
            return 1;
    return 0;
}

/* Requests that fit. They are split off even if no policy needs a fit, so that
 * all calls with a seed measure the same requests. */
static uint32_t split_of(const akin_replay_job_t *job)
{
    const akin_replay_options_t *o = &job->options;
    if (o->fit_path != NULL)
        return 0;
    return o->split > 0 ? o->split
                        : (uint32_t)(SPLIT_SHARE * job->set->n_requests);
}

/* The options that a study cannot be made with, in the options' words. */
static akin_status_t check_sizes(const akin_replay_job_t *job,
                                 akin_error_t *err)
{
    const akin_replay_options_t *o = &job->options;
    const uint32_t n = job->set->n_requests;
    const uint32_t n_fit = job->study.n_fit;
    const uint64_t pool = (uint64_t)o->n_workers * o->in_flight;
    if (o->split > 0 && n_fit >= n)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "--split %u: %s has %u requests (%u more are too "
                              "short), so none would be left to measure",
                              o->split, o->path, n, job->set->n_short);
    if (o->fit_path == NULL && needs_fit(job) && n_fit < o->n_workers)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%u workers need %u requests or more to fit, but "
                              "%u of the %u are split off: lower --workers or "
                              "raise --split",
                              o->n_workers, o->n_workers, n_fit, n);
    if (o->rate <= 0.0 && pool >= n - n_fit)
        return akin_error_set(
            err, AKIN_ERR_INVALID,
            "%u workers x %u in flight need more than %llu different requests, "
            "as none may run beside its copy, but of the %u in the trace %u "
            "fit and %u are measured: lower --workers, --in-flight or --split",
            o->n_workers, o->in_flight, (unsigned long long)pool, n, n_fit,
            n - n_fit);
    if (o->rate <= 0.0 && o->max_batch != 0 && o->max_batch < o->in_flight)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "--max-batch %u leaves no room for --in-flight "
                              "%u",
                              o->max_batch, o->in_flight);
    return AKIN_OK;
}

static akin_status_t plan(akin_replay_job_t *job, akin_error_t *err)
{
    const akin_replay_options_t *o = &job->options;
    const akin_trace_shape_t *shape = &job->set->shape;
    const double cells = (double)shape->n_layers * shape->n_experts;
    job->study = (akin_replay_study_params_t){
        .trace = job->trace,
        .set = job->set,
        .prompt_tokens = o->prompt_tokens,
        .cases = job->cases,
        .n_cases = job->n_cases,
        .n_seeds = o->n_seeds,
        .seed = o->seed,
        .n_fit = split_of(job),
        .fit = o->fit_path != NULL ? &job->fit : NULL,
        .variant = o->variant,
        .n_ranks = o->n_ranks,
        .n_replicas = o->n_replicas,
        .replay =
            {
                .n_workers = o->n_workers,
                .in_flight = o->in_flight,
                .rate = o->rate,
                .max_batch = o->max_batch,
                .n_measured = o->n_measured,
                .cost =
                    {
                        .t0_s = o->step_ms[0] / MS_PER_S,
                        .a_s = o->step_ms[1] / MS_PER_S / cells,
                        .b_s = o->step_ms[2] / MS_PER_S,
                    },
            },
    };
    akin_status_t status = check_sizes(job, err);
    if (status != AKIN_OK)
        return status;
    akin_replay_study_set_sizes(&job->study);
    job->results =
        calloc((size_t)job->n_cases * o->n_seeds, sizeof(*job->results));
    job->rho = calloc(o->n_seeds, sizeof(*job->rho));
    if (job->results == NULL || job->rho == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    return AKIN_OK;
}

static akin_status_t create_watches(akin_replay_job_t *job, akin_error_t *err)
{
    const akin_trace_shape_t *shape = &job->set->shape;
    for (uint32_t c = 0; c < job->n_cases; c++) {
        const akin_status_t status =
            akin_load_watch_create(job->options.n_workers, shape->n_layers,
                                   shape->n_experts, &job->watches[c]);
        if (status != AKIN_OK)
            return akin_error_set(err, status, "out of memory");
    }
    job->study.watches = job->watches;
    return AKIN_OK;
}

static akin_status_t run(akin_replay_job_t *job, akin_error_t *err)
{
    progress_t progress = {
        .is_shown = isatty(STDERR_FILENO),
        .begin_ns = akin_clock_now_ns(),
    };
    job->study.progress = note_progress;
    job->study.arg = &progress;
    catch_signals();
    akin_status_t status =
        akin_replay_study_run(&job->study, job->results, job->rho, err);
    job->seconds = (double)(akin_clock_now_ns() - progress.begin_ns) /
                   (double)AKIN_NS_PER_S;
    if (progress.is_shown)
        (void)fprintf(stderr, "\r\033[K");
    return status;
}

static void cleanup(akin_replay_job_t *job)
{
    for (uint32_t c = 0; c < job->n_cases; c++)
        akin_load_watch_destroy(job->watches[c]);
    free(job->results);
    free(job->rho);
    akin_fit_cleanup(&job->fit);
    akin_replay_set_destroy(job->set);
    akin_trace_close(job->trace);
}

int akin_command_replay(int argc, char **argv)
{
    akin_replay_job_t job = {.trace = NULL};
    akin_error_t err = {{0}};
    if (akin_replay_options_parse(argc, argv, &job.options) != 0)
        return AKIN_EXIT_USAGE;
    akin_status_t status = open_trace(&job, &err);
    if (status == AKIN_OK && job.options.fit_path != NULL)
        status = read_fit(&job, &err);
    if (status == AKIN_OK)
        status = akin_replay_job_set_cases(&job, &err);
    if (status == AKIN_OK)
        status = plan(&job, &err);
    if (status == AKIN_OK && job.options.json)
        status = create_watches(&job, &err);
    if (status == AKIN_OK)
        status = run(&job, &err);
    int code;
    if (status == AKIN_ERR_CANCELED) {
        (void)fprintf(stderr, "akin: stopped by a signal; nothing is shown\n");
        code = AKIN_EXIT_STOPPED;
    } else if (status != AKIN_OK) {
        code = akin_command_fail(status, &err);
    } else if (job.options.json) {
        code = akin_command_print_json(akin_replay_json(&job));
    } else {
        code = akin_replay_print_table(&job);
    }
    cleanup(&job);
    return code;
}
