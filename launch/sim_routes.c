/* Sim routes: the requests of a simulation, and what its routers learn from
 * other ones. */
#define _POSIX_C_SOURCE 200809L /* isatty */
#include "launch/sim.h"

#include "base/clock.h"
#include "base/rng.h"
#include "routing/replay_placement.h"
#include "routing/sim_fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The fit learns from requests far behind those of the runs. */
#define FIT_FIRST (UINT64_C(1) << 55)

/* Batch that a placement is made for. */
#define PLACEMENT_BATCH 16.0

enum { STREAM_HELD_OUT = 108, PROGRESS_REQUESTS = 64 };

typedef struct maker {
    akin_sim_job_t *job;
    uint32_t n_threads;
    uint32_t n; /* requests to make */
    int (*stop)(void);
    akin_trace_t *trace;
    uint32_t *records; /* of the trace: [n_fit] to learn from, then others */
    uint32_t n_records;
    uint32_t n_fit;
} maker_t;

static uint32_t count_of(const akin_sim_job_t *job, const char *key)
{
    return (uint32_t)akin_config_int(job->config, key);
}

static bool needs_counts(const akin_sim_job_t *job)
{
    bool needs = false;
    for (uint32_t c = 0; c < job->n_cases; c++)
        needs |= akin_sim_needs_counts(job->policies[c]);
    return needs;
}

static akin_fit_variant_t variant_of(const akin_sim_job_t *job)
{
    const char *name = akin_config_string(job->config, "fit.variant");
    return strcmp(name, "count") == 0 ? AKIN_FIT_COUNT : AKIN_FIT_COUNT_IDF;
}

static bool is_plain(const akin_sim_job_t *job)
{
    return strcmp(akin_config_string(job->config, "fit.clusters"), "plain") ==
           0;
}

/* ---- generated ---- */

static int note_progress(void *arg, uint32_t n_done)
{
    const maker_t *m = arg;
    if (n_done % PROGRESS_REQUESTS == 0 && isatty(STDERR_FILENO))
        (void)fprintf(stderr, "\rroutes of %u of %u requests\033[K", n_done,
                      m->n);
    return m->stop();
}

/* More requests than a run has would never be met. Where each one's domain is
 * drawn, a domain may have any number of them, so that there it would run out
 * first. */
static uint32_t n_requests_of(const akin_sim_job_t *job)
{
    const akin_sim_params_t *p = &job->params;
    uint64_t n = count_of(job, "routes.requests");
    const uint64_t n_run =
        p->n_total > 0 ? p->n_total : (uint64_t)p->n_warmup + p->n_measured;
    if (p->shares == NULL && n > n_run)
        n = n_run;
    if (n < job->workload.n_domains)
        n = job->workload.n_domains;
    return (uint32_t)n;
}

/* A domain has as much of the pool as it ever has of the mix. */
static akin_status_t generate(maker_t *m, akin_error_t *err)
{
    akin_sim_job_t *job = m->job;
    const akin_sim_params_t *p = &job->params;
    double shares[AKIN_ROUTE_MAX_DOMAINS];
    for (uint32_t d = 0; d < job->workload.n_domains; d++) {
        shares[d] = job->shares[d];
        if (p->later_shares != NULL && p->later_shares[d] > shares[d])
            shares[d] = p->later_shares[d];
    }
    m->n = n_requests_of(job);
    const akin_route_pool_params_t params = {
        .n_requests = m->n,
        .shares = shares,
        .shared_tokens = count_of(job, "workload.shared_prefix_tokens"),
        .counted_tokens = count_of(job, "routing.signature_tokens"),
        .has_counts = needs_counts(job),
        .max_bytes = akin_config_bytes(job->config, "routes.memory"),
        .n_threads = m->n_threads,
        .progress = note_progress,
        .arg = m,
    };
    const akin_status_t status =
        akin_route_pool_generate(job->generator, &params, &job->pool, err);
    if (isatty(STDERR_FILENO))
        (void)fprintf(stderr, "\r\033[K");
    return status == AKIN_ERR_INVALID
               ? akin_error_prefix(err, status,
                                   "routes.requests, routes.memory, "
                                   "workload.output_tokens: ")
               : status;
}

static akin_status_t fit_generated(const maker_t *m, akin_error_t *err)
{
    akin_sim_job_t *job = m->job;
    const akin_sim_fit_params_t sample = {
        .generator = job->generator,
        .workload = &job->workload,
        .n_layers = job->shape.n_layers,
        .n_experts = job->shape.n_experts,
        .top_k = job->shape.top_k,
        .n_requests = count_of(job, "fit.requests"),
        .shares = job->shares,
        .first = FIT_FIRST,
        .max_tokens = count_of(job, "fit.max_tokens"),
        .n_clusters = job->params.n_decode,
        .variant = variant_of(job),
        .is_plain = is_plain(job),
        .seed = job->params.seed,
    };
    return akin_sim_fit_make(&sample, &job->fit, err);
}

/* ---- of a trace ---- */

static akin_status_t check_shape(const maker_t *m, akin_error_t *err)
{
    const akin_trace_shape_t *of = akin_trace_shape(m->trace);
    const akin_model_shape_t *shape = &m->job->shape;
    if (of->n_layers == shape->n_layers && of->n_experts == shape->n_experts &&
        of->top_k == shape->top_k)
        return AKIN_OK;
    return akin_error_set(err, AKIN_ERR_INVALID,
                          "routes.trace: %s has %u layers x %u experts, top-%u,"
                          " but model %s has %u x %u, top-%u: set model to the "
                          "trace's",
                          m->job->workload.name, of->n_layers, of->n_experts,
                          of->top_k, shape->name, shape->n_layers,
                          shape->n_experts, shape->top_k);
}

/* Which records the fit learns from is the draw of a seed. */
static akin_status_t hold_out(maker_t *m, akin_error_t *err)
{
    const akin_sim_job_t *job = m->job;
    (void)akin_trace_records(m->trace, &m->n_records);
    m->records = calloc(m->n_records, sizeof(*m->records));
    if (m->records == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    for (uint32_t i = 0; i < m->n_records; i++)
        m->records[i] = i;
    if (!akin_sim_job_learns(job))
        return AKIN_OK;
    m->n_fit = count_of(job, "fit.requests");
    if (m->n_fit > m->n_records / 2)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "fit.requests: %u are more than half of the %u "
                              "of routes.trace: lower it",
                              m->n_fit, m->n_records);
    for (uint32_t i = 0; i < m->n_fit; i++) {
        const uint64_t j = i + akin_rng_below(job->params.seed, STREAM_HELD_OUT,
                                              i, m->n_records - i);
        const uint32_t record = m->records[j];
        m->records[j] = m->records[i];
        m->records[i] = record;
    }
    return AKIN_OK;
}

static akin_status_t fit_trace(const maker_t *m, akin_error_t *err)
{
    akin_sim_job_t *job = m->job;
    const akin_calibration_params_t params = {
        .records = m->records,
        .n_records = m->n_fit,
        .prompt_tokens = count_of(job, "routes.prompt_tokens"),
        .max_tokens = count_of(job, "fit.max_tokens"),
    };
    akin_calibration_t *calibration;
    akin_status_t status =
        akin_calibration_create(m->trace, &params, &calibration, err);
    if (status != AKIN_OK)
        return status;
    const akin_fit_make_params_t make = {
        .calibration = calibration,
        .n_clusters = job->params.n_decode,
        .variant = variant_of(job),
        .is_plain = is_plain(job),
        .seed = job->params.seed,
    };
    status = akin_fit_make(&make, &job->fit, NULL, err);
    akin_calibration_destroy(calibration);
    return status;
}

static int compare_records(const void *a_p, const void *b_p)
{
    const uint32_t a = *(const uint32_t *)a_p, b = *(const uint32_t *)b_p;
    return (a > b) - (a < b);
}

/* A run of more requests than the trace has takes it again and again, as far
 * apart as its own requests are. */
static akin_status_t check_times(const akin_sim_job_t *job, akin_error_t *err)
{
    const akin_route_pool_t *pool = job->pool;
    const uint64_t n = job->params.n_total;
    if (job->params.arrivals != AKIN_SIM_TRACE || pool->n_entries < 2 ||
        (n > 0 && n <= pool->n_entries))
        return AKIN_OK;
    for (uint32_t i = 1; i < pool->n_entries; i++)
        if (pool->entries[i].arrival_s < pool->entries[0].arrival_s ||
            pool->entries[i].arrival_s > pool->entries[0].arrival_s)
            return AKIN_OK;
    return akin_error_set(err, AKIN_ERR_INVALID,
                          "requests.arrivals: all %u requests of %s come at "
                          "the same time, so that none says when more would: "
                          "set requests.total to %u or less, or "
                          "requests.in_flight in place of arrivals",
                          pool->n_entries, job->workload.name, pool->n_entries);
}

static akin_status_t read_trace(maker_t *m, akin_error_t *err)
{
    akin_sim_job_t *job = m->job;
    akin_status_t status = akin_trace_open(job->workload.name, &m->trace, err);
    if (status == AKIN_OK)
        status = check_shape(m, err);
    if (status == AKIN_OK)
        status = hold_out(m, err);
    if (status != AKIN_OK)
        return status;
    qsort(m->records + m->n_fit, m->n_records - m->n_fit, sizeof(*m->records),
          compare_records);
    const akin_route_pool_trace_t params = {
        .records = m->records + m->n_fit,
        .n_records = m->n_records - m->n_fit,
        .prompt_tokens = count_of(job, "routes.prompt_tokens"),
        .counted_tokens = count_of(job, "routing.signature_tokens"),
        .has_counts = needs_counts(job),
        .max_bytes = akin_config_bytes(job->config, "routes.memory"),
    };
    status = akin_route_pool_read(m->trace, &params, &job->pool, err);
    if (status == AKIN_OK)
        return check_times(job, err);
    return status == AKIN_ERR_INVALID
               ? akin_error_prefix(
                     err, status,
                     "routes.trace, routes.prompt_tokens, routes.memory: ")
               : status;
}

/* ---- all ---- */

static bool is_default(const akin_sim_job_t *job, const char *key)
{
    return strcmp(akin_config_origin(job->config, key), "default") == 0;
}

/* Settings of the policies are the fit's own where it has them, as in a job. */
static akin_status_t read_fit(akin_sim_job_t *job, akin_error_t *err)
{
    const char *path = akin_config_string(job->config, "fit.file");
    akin_status_t status = akin_fit_read(path, &job->fit, err);
    if (status == AKIN_OK) {
        status =
            akin_fit_match(&job->fit, job->params.n_decode, job->shape.n_layers,
                           job->shape.n_experts, job->shape.top_k, err);
        if (status != AKIN_OK)
            (void)akin_error_prefix(err, status, "%s: ", path);
    }
    if (status != AKIN_OK)
        return akin_error_prefix(err, status, "fit.file: ");
    if (is_default(job, "routing.tau") && isfinite(job->fit.tau))
        job->params.tau = job->fit.tau;
    if (is_default(job, "routing.pull") && isfinite(job->fit.pull))
        job->params.pull = job->fit.pull;
    return AKIN_OK;
}

static akin_status_t make_fit(const maker_t *m, akin_error_t *err)
{
    if (!akin_sim_job_needs_fit(m->job))
        return AKIN_OK;
    if (!akin_sim_job_learns(m->job))
        return read_fit(m->job, err);
    return m->job->generator != NULL ? fit_generated(m, err)
                                     : fit_trace(m, err);
}

static akin_status_t place(akin_sim_job_t *job, akin_error_t *err)
{
    const akin_replay_placement_params_t params = {
        .name = job->placement,
        .fit = &job->fit,
        .n_workers = job->params.n_decode,
        .n_layers = job->shape.n_layers,
        .n_experts = job->shape.n_experts,
        .n_ranks = job->params.n_ranks,
        .n_replicas = job->n_replicas,
        .batch = PLACEMENT_BATCH,
    };
    if (job->params.n_ranks < 2)
        return AKIN_OK;
    return akin_replay_placement_create(&params, &job->placements, err);
}

akin_status_t akin_sim_job_prepare(akin_sim_job_t *job, uint32_t n_threads,
                                   int (*stop)(void), akin_error_t *err)
{
    maker_t m = {.job = job, .n_threads = n_threads, .stop = stop};
    const int64_t begin_ns = akin_clock_now_ns();
    akin_status_t status =
        job->generator != NULL ? generate(&m, err) : read_trace(&m, err);
    job->routes_s =
        (double)(akin_clock_now_ns() - begin_ns) / (double)AKIN_NS_PER_S;
    if (status == AKIN_OK)
        status = make_fit(&m, err);
    if (status == AKIN_OK)
        status = place(job, err);
    akin_trace_close(m.trace);
    free(m.records);
    return status;
}
