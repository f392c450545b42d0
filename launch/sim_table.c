/* Sim table: the runs of a simulation as text. */
#include "launch/sim.h"

#include "launch/command.h"

#include <libsmartcols/libsmartcols.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct report {
    const akin_sim_job_t *job;
    struct libscols_table *table;
    double *values; /* [n_seeds] */
} report_t;

static void print_head(const akin_sim_job_t *job)
{
    const akin_sim_params_t *p = &job->params;
    char arrivals[64];
    akin_sim_arrivals_text(job, arrivals, sizeof(arrivals));
    (void)printf("%s: %s on %s, %uP%uD", job->path, job->shape.name,
                 job->machine.name, p->n_prefill, p->n_decode);
    if (p->n_ranks > 1)
        (void)printf(" of %u ranks (%s, %u replicas)", p->n_ranks,
                     job->placement, job->n_replicas);
    (void)printf(", %s, %s\n", job->workload.name, arrivals);
    (void)printf("%u seeds of %u requests after %u to warm up; times in ms, "
                 "experts per layer and step\n",
                 job->n_seeds, p->n_measured, p->n_warmup);
    if (akin_sim_job_needs_fit(job) && !akin_sim_job_learns(job))
        (void)printf("fit: %s, rho %.2f\n",
                     akin_config_string(job->config, "fit.file"), job->fit.rho);
    else if (akin_sim_job_needs_fit(job))
        (void)printf("fit: %lld other requests, rho %.2f\n",
                     (long long)akin_config_int(job->config, "fit.requests"),
                     job->fit.rho);
    (void)printf("\n");
}

static int add_column(report_t *r, const char *title, int flags)
{
    return scols_table_new_column(r->table, title, 0, flags) == NULL;
}

/* Some figures are of no interest where all of them are 0. */
static bool is_shown(const report_t *r, const akin_sim_figure_t *figure)
{
    bool is_any = !figure->if_any;
    for (uint32_t c = 0; c < r->job->n_cases && !is_any; c++) {
        double width;
        is_any =
            akin_sim_figure_mean(r->job, c, figure, r->values, &width) > 0.0;
    }
    return figure->title != NULL && is_any;
}

static int add_columns(report_t *r)
{
    int failed = add_column(r, "policy", 0);
    for (size_t f = 0; f < akin_sim_n_figures; f++) {
        if (!is_shown(r, &akin_sim_figures[f]))
            continue;
        failed |= add_column(r, akin_sim_figures[f].title, SCOLS_FL_RIGHT);
        if (akin_sim_figures[f].has_change && r->job->n_cases > 1)
            failed |= add_column(r, "%", SCOLS_FL_RIGHT);
    }
    return failed;
}

/* A figure, or a sign that nothing was measured of it. */
static void print_value(char *text, size_t size, int digits, double value)
{
    if (isfinite(value))
        (void)snprintf(text, size, "%.*f", digits, value);
    else
        (void)snprintf(text, size, "-");
}

static int add_figure(report_t *r, struct libscols_line *line, size_t *column,
                      uint32_t which, const akin_sim_figure_t *figure)
{
    char text[64];
    double width;
    double mean =
        akin_sim_figure_mean(r->job, which, figure, r->values, &width);
    print_value(text, sizeof(text), figure->digits, mean);
    int failed = scols_line_set_data(line, (*column)++, text);
    if (!figure->has_change || r->job->n_cases < 2)
        return failed;
    mean = akin_sim_figure_change(r->job, which, figure, r->values, &width);
    if (which == 0 || !isfinite(mean))
        (void)snprintf(text, sizeof(text), "-");
    else if (isfinite(width))
        (void)snprintf(text, sizeof(text), "%+.1f +-%.1f", mean, width);
    else
        (void)snprintf(text, sizeof(text), "%+.1f", mean);
    return failed | scols_line_set_data(line, (*column)++, text);
}

static int add_case(report_t *r, uint32_t which)
{
    struct libscols_line *line = scols_table_new_line(r->table, NULL);
    size_t column = 0;
    if (line == NULL)
        return 1;
    int failed = scols_line_set_data(line, column++, r->job->policies[which]);
    for (size_t f = 0; f < akin_sim_n_figures; f++)
        if (is_shown(r, &akin_sim_figures[f]))
            failed |= add_figure(r, line, &column, which, &akin_sim_figures[f]);
    return failed;
}

static int print_cases(report_t *r)
{
    int failed = add_columns(r);
    for (uint32_t c = 0; c < r->job->n_cases && !failed; c++)
        failed = add_case(r, c);
    return failed || scols_print_table(r->table) != 0;
}

/* Three thirds of three figures each. */
static int print_drift(report_t *r)
{
    static const char *const titles[AKIN_SIM_PHASES][3] = {
        {"before: TPOT p50", "p99", "experts"},
        {"during: TPOT p50", "p99", "experts"},
        {"after: TPOT p50", "p99", "experts"}};
    int failed = add_column(r, "policy", 0);
    for (uint32_t i = 0; i < AKIN_SIM_PHASES * 3; i++)
        failed |= add_column(r, titles[i / 3][i % 3], SCOLS_FL_RIGHT);
    for (uint32_t c = 0; c < r->job->n_cases && !failed; c++) {
        struct libscols_line *line = scols_table_new_line(r->table, NULL);
        if (line == NULL)
            return 1;
        failed = scols_line_set_data(line, 0, r->job->policies[c]);
        for (uint32_t i = 0; i < AKIN_SIM_PHASES * 3; i++) {
            char text[64];
            double means[3];
            akin_sim_phase_means(r->job, c, i / 3, means);
            print_value(text, sizeof(text), 2, means[i % 3]);
            failed |= scols_line_set_data(line, i + 1, text);
        }
    }
    return failed || scols_print_table(r->table) != 0;
}

int akin_sim_print_table(const akin_sim_job_t *job)
{
    report_t report = {.job = job, .table = scols_new_table()};
    report.values = calloc(job->n_seeds, sizeof(*report.values));
    int failed = report.table == NULL || report.values == NULL;
    if (!failed) {
        print_head(job);
        failed = print_cases(&report);
    }
    if (!failed && job->params.later_shares != NULL) {
        (void)printf("\nThe mix of domains turns over:\n");
        scols_unref_table(report.table);
        report.table = scols_new_table();
        failed = report.table == NULL || print_drift(&report);
    }
    scols_unref_table(report.table);
    free(report.values);
    if (failed)
        (void)fprintf(stderr, "akin: the table could not be printed\n");
    return failed ? AKIN_EXIT_FAILED : AKIN_EXIT_OK;
}
