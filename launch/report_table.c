/* Report page: the table of all figures, the facts and the warnings. */
#include "launch/report_page.h"
#include "launch/report_svg.h"

#include <math.h>
#include <string.h>

static void value_text(const akin_report_case_t *c, int metric, char *text,
                       size_t size)
{
    const int digits = akin_report_metrics[metric].digits;
    const double value = c->values[metric];
    if (!isfinite(value))
        (void)snprintf(text, size, "\xe2\x80\x93");
    else
        (void)snprintf(text, size, "%.*f", digits, value);
}

/* The best value of runs, or of what is modelled, as it is shown; "" where
 * there is none, or where all are alike. What is shown alike is equally good.
 */
static void best_text(const akin_report_input_t *input, int is_run, int metric,
                      char *text, size_t size)
{
    const int better = akin_report_metrics[metric].better;
    const akin_report_case_t *best = NULL;
    char other[400];
    int differ = 0;
    text[0] = '\0';
    for (size_t i = 0; i < input->n_cases && better != 0; i++) {
        const akin_report_case_t *c = &input->cases[i];
        if (c->is_run == is_run && isfinite(c->values[metric]) &&
            (best == NULL ||
             better * (c->values[metric] - best->values[metric]) > 0.0))
            best = c;
    }
    if (best == NULL)
        return;
    value_text(best, metric, text, size);
    for (size_t i = 0; i < input->n_cases; i++) {
        value_text(&input->cases[i], metric, other, sizeof(other));
        differ |= input->cases[i].is_run == is_run &&
                  isfinite(input->cases[i].values[metric]) &&
                  strcmp(text, other) != 0;
    }
    if (!differ)
        text[0] = '\0';
}

static void write_cell(FILE *out, const akin_report_case_t *c, int metric,
                       const char *best)
{
    char text[400];
    value_text(c, metric, text, sizeof(text));
    const int is_best = best[0] != '\0' && strcmp(text, best) == 0;
    (void)fprintf(
        out, is_best ? "<td class=\"best\">\xe2\x98\x85 %s" : "<td>%s", text);
    if (isfinite(c->values[metric]) && isfinite(c->half_widths[metric]))
        (void)fprintf(out, " \xc2\xb1 %.*f", akin_report_metrics[metric].digits,
                      c->half_widths[metric]);
    (void)fprintf(out, "</td>");
}

void akini_report_table(FILE *out, const akin_report_input_t *input)
{
    char best[AKIN_REPORT_N_METRICS][2][400];
    (void)fprintf(out, "<h2>All figures</h2>\n<div class=\"scroll\"><table>\n"
                       "<thead><tr><th>run</th>");
    for (int m = 0; m < AKIN_REPORT_N_METRICS; m++) {
        if (akin_report_count(input, (akin_report_metric_t)m) == 0)
            continue;
        for (int is_run = 0; is_run < 2; is_run++)
            best_text(input, is_run, m, best[m][is_run],
                      sizeof(best[m][is_run]));
        (void)fprintf(
            out, "<th>%s<small>%s</small></th>", akin_report_metrics[m].title,
            akin_report_metrics[m].unit[0] != '\0' ? akin_report_metrics[m].unit
                                                   : "&#160;");
    }
    (void)fprintf(out, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < input->n_cases; i++) {
        (void)fprintf(out, "<tr><th>");
        akin_report_text(out, input->cases[i].label);
        (void)fprintf(out, "</th>");
        for (int m = 0; m < AKIN_REPORT_N_METRICS; m++)
            if (akin_report_count(input, (akin_report_metric_t)m) > 0)
                write_cell(out, &input->cases[i], m,
                           best[m][input->cases[i].is_run]);
        (void)fprintf(out, "</tr>\n");
    }
    (void)fprintf(
        out, "</tbody></table></div>\n<p class=\"note\">\xe2\x98\x85 marks "
             "the best value of a column, of measured runs and of "
             "modelled ones; \xc2\xb1 is half of the 95 %% "
             "interval over the seeds; \xe2\x80\x93 means "
             "that the file has no such figure.</p>\n");
}

static void write_fact(FILE *out, const char *name, const char *text)
{
    if (text == NULL)
        return;
    (void)fprintf(out, "%s ", name);
    akin_report_text(out, text);
    (void)fprintf(out, "; ");
}

static void write_number(FILE *out, const char *name, const json_t *json,
                         const char *key)
{
    const double value = akin_report_number(json, key);
    if (isfinite(value))
        (void)fprintf(out, "%s %.10g; ", name, value);
}

static void write_run_facts(FILE *out, const json_t *run)
{
    static const struct {
        const char *name, *key;
    } texts[] = {{"date", "date"},          {"model", "model_id"},
                 {"policy", "policy"},      {"setting", "policy_setting"},
                 {"engine", "engine"},      {"kernel", "kernel"},
                 {"stands for", "modelled"}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        write_fact(out, texts[i].name,
                   json_string_value(json_object_get(run, texts[i].key)));
    write_number(out, "times slower", run, "slowdown");
    write_number(out, "ranks of a decode worker", run, "ep");
    write_number(out, "of a prefill worker", run, "prefill_ep");
    write_number(out, "prompts", run, "num_prompts");
    write_number(out, "prompt tokens", run, "total_input_tokens");
    (void)fprintf(out, "workers %zu.",
                  json_array_size(json_object_get(run, "workers")));
}

static void write_replay_facts(FILE *out, const json_t *replay)
{
    const json_t *settings = json_object_get(replay, "settings");
    write_fact(out, "trace",
               json_string_value(json_object_get(replay, "trace")));
    write_fact(out, "model",
               json_string_value(json_object_get(replay, "model")));
    write_fact(out, "loop", json_string_value(json_object_get(replay, "loop")));
    write_fact(out, "simulation",
               json_string_value(json_object_get(replay, "sim")));
    write_fact(out, "machine",
               json_string_value(json_object_get(replay, "machine")));
    write_fact(out, "workload",
               json_string_value(json_object_get(replay, "workload")));
    write_number(out, "prefill workers", replay, "prefill");
    write_number(out, "decode workers", replay, "decode");
    write_number(out, "ranks of a decode worker", replay, "ep");
    write_number(out, "requests measured", replay, "measured");
    write_number(out, "seeds", replay, "seeds");
    write_number(out, "layers", replay, "layers");
    write_number(out, "experts", replay, "experts");
    write_number(out, "top k", replay, "top_k");
    write_number(out, "workers", replay, "workers");
    /* A simulation says in words how its requests come. */
    if (json_object_get(replay, "sim") == NULL) {
        write_number(out, "requests in flight per worker", replay, "in_flight");
        write_number(out, "arrivals per second", replay, "rate");
    }
    write_fact(out, "load",
               json_string_value(json_object_get(replay, "arrivals")));
    write_number(out, "prompt tokens", settings, "workload.prompt_tokens");
    write_number(out, "output tokens", settings, "workload.output_tokens");
    write_number(out, "requests to measure", replay, "requests_to_measure");
    write_number(out, "seeds", replay, "n_seeds");
    (void)fprintf(out, "step times are modelled.");
}

void akini_report_facts(FILE *out, const akin_report_input_t *input)
{
    (void)fprintf(out, "<h2>Where the figures are from</h2>\n<div "
                       "class=\"scroll\"><table class=\"facts\"><thead><tr>"
                       "<th>file</th><th>kind</th><th>facts</th></tr></thead>"
                       "<tbody>\n");
    for (size_t i = 0; i < input->n_files; i++) {
        const json_t *file = input->files[i];
        const int is_replay = json_object_get(file, "policies") != NULL;
        (void)fprintf(out, "<tr><td>%zu, ", i + 1);
        akin_report_text(out, input->paths[i]);
        (void)fprintf(out, "</td><td>%s</td><td style=\"white-space:normal\">",
                      !is_replay                             ? "run"
                      : json_object_get(file, "sim") != NULL ? "simulation"
                                                             : "replay");
        if (is_replay)
            write_replay_facts(out, file);
        else
            write_run_facts(out, file);
        (void)fprintf(out, "</td></tr>\n");
    }
    (void)fprintf(out, "</tbody></table></div>\n");
}

/* Whether the files that have a key agree about it. */
static int do_agree(const akin_report_input_t *input, const char *key)
{
    const json_t *first = NULL;
    for (size_t i = 0; i < input->n_files; i++) {
        const json_t *value = json_object_get(input->files[i], key);
        if (value == NULL)
            continue;
        if (first != NULL && !json_equal(first, value))
            return 0;
        first = value;
    }
    return 1;
}

/* The list opens with its first item. */
static void warn(FILE *out, int *n, const char *text)
{
    (void)fprintf(out, "%s<li>", (*n)++ == 0 ? "<ul class=\"warn\">\n" : "");
    akin_report_text(out, text);
    (void)fprintf(out, "</li>\n");
}

/* In a pool of few requests a request may meet itself. */
static void warn_of_copies(FILE *out, int *n, const akin_report_input_t *input)
{
    char text[512];
    for (size_t i = 0; i < input->n_cases; i++) {
        const akin_report_case_t *c = &input->cases[i];
        const double percent = akin_report_number(
            json_object_get(c->json, "copies_percent"), "mean");
        if (!(percent >= 1.0))
            continue;
        (void)snprintf(text, sizeof(text),
                       "%s: a request was beside a copy of itself in %.1f %% "
                       "of the steps, which flatters policies that look at "
                       "experts; raise routes.requests",
                       c->label, percent);
        warn(out, n, text);
    }
}

static void warn_of_file(FILE *out, int *n, const akin_report_input_t *input,
                         size_t i)
{
    const json_t *file = input->files[i];
    const json_t *caveats = json_object_get(file, "caveats");
    const double failed = akin_report_number(file, "failed");
    const double deaths =
        akin_report_number(json_object_get(file, "recovery"), "deaths");
    char text[1024];
    for (size_t k = 0; k < json_array_size(caveats) && k < 16; k++) {
        const char *caveat = json_string_value(json_array_get(caveats, k));
        (void)snprintf(text, sizeof(text), "%s: %s", input->paths[i],
                       caveat != NULL ? caveat : "");
        warn(out, n, text);
    }
    if (failed > 0.0) {
        (void)snprintf(text, sizeof(text),
                       "%s: %.0f requests failed, and are in no time",
                       input->paths[i], failed);
        warn(out, n, text);
    }
    if (deaths > 0.0) {
        (void)snprintf(text, sizeof(text), "%s: %.0f ranks died during the run",
                       input->paths[i], deaths);
        warn(out, n, text);
    }
}

void akini_report_warnings(FILE *out, const akin_report_input_t *input)
{
    static const struct {
        const char *key, *text;
    } alike[] = {
        {"model_id", "The runs served different models."},
        {"model", "The replays or simulations are of different models."},
        {"num_prompts", "The runs had different numbers of prompts."},
        {"total_input_tokens", "The runs had different prompts: their tokens "
                               "differ in number."},
        {"trace", "The replays are of different traces."},
        {"machine", "The simulations model different machines."},
        {"workload", "The simulations have different workloads."},
        {"step_ms", "The replays model a step's time differently."},
        {"kernel", "The runs used different kernels; times do not compare."},
        {"engine", "The runs used different engines; times do not compare."},
        {"modelled", "The modelled runs stand for different models or "
                     "machines."},
        {"slowdown", "The modelled runs are slowed down by different factors; "
                     "times do not compare."},
        {"ep", "The decode workers have different numbers of "
               "ranks."},
    };
    int n = 0;
    size_t n_replays = 0, n_modelled = 0;
    for (size_t i = 0; i < sizeof(alike) / sizeof(alike[0]); i++)
        if (!do_agree(input, alike[i].key))
            warn(out, &n, alike[i].text);
    for (size_t i = 0; i < input->n_files; i++)
        n_replays += json_object_get(input->files[i], "policies") != NULL;
    for (size_t i = 0; i < input->n_files; i++)
        n_modelled += json_object_get(input->files[i], "modelled") != NULL;
    if (n_modelled > 0)
        warn(out, &n,
             "A run without weights takes the times of a cost model, as many "
             "times slower as the last table says.");
    if (n_replays > 0 && n_replays < input->n_files)
        warn(out, &n,
             "Runs are measured, replays and simulations are modelled; their "
             "times do "
             "not compare.");
    for (size_t i = 0; i < input->n_files; i++)
        warn_of_file(out, &n, input, i);
    warn_of_copies(out, &n, input);
    if (n > 0)
        (void)fprintf(out, "</ul>\n");
}
