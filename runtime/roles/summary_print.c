/* Summary as tables. */
#include "roles/summary.h"
#include "roles/summary_state.h"

#include <errno.h>
#include <inttypes.h>
#include <libsmartcols/libsmartcols.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

/* A table under way; a failed call is noted and the table not printed. */
typedef struct table {
    struct libscols_table *table;
    struct libscols_line *line;
    size_t column;
    int failed;
} table_t;

static void begin(table_t *t, FILE *file, const char *const *columns)
{
    *t = (table_t){.table = scols_new_table()};
    if (t->table == NULL) {
        t->failed = 1;
        return;
    }
    t->failed |= scols_table_set_stream(t->table, file) != 0;
    for (size_t i = 0; columns[i] != NULL; i++)
        t->failed |=
            scols_table_new_column(t->table, columns[i], 0,
                                   i == 0 ? 0 : SCOLS_FL_RIGHT) == NULL;
}

static void row(table_t *t)
{
    t->column = 0;
    t->line = t->failed ? NULL : scols_table_new_line(t->table, NULL);
    t->failed |= t->line == NULL;
}

static void cell(table_t *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void cell(table_t *t, const char *format, ...)
{
    char text[128];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (!t->failed)
        t->failed |= scols_line_set_data(t->line, t->column++, text) != 0;
}

/* A mean, or "-" where nothing was measured. */
static void cell_mean(table_t *t, const akini_mean_t *mean)
{
    if (mean->n == 0)
        cell(t, "-");
    else
        cell(t, "%.2f", akini_mean_get(mean));
}

static akin_status_t finish(table_t *t, FILE *file)
{
    akin_status_t status = AKIN_OK;
    if (t->failed)
        status = AKIN_ERR_NOMEM;
    else if (scols_print_table(t->table) != 0 || fputc('\n', file) == EOF)
        status = AKIN_ERR_IO;
    scols_unref_table(t->table);
    return status;
}

/* How far off the policy was, if it predicts. */
static void print_predictions(table_t *t, const akin_summary_t *summary)
{
    const akini_summary_predictions_t *p = &summary->predictions;
    const double n = (double)p->n, r = akini_summary_correlation(p);
    if (p->n == 0)
        return;
    row(t);
    cell(t, "  the same as the policy expected it, and as it was");
    cell(t, "%.2f, %.2f", p->x / n, p->y / n);
    row(t);
    cell(t, "  mean error, and correlation");
    if (isnan(r))
        cell(t, "%.2f, -", p->error / n);
    else
        cell(t, "%.2f, %.3f", p->error / n, r);
}

/* What the decode policy did, as far as it does such things. */
static void print_routing(table_t *t, const akin_summary_t *summary)
{
    const akin_policy_refits_t *refits = &summary->refits;
    const double age_s = akini_summary_centroid_age_s(summary);
    if (summary->modelled != NULL) {
        row(t);
        cell(t, "modelled");
        cell(t, "%s, %g times slower", summary->modelled, summary->slowdown);
    }
    if (summary->policy != NULL) {
        int is_other = summary->policy_setting != NULL &&
                       strcmp(summary->policy_setting, summary->policy) != 0;
        row(t);
        cell(t, "routing of decode");
        cell(t, is_other ? "%s (%s)" : "%s", summary->policy,
             summary->policy_setting);
    }
    if (summary->band.n > 0) {
        row(t);
        cell(t, "workers in the locality band");
        cell_mean(t, &summary->band);
        row(t);
        cell(t, "similarity to the chosen worker");
        cell(t, "%.3f", akini_mean_get(&summary->similarity));
    }
    if (!refits->is_refitting)
        return;
    row(t);
    cell(t, "refits started, installed, failed");
    cell(t, "%" PRIu64 ", %" PRIu64 ", %" PRIu64, refits->n_started,
         refits->n_installed, refits->n_failed);
    row(t);
    cell(t, "age of the centroids, s");
    if (age_s < 0)
        cell(t, "those of the fit file");
    else
        cell(t, "%.2f", age_s);
    if (refits->n_installed == 0)
        return;
    row(t);
    cell(t, "longest installation of a refit, us");
    cell(t, "%.1f", (double)refits->max_install_ns / 1e3);
}

/* What ep.replace did, or would have done. */
static void print_replaced(table_t *t, const akin_replacer_stats_t *replaced)
{
    const int is_dry = replaced->mode == AKIN_REPLACE_DRY_RUN;
    if (replaced->mode == AKIN_REPLACE_OFF)
        return;
    row(t);
    cell(t, "changes of placement considered, proposed");
    cell(t, "%" PRIu64 ", %" PRIu64, replaced->n_considered,
         replaced->n_proposed);
    if (!is_dry) {
        row(t);
        cell(t, "  applied, dropped");
        cell(t, "%" PRIu64 ", %" PRIu64, replaced->n_applied,
             replaced->n_dropped);
    }
    row(t);
    cell(t, is_dry ? "  experts that a dry run did not move, MiB"
                   : "  experts moved, MiB");
    cell(t, "%" PRIu64 ", %.1f", replaced->n_moved,
         (double)replaced->n_bytes / 1048576.0);
    row(t);
    cell(t, "  gain predicted of that, s");
    cell(t, "%.3f", replaced->gain_s);
}

static akin_status_t print_totals(const akin_summary_t *summary, FILE *file)
{
    static const char *const columns[] = {"run", "", NULL};
    const akini_summary_sums_t *run = &summary->run;
    const double s = akini_summary_duration_s(summary);
    table_t t;
    begin(&t, file, columns);
    row(&t);
    cell(&t, "requests answered");
    cell(&t, "%" PRIu64, summary->completed);
    row(&t);
    cell(&t, "requests failed");
    cell(&t, "%" PRIu64, summary->failed);
    row(&t);
    cell(&t, "duration, s");
    cell(&t, "%.2f", s);
    row(&t);
    cell(&t, "prompt tokens");
    cell(&t, "%" PRIu64, summary->n_prompt_tokens);
    row(&t);
    cell(&t, "generated tokens");
    cell(&t, "%" PRIu64, summary->n_output_tokens);
    row(&t);
    cell(&t, "requests/s");
    cell(&t, "%.2f", (double)summary->completed / s);
    row(&t);
    cell(&t, "generated tokens/s");
    cell(&t, "%.1f", (double)summary->n_output_tokens / s);
    row(&t);
    cell(&t, "decode steps");
    cell(&t, "%" PRIu64, run->n_steps);
    row(&t);
    cell(&t, "distinct experts per decode step and layer");
    cell_mean(&t, &run->distinct);
    if (summary->ep > 1) {
        row(&t);
        cell(&t, "  of the rank with the most");
        cell_mean(&t, &run->max_distinct);
    }
    print_predictions(&t, summary);
    print_routing(&t, summary);
    print_replaced(&t, &summary->replaced);
    row(&t);
    cell(&t, "prefix cache hits, %% of prompt tokens");
    cell(&t, "%.1f",
         run->n_query_tokens == 0
             ? 0
             : 100.0 * (double)run->n_hit_tokens / (double)run->n_query_tokens);
    row(&t);
    cell(&t, "KV blocks moved");
    cell(&t, "%" PRIu64, run->n_blocks);
    row(&t);
    cell(&t, "KV moved, MiB");
    cell(&t, "%.1f", (double)run->n_bytes / 1048576.0);
    for (int i = AKIN_KV_REFUSAL_NONE + 1; i < AKIN_KV_REFUSAL_COUNT; i++) {
        if (run->refused[i] == 0)
            continue;
        row(&t);
        cell(&t, "KV blocks refused: %s",
             akin_kv_refusal_string((akin_kv_refusal_t)i));
        cell(&t, "%" PRIu64, run->refused[i]);
    }
    return finish(&t, file);
}

/* A row with a count; none where there is nothing to tell. */
static void count_row(table_t *t, const char *name, uint64_t n)
{
    if (n == 0)
        return;
    row(t);
    cell(t, "%s", name);
    cell(t, "%" PRIu64, n);
}

static akin_status_t print_recovery(const akin_summary_t *summary, FILE *file)
{
    static const char *const columns[] = {"recovery", "", NULL};
    const akini_summary_recovery_t *r = &summary->recovery;
    const uint64_t n_resumed = akin_histogram_count(summary->resumed);
    table_t t;
    begin(&t, file, columns);
    if (summary->run.n_lost > 0) {
        row(&t);
        cell(&t, "workers lost, and requests that they held");
        cell(&t, "%" PRIu64 ", %" PRIu64, summary->run.n_lost,
             summary->run.n_restarted);
    }
    count_row(&t, "lost workers that served again", summary->run.n_recovered);
    if (summary->run.n_recovered > 0) {
        row(&t);
        cell(&t, "  after, s: mean, most");
        cell(&t, "%.2f, %.2f", akini_mean_get(&r->recovered_ns) / 1e9,
             (double)r->max_recovered_ns / 1e9);
    }
    count_row(&t, "requests that had to begin again", r->n_retries);
    count_row(&t, "requests that went on after a loss", n_resumed);
    if (n_resumed > 0) {
        row(&t);
        cell(&t, "  next token after, ms: p50, most");
        cell(&t, "%.1f, %.1f",
             akin_histogram_percentile(summary->resumed, 50) / 1e6,
             akin_histogram_percentile(summary->resumed, 100) / 1e6);
    }
    count_row(&t, "messages of or for dead ranks, dropped", r->n_late);
    count_row(&t, "leases of KV blocks that ran out", r->leases.n_expired);
    if (r->max_blocks == 0)
        return finish(&t, file);
    row(&t);
    cell(&t, "KV blocks pinned: at the end, most");
    cell(&t, "%" PRIu64 ", %" PRIu64, r->leases.n_blocks, r->max_blocks);
    row(&t);
    cell(&t, "oldest lease, s: at the end, most");
    cell(&t, "%.2f, %.2f", (double)r->leases.oldest_ns / 1e9,
         (double)r->max_oldest_ns / 1e9);
    return finish(&t, file);
}

static akin_status_t print_times(const akin_summary_t *summary, FILE *file)
{
    static const char *const columns[] = {"ms",  "mean", "std", "p50",
                                          "p95", "p99",  NULL};
    const struct {
        const char *name;
        akin_histogram_t *h;
    } rows[] = {{"time to first token", summary->ttft},
                {"time per output token", summary->tpot},
                {"inter-token latency", summary->itl},
                {"request latency", summary->e2el},
                {"routing decision", summary->routing},
                {"KV transfer", summary->transfer}};
    table_t t;
    begin(&t, file, columns);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (akin_histogram_count(rows[i].h) == 0)
            continue;
        row(&t);
        cell(&t, "%s", rows[i].name);
        cell(&t, "%.3f", akin_histogram_mean(rows[i].h) / 1e6);
        cell(&t, "%.3f", akin_histogram_std(rows[i].h) / 1e6);
        cell(&t, "%.3f", akin_histogram_percentile(rows[i].h, 50) / 1e6);
        cell(&t, "%.3f", akin_histogram_percentile(rows[i].h, 95) / 1e6);
        cell(&t, "%.3f", akin_histogram_percentile(rows[i].h, 99) / 1e6);
    }
    return finish(&t, file);
}

static akin_status_t print_workers(const akin_summary_t *summary, FILE *file)
{
    static const char *const columns[] = {
        "worker", "rank",    "node",    "steps",       "tokens",
        "idle %", "batch",   "experts", "prefix hits", "blocks in",
        "MiB in", "refused", "via",     NULL};
    table_t t;
    begin(&t, file, columns);
    for (uint32_t i = 0; i < summary->n_workers; i++) {
        const akini_summary_sums_t *w = &summary->workers[i];
        row(&t);
        cell(&t, "%s", w->name == NULL ? "-" : w->name);
        cell(&t, "%" PRIu32, w->rank);
        cell(&t, "%s", w->node == NULL ? "-" : w->node);
        cell(&t, "%" PRIu64, w->n_steps);
        cell(&t, "%" PRIu64, w->n_rows);
        cell(&t, "%.1f", 100.0 * akini_summary_idle_share(summary, w));
        cell(&t, "%.1f",
             w->n_steps == 0 ? 0 : (double)w->n_rows / (double)w->n_steps);
        cell_mean(&t, &w->distinct);
        cell(&t, "%" PRIu64, w->n_hit_tokens);
        cell(&t, "%" PRIu64, w->n_blocks);
        cell(&t, "%.1f", (double)w->n_bytes / 1048576.0);
        cell(&t, "%" PRIu64, akini_summary_refused(w));
        cell(&t, "%s", w->transport == NULL ? "-" : w->transport);
    }
    return finish(&t, file);
}

/* Batch sizes by powers of two: 1, 2, 3-4, 5-8, ... */
static akin_status_t print_batches(const akin_summary_t *summary, FILE *file)
{
    static const char *const columns[] = {"batch", "steps", "step, ms",
                                          "experts", NULL};
    table_t t;
    begin(&t, file, columns);
    uint32_t low = 1;
    for (uint32_t high = 1; low <= AKINI_SUMMARY_BATCHES + 1; high *= 2) {
        akini_summary_batch_t sum = {0};
        const int last = low > AKINI_SUMMARY_BATCHES;
        for (uint32_t size = low;
             size <= (last ? AKINI_SUMMARY_BATCHES + 1 : high); size++) {
            const akini_summary_batch_t *b = &summary->batches[size - 1];
            sum.n_steps += b->n_steps;
            sum.distinct.n += b->distinct.n;
            sum.distinct.sum += b->distinct.sum;
            sum.step_ns.n += b->step_ns.n;
            sum.step_ns.sum += b->step_ns.sum;
        }
        if (sum.n_steps > 0) {
            row(&t);
            if (last)
                cell(&t, "%u and more", low);
            else if (low == high)
                cell(&t, "%u", low);
            else
                cell(&t, "%u-%u", low, high);
            cell(&t, "%" PRIu64, sum.n_steps);
            cell(&t, "%.3f", akini_mean_get(&sum.step_ns) / 1e6);
            cell_mean(&t, &sum.distinct);
        }
        low = high + 1;
        if (last)
            break;
    }
    return finish(&t, file);
}

akin_status_t akin_summary_print(akin_summary_t *summary, FILE *file)
{
    akin_status_t status = print_totals(summary, file);
    if (status == AKIN_OK && akini_summary_has_recovery(summary))
        status = print_recovery(summary, file);
    if (status == AKIN_OK)
        status = print_times(summary, file);
    if (status == AKIN_OK && summary->run.n_steps > 0)
        status = print_batches(summary, file);
    if (status == AKIN_OK && summary->n_workers > 0)
        status = print_workers(summary, file);
    if (status == AKIN_OK && fflush(file) != 0)
        status = AKIN_ERR_IO;
    return status;
}
