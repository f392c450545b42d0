/* Figures of a study of replays, over its seeds. */
#include "launch/replay_figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MS_PER_S 1e3

static const char *const keys[AKIN_REPLAY_N_METRICS] = {
    [AKIN_REPLAY_P50] = "tpot_p50_ms",
    [AKIN_REPLAY_MEAN] = "tpot_mean_ms",
    [AKIN_REPLAY_P95] = "tpot_p95_ms",
    [AKIN_REPLAY_P99] = "tpot_p99_ms",
    [AKIN_REPLAY_DISTINCT] = "distinct_experts_per_layer",
    [AKIN_REPLAY_BUSIEST] = "busiest_rank_experts_per_layer",
    [AKIN_REPLAY_PREDICTED] = "predicted_busiest_rank_experts_per_layer",
    [AKIN_REPLAY_CORRELATION] = "predicted_observed_correlation",
    [AKIN_REPLAY_BATCH] = "batch",
    [AKIN_REPLAY_SPREAD] = "spread",
    [AKIN_REPLAY_BAND] = "band",
    [AKIN_REPLAY_SIMILARITY] = "similarity",
    [AKIN_REPLAY_WAIT] = "wait_ms",
    [AKIN_REPLAY_RATE] = "tokens_per_s"};

const char *akin_replay_metric_key(akin_replay_metric_t metric)
{
    return keys[metric];
}

int akin_replay_metric_is_time(akin_replay_metric_t metric)
{
    return metric <= AKIN_REPLAY_P99;
}

static double value_of(const akin_replay_result_t *r,
                       akin_replay_metric_t metric)
{
    switch (metric) {
    case AKIN_REPLAY_P50:
        return MS_PER_S * r->tpot_p50_s;
    case AKIN_REPLAY_MEAN:
        return MS_PER_S * r->tpot_mean_s;
    case AKIN_REPLAY_P95:
        return MS_PER_S * r->tpot_p95_s;
    case AKIN_REPLAY_P99:
        return MS_PER_S * r->tpot_p99_s;
    case AKIN_REPLAY_DISTINCT:
        return r->distinct;
    case AKIN_REPLAY_BUSIEST:
        return r->busiest;
    case AKIN_REPLAY_PREDICTED:
        return r->predicted;
    case AKIN_REPLAY_CORRELATION:
        return r->correlation;
    case AKIN_REPLAY_BATCH:
        return r->batch;
    case AKIN_REPLAY_SPREAD:
        return r->spread;
    case AKIN_REPLAY_BAND:
        return r->n_band;
    case AKIN_REPLAY_SIMILARITY:
        return r->similarity;
    case AKIN_REPLAY_WAIT:
        return MS_PER_S * r->wait_s;
    case AKIN_REPLAY_RATE:
        return (double)r->n_tokens / r->seconds;
    default:
        return NAN;
    }
}

void akin_replay_values(const akin_replay_job_t *job, uint32_t which,
                        akin_replay_metric_t metric, double *values)
{
    const uint32_t n = job->options.n_seeds;
    for (uint32_t s = 0; s < n; s++)
        values[s] = value_of(&job->results[(size_t)which * n + s], metric);
}

void akin_replay_changes(const akin_replay_job_t *job, uint32_t which,
                         uint32_t against, akin_replay_metric_t metric,
                         double *values)
{
    const uint32_t n = job->options.n_seeds;
    for (uint32_t s = 0; s < n; s++) {
        const akin_replay_result_t *a = &job->results[(size_t)which * n + s];
        const akin_replay_result_t *b = &job->results[(size_t)against * n + s];
        values[s] = 100.0 * (value_of(a, metric) / value_of(b, metric) - 1.0);
    }
}

static int is_balancer(const char *policy)
{
    return strcmp(policy, "random") == 0 || strcmp(policy, "rr") == 0 ||
           strcmp(policy, "jsq") == 0 || strcmp(policy, "p2c") == 0;
}

uint32_t akin_replay_best_balancer(const akin_replay_job_t *job)
{
    const uint32_t n = job->options.n_seeds;
    uint32_t best = AKIN_REPLAY_NO_CASE;
    double least = INFINITY;
    for (uint32_t c = 0; c < job->n_cases; c++) {
        double sum = 0.0;
        /* Of the placement that was named first. */
        if (!is_balancer(job->cases[c].policy) ||
            job->cases[c].placement != job->cases[0].placement)
            continue;
        for (uint32_t s = 0; s < n; s++)
            sum += job->results[(size_t)c * n + s].tpot_p50_s;
        if (sum < least) {
            least = sum;
            best = c;
        }
    }
    return best;
}

double akin_replay_mean_rho(const akin_replay_job_t *job)
{
    double sum = 0.0;
    uint32_t n = 0;
    for (uint32_t s = 0; s < job->options.n_seeds; s++)
        if (isfinite(job->rho[s])) {
            sum += job->rho[s];
            n++;
        }
    return n > 0 ? sum / n : NAN;
}

const char *akin_replay_variant(const akin_replay_job_t *job)
{
    const int is_given = job->options.fit_path != NULL;
    for (uint32_t c = 0; c < job->n_cases; c++)
        if (akin_policy_needs_fit(job->cases[c].policy))
            return (is_given ? job->fit.variant : job->options.variant) ==
                           AKIN_FIT_COUNT
                       ? "count"
                       : "count_idf";
    return NULL;
}

static int looks_at_prompts(const akin_replay_job_t *job)
{
    for (uint32_t c = 0; c < job->n_cases; c++)
        if (akin_policy_needs_fit(job->cases[c].policy) ||
            strncmp(job->cases[c].policy, "union", 5) == 0)
            return 1;
    return 0;
}

const char *akin_replay_caveat(const akin_replay_job_t *job, uint32_t i,
                               char *text, size_t bytes)
{
    const akin_replay_options_t *o = &job->options;
    if (looks_at_prompts(job) && job->stands_in && i-- == 0) {
        if (o->prompt_tokens > 0)
            (void)snprintf(text, bytes,
                           "the first %u rows of decode stand in for prompts, "
                           "which flatters policies that look at prompts",
                           o->prompt_tokens);
        else
            (void)snprintf(text, bytes,
                           "rows of decode stand in for prompts, which "
                           "flatters policies that look at prompts");
        return text;
    }
    if (o->fit_path != NULL && i-- == 0) {
        (void)snprintf(text, bytes,
                       "the fit may have seen the requests that are measured, "
                       "which flatters policies with a fit");
        return text;
    }
    return NULL;
}
