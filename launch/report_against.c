/* Report page: times against load, of cases that differ in nothing else. */
#include "launch/report_page.h"
#include "launch/report_plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Only cases that differ in policy and load alone make a chart. */
static int are_alike(const akin_report_case_t *a, const akin_report_case_t *b)
{
    static const char *const keys[] = {
        "model",          "machine",  "workload",      "prefill",
        "decode",         "ep",       "trace",         "workers",
        "max_batch",      "step_ms",  "prompt_tokens", "output_tokens",
        "mix_turns_over", "model_id", "engine",        "kernel",
        "prefill_ep"};
    if (a->is_run != b->is_run || a->is_sim != b->is_sim || a->load != b->load)
        return 0;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const json_t *x = json_object_get(a->source, keys[i]);
        const json_t *y = json_object_get(b->source, keys[i]);
        /* Workers of a run are lists of what they did. */
        if (json_is_array(x) && json_is_array(y)) {
            if (json_array_size(x) != json_array_size(y))
                return 0;
        } else if (x != y && (x == NULL || y == NULL || !json_equal(x, y))) {
            return 0;
        }
    }
    return 1;
}

static int is_first(const akin_report_input_t *input, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (are_alike(&input->cases[i], &input->cases[index]))
            return 0;
    return 1;
}

/* What those that are like a case are, for the title of their chart. */
static void kind_text(const akin_report_case_t *c, char *text, size_t size)
{
    const char *model =
        akin_report_case_text(c, c->is_run ? "model_id" : "model");
    const char *workload = akin_report_case_text(c, "workload");
    (void)snprintf(text, size, "%s%s%s", model != NULL ? model : "no model",
                   workload != NULL ? ", " : "",
                   workload != NULL ? workload : "");
    const double prefill = akin_report_number(c->source, "prefill");
    const double decode = akin_report_number(c->source, "decode");
    const size_t n = strlen(text);
    if (isfinite(prefill) && isfinite(decode))
        (void)snprintf(text + n, size - n, ", %.0fP%.0fD", prefill, decode);
}

static akin_status_t draw_one(FILE *out, const akin_report_input_t *input,
                              const akin_report_case_t *first,
                              akin_report_metric_t metric, const char *name,
                              int *n_drawn)
{
    static const char *const loads[] = {
        [AKIN_REPORT_LOAD_ANSWERED] = "requests answered per second",
        [AKIN_REPORT_LOAD_RATE] = "requests that arrive per second",
        [AKIN_REPORT_LOAD_INSIDE] = "requests in flight",
        [AKIN_REPORT_LOAD_IN_FLIGHT] = "requests in flight per worker"};
    size_t most = 0;
    akini_report_plot_t plot = {0};
    akin_status_t status = akini_report_plot_create(&plot, input->n_cases);
    if (status != AKIN_OK)
        return status;
    for (size_t i = 0; i < input->n_cases; i++) {
        const akin_report_case_t *c = &input->cases[i];
        if (!isfinite(c->load_value) || !isfinite(c->values[metric]) ||
            !are_alike(first, c))
            continue;
        akin_report_line_t *line =
            akini_report_plot_line(&plot, akin_report_case_name(c));
        akini_report_plot_add(&plot, line, c->load_value, c->values[metric]);
        if (line->n > most)
            most = line->n;
    }
    if (most > 1) {
        char kind[96], title[160];
        kind_text(first, kind, sizeof(kind));
        (void)snprintf(title, sizeof(title), "%s against load: %s", name, kind);
        const akin_report_chart_t chart = {.title = title,
                                           .x_title = loads[first->load],
                                           .y_title = "ms",
                                           .lines = plot.lines,
                                           .n_lines = plot.n,
                                           .x_from_zero = 1};
        akin_report_draw_lines(out, &chart);
        (*n_drawn)++;
    }
    akini_report_plot_destroy(&plot);
    return AKIN_OK;
}

akin_status_t akini_report_against(FILE *out, const akin_report_input_t *input)
{
    static const struct {
        akin_report_metric_t metric;
        const char *name;
    } charts[] = {{AKIN_REPORT_TPOT_P50, "Median TPOT"},
                  {AKIN_REPORT_TPOT_P99, "P99 of TPOT"},
                  {AKIN_REPORT_TTFT_P50, "Median TTFT"},
                  {AKIN_REPORT_TTFT_P99, "P99 of TTFT"}};
    int n = 0;
    akin_status_t status = AKIN_OK;
    akini_report_heading(out, "Times against load");
    (void)fprintf(out, "<div class=\"charts\">\n");
    for (size_t i = 0; i < input->n_cases; i++) {
        if (!is_first(input, i))
            continue;
        for (size_t k = 0;
             k < sizeof(charts) / sizeof(charts[0]) && status == AKIN_OK; k++)
            status = draw_one(out, input, &input->cases[i], charts[k].metric,
                              charts[k].name, &n);
    }
    (void)fprintf(out, "</div>\n");
    if (n == 0)
        akini_report_none(
            out, "No policy was run, replayed or simulated twice with nothing "
                 "but another load; give such files to see times against it.");
    return status;
}
