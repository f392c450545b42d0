/* Report page: simulations in which the mix of domains turns over, by thirds
 * of their requests. */
#include "launch/report_page.h"
#include "launch/report_svg.h"

#include <math.h>
#include <stdlib.h>

enum { PHASES = 3 };

static int turns_over(const akin_report_case_t *c)
{
    return c->is_sim &&
           json_is_true(json_object_get(c->source, "mix_turns_over"));
}

static double value_of(const akin_report_case_t *c, size_t phase,
                       const char *key)
{
    return akin_report_number(
        json_array_get(json_object_get(c->json, "phases"), phase), key);
}

static akin_status_t draw(FILE *out, const akin_report_input_t *input,
                          const char *key, const char *title,
                          const char *value_title)
{
    static const char *const series[PHASES] = {"before", "during", "after"};
    const char **names = calloc(input->n_cases, sizeof(*names));
    double *values = calloc(PHASES * input->n_cases, sizeof(*values));
    size_t n = 0;
    if (names == NULL || values == NULL) {
        free((void *)names);
        free(values);
        return AKIN_ERR_NOMEM;
    }
    for (size_t i = 0; i < input->n_cases; i++) {
        const akin_report_case_t *c = &input->cases[i];
        if (!turns_over(c))
            continue;
        names[n] = c->label;
        for (size_t p = 0; p < PHASES; p++)
            values[PHASES * n + p] = value_of(c, p, key);
        n++;
    }
    const akin_report_bars_t bars = {.title = title,
                                     .value_title = value_title,
                                     .names = names,
                                     .series = series,
                                     .values = values,
                                     .n = n,
                                     .n_series = PHASES,
                                     .digits = 2};
    akin_report_draw_bars(out, &bars);
    free((void *)names);
    free(values);
    return AKIN_OK;
}

akin_status_t akini_report_phases(FILE *out, const akin_report_input_t *input)
{
    static const struct {
        const char *key, *title, *value_title;
    } charts[] = {
        {"p50_tpot_ms", "Median TPOT of the requests of each third", "ms"},
        {"p99_tpot_ms", "P99 of TPOT of the requests of each third", "ms"},
        {"distinct_experts", "Distinct experts of the steps of each third",
         "experts per step and layer"},
    };
    size_t n = 0;
    akin_status_t status = AKIN_OK;
    for (size_t i = 0; i < input->n_cases; i++)
        n += turns_over(&input->cases[i]) ? 1 : 0;
    if (n == 0)
        return AKIN_OK;
    akini_report_heading(out, "While the mix of domains turns over");
    (void)fprintf(out, "<div class=\"charts\">\n");
    for (size_t i = 0;
         i < sizeof(charts) / sizeof(charts[0]) && status == AKIN_OK; i++)
        status = draw(out, input, charts[i].key, charts[i].title,
                      charts[i].value_title);
    (void)fprintf(out, "</div>\n");
    akini_report_none(
        out, "Over the second third of the measured requests the mix goes from "
             "one to the other; fits know the one before.");
    return status;
}
