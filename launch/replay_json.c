/* A study of replays as JSON. */
#include "launch/replay_print.h"

#include "launch/replay_figures.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* JSON has no NaN; null says that there is no figure. */
static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *reals(const double *values, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++)
        if (json_array_append_new(list, real(values[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* Mean, half of the 95 % interval, and the value of each seed. */
static json_t *interval(const double *values, uint32_t n)
{
    const akin_interval_t of = akin_interval_of(values, n);
    return json_pack("{s:o, s:o, s:o}", "mean", real(of.mean), "half_width",
                     real(of.half_width), "seeds", reals(values, n));
}

static int set_changes(json_t *object, const akin_replay_job_t *job,
                       uint32_t which, uint32_t best, double *values)
{
    json_t *changes = json_object();
    int failed = json_object_set_new(object, "change_percent", changes) != 0;
    for (int m = 0; m < AKIN_REPLAY_N_METRICS && !failed; m++) {
        const akin_replay_metric_t metric = (akin_replay_metric_t)m;
        if (!akin_replay_metric_is_time(metric))
            continue;
        akin_replay_changes(job, which, best, metric, values);
        failed =
            json_object_set_new(changes, akin_replay_metric_key(metric),
                                interval(values, job->options.n_seeds)) != 0;
    }
    return failed;
}

/* [[0, ms], [5, ms], ... [100, ms]], means over the seeds. */
static json_t *percentiles(const akin_replay_job_t *job, uint32_t which)
{
    const uint32_t n = job->options.n_seeds;
    json_t *list = json_array();
    for (uint32_t i = 0; i < AKIN_REPLAY_PERCENTILES; i++) {
        double ms = 0.0;
        for (uint32_t s = 0; s < n; s++)
            ms += 1e3 / n *
                  job->results[(size_t)which * n + s].tpot_percentiles_s[i];
        if (json_array_append_new(list, json_pack("[if]", 5 * (int)i, ms)) !=
            0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static int set_counts(json_t *object, const akin_replay_job_t *job,
                      uint32_t which)
{
    json_t *steps = json_array();
    json_t *tokens = json_array();
    int failed = json_object_set_new(object, "steps", steps) != 0;
    failed |= json_object_set_new(object, "tokens", tokens) != 0;
    for (uint32_t s = 0; s < job->options.n_seeds && !failed; s++) {
        const akin_replay_result_t *r =
            &job->results[(size_t)which * job->options.n_seeds + s];
        failed = json_array_append_new(
                     steps, json_integer((json_int_t)r->n_steps)) != 0 ||
                 json_array_append_new(
                     tokens, json_integer((json_int_t)r->n_tokens)) != 0;
    }
    return failed;
}

static json_t *case_json(const akin_replay_job_t *job, uint32_t which,
                         uint32_t best, double *values)
{
    const akin_replay_case_t *c = &job->cases[which];
    const char *setting = akin_replay_case_setting(c->policy);
    char name[64];
    akin_replay_case_name(c, name, sizeof(name));
    json_t *object = json_pack("{s:s, s:s, s:s?}", "name", name, "policy",
                               c->policy, "placement", c->placement);
    int failed = object == NULL;
    if (!failed && setting != NULL)
        failed =
            json_object_set_new(
                object, setting,
                json_real(strcmp(setting, "tau") == 0 ? c->tau : c->pull)) != 0;
    for (int m = 0; m < AKIN_REPLAY_N_METRICS && !failed; m++) {
        const akin_replay_metric_t metric = (akin_replay_metric_t)m;
        akin_replay_values(job, which, metric, values);
        failed =
            json_object_set_new(object, akin_replay_metric_key(metric),
                                interval(values, job->options.n_seeds)) != 0;
    }
    if (!failed)
        failed = set_counts(object, job, which) ||
                 json_object_set_new(object, "tpot_percentiles_ms",
                                     percentiles(job, which)) != 0;
    if (!failed)
        failed = best == AKIN_REPLAY_NO_CASE
                     ? json_object_set_new(object, "change_percent",
                                           json_null()) != 0
                     : set_changes(object, job, which, best, values);
    json_t *watched = akin_load_watch_json(job->watches[which]);
    if (!failed && watched != NULL &&
        json_object_update(object, watched) == 0) {
        json_decref(watched);
        return object;
    }
    json_decref(watched);
    json_decref(object);
    return NULL;
}

static json_t *cases_json(const akin_replay_job_t *job, uint32_t best)
{
    json_t *list = json_array();
    double *values = calloc(job->options.n_seeds, sizeof(*values));
    int failed = list == NULL || values == NULL;
    for (uint32_t c = 0; c < job->n_cases && !failed; c++)
        failed = json_array_append_new(list, case_json(job, c, best, values));
    free(values);
    if (!failed)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *caveats_json(const akin_replay_job_t *job)
{
    char text[256];
    json_t *list = json_array();
    for (uint32_t i = 0; akin_replay_caveat(job, i, text, sizeof(text)) != NULL;
         i++)
        if (json_array_append_new(list, json_string(text)) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *trace_json(const akin_replay_job_t *job)
{
    const akin_replay_options_t *o = &job->options;
    const akin_trace_shape_t *shape = &job->set->shape;
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:I}",
        "trace", o->path, "model", akin_trace_model(job->trace), "layers",
        (json_int_t)shape->n_layers, "experts", (json_int_t)shape->n_experts,
        "top_k", (json_int_t)shape->top_k, "requests",
        (json_int_t)job->set->n_requests, "left_out",
        (json_int_t)job->set->n_short, "requests_to_fit",
        (json_int_t)job->study.n_fit, "requests_to_measure",
        (json_int_t)(job->set->n_requests - job->study.n_fit), "measured",
        (json_int_t)job->study.replay.n_measured, "warmup",
        (json_int_t)job->study.replay.n_warmup, "prompt_stands_in",
        job->stands_in, "prompt_tokens", (json_int_t)o->prompt_tokens);
}

static json_t *pool_json(const akin_replay_job_t *job)
{
    const akin_replay_options_t *o = &job->options;
    const int is_open = o->rate > 0.0;
    return json_pack(
        "{s:s, s:I, s:o, s:o, s:o, s:{s:f, s:f, s:f}, s:I, s:I, s:s?, s:s?}",
        "loop", is_open ? "open" : "closed", "workers",
        (json_int_t)o->n_workers, "in_flight",
        is_open ? json_null() : json_integer((json_int_t)o->in_flight), "rate",
        is_open ? json_real(o->rate) : json_null(), "max_batch",
        o->max_batch > 0 ? json_integer((json_int_t)o->max_batch) : json_null(),
        "step_ms", "empty", o->step_ms[0], "all_experts", o->step_ms[1],
        "per_request", o->step_ms[2], "n_seeds", (json_int_t)o->n_seeds, "seed",
        (json_int_t)o->seed, "fit", o->fit_path, "variant",
        akin_replay_variant(job));
}

json_t *akin_replay_json(const akin_replay_job_t *job)
{
    const uint32_t best = akin_replay_best_balancer(job);
    json_t *head = trace_json(job);
    json_t *pool = pool_json(job);
    json_t *rest =
        json_pack("{s:o, s:o, s:s?, s:f, s:o}", "rho",
                  reals(job->rho, job->options.n_seeds), "caveats",
                  caveats_json(job), "best_balancer",
                  best == AKIN_REPLAY_NO_CASE ? NULL : job->cases[best].policy,
                  "seconds", job->seconds, "policies", cases_json(job, best));
    if (head == NULL || pool == NULL || rest == NULL ||
        json_object_update(head, pool) != 0 ||
        json_object_update(head, rest) != 0) {
        json_decref(head);
        head = NULL;
    }
    json_decref(pool);
    json_decref(rest);
    return head;
}
