/* Report page: times against load, of cases that differ in nothing else. */
#include "launch/report_page.h"
#include "launch/report_plot.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Values of a key, or of none. Workers of a run are lists of what they did: as
 * many of them are alike. */
static int is_alike(const json_t *x, const json_t *y)
{
    if (json_is_array(x) && json_is_array(y))
        return json_array_size(x) == json_array_size(y);
    return x == y || (x != NULL && y != NULL && json_equal(x, y));
}

/* Of a simulation these say how much load there is, and how well it is
 * measured. */
static int is_load(const char *key)
{
    static const char *const keys[] = {"requests.rate",   "requests.in_flight",
                                       "requests.warmup", "requests.measured",
                                       "requests.total",  "routing.policies",
                                       "routes.requests", "routes.memory",
                                       "seeds",           "seed"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(key, keys[i]) == 0)
            return 1;
    return 0;
}

static int have_like_settings(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;
    if ((a == NULL) != (b == NULL))
        return 0;
    /* Only the iteration wants it to be no constant. */
    json_object_foreach((json_t *)(uintptr_t)a, key, value)
    {
        if (!is_load(key) && !is_alike(value, json_object_get(b, key)))
            return 0;
    }
    return 1;
}

/* Only cases that differ in policy and load alone make a chart. */
static int are_alike(const akin_report_case_t *a, const akin_report_case_t *b)
{
    static const char *const keys[] = {
        "model",    "machine", "workload", "prefill",   "decode",
        "ep",       "trace",   "workers",  "max_batch", "step_ms",
        "model_id", "engine",  "kernel",   "prefill_ep"};
    if (a->is_run != b->is_run || a->is_sim != b->is_sim || a->load != b->load)
        return 0;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (!is_alike(json_object_get(a->source, keys[i]),
                      json_object_get(b->source, keys[i])))
            return 0;
    return !a->is_sim ||
           have_like_settings(json_object_get(a->source, "settings"),
                              json_object_get(b->source, "settings"));
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
