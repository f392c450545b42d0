/* Run figures: reading and checking summary files. */
#include "launch/run_figures.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const akin_run_figure_t akin_run_figures[] = {
    {"completed", "completed", "requests answered", 0, 0},
    {"failed", "failed", "requests failed", 0, 0},
    {"duration", "duration_s", "duration, s", 2, 1},
    {"output_throughput", "output_throughput", "generated tokens/s", 1, 1},
    {"mean_ttft_ms", "mean_ttft_ms", "time to first token, ms: mean", 2, 1},
    {"p50_ttft_ms", "p50_ttft_ms", "time to first token, ms: p50", 2, 1},
    {"p99_ttft_ms", "p99_ttft_ms", "time to first token, ms: p99", 2, 1},
    {"mean_tpot_ms", "mean_tpot_ms", "time per output token, ms: mean", 3, 1},
    {"p50_tpot_ms", "p50_tpot_ms", "time per output token, ms: p50", 3, 1},
    {"p99_tpot_ms", "p99_tpot_ms", "time per output token, ms: p99", 3, 1},
    {"steps", "steps", "decode steps", 0, 1},
    {"mean_batch", "mean_batch", "requests in a decode step", 2, 1},
    {"distinct_experts_per_step", "distinct_experts_per_step",
     "distinct experts per step and layer", 2, 1},
    {NULL, "distinct_experts_at_equal_batch", "  the same at equal batch sizes",
     2, 1},
    {"kv_blocks_moved", "kv_blocks_moved", "KV blocks moved", 0, 1},
    {"prefix_cache_hits", "prefix_cache_hits", "prefix cache hits, tokens", 0,
     1},
};

const size_t akin_run_n_figures =
    sizeof(akin_run_figures) / sizeof(akin_run_figures[0]);

typedef struct source {
    FILE *file;
    size_t left; /* bytes that may still come */
    int is_too_long;
} source_t;

static size_t read_part(void *buffer, size_t bytes, void *data)
{
    source_t *source = data;
    size_t n = fread(buffer, 1, bytes < source->left ? bytes : source->left,
                     source->file);
    source->left -= n;
    if (source->left == 0 && n > 0)
        source->is_too_long = 1;
    return ferror(source->file) ? (size_t)-1 : n;
}

akin_status_t akin_run_load(const char *path, json_t **json_p,
                            akin_error_t *err)
{
    *json_p = NULL;
    source_t source = {fopen(path, "re"), AKIN_RUN_SUMMARY_MAX_BYTES, 0};
    if (source.file == NULL)
        return akin_error_set(err, akin_status_from_errno(errno),
                              "%s: cannot open: %s", path, strerror(errno));
    json_error_t where;
    errno = 0;
    json_t *json =
        json_load_callback(read_part, &source, JSON_REJECT_DUPLICATES, &where);
    int failed = ferror(source.file);
    int code = errno;
    (void)fclose(source.file);
    if (failed) {
        json_decref(json);
        return akin_error_set(err, akin_status_from_errno(code),
                              "%s: cannot read: %s", path, strerror(code));
    }
    if (source.is_too_long) {
        json_decref(json);
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: longer than any summary of a run", path);
    }
    if (json == NULL)
        return akin_error_set(err, AKIN_ERR_FORMAT, "%s:%d: %s", path,
                              where.line, where.text);
    *json_p = json;
    return AKIN_OK;
}

static int is_figure(const json_t *value)
{
    return json_is_number(value) || json_is_null(value);
}

static akin_status_t refuse(const char *path, const char *why,
                            akin_error_t *err)
{
    return akin_error_set(err, AKIN_ERR_FORMAT,
                          "%s: not a summary of a run (%s); `akin run "
                          "--summary FILE` writes one",
                          path, why);
}

akin_status_t akin_run_check(const json_t *run, const char *path,
                             akin_error_t *err)
{
    const char *backend = json_string_value(json_object_get(run, "backend"));
    if (backend == NULL || strcmp(backend, "akin") != 0)
        return refuse(path, "backend is not \"akin\"", err);
    char why[96];
    for (size_t i = 0; i < akin_run_n_figures; i++) {
        const char *key = akin_run_figures[i].key;
        if (key == NULL || is_figure(json_object_get(run, key)))
            continue;
        (void)snprintf(why, sizeof(why), "%s is not a number", key);
        return refuse(path, why, err);
    }
    const json_t *sizes = json_object_get(run, "distinct_experts_by_batch");
    if (!json_is_array(sizes))
        return refuse(path, "distinct_experts_by_batch is not an array", err);
    for (size_t i = 0; i < json_array_size(sizes); i++) {
        const json_t *size = json_array_get(sizes, i);
        if (json_is_number(json_object_get(size, "batch")) &&
            json_is_integer(json_object_get(size, "steps")) &&
            is_figure(json_object_get(size, "distinct_experts")))
            continue;
        (void)snprintf(why, sizeof(why),
                       "distinct_experts_by_batch[%zu] lacks batch, steps or "
                       "distinct_experts",
                       i);
        return refuse(path, why, err);
    }
    return AKIN_OK;
}

akin_status_t akin_run_read(const char *path, json_t **run_p, akin_error_t *err)
{
    *run_p = NULL;
    json_t *run;
    akin_status_t status = akin_run_load(path, &run, err);
    if (status != AKIN_OK)
        return status;
    status = akin_run_check(run, path, err);
    if (status != AKIN_OK)
        json_decref(run);
    else
        *run_p = run;
    return status;
}

/* NaN for what is not a number. */
static double number(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

double akin_run_figure(const json_t *run, const akin_run_figure_t *figure)
{
    return figure->key == NULL ? (double)NAN
                               : number(json_object_get(run, figure->key));
}

/* The entry of a batch size; NULL if the run had no such step. The entry that
 * stands for several sizes is left out. */
static const json_t *find_size(const json_t *run, double batch)
{
    const json_t *sizes = json_object_get(run, "distinct_experts_by_batch");
    for (size_t i = 0; i < json_array_size(sizes); i++) {
        const json_t *size = json_array_get(sizes, i);
        if (json_object_get(size, "mixed") == NULL &&
            !(fabs(number(json_object_get(size, "batch")) - batch) > 0.0))
            return size;
    }
    return NULL;
}

/* The steps of that size that every run had. */
static double common_steps(json_t *const *runs, size_t n, double batch)
{
    double least = INFINITY;
    for (size_t r = 0; r < n; r++) {
        const json_t *size = find_size(runs[r], batch);
        if (size == NULL ||
            !json_is_number(json_object_get(size, "distinct_experts")))
            return 0.0;
        least = fmin(least, number(json_object_get(size, "steps")));
    }
    return fmax(least, 0.0);
}

double akin_run_equal_batch(json_t *const *runs, size_t n, double *values)
{
    for (size_t r = 0; r < n; r++)
        values[r] = 0.0;
    double total = 0.0;
    const json_t *sizes = json_object_get(runs[0], "distinct_experts_by_batch");
    for (size_t i = 0; i < json_array_size(sizes); i++) {
        const json_t *entry = json_array_get(sizes, i);
        double batch = number(json_object_get(entry, "batch"));
        if (json_object_get(entry, "mixed") != NULL)
            continue;
        double steps = common_steps(runs, n, batch);
        for (size_t r = 0; r < n && steps > 0.0; r++)
            values[r] +=
                steps * number(json_object_get(find_size(runs[r], batch),
                                               "distinct_experts"));
        total += steps;
    }
    for (size_t r = 0; r < n; r++)
        values[r] = total > 0.0 ? values[r] / total : (double)NAN;
    return total;
}
