/* Metrics: families and their samples, written into memory. */
#include "roles/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Beyond them a double has no ones. */
#define MAX_EXACT 9007199254740992.0

#define NS_PER_S 1e9

struct akin_metrics {
    FILE *file; /* writes into `text` */
    char *text;
    size_t bytes;
    const char *name; /* of the family */
};

akin_status_t akin_metrics_create(akin_metrics_t **metrics_p)
{
    *metrics_p = NULL;
    akin_metrics_t *m = calloc(1, sizeof(*m));
    if (m == NULL)
        return AKIN_ERR_NOMEM;
    m->file = open_memstream(&m->text, &m->bytes);
    if (m->file == NULL) {
        free(m);
        return AKIN_ERR_NOMEM;
    }
    m->name = "";
    *metrics_p = m;
    return AKIN_OK;
}

/* A failed write is noted by the stream and told at the end. */
static void put_escaped(FILE *file, const char *text, int in_quotes)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n')
            (void)fputs("\\n", file);
        else if (*text == '\\')
            (void)fputs("\\\\", file);
        else if (*text == '"' && in_quotes)
            (void)fputs("\\\"", file);
        else
            (void)fputc(*text, file);
    }
}

void akin_metrics_begin(akin_metrics_t *metrics, const char *name,
                        akin_metrics_type_t type, const char *help)
{
    static const char *const words[] = {
        [AKIN_METRICS_COUNTER] = "counter",
        [AKIN_METRICS_GAUGE] = "gauge",
        [AKIN_METRICS_HISTOGRAM] = "histogram",
        [AKIN_METRICS_SUMMARY] = "summary",
    };
    metrics->name = name;
    (void)fprintf(metrics->file, "# HELP %s ", name);
    put_escaped(metrics->file, help, 0);
    (void)fprintf(metrics->file, "\n# TYPE %s %s\n", name, words[type]);
}

static void put_value(FILE *file, double value)
{
    if (isnan(value))
        (void)fputs(" NaN\n", file);
    else if (isinf(value))
        (void)fputs(value > 0 ? " +Inf\n" : " -Inf\n", file);
    else if (value == floor(value) && fabs(value) <= MAX_EXACT)
        (void)fprintf(file, " %.0f\n", value);
    else
        (void)fprintf(file, " %.12g\n", value);
}

static void put_label(FILE *file, char before, const char *label,
                      const char *text)
{
    (void)fprintf(file, "%c%s=\"", before, label);
    put_escaped(file, text, 1);
    (void)fputc('"', file);
}

void akin_metrics_add(akin_metrics_t *metrics, const char *suffix,
                      const char *label, const char *text, double value)
{
    (void)fprintf(metrics->file, "%s%s", metrics->name,
                  suffix == NULL ? "" : suffix);
    if (label != NULL) {
        put_label(metrics->file, '{', label, text);
        (void)fputc('}', metrics->file);
    }
    put_value(metrics->file, value);
}

void akin_metrics_add_two(akin_metrics_t *metrics, const char *const labels[2],
                          const char *const texts[2], double value)
{
    (void)fputs(metrics->name, metrics->file);
    put_label(metrics->file, '{', labels[0], texts[0]);
    put_label(metrics->file, ',', labels[1], texts[1]);
    (void)fputc('}', metrics->file);
    put_value(metrics->file, value);
}

void akin_metrics_add_histogram(akin_metrics_t *metrics,
                                const akin_histogram_t *histogram)
{
    static const char *const bounds[] = {
        "0.001", "0.005", "0.01", "0.02", "0.04", "0.06", "0.08", "0.1",
        "0.25",  "0.5",   "0.75", "1",    "2.5",  "5",    "7.5",  "10",
        "20",    "40",    "80",   "160",  "640",  "2560"};
    const uint64_t n = akin_histogram_count(histogram);
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        const int64_t ns = (int64_t)llround(strtod(bounds[i], NULL) * NS_PER_S);
        akin_metrics_add(metrics, "_bucket", "le", bounds[i],
                         (double)akin_histogram_count_to(histogram, ns));
    }
    akin_metrics_add(metrics, "_bucket", "le", "+Inf", (double)n);
    akin_metrics_add(metrics, "_sum", NULL, NULL,
                     akin_histogram_mean(histogram) * (double)n / NS_PER_S);
    akin_metrics_add(metrics, "_count", NULL, NULL, (double)n);
}

akin_status_t akin_metrics_finish(akin_metrics_t *metrics, char **text_p)
{
    int failed = ferror(metrics->file);
    failed |= fclose(metrics->file) != 0;
    *text_p = NULL;
    if (failed)
        free(metrics->text);
    else
        *text_p = metrics->text;
    free(metrics);
    return failed ? AKIN_ERR_NOMEM : AKIN_OK;
}
