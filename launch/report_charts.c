/* Report page: the charts, or why there is none. */
#include "launch/report_page.h"
#include "launch/report_plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void akini_report_none(FILE *out, const char *text)
{
    (void)fprintf(out, "<p class=\"none\">%s</p>\n", text);
}

void akini_report_heading(FILE *out, const char *text)
{
    (void)fprintf(out, "<h2>%s</h2>\n", text);
}

static void draw(FILE *out, const akini_report_plot_t *plot, const char *title,
                 const char *x_title, const char *y_title, int is_percent)
{
    const akin_report_chart_t chart = {.title = title,
                                       .x_title = x_title,
                                       .y_title = y_title,
                                       .lines = plot->lines,
                                       .n_lines = plot->n,
                                       .x_from_zero = 1,
                                       .y_is_percent = is_percent};
    akin_report_draw_lines(out, &chart);
}

/* The time that so many percent of the requests needed at most. */
static double percentile(const akin_report_case_t *c, const char *name,
                         int percent)
{
    char key[32];
    if (c->is_run || c->is_sim)
        (void)snprintf(key, sizeof(key), "p%d_%s_ms", percent, name);
    else
        (void)snprintf(key, sizeof(key), "%s_p%d_ms", name, percent);
    return c->is_run
               ? akin_report_number(c->json, key)
               : akin_report_number(json_object_get(c->json, key), "mean");
}

/* All percentiles that the file has. */
static void add_percentiles(akini_report_plot_t *plot,
                            const akin_report_case_t *c, const char *name)
{
    static const int percents[] = {50, 90, 95, 99};
    char key[40];
    (void)snprintf(key, sizeof(key), "%s_percentiles_ms", name);
    const json_t *all = json_object_get(c->json, key);
    if (!json_is_array(all) && !isfinite(percentile(c, name, 50)))
        return;
    akin_report_line_t *line = akini_report_plot_line(plot, c->label);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *pair = json_array_get(all, i);
        akini_report_plot_add(plot, line,
                              json_number_value(json_array_get(pair, 1)),
                              json_number_value(json_array_get(pair, 0)));
    }
    for (size_t i = 0; !json_is_array(all) && i < 4; i++)
        akini_report_plot_add(plot, line, percentile(c, name, percents[i]),
                              percents[i]);
}

static akin_status_t distribution(FILE *out, const akin_report_input_t *input,
                                  akin_report_metric_t metric, const char *name,
                                  const char *title)
{
    akini_report_plot_t plot = {0};
    akin_status_t status = akini_report_plot_create(&plot, input->n_cases);
    if (status != AKIN_OK)
        return status;
    for (size_t i = 0; i < input->n_cases; i++)
        if (isfinite(input->cases[i].values[metric]))
            add_percentiles(&plot, &input->cases[i], name);
    if (plot.n > 0)
        draw(out, &plot, title, "ms", "% of requests at or below", 1);
    akini_report_plot_destroy(&plot);
    return AKIN_OK;
}

static akin_status_t distributions(FILE *out, const akin_report_input_t *input)
{
    const int has_ttft = akin_report_count(input, AKIN_REPORT_TTFT_P50) > 0;
    const int has_tpot = akin_report_count(input, AKIN_REPORT_TPOT_P50) > 0;
    akini_report_heading(out, "How times are distributed");
    (void)fprintf(out, "<div class=\"charts\">\n");
    akin_status_t status = distribution(
        out, input, AKIN_REPORT_TPOT_P50, "tpot",
        "Time per output token (TPOT): share of requests within a time");
    if (status == AKIN_OK)
        status = distribution(
            out, input, AKIN_REPORT_TTFT_P50, "ttft",
            "Time to first token (TTFT): share of requests within a time");
    (void)fprintf(out, "</div>\n");
    for (size_t i = 0; i < input->n_cases; i++)
        if (!input->cases[i].is_run &&
            !json_is_array(
                json_object_get(input->cases[i].json, "tpot_percentiles_ms"))) {
            akini_report_none(out, "Of some files three percentiles are known: "
                                   "50, 95 and 99.");
            break;
        }
    if (!has_tpot)
        akini_report_none(out, "No file has times per output token.");
    if (!has_ttft)
        akini_report_none(
            out, "No file has times to the first token: replays model decode "
                 "alone.");
    return status;
}

static void add_batches(akini_report_plot_t *plot, const akin_report_case_t *c)
{
    const json_t *sizes = json_object_get(c->json, "distinct_experts_by_batch");
    akin_report_line_t *line = akini_report_plot_line(plot, c->label);
    for (size_t i = 0; i < json_array_size(sizes); i++) {
        const json_t *size = json_array_get(sizes, i);
        akini_report_plot_add(plot, line, akin_report_number(size, "batch"),
                              akin_report_number(size, "distinct_experts"));
    }
    if (json_array_size(sizes) == 0)
        akini_report_plot_add(plot, line, c->values[AKIN_REPORT_BATCH],
                              c->values[AKIN_REPORT_DISTINCT]);
}

static akin_status_t experts(FILE *out, const akin_report_input_t *input)
{
    akini_report_heading(out, "Distinct experts of a step");
    if (akin_report_count(input, AKIN_REPORT_DISTINCT) == 0) {
        akini_report_none(
            out, "No file knows how many distinct experts its steps used.");
        return AKIN_OK;
    }
    akini_report_plot_t plot = {0};
    akin_status_t status = akini_report_plot_create(&plot, input->n_cases);
    if (status != AKIN_OK)
        return status;
    for (size_t i = 0; i < input->n_cases; i++)
        if (isfinite(input->cases[i].values[AKIN_REPORT_DISTINCT]))
            add_batches(&plot, &input->cases[i]);
    (void)fprintf(out, "<div class=\"charts\">\n");
    draw(out, &plot, "Distinct experts per step and layer, by batch size",
         "requests in a step", "distinct experts", 0);
    (void)fprintf(out, "</div>\n");
    akini_report_none(
        out, "A policy that puts requests with the same experts together lies "
             "lower at the same batch size. Where the mean batch alone "
             "is known there is one point.");
    akini_report_plot_destroy(&plot);
    return AKIN_OK;
}

static akin_status_t predictions(FILE *out, const akin_report_input_t *input)
{
    static const char *const series[] = {"predicted", "observed"};
    const size_t n_all = input->n_cases;
    size_t n = 0;
    akini_report_heading(out, "The busiest rank: predicted and observed");
    if (akin_report_count(input, AKIN_REPORT_PREDICTED) == 0) {
        akini_report_none(
            out, "No policy of these files predicted its busiest rank; "
                 "policies of the union family do where workers have several "
                 "ranks.");
        return AKIN_OK;
    }
    const char **names = calloc(n_all, sizeof(*names));
    double *values = calloc(2 * n_all, sizeof(*values));
    if (names == NULL || values == NULL) {
        free((void *)names);
        free(values);
        return AKIN_ERR_NOMEM;
    }
    for (size_t i = 0; i < n_all; i++) {
        const akin_report_case_t *c = &input->cases[i];
        if (!isfinite(c->values[AKIN_REPORT_PREDICTED]))
            continue;
        names[n] = c->label;
        values[2 * n] = c->values[AKIN_REPORT_PREDICTED];
        values[2 * n + 1] = c->values[AKIN_REPORT_BUSIEST];
        n++;
    }
    const akin_report_bars_t bars = {
        .title = "Distinct experts on the busiest rank of a worker",
        .value_title = "experts per step and layer",
        .names = names,
        .series = series,
        .values = values,
        .n = n,
        .n_series = 2,
        .digits = 2};
    (void)fprintf(out, "<div class=\"charts\">\n");
    akin_report_draw_bars(out, &bars);
    (void)fprintf(out, "</div>\n");
    free((void *)names);
    free(values);
    return AKIN_OK;
}

akin_status_t akini_report_charts(FILE *out, const akin_report_input_t *input)
{
    akin_status_t status = distributions(out, input);
    if (status == AKIN_OK)
        status = akini_report_against(out, input);
    if (status == AKIN_OK)
        status = akini_report_phases(out, input);
    if (status == AKIN_OK)
        status = experts(out, input);
    if (status == AKIN_OK)
        status = akini_report_workers(out, input);
    if (status == AKIN_OK)
        status = predictions(out, input);
    return status;
}
