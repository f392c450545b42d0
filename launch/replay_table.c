/* A study of replays as text. */
#include "launch/replay_print.h"

#include "launch/command.h"
#include "launch/replay_figures.h"

#include <errno.h>
#include <libsmartcols/libsmartcols.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A column that shows means. */
typedef struct column {
    const char *title;
    akin_replay_metric_t metric;
    int digits;
} column_t;

static const column_t times[] = {{"P50", AKIN_REPLAY_P50, 2},
                                 {"mean", AKIN_REPLAY_MEAN, 2},
                                 {"P95", AKIN_REPLAY_P95, 2},
                                 {"P99", AKIN_REPLAY_P99, 2}};

static const column_t changes[] = {{"P50", AKIN_REPLAY_P50, 1},
                                   {"mean", AKIN_REPLAY_MEAN, 1},
                                   {"P99", AKIN_REPLAY_P99, 1}};

static const column_t others[] = {{"experts", AKIN_REPLAY_DISTINCT, 2},
                                  {"batch", AKIN_REPLAY_BATCH, 1},
                                  {"spread", AKIN_REPLAY_SPREAD, 2},
                                  {"band", AKIN_REPLAY_BAND, 1},
                                  {"cosine", AKIN_REPLAY_SIMILARITY, 2}};

/* With several ranks per worker. */
static const column_t rank_columns[] = {{"busiest", AKIN_REPLAY_BUSIEST, 2},
                                        {"expected", AKIN_REPLAY_PREDICTED, 2},
                                        {"corr", AKIN_REPLAY_CORRELATION, 2}};

static const column_t wait_column = {"wait", AKIN_REPLAY_WAIT, 1};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

typedef struct report {
    const akin_replay_job_t *job;
    uint32_t best; /* balancer */
    struct libscols_table *table;
    struct libscols_line *line; /* of the case being added */
    size_t column;
    double *values; /* [n_seeds] */
} report_t;

static int add_column(report_t *r, const char *title)
{
    return scols_table_new_column(r->table, title, 0, SCOLS_FL_RIGHT) == NULL;
}

static int add_columns(report_t *r)
{
    char title[64];
    int failed = scols_table_new_column(r->table, "policy", 0, 0) == NULL;
    for (size_t i = 0; i < COUNT(times); i++)
        failed |= add_column(r, times[i].title);
    for (size_t i = 0; i < COUNT(changes) && r->best != AKIN_REPLAY_NO_CASE;
         i++) {
        (void)snprintf(title, sizeof(title), "%s vs %s", changes[i].title,
                       r->job->cases[r->best].policy);
        failed |= add_column(r, title);
    }
    for (size_t i = 0; i < COUNT(others); i++)
        failed |= add_column(r, others[i].title);
    for (size_t i = 0; i < COUNT(rank_columns) && r->job->options.n_ranks > 1;
         i++)
        failed |= add_column(r, rank_columns[i].title);
    if (r->job->options.rate > 0.0)
        failed |= add_column(r, wait_column.title);
    return failed;
}

static int add_text(report_t *r, const char *text)
{
    return scols_line_set_data(r->line, r->column++, text) != 0;
}

static int add_mean(report_t *r, uint32_t which, const column_t *column)
{
    char text[64];
    akin_replay_values(r->job, which, column->metric, r->values);
    const akin_interval_t of =
        akin_interval_of(r->values, r->job->options.n_seeds);
    /* A figure of 0 says that the policy has none. */
    if (of.mean == 0.0 && (column->metric == AKIN_REPLAY_BAND ||
                           column->metric == AKIN_REPLAY_SIMILARITY ||
                           column->metric == AKIN_REPLAY_PREDICTED ||
                           column->metric == AKIN_REPLAY_CORRELATION))
        return add_text(r, "-");
    (void)snprintf(text, sizeof(text), "%.*f", column->digits, of.mean);
    return add_text(r, text);
}

static int add_change(report_t *r, uint32_t which, const column_t *column)
{
    char text[64];
    if (which == r->best)
        return add_text(r, "-");
    akin_replay_changes(r->job, which, r->best, column->metric, r->values);
    const akin_interval_t of =
        akin_interval_of(r->values, r->job->options.n_seeds);
    if (isfinite(of.half_width))
        (void)snprintf(text, sizeof(text), "%+.*f +-%.*f", column->digits,
                       of.mean, column->digits, of.half_width);
    else
        (void)snprintf(text, sizeof(text), "%+.*f", column->digits, of.mean);
    return add_text(r, text);
}

static int add_case(report_t *r, uint32_t which)
{
    char name[64];
    akin_replay_case_name(&r->job->cases[which], name, sizeof(name));
    r->line = scols_table_new_line(r->table, NULL);
    r->column = 0;
    if (r->line == NULL)
        return 1;
    int failed = add_text(r, name);
    for (size_t i = 0; i < COUNT(times); i++)
        failed |= add_mean(r, which, &times[i]);
    for (size_t i = 0; i < COUNT(changes) && r->best != AKIN_REPLAY_NO_CASE;
         i++)
        failed |= add_change(r, which, &changes[i]);
    for (size_t i = 0; i < COUNT(others); i++)
        failed |= add_mean(r, which, &others[i]);
    for (size_t i = 0; i < COUNT(rank_columns) && r->job->options.n_ranks > 1;
         i++)
        failed |= add_mean(r, which, &rank_columns[i]);
    if (r->job->options.rate > 0.0)
        failed |= add_mean(r, which, &wait_column);
    return failed;
}

static void print_trace(const akin_replay_job_t *job)
{
    const akin_replay_options_t *o = &job->options;
    const akin_trace_shape_t *shape = &job->set->shape;
    const char *model = akin_trace_model(job->trace);
    const uint32_t n = job->set->n_requests;
    (void)printf("%s: %s%s%u layers x %u experts, top-%u\n", o->path, model,
                 model[0] != '\0' ? ", " : "", shape->n_layers,
                 shape->n_experts, shape->top_k);
    (void)printf("%u requests", n);
    if (job->set->n_short > 0)
        (void)printf(" (%u too short and left out)", job->set->n_short);
    if (job->study.n_fit > 0)
        (void)printf(", per seed %u to fit and the other %u to measure",
                     job->study.n_fit, n - job->study.n_fit);
    (void)printf(", %u measured in random passes, none beside its copy\n",
                 job->study.replay.n_measured);
}

static void print_pool(const akin_replay_job_t *job)
{
    const akin_replay_options_t *o = &job->options;
    if (o->rate > 0.0)
        (void)printf("open loop, %u workers, %g requests/s", o->n_workers,
                     o->rate);
    else
        (void)printf("closed loop, %u workers x %u in flight", o->n_workers,
                     o->in_flight);
    if (o->n_ranks > 1)
        (void)printf(", %u ranks per worker, %u replica slots per layer",
                     o->n_ranks, o->n_replicas);
    if (o->max_batch > 0)
        (void)printf(", at most %u per worker", o->max_batch);
    (void)printf("; step = %g + %g x (%s / all experts) + %g x batch ms\n",
                 o->step_ms[0], o->step_ms[1],
                 o->n_ranks > 1 ? "ranks x busiest rank's" : "distinct",
                 o->step_ms[2]);
}

static void print_study(const akin_replay_job_t *job)
{
    const akin_replay_options_t *o = &job->options;
    const char *variant = akin_replay_variant(job);
    double rho = akin_replay_mean_rho(job);
    char text[256];
    (void)printf("%u seed%s from %llu", o->n_seeds, o->n_seeds > 1 ? "s" : "",
                 (unsigned long long)o->seed);
    if (o->fit_path != NULL)
        (void)printf("; fit %s", o->fit_path);
    if (variant != NULL)
        (void)printf("; %s", variant);
    if (isfinite(rho))
        (void)printf(", rho %.2f", rho);
    (void)printf("; %.1f s\n", job->seconds);
    for (uint32_t i = 0; akin_replay_caveat(job, i, text, sizeof(text)) != NULL;
         i++)
        (void)printf("caveat: %s\n", text);
}

static void print_legend(const report_t *r)
{
    const char *of =
        r->job->options.rate > 0.0 ? "TPOT and wait in ms" : "TPOT in ms";
    const uint32_t n_seeds = r->job->options.n_seeds;
    if (r->best == AKIN_REPLAY_NO_CASE)
        (void)printf("\n%s; no changes, as no load balancer (random, rr, jsq, "
                     "p2c) was replayed; experts per layer and step\n\n",
                     of);
    else
        (void)printf("\n%s; changes in %%%s against %s, the best load balancer "
                     "here; experts per layer and step\n\n",
                     of, n_seeds > 1 ? " with 95 % intervals" : "",
                     r->job->cases[r->best].policy);
}

static int print_rows(report_t *r)
{
    int failed = add_columns(r);
    for (uint32_t c = 0; c < r->job->n_cases && !failed; c++)
        failed = add_case(r, c);
    if (failed)
        return failed;
    print_trace(r->job);
    print_pool(r->job);
    print_study(r->job);
    print_legend(r);
    return scols_print_table(r->table) != 0 || fflush(stdout) != 0;
}

int akin_replay_print_table(const akin_replay_job_t *job)
{
    report_t r = {
        .job = job,
        .best = akin_replay_best_balancer(job),
        .table = scols_new_table(),
        .values = calloc(job->options.n_seeds, sizeof(*r.values)),
    };
    errno = 0;
    int failed = r.table == NULL || r.values == NULL || print_rows(&r);
    int code = errno;
    scols_unref_table(r.table);
    free(r.values);
    if (!failed)
        return AKIN_EXIT_OK;
    (void)fprintf(stderr, "akin: cannot print the table: %s\n",
                  code != 0 ? strerror(code) : "out of memory");
    return AKIN_EXIT_FAILED;
}
