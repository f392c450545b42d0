/* Summary as JSON. */
#include "roles/summary.h"
#include "roles/summary_state.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A failed set leaves a hole: it is noted here, and the whole is given up. */
typedef struct writer {
    json_t *object;
    int failed;
} writer_t;

static void set(writer_t *w, const char *key, json_t *value)
{
    if (json_object_set_new(w->object, key, value) != 0)
        w->failed = 1;
}

static void set_integer(writer_t *w, const char *key, uint64_t value)
{
    set(w, key, json_integer((json_int_t)value));
}

static void set_real(writer_t *w, const char *key, double value)
{
    set(w, key, json_real(value));
}

static void set_text(writer_t *w, const char *key, const char *value)
{
    if (value != NULL)
        set(w, key, json_string(value));
}

static void set_mean(writer_t *w, const char *key, const akini_mean_t *mean)
{
    set(w, key, mean->n == 0 ? json_null() : json_real(akini_mean_get(mean)));
}

/* The finished object; NULL if anything failed. */
static json_t *finish(writer_t *w)
{
    if (!w->failed)
        return w->object;
    json_decref(w->object);
    return NULL;
}

/* mean_ttft_ms, median_ttft_ms, ... */
static void set_times(writer_t *w, const char *name, akin_histogram_t *h)
{
    static const struct {
        const char *prefix;
        double percent;
    } percentiles[] = {
        {"median", 50}, {"p50", 50}, {"p90", 90}, {"p95", 95}, {"p99", 99}};
    char key[40];
    (void)snprintf(key, sizeof(key), "mean_%s_ms", name);
    set_real(w, key, akin_histogram_mean(h) / 1e6);
    (void)snprintf(key, sizeof(key), "std_%s_ms", name);
    set_real(w, key, akin_histogram_std(h) / 1e6);
    for (size_t i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]); i++) {
        (void)snprintf(key, sizeof(key), "%s_%s_ms", percentiles[i].prefix,
                       name);
        set_real(w, key,
                 akin_histogram_percentile(h, percentiles[i].percent) / 1e6);
    }
}

/* [[0, ms], [5, ms], ... [100, ms]]: enough to draw the distribution. */
static void set_percentiles(writer_t *w, const char *key, akin_histogram_t *h)
{
    json_t *all = json_array();
    for (int percent = 0; percent <= 100; percent += 5)
        if (json_array_append_new(
                all, json_pack("[if]", percent,
                               akin_histogram_percentile(h, percent) / 1e6)) !=
            0)
            w->failed = 1;
    set(w, key, all);
}

/* {"count", "mean", "p50", "p99", "max"} in a unit of so many ns. */
static json_t *distribution(akin_histogram_t *h, double unit_ns)
{
    writer_t w = {json_object(), 0};
    set_integer(&w, "count", akin_histogram_count(h));
    set_real(&w, "mean", akin_histogram_mean(h) / unit_ns);
    set_real(&w, "p50", akin_histogram_percentile(h, 50) / unit_ns);
    set_real(&w, "p99", akin_histogram_percentile(h, 99) / unit_ns);
    set_real(&w, "max", akin_histogram_percentile(h, 100) / unit_ns);
    return finish(&w);
}

static json_t *refused_json(const akini_summary_sums_t *sums)
{
    writer_t w = {json_object(), 0};
    set_integer(&w, "total", akini_summary_refused(sums));
    for (int i = AKIN_KV_REFUSAL_NONE + 1; i < AKIN_KV_REFUSAL_COUNT; i++)
        set_integer(&w, akin_kv_refusal_string((akin_kv_refusal_t)i),
                    sums->refused[i]);
    return finish(&w);
}

static json_t *refits_json(const akin_summary_t *summary)
{
    const akin_policy_refits_t *refits = &summary->refits;
    const double age_s = akini_summary_centroid_age_s(summary);
    writer_t w = {json_object(), 0};
    set_integer(&w, "started", refits->n_started);
    set_integer(&w, "installed", refits->n_installed);
    set_integer(&w, "failed", refits->n_failed);
    set(&w, "centroid_age_s", age_s < 0 ? json_null() : json_real(age_s));
    set_real(&w, "max_install_us", (double)refits->max_install_ns / 1e3);
    return finish(&w);
}

static json_t *replaced_json(const akin_replacer_stats_t *replaced)
{
    writer_t w = {json_object(), 0};
    set_text(&w, "mode", replaced->mode == AKIN_REPLACE_ON ? "on" : "dry-run");
    set_integer(&w, "considered", replaced->n_considered);
    set_integer(&w, "proposed", replaced->n_proposed);
    set_integer(&w, "applied", replaced->n_applied);
    set_integer(&w, "dropped", replaced->n_dropped);
    set_integer(&w, "experts_moved", replaced->n_moved);
    set_integer(&w, "bytes_moved", replaced->n_bytes);
    set_real(&w, "predicted_gain_s", replaced->gain_s);
    return finish(&w);
}

static void set_measured(writer_t *w, const char *key, int is_measured,
                         double value)
{
    set(w, key, is_measured ? json_real(value) : json_null());
}

static json_t *recovery_json(const akin_summary_t *summary)
{
    const akini_summary_recovery_t *r = &summary->recovery;
    const uint64_t n_resumed = akin_histogram_count(summary->resumed);
    writer_t recovery_s = {json_object(), 0}, resumed_ms = {json_object(), 0};
    set_measured(&recovery_s, "mean", r->recovered_ns.n > 0,
                 akini_mean_get(&r->recovered_ns) / 1e9);
    set_measured(&recovery_s, "max", r->recovered_ns.n > 0,
                 (double)r->max_recovered_ns / 1e9);
    set_measured(&resumed_ms, "p50", n_resumed > 0,
                 akin_histogram_percentile(summary->resumed, 50) / 1e6);
    set_measured(&resumed_ms, "max", n_resumed > 0,
                 akin_histogram_percentile(summary->resumed, 100) / 1e6);
    writer_t w = {json_object(), 0};
    set_integer(&w, "deaths", summary->run.n_lost);
    set_integer(&w, "recoveries", summary->run.n_recovered);
    set(&w, "recovery_s", finish(&recovery_s));
    set_integer(&w, "retries", r->n_retries);
    set_integer(&w, "requests_resumed", n_resumed);
    set(&w, "resumed_ms", finish(&resumed_ms));
    set_integer(&w, "messages_late", r->n_late);
    set_integer(&w, "pinned_blocks", r->leases.n_blocks);
    set_integer(&w, "max_pinned_blocks", r->max_blocks);
    set_real(&w, "oldest_lease_s", (double)r->leases.oldest_ns / 1e9);
    set_real(&w, "max_oldest_lease_s", (double)r->max_oldest_ns / 1e9);
    set_integer(&w, "leases_expired", r->leases.n_expired);
    return finish(&w);
}

static json_t *predictions_json(const akini_summary_predictions_t *p)
{
    const double n = (double)p->n, r = akini_summary_correlation(p);
    writer_t w = {json_object(), 0};
    set_integer(&w, "steps", p->n);
    set_real(&w, "mean_expected", p->x / n);
    set_real(&w, "mean_observed", p->y / n);
    set_real(&w, "mean_absolute_error", p->error / n);
    set(&w, "correlation", isnan(r) ? json_null() : json_real(r));
    return finish(&w);
}

/* What a worker and the whole run have alike. */
static void set_sums(writer_t *w, const akini_summary_sums_t *sums)
{
    set_integer(w, "steps", sums->n_steps);
    set_real(w, "mean_batch",
             sums->n_steps == 0 ? 0
                                : (double)sums->n_rows / (double)sums->n_steps);
    set_mean(w, "distinct_experts_per_step", &sums->distinct);
    set_mean(w, "max_rank_distinct_experts_per_step", &sums->max_distinct);
    set_integer(w, "routing_decisions", sums->n_chosen);
    set_integer(w, "prefix_cache_queries", sums->n_query_tokens);
    set_integer(w, "prefix_cache_hits", sums->n_hit_tokens);
    set_integer(w, "kv_blocks_moved", sums->n_blocks);
    set_integer(w, "kv_bytes_moved", sums->n_bytes);
    set_integer(w, "kv_blocks_shared", sums->n_shared);
    set_integer(w, "kv_reads_one_sided", sums->reads.n_one_sided);
    set_integer(w, "kv_reads_rendezvous", sums->reads.n_rendezvous);
    set_integer(w, "kv_bytes_read", sums->reads.n_bytes);
    set(w, "kv_blocks_refused", refused_json(sums));
    set_integer(w, "times_lost", sums->n_lost);
    set_integer(w, "requests_restarted", sums->n_restarted);
    set_integer(w, "times_recovered", sums->n_recovered);
}

static json_t *worker_json(const akin_summary_t *summary,
                           const akini_summary_sums_t *worker)
{
    writer_t w = {json_object(), 0};
    set_text(&w, "name", worker->name);
    set_text(&w, "role", worker->role);
    set_integer(&w, "rank", worker->rank);
    set_text(&w, "node", worker->node);
    set_text(&w, "transport", worker->transport);
    set_integer(&w, "tokens", worker->n_rows);
    set_real(&w, "busy_s", worker->busy_ns / 1e9);
    set_real(&w, "idle_share", akini_summary_idle_share(summary, worker));
    set_sums(&w, worker);
    return finish(&w);
}

static json_t *workers_json(const akin_summary_t *summary)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < summary->n_workers; i++)
        if (json_array_append_new(
                array, worker_json(summary, &summary->workers[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static json_t *batch_json(const akini_summary_batch_t *batch, int or_more)
{
    writer_t w = {json_object(), 0};
    set_real(&w, "batch", (double)batch->n_rows / (double)batch->n_steps);
    if (or_more)
        set(&w, "mixed", json_true());
    set_integer(&w, "steps", batch->n_steps);
    set_mean(&w, "distinct_experts", &batch->distinct);
    set_real(&w, "step_ms", akini_mean_get(&batch->step_ns) / 1e6);
    return finish(&w);
}

static json_t *batches_json(const akin_summary_t *summary)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i <= AKINI_SUMMARY_BATCHES; i++) {
        const akini_summary_batch_t *batch = &summary->batches[i];
        if (batch->n_steps == 0)
            continue;
        if (json_array_append_new(
                array, batch_json(batch, i == AKINI_SUMMARY_BATCHES)) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

/* As `vllm bench serve` writes it: 20261129-191516. */
static void set_date(writer_t *w, int64_t unix_s)
{
    char date[32] = "";
    struct tm tm;
    time_t t = (time_t)unix_s;
    if (gmtime_r(&t, &tm) != NULL)
        (void)strftime(date, sizeof(date), "%Y%m%d-%H%M%S", &tm);
    set_text(w, "date", date);
}

json_t *akin_summary_json(akin_summary_t *summary)
{
    const double s = akini_summary_duration_s(summary);
    const double input = (double)summary->n_prompt_tokens;
    const double output = (double)summary->n_output_tokens;
    const int exact = akin_histogram_exact(summary->ttft) &&
                      akin_histogram_exact(summary->itl);
    writer_t w = {json_object(), 0};
    set_date(&w, summary->unix_s);
    set_text(&w, "backend", "akin");
    set_text(&w, "model_id", summary->model);
    set_text(&w, "policy", summary->policy);
    set_text(&w, "policy_setting", summary->policy_setting);
    set_text(&w, "engine", summary->engine);
    set_text(&w, "modelled", summary->modelled);
    if (summary->modelled != NULL)
        set_real(&w, "slowdown", summary->slowdown);
    set_text(&w, "kernel", summary->kernel);
    set_integer(&w, "ep", summary->ep);
    set_integer(&w, "prefill_ep", summary->prefill_ep);
    set_integer(&w, "num_prompts", summary->completed + summary->failed);
    set_real(&w, "duration", s);
    set_integer(&w, "completed", summary->completed);
    set_integer(&w, "failed", summary->failed);
    set_integer(&w, "total_input_tokens", summary->n_prompt_tokens);
    set_integer(&w, "total_output_tokens", summary->n_output_tokens);
    set_real(&w, "request_throughput", (double)summary->completed / s);
    set_real(&w, "output_throughput", output / s);
    set_real(&w, "total_token_throughput", (input + output) / s);
    set_times(&w, "ttft", summary->ttft);
    set_times(&w, "tpot", summary->tpot);
    set_percentiles(&w, "ttft_percentiles_ms", summary->ttft);
    set_percentiles(&w, "tpot_percentiles_ms", summary->tpot);
    set_times(&w, "itl", summary->itl);
    set_times(&w, "e2el", summary->e2el);
    set_real(&w, "percentile_relative_error", exact ? 0 : AKIN_HISTOGRAM_ERROR);
    set_sums(&w, &summary->run);
    set_real(&w, "prefix_cache_hit_rate",
             summary->run.n_query_tokens == 0
                 ? 0
                 : (double)summary->run.n_hit_tokens /
                       (double)summary->run.n_query_tokens);
    set(&w, "routing_us", distribution(summary->routing, 1e3));
    if (summary->band.n > 0) {
        set_mean(&w, "mean_band_workers", &summary->band);
        set_mean(&w, "mean_similarity", &summary->similarity);
    }
    if (summary->predictions.n > 0)
        set(&w, "predicted_max_rank_distinct_experts",
            predictions_json(&summary->predictions));
    if (summary->refits.is_refitting)
        set(&w, "refits", refits_json(summary));
    if (summary->replaced.mode != AKIN_REPLACE_OFF)
        set(&w, "replacements", replaced_json(&summary->replaced));
    if (summary->transports.n_hosts > 0)
        set(&w, "transports", akini_summary_transports_json(summary));
    set(&w, "recovery", recovery_json(summary));
    set(&w, "kv_transfer_ms", distribution(summary->transfer, 1e6));
    set(&w, "distinct_experts_by_batch", batches_json(summary));
    set(&w, "workers", workers_json(summary));
    json_t *load = akini_summary_load_json(summary);
    w.failed |= json_object_update(w.object, load) != 0;
    json_decref(load);
    return finish(&w);
}

static akin_status_t io_error(const char *path, const char *what,
                              akin_error_t *err)
{
    return akin_error_set(err, akin_status_from_errno(errno),
                          "%s: cannot %s the summary: %s", path, what,
                          strerror(errno));
}

static akin_status_t write_file(const json_t *json, const char *path,
                                akin_error_t *err)
{
    char temporary[PATH_MAX];
    int n = snprintf(temporary, sizeof(temporary), "%s.tmp.%ld", path,
                     (long)getpid());
    if (n < 0 || (size_t)n >= sizeof(temporary))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "the path of the summary is too long");
    FILE *file = fopen(temporary, "we");
    if (file == NULL)
        return io_error(path, "create", err);
    akin_status_t status = AKIN_OK;
    if (json_dumpf(json, file, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) != 0 ||
        fputc('\n', file) == EOF || fflush(file) != 0 ||
        fsync(fileno(file)) != 0)
        status = io_error(path, "write", err);
    if (fclose(file) != 0 && status == AKIN_OK)
        status = io_error(path, "write", err);
    if (status == AKIN_OK && rename(temporary, path) != 0)
        status = io_error(path, "rename", err);
    if (status != AKIN_OK)
        (void)unlink(temporary);
    return status;
}

akin_status_t akin_summary_write_json(akin_summary_t *summary, const char *path,
                                      akin_error_t *err)
{
    json_t *json = akin_summary_json(summary);
    if (json == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory", path);
    akin_status_t status = AKIN_OK;
    if (strcmp(path, "-") != 0) {
        status = write_file(json, path, err);
    } else {
        errno = 0;
        if (json_dumpf(json, stdout,
                       JSON_INDENT(2) | JSON_REAL_PRECISION(12)) != 0 ||
            fputc('\n', stdout) == EOF || fflush(stdout) != 0)
            status = io_error("standard output", "write", err);
    }
    json_decref(json);
    return status;
}
