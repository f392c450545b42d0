/* Report input: reading summaries, replays and simulations. */
#include "launch/report_input.h"

#include "launch/run_figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const akin_report_metric_info_t akin_report_metrics[AKIN_REPORT_N_METRICS] = {
    [AKIN_REPORT_COMPLETED] = {"answered", "requests", 0, 0, 0},
    [AKIN_REPORT_FAILED] = {"failed", "requests", 0, -1, 0},
    [AKIN_REPORT_DURATION] = {"duration", "s", 2, 0, 0},
    [AKIN_REPORT_TOKEN_RATE] = {"output", "tokens/s", 1, 1, 0},
    [AKIN_REPORT_REQUEST_RATE] = {"answered", "requests/s", 2, 1, 0},
    [AKIN_REPORT_TTFT_P50] = {"TTFT P50", "ms", 2, -1, 0},
    [AKIN_REPORT_TTFT_P99] = {"TTFT P99", "ms", 2, -1, 0},
    [AKIN_REPORT_TPOT_MEAN] = {"TPOT mean", "ms", 3, -1, 0},
    [AKIN_REPORT_TPOT_P50] = {"TPOT P50", "ms", 3, -1, 0},
    [AKIN_REPORT_TPOT_P95] = {"TPOT P95", "ms", 3, -1, 0},
    [AKIN_REPORT_TPOT_P99] = {"TPOT P99", "ms", 3, -1, 0},
    [AKIN_REPORT_ITL_P50] = {"ITL P50", "ms", 3, -1, 0},
    [AKIN_REPORT_ITL_P99] = {"ITL P99", "ms", 3, -1, 0},
    [AKIN_REPORT_QUEUE] = {"wait for prefill", "ms", 2, -1, 0},
    [AKIN_REPORT_BATCH] = {"batch", "requests/step", 2, 0, 0},
    [AKIN_REPORT_DISTINCT] = {"distinct experts", "per step and layer", 2, -1,
                              0},
    [AKIN_REPORT_BUSIEST] = {"on the busiest rank", "experts", 2, -1, 0},
    [AKIN_REPORT_PREDICTED] = {"predicted of it", "experts", 2, 0, 0},
    [AKIN_REPORT_CORRELATION] = {"prediction's correlation", "", 3, 1, 0},
    [AKIN_REPORT_HIT_RATE] = {"prefix cache hits", "share of tokens", 3, 1, 1},
    [AKIN_REPORT_KV_BYTES] = {"KV cache moved", "MB", 1, -1, 0},
    [AKIN_REPORT_DEATHS] = {"workers lost", "", 1, 0, 1},
    [AKIN_REPORT_RERUN] = {"begun again", "requests", 1, 0, 1},
};

static const char *const run_keys[AKIN_REPORT_N_METRICS] = {
    [AKIN_REPORT_COMPLETED] = "completed",
    [AKIN_REPORT_FAILED] = "failed",
    [AKIN_REPORT_DURATION] = "duration",
    [AKIN_REPORT_TOKEN_RATE] = "output_throughput",
    [AKIN_REPORT_REQUEST_RATE] = "request_throughput",
    [AKIN_REPORT_TTFT_P50] = "p50_ttft_ms",
    [AKIN_REPORT_TTFT_P99] = "p99_ttft_ms",
    [AKIN_REPORT_TPOT_MEAN] = "mean_tpot_ms",
    [AKIN_REPORT_TPOT_P50] = "p50_tpot_ms",
    [AKIN_REPORT_TPOT_P95] = "p95_tpot_ms",
    [AKIN_REPORT_TPOT_P99] = "p99_tpot_ms",
    [AKIN_REPORT_BATCH] = "mean_batch",
    [AKIN_REPORT_DISTINCT] = "distinct_experts_per_step",
    [AKIN_REPORT_BUSIEST] = "max_rank_distinct_experts_per_step",
    [AKIN_REPORT_HIT_RATE] = "prefix_cache_hit_rate",
    [AKIN_REPORT_KV_BYTES] = "kv_bytes_moved",
    [AKIN_REPORT_ITL_P50] = "p50_itl_ms",
    [AKIN_REPORT_ITL_P99] = "p99_itl_ms",
    [AKIN_REPORT_DEATHS] = "times_lost",
    [AKIN_REPORT_RERUN] = "requests_restarted",
};

static const char *const replay_keys[AKIN_REPORT_N_METRICS] = {
    [AKIN_REPORT_TOKEN_RATE] = "tokens_per_s",
    [AKIN_REPORT_TTFT_P50] = "ttft_p50_ms",
    [AKIN_REPORT_TTFT_P99] = "ttft_p99_ms",
    [AKIN_REPORT_TPOT_MEAN] = "tpot_mean_ms",
    [AKIN_REPORT_TPOT_P50] = "tpot_p50_ms",
    [AKIN_REPORT_TPOT_P95] = "tpot_p95_ms",
    [AKIN_REPORT_TPOT_P99] = "tpot_p99_ms",
    [AKIN_REPORT_BATCH] = "batch",
    [AKIN_REPORT_DISTINCT] = "distinct_experts_per_layer",
    [AKIN_REPORT_BUSIEST] = "busiest_rank_experts_per_layer",
    [AKIN_REPORT_PREDICTED] = "predicted_busiest_rank_experts_per_layer",
    [AKIN_REPORT_CORRELATION] = "predicted_observed_correlation",
};

static const char *const sim_keys[AKIN_REPORT_N_METRICS] = {
    [AKIN_REPORT_TTFT_P50] = "p50_ttft_ms",
    [AKIN_REPORT_TTFT_P99] = "p99_ttft_ms",
    [AKIN_REPORT_TPOT_MEAN] = "mean_tpot_ms",
    [AKIN_REPORT_TPOT_P50] = "p50_tpot_ms",
    [AKIN_REPORT_TPOT_P95] = "p95_tpot_ms",
    [AKIN_REPORT_TPOT_P99] = "p99_tpot_ms",
    [AKIN_REPORT_BATCH] = "batch",
    [AKIN_REPORT_DISTINCT] = "distinct_experts",
    [AKIN_REPORT_BUSIEST] = "busiest_rank_experts",
    [AKIN_REPORT_ITL_P50] = "p50_itl_ms",
    [AKIN_REPORT_ITL_P99] = "p99_itl_ms",
    [AKIN_REPORT_QUEUE] = "queue_ms",
    [AKIN_REPORT_HIT_RATE] = "prefix_cached_percent",
    [AKIN_REPORT_DEATHS] = "deaths",
    [AKIN_REPORT_RERUN] = "rerun_requests",
};

double akin_report_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

const char *akin_report_case_text(const akin_report_case_t *c, const char *key)
{
    return json_string_value(json_object_get(c->source, key));
}

const char *akin_report_case_name(const akin_report_case_t *c)
{
    const char *name = json_string_value(json_object_get(c->json, "name"));
    if (c->is_run || name == NULL)
        name = c->policy;
    return name != NULL ? name : "no policy";
}

size_t akin_report_count(const akin_report_input_t *input,
                         akin_report_metric_t metric)
{
    size_t n = 0;
    int is_any = !akin_report_metrics[metric].if_any;
    for (size_t i = 0; i < input->n_cases; i++) {
        n += isfinite(input->cases[i].values[metric]) ? 1 : 0;
        is_any |= input->cases[i].values[metric] > 0.0;
    }
    return is_any ? n : 0;
}

static void read_run(akin_report_case_t *c)
{
    const json_t *run = c->json;
    const json_t *prediction =
        json_object_get(run, "predicted_max_rank_distinct_experts");
    for (int m = 0; m < AKIN_REPORT_N_METRICS; m++) {
        c->values[m] = run_keys[m] == NULL
                           ? (double)NAN
                           : akin_report_number(run, run_keys[m]);
        c->half_widths[m] = (double)NAN;
    }
    c->values[AKIN_REPORT_KV_BYTES] /= 1e6;
    /* Over the steps that were predicted, which may be fewer than all. */
    if (prediction != NULL) {
        c->values[AKIN_REPORT_BUSIEST] =
            akin_report_number(prediction, "mean_observed");
        c->values[AKIN_REPORT_PREDICTED] =
            akin_report_number(prediction, "mean_expected");
        c->values[AKIN_REPORT_CORRELATION] =
            akin_report_number(prediction, "correlation");
    }
    /* With nothing that failed or was answered a time of 0 is no time. */
    if (!(c->values[AKIN_REPORT_COMPLETED] > 0.0))
        for (int m = AKIN_REPORT_TTFT_P50; m <= AKIN_REPORT_ITL_P99; m++)
            c->values[m] = (double)NAN;
    c->is_run = 1;
    c->policy = json_string_value(json_object_get(run, "policy"));
    c->load = AKIN_REPORT_LOAD_ANSWERED;
    c->load_value = c->values[AKIN_REPORT_REQUEST_RATE];
}

static akin_status_t refuse(const char *path, const char *why,
                            akin_error_t *err)
{
    return akin_error_set(
        err, AKIN_ERR_FORMAT,
        "%s: no summary of a run, no replay and no simulation "
        "(%s); `akin run --summary FILE`, `akin replay "
        "--json` and `akin sim --json` write them",
        path, why);
}

static akin_status_t read_policy(akin_report_case_t *c, size_t index,
                                 const char *path, akin_error_t *err)
{
    char why[128];
    c->is_sim = json_object_get(c->source, "sim") != NULL;
    const char *const *keys = c->is_sim ? sim_keys : replay_keys;
    c->policy = json_string_value(json_object_get(c->json, "policy"));
    if (c->policy == NULL) {
        (void)snprintf(why, sizeof(why), "policies[%zu].policy is not a text",
                       index);
        return refuse(path, why, err);
    }
    for (int m = 0; m < AKIN_REPORT_N_METRICS; m++) {
        const json_t *interval =
            keys[m] == NULL ? NULL : json_object_get(c->json, keys[m]);
        c->values[m] = akin_report_number(interval, "mean");
        c->half_widths[m] = akin_report_number(interval, "half_width");
    }
    if (!isfinite(c->values[AKIN_REPORT_TPOT_P50])) {
        (void)snprintf(why, sizeof(why),
                       "policies[%zu].%s.mean is not a number", index,
                       keys[AKIN_REPORT_TPOT_P50]);
        return refuse(path, why, err);
    }
    if (c->is_sim) {
        c->values[AKIN_REPORT_HIT_RATE] /= 100.0;
        c->half_widths[AKIN_REPORT_HIT_RATE] /= 100.0;
    }
    /* Policies that do not predict have a 0 there. */
    if (!(c->values[AKIN_REPORT_PREDICTED] > 0.0)) {
        c->values[AKIN_REPORT_PREDICTED] = (double)NAN;
        c->values[AKIN_REPORT_CORRELATION] = (double)NAN;
    }
    const double rate = akin_report_number(c->source, "rate");
    const int is_open = rate > 0.0;
    c->load = is_open     ? AKIN_REPORT_LOAD_RATE
              : c->is_sim ? AKIN_REPORT_LOAD_INSIDE
                          : AKIN_REPORT_LOAD_IN_FLIGHT;
    c->load_value = is_open ? rate : akin_report_number(c->source, "in_flight");
    return AKIN_OK;
}

static akin_status_t read_watch(akin_report_case_t *c, size_t index,
                                const char *path, akin_error_t *err)
{
    char why[128];
    const akin_status_t status =
        akin_report_watch_read(c->json, &c->watch, why, sizeof(why));
    if (status != AKIN_ERR_FORMAT)
        return status == AKIN_OK ? status
                                 : akin_error_set(err, status, "out of memory");
    return c->is_run ? akin_error_set(err, status, "%s: %s", path, why)
                     : akin_error_set(err, status, "%s: policies[%zu].%s", path,
                                      index, why);
}

static akin_status_t add_file(akin_report_input_t *input, size_t file,
                              akin_error_t *err)
{
    const char *path = input->paths[file];
    json_t *json;
    akin_status_t status = akin_run_load(path, &json, err);
    if (status != AKIN_OK)
        return status;
    input->files[file] = json;
    const json_t *policies = json_object_get(json, "policies");
    const int is_replay = json_is_array(policies);
    if (!is_replay && json_object_get(json, "backend") == NULL)
        return refuse(path, "it has neither backend nor policies", err);
    if (!is_replay) {
        status = akin_run_check(json, path, err);
        if (status != AKIN_OK)
            return status;
    }
    const size_t n = is_replay ? json_array_size(policies) : 1;
    if (n == 0)
        return refuse(path, "its list of policies is empty", err);
    akin_report_case_t *cases =
        realloc(input->cases, (input->n_cases + n) * sizeof(*cases));
    if (cases == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    input->cases = cases;
    for (size_t i = 0; i < n && status == AKIN_OK; i++) {
        akin_report_case_t *c = &cases[input->n_cases++];
        *c = (akin_report_case_t){.file = file, .source = json};
        c->json = is_replay ? json_array_get(policies, i) : json;
        if (is_replay)
            status = read_policy(c, i, path, err);
        else
            read_run(c);
        if (status == AKIN_OK)
            status = read_watch(c, i, path, err);
    }
    return status;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Whether the last parts of the paths tell the files apart. */
static int are_bases_distinct(const akin_report_input_t *input)
{
    for (size_t i = 0; i < input->n_files; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(base_name(input->paths[i]),
                       base_name(input->paths[k])) == 0)
                return 0;
    return 1;
}

/* A label has the file's name where there are several files, and the number
 * of the file where names would not tell them apart. */
static void set_labels(akin_report_input_t *input)
{
    const int distinct = are_bases_distinct(input);
    for (size_t i = 0; i < input->n_cases; i++) {
        akin_report_case_t *c = &input->cases[i];
        const char *name = akin_report_case_name(c);
        const char *base = base_name(input->paths[c->file]);
        size_t length = strlen(base);
        if (length > 5 && strcmp(base + length - 5, ".json") == 0)
            length -= 5;
        const int is_named_so =
            strlen(name) == length && strncmp(name, base, length) == 0;
        if (input->n_files == 1 || (distinct && is_named_so))
            (void)snprintf(c->label, sizeof(c->label), "%s", name);
        else if (distinct)
            (void)snprintf(c->label, sizeof(c->label), "%.*s: %s",
                           (int)(length < 48 ? length : 48), base, name);
        else
            (void)snprintf(c->label, sizeof(c->label), "%zu, %.*s: %s",
                           c->file + 1, (int)(length < 40 ? length : 40), base,
                           name);
    }
}

akin_status_t akin_report_input_read(char **paths, size_t n,
                                     akin_report_input_t *input_p,
                                     akin_error_t *err)
{
    akin_report_input_t input = {.paths = paths, .n_files = n};
    akin_status_t status = AKIN_OK;
    input.files = calloc(n, sizeof(json_t *));
    if (input.files == NULL)
        status = akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < n && status == AKIN_OK; i++)
        status = add_file(&input, i, err);
    if (status != AKIN_OK) {
        akin_report_input_cleanup(&input);
        return status;
    }
    set_labels(&input);
    *input_p = input;
    return AKIN_OK;
}

void akin_report_input_cleanup(akin_report_input_t *input)
{
    for (size_t i = 0; input->files != NULL && i < input->n_files; i++)
        json_decref(input->files[i]);
    for (size_t i = 0; i < input->n_cases; i++)
        akin_report_watch_cleanup(&input->cases[i].watch);
    free(input->files);
    free(input->cases);
    *input = (akin_report_input_t){0};
}
