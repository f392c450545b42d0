/* Stepper: one mailbox between the comm thread and the engine thread. Its
 * state says who owns the job; a semaphore lets the engine thread sleep. */
#include "roles/stepper.h"

#include "base/clock.h"
#include "base/fault_point.h"
#include "base/thread.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { JOB_FREE, JOB_SUBMITTED, JOB_DONE };

struct akin_stepper {
    akin_stepper_params_t params;
    akin_engine_info_t info;
    akin_stepper_job_t job;
    akin_engine_span_t *spans; /* [max_rows] */
    float *logits;             /* [max_rows][vocab] */
    uint16_t *routes;          /* [max_tokens][n_layers][top_k] or NULL */
    uint16_t *counts;          /* [n_layers][n_experts] */
    uint32_t n_counted;
    akin_sampler_t *sampler;
    pthread_t thread;
    int has_thread;
    sem_t submitted;
    atomic_int state;
    atomic_int stopping;
};

static void choose_token(akin_stepper_t *s, akin_stepper_row_t *row,
                         const float *logits)
{
    const uint32_t vocab = s->info.model->vocab_size;
    const uint32_t position = row->position + row->n_tokens;
    row->token = akin_sampler_pick(s->sampler, &row->how->sampling, logits,
                                   row->history, position, position);
    row->logprob = (akin_token_logprob_t){0};
    if (!row->how->want_logprobs)
        return;
    double total = akin_sampler_log_sum_exp(logits, vocab);
    akin_candidate_t top[AKIN_REQUEST_MAX_TOP];
    uint32_t n = row->how->n_top < vocab ? row->how->n_top : vocab;
    akin_sampler_top(logits, vocab, n, top);
    row->logprob.logprob = (float)((double)logits[row->token] - total);
    row->logprob.n_top = n;
    for (uint32_t i = 0; i < n; i++) {
        row->logprob.top[i].id = top[i].id;
        row->logprob.top[i].logprob = (float)((double)top[i].logit - total);
    }
}

static void count_routes(akin_stepper_t *s, uint32_t n_tokens)
{
    const akin_model_config_t *c = s->info.model;
    if (s->n_counted + n_tokens > UINT16_MAX)
        akin_stepper_clear_counts(s);
    s->n_counted += n_tokens;
    const uint16_t *route = s->routes;
    for (uint32_t t = 0; t < n_tokens; t++)
        for (uint32_t l = 0; l < c->n_layers; l++)
            for (uint32_t j = 0; j < c->top_k; j++)
                s->counts[l * c->n_experts + *route++]++;
}

static void run_job(akin_stepper_t *s)
{
    const akin_model_config_t *c = s->info.model;
    akin_stepper_job_t *job = &s->job;
    const size_t route_size = (size_t)c->n_layers * c->top_k;
    int64_t begin = akin_clock_now_ns();
    const int has_routes = s->params.count_routes || s->params.keep_routes;
    size_t n_tokens = 0;
    AKIN_FAULT_POINT("before-step", NULL);
    for (uint32_t i = 0; i < job->n_rows; i++) {
        akin_stepper_row_t *row = &job->rows[i];
        uint16_t *routes =
            has_routes ? s->routes + n_tokens * route_size : NULL;
        n_tokens += row->n_tokens;
        row->routes = s->params.keep_routes ? routes : NULL;
        s->spans[i] = (akin_engine_span_t){
            .tokens = row->tokens,
            .n_tokens = row->n_tokens,
            .position = row->position,
            .slots = row->slots,
            .logits =
                row->how != NULL ? s->logits + (size_t)i * c->vocab_size : NULL,
            .routes = routes,
        };
    }
    akin_engine_report_t report = {.n_distinct = job->served};
    job->status = akin_engine_step(s->params.engine, s->params.view, s->spans,
                                   job->n_rows, &report);
    job->n_tokens = report.n_rows;
    if (job->status == AKIN_OK) {
        for (uint32_t i = 0; i < job->n_rows; i++)
            if (job->rows[i].how != NULL)
                choose_token(s, &job->rows[i], s->spans[i].logits);
        if (s->params.count_routes)
            count_routes(s, job->n_tokens);
    }
    AKIN_FAULT_POINT("after-step", NULL);
    job->ns = akin_clock_now_ns() - begin;
}

static void *engine_thread(void *arg)
{
    akin_stepper_t *s = arg;
    akin_thread_set_name("akin-engine");
    for (;;) {
        while (sem_wait(&s->submitted) != 0)
            continue;
        if (atomic_load_explicit(&s->stopping, memory_order_acquire))
            return NULL;
        run_job(s);
        atomic_store_explicit(&s->state, JOB_DONE, memory_order_release);
        s->params.wake(s->params.arg);
    }
}

akin_status_t akin_stepper_create(const akin_stepper_params_t *params,
                                  akin_stepper_t **stepper_p)
{
    *stepper_p = NULL;
    akin_stepper_t *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return AKIN_ERR_NOMEM;
    s->params = *params;
    akin_engine_describe(params->engine, &s->info);
    const akin_model_config_t *c = s->info.model;
    const size_t n = params->max_rows;
    const size_t n_tokens = params->max_tokens > 0 ? params->max_tokens : n;
    const int need_routes = params->count_routes || params->keep_routes;
    (void)sem_init(&s->submitted, 0, 0);
    s->job.rows = calloc(n, sizeof(*s->job.rows));
    s->spans = calloc(n, sizeof(*s->spans));
    s->logits = calloc(n * c->vocab_size, sizeof(*s->logits));
    s->job.served = calloc(c->n_layers, sizeof(*s->job.served));
    if (need_routes)
        s->routes =
            calloc(n_tokens * c->n_layers * c->top_k, sizeof(*s->routes));
    if (params->count_routes)
        s->counts =
            calloc((size_t)c->n_layers * c->n_experts, sizeof(*s->counts));
    if (s->job.rows == NULL || s->spans == NULL || s->logits == NULL ||
        s->job.served == NULL || (need_routes && s->routes == NULL) ||
        (params->count_routes && s->counts == NULL) ||
        akin_sampler_create(s->info.kernels, c->vocab_size, &s->sampler) !=
            AKIN_OK ||
        pthread_create(&s->thread, NULL, engine_thread, s) != 0) {
        akin_stepper_destroy(s);
        return AKIN_ERR_NOMEM;
    }
    s->has_thread = 1;
    *stepper_p = s;
    return AKIN_OK;
}

void akin_stepper_destroy(akin_stepper_t *stepper)
{
    if (stepper == NULL)
        return;
    if (stepper->has_thread) {
        atomic_store_explicit(&stepper->stopping, 1, memory_order_release);
        (void)sem_post(&stepper->submitted);
        (void)pthread_join(stepper->thread, NULL);
    }
    (void)sem_destroy(&stepper->submitted);
    akin_sampler_destroy(stepper->sampler);
    free(stepper->job.rows);
    free(stepper->spans);
    free(stepper->logits);
    free(stepper->routes);
    free(stepper->job.served);
    free(stepper->counts);
    free(stepper);
}

akin_stepper_job_t *akin_stepper_job(akin_stepper_t *stepper)
{
    return atomic_load_explicit(&stepper->state, memory_order_acquire) ==
                   JOB_FREE
               ? &stepper->job
               : NULL;
}

void akin_stepper_submit(akin_stepper_t *stepper)
{
    atomic_store_explicit(&stepper->state, JOB_SUBMITTED, memory_order_release);
    (void)sem_post(&stepper->submitted);
}

akin_stepper_job_t *akin_stepper_finished(akin_stepper_t *stepper)
{
    if (atomic_load_explicit(&stepper->state, memory_order_acquire) != JOB_DONE)
        return NULL;
    atomic_store_explicit(&stepper->state, JOB_FREE, memory_order_relaxed);
    return &stepper->job;
}

uint16_t *akin_stepper_counts(const akin_stepper_t *stepper,
                              uint32_t *n_tokens_p)
{
    *n_tokens_p = stepper->n_counted;
    return stepper->counts;
}

void akin_stepper_clear_counts(akin_stepper_t *stepper)
{
    const akin_model_config_t *c = stepper->info.model;
    stepper->n_counted = 0;
    memset(stepper->counts, 0,
           (size_t)c->n_layers * c->n_experts * sizeof(*stepper->counts));
}
