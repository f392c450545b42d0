/* Report page: the load of workers, in sums and over time, and the experts
 * that they use. */
#include "launch/report_page.h"
#include "launch/report_plot.h"
#include "launch/report_tiles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* More would make the page too long. */
enum { CASES_MAX = 16 };

static int is_decode(const json_t *worker)
{
    const char *role = json_string_value(json_object_get(worker, "role"));
    return role == NULL || strcmp(role, "decode") == 0;
}

static double at_least_0(double value)
{
    return isfinite(value) ? fmax(value, 0.0) : 0.0;
}

/* Tokens of the decode workers, and how busy all workers were. */
static akin_status_t run_workers(FILE *out, const akin_report_case_t *c)
{
    static const char *const roles[] = {"decode", "prefill"};
    const json_t *workers = json_object_get(c->json, "workers");
    const size_t n = json_array_size(workers);
    char title[192];
    size_t n_decode = 0;
    double *tokens = calloc(n, sizeof(*tokens));
    double *busy = calloc(n, sizeof(*busy));
    unsigned char *colours = calloc(n, sizeof(*colours));
    const int failed = tokens == NULL || busy == NULL || colours == NULL;
    for (size_t i = 0; i < n && !failed; i++) {
        const json_t *worker = json_array_get(workers, i);
        const double idle = akin_report_number(worker, "idle_share");
        colours[i] = is_decode(worker) ? 0 : 1;
        busy[i] = isfinite(idle) ? at_least_0(100.0 * (1.0 - idle)) : 0.0;
        if (is_decode(worker))
            tokens[n_decode++] =
                at_least_0(akin_report_number(worker, "tokens"));
    }
    if (!failed) {
        (void)snprintf(title, sizeof(title), "%s: tokens of decode workers",
                       c->label);
        const akin_report_columns_t load = {.title = title,
                                            .x_title = "decode worker",
                                            .y_title = "tokens",
                                            .values = tokens,
                                            .n = n_decode};
        akin_report_draw_columns(out, &load);
        (void)snprintf(title, sizeof(title), "%s: time spent on steps",
                       c->label);
        const akin_report_columns_t share = {.title = title,
                                             .x_title = "worker, in the order "
                                                        "of ranks",
                                             .y_title = "% of the run",
                                             .values = busy,
                                             .colours = colours,
                                             .series = roles,
                                             .n = n,
                                             .n_series = 2};
        akin_report_draw_columns(out, &share);
    }
    free(tokens);
    free(busy);
    free(colours);
    return failed ? AKIN_ERR_NOMEM : AKIN_OK;
}

static akin_status_t sums(FILE *out, const akin_report_input_t *input)
{
    size_t n = 0;
    akin_status_t status = AKIN_OK;
    akini_report_heading(out, "Work of the workers");
    (void)fprintf(out, "<div class=\"charts\">\n");
    for (size_t i = 0; i < input->n_cases && status == AKIN_OK; i++) {
        const akin_report_case_t *c = &input->cases[i];
        if (json_array_size(json_object_get(c->json, "workers")) == 0)
            continue;
        if (++n <= CASES_MAX)
            status = run_workers(out, c);
    }
    (void)fprintf(out, "</div>\n");
    if (n == 0)
        akini_report_none(out, "No file has sums of each worker; summaries of "
                               "runs do.");
    if (n > CASES_MAX)
        akini_report_none(out, "The workers of the first 16 runs are drawn.");
    return status;
}

/* Policies of a file, and runs, are drawn on one scale. */
static int have_one_scale(const akin_report_case_t *a,
                          const akin_report_case_t *b)
{
    return a->is_run ? b->is_run : a->file == b->file;
}

static double top_of(const akin_report_input_t *input,
                     const akin_report_case_t *of)
{
    double top = 0.0;
    for (size_t i = 0; i < input->n_cases; i++) {
        const akin_report_watch_t *watch = &input->cases[i].watch;
        if (!have_one_scale(of, &input->cases[i]))
            continue;
        for (size_t k = 0; k < watch->n_workers * watch->n_bins; k++)
            top = fmax(top, watch->loads[k]);
    }
    return top > 0.0 ? top : 1.0;
}

static akin_status_t draw_load(FILE *out, const akin_report_input_t *input,
                               size_t index)
{
    const akin_report_case_t *c = &input->cases[index];
    const akin_report_watch_t *watch = &c->watch;
    const double spread = akin_report_watch_spread(watch);
    char title[192], note[256];
    double *means = calloc(watch->n_bins, sizeof(*means));
    if (means == NULL)
        return AKIN_ERR_NOMEM;
    for (size_t b = 0; b < watch->n_bins; b++)
        for (size_t w = 0; w < watch->n_workers; w++)
            means[b] +=
                watch->loads[w * watch->n_bins + b] / (double)watch->n_workers;
    (void)snprintf(title, sizeof(title), "%s: requests of each decode worker",
                   c->label);
    int n = snprintf(note, sizeof(note), "The line is the mean of them.");
    if (isfinite(spread))
        n += snprintf(note + n, sizeof(note) - (size_t)n,
                      " The fullest has %.2f times the mean, on average.",
                      spread);
    if (watch->n_all > watch->n_workers)
        (void)snprintf(note + n, sizeof(note) - (size_t)n,
                       " The first %zu of %zu workers.", watch->n_workers,
                       watch->n_all);
    const akin_report_tiles_t tiles = {.title = title,
                                       .note = note,
                                       .values = watch->loads,
                                       .means = means,
                                       .n = watch->n_workers,
                                       .n_points = watch->n_bins,
                                       .piece_s = watch->bin_s,
                                       .end_s = watch->end_s,
                                       .top = top_of(input, c)};
    akin_report_draw_tiles(out, &tiles, index);
    free(means);
    return AKIN_OK;
}

static akin_status_t draw_choices(FILE *out, const akin_report_case_t *c)
{
    const akin_report_watch_t *watch = &c->watch;
    const size_t n = watch->n_experts;
    char title[192], x_title[96], note[256];
    double *shares = calloc(watch->n_workers * n, sizeof(*shares));
    size_t *order = calloc(n, sizeof(*order));
    size_t *rows = calloc(watch->n_workers, sizeof(*rows));
    akin_status_t status = AKIN_ERR_NOMEM;
    if (shares != NULL && order != NULL && rows != NULL) {
        akin_report_watch_shares(watch, shares);
        akin_report_watch_rows(shares, watch->n_workers, n, rows);
        status =
            akin_report_watch_order(shares, rows, watch->n_workers, n, order);
    }
    if (status == AKIN_OK) {
        (void)snprintf(title, sizeof(title),
                       "%s: experts that the workers use in layer %zu",
                       c->label, watch->layer);
        (void)snprintf(x_title, sizeof(x_title),
                       "%zu experts, by the worker that uses them most", n);
        (void)snprintf(note, sizeof(note),
                       "Of all layers the one in which the workers differ "
                       "most, by %.3f bits.",
                       watch->layer < watch->n_layers
                           ? watch->difference[watch->layer]
                           : 0.0);
        const akin_report_map_t map = {.title = title,
                                       .x_title = x_title,
                                       .y_title =
                                           "decode worker, like beside like",
                                       .note = note,
                                       .unit = "times an even share, from",
                                       .values = shares,
                                       .rows = rows,
                                       .order = order,
                                       .n_rows = watch->n_workers,
                                       .n_columns = n};
        akin_report_draw_map(out, &map);
    }
    free(shares);
    free(order);
    free(rows);
    return status;
}

static akin_status_t over_time(FILE *out, const akin_report_input_t *input)
{
    size_t n = 0;
    akin_status_t status = AKIN_OK;
    akini_report_heading(out, "Load over time, and the experts in use");
    (void)fprintf(out, "<div class=\"charts\">\n");
    for (size_t i = 0; i < input->n_cases && status == AKIN_OK; i++) {
        const akin_report_watch_t *watch = &input->cases[i].watch;
        if (watch->n_workers == 0 || watch->n_bins == 0 || ++n > CASES_MAX)
            continue;
        status = draw_load(out, input, i);
        if (status == AKIN_OK && watch->n_experts > 0)
            status = draw_choices(out, &input->cases[i]);
    }
    (void)fprintf(out, "</div>\n");
    if (n == 0)
        akini_report_none(out,
                          "No file has the load of its workers over time.");
    else
        akini_report_none(
            out, "Load is the requests of a worker: of a job those that run "
                 "and those on their way to it, of a simulation those that "
                 "run, so that the curves of one say nothing beside those of "
                 "the other. Curves of one file, or of all runs, have one "
                 "scale. "
                 "A policy that gives every worker experts of its own draws a "
                 "staircase in the map; one that mixes them draws columns.");
    if (n > CASES_MAX)
        akini_report_none(out, "The first 16 are drawn.");
    return status;
}

static akin_status_t differences(FILE *out, const akin_report_input_t *input)
{
    akini_report_plot_t plot = {0};
    akin_status_t status = akini_report_plot_create(&plot, input->n_cases);
    if (status != AKIN_OK)
        return status;
    for (size_t i = 0; i < input->n_cases; i++) {
        const akin_report_watch_t *watch = &input->cases[i].watch;
        if (watch->n_layers < 2)
            continue;
        akin_report_line_t *line =
            akini_report_plot_line(&plot, input->cases[i].label);
        for (size_t l = 0; l < watch->n_layers; l++)
            akini_report_plot_add(&plot, line, (double)l, watch->difference[l]);
    }
    if (plot.n > 0) {
        const akin_report_chart_t chart = {
            .title = "By how much the workers' experts differ, layer by layer",
            .x_title = "layer",
            .y_title = "bits",
            .lines = plot.lines,
            .n_lines = plot.n,
            .x_from_zero = 1};
        (void)fprintf(out, "<div class=\"charts\">\n");
        akin_report_draw_lines(out, &chart);
        (void)fprintf(out, "</div>\n");
        akini_report_none(
            out, "The Jensen-Shannon divergence of the workers' shares: 0 if "
                 "all use the same experts, the binary logarithm of the number "
                 "of workers if no two share one.");
    }
    akini_report_plot_destroy(&plot);
    return AKIN_OK;
}

akin_status_t akini_report_workers(FILE *out, const akin_report_input_t *input)
{
    akin_status_t status = over_time(out, input);
    if (status == AKIN_OK)
        status = differences(out, input);
    if (status == AKIN_OK)
        status = sums(out, input);
    return status;
}
