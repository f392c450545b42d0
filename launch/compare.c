/* compare: the summaries of several runs side by side. */
#include "launch/command.h"
#include "launch/run_figures.h"

#include <argp.h>
#include <errno.h>
#include <libsmartcols/libsmartcols.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    char **paths; /* [n_paths], in argv */
    size_t n_paths;
    int json;
} options_t;

/** The runs and, row by row, their figures. */
typedef struct comparison {
    char *const *paths; /* [n] */
    json_t **runs;      /* [n] */
    double *values;     /* [akin_run_n_figures][n] */
    size_t n;
    double equal_steps;
} comparison_t;

enum { OPT_JSON = 256 };

static const struct argp_option arguments[] = {
    {"json", OPT_JSON, NULL, 0, "Print JSON", 0}, {0}};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options_t *o = state->input;
    switch (key) {
    case OPT_JSON:
        o->json = 1;
        break;
    case ARGP_KEY_ARG:
        o->paths[o->n_paths++] = arg;
        break;
    case ARGP_KEY_END:
        if (o->n_paths == 0)
            argp_error(state, "no summary: `akin run --summary FILE` writes "
                              "one");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* In percent of the first run; NaN if there is nothing to compare with. */
static double change(const double *row, size_t run, int is_change)
{
    if (!is_change || !(fabs(row[0]) > 0.0))
        return (double)NAN;
    return 100.0 * (row[run] - row[0]) / fabs(row[0]);
}

static void cleanup(comparison_t *c)
{
    for (size_t i = 0; c->runs != NULL && i < c->n; i++)
        json_decref(c->runs[i]);
    free(c->runs);
    free(c->values);
}

static akin_status_t init(comparison_t *c, const options_t *o,
                          akin_error_t *err)
{
    const size_t n = o->n_paths;
    *c = (comparison_t){.paths = o->paths, .n = n};
    c->runs = calloc(n, sizeof(*c->runs));
    c->values = calloc(n * akin_run_n_figures, sizeof(*c->values));
    if (c->runs == NULL || c->values == NULL)
        return AKIN_ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        akin_status_t status = akin_run_read(o->paths[i], &c->runs[i], err);
        if (status != AKIN_OK)
            return status;
    }
    for (size_t f = 0; f < akin_run_n_figures; f++) {
        double *row = c->values + f * n;
        if (akin_run_figures[f].key == NULL)
            c->equal_steps = akin_run_equal_batch(c->runs, n, row);
        for (size_t i = 0; i < n && akin_run_figures[f].key != NULL; i++)
            row[i] = akin_run_figure(c->runs[i], &akin_run_figures[f]);
    }
    return AKIN_OK;
}

/* jansson has no NaN; null says that there is no figure. */
static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *figure_json(const comparison_t *c, size_t figure)
{
    const double *row = c->values + figure * c->n;
    json_t *values = json_array();
    json_t *changes = json_array();
    int failed = 0;
    for (size_t i = 0; i < c->n; i++) {
        double percent = change(row, i, akin_run_figures[figure].is_change);
        failed |= json_array_append_new(values, real(row[i])) != 0;
        failed |= json_array_append_new(changes, real(percent)) != 0;
    }
    if (failed) {
        json_decref(values);
        json_decref(changes);
        return NULL;
    }
    return json_pack("{s:s, s:o, s:o}", "name", akin_run_figures[figure].name,
                     "values", values, "change_percent", changes);
}

static json_t *comparison_json(const comparison_t *c)
{
    json_t *runs = json_array();
    json_t *figures = json_array();
    int failed = 0;
    for (size_t i = 0; i < c->n; i++) {
        const char *policy =
            json_string_value(json_object_get(c->runs[i], "policy"));
        json_t *run =
            json_pack("{s:s, s:s?}", "file", c->paths[i], "policy", policy);
        failed |= json_array_append_new(runs, run) != 0;
    }
    for (size_t f = 0; f < akin_run_n_figures; f++)
        failed |= json_array_append_new(figures, figure_json(c, f)) != 0;
    if (failed) {
        json_decref(runs);
        json_decref(figures);
        return NULL;
    }
    return json_pack("{s:o, s:o, s:I}", "runs", runs, "figures", figures,
                     "equal_batch_steps", (json_int_t)c->equal_steps);
}

/* The last part of a path, without ".json". */
static void short_name(const char *path, char *name, size_t size)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    size_t length = strlen(base);
    if (length > 5 && strcmp(base + length - 5, ".json") == 0)
        length -= 5;
    (void)snprintf(name, size, "%.*s", (int)(length < size ? length : size),
                   base);
}

static int add_columns(struct libscols_table *table, const comparison_t *c)
{
    int failed = scols_table_new_column(table, "", 0, 0) == NULL;
    for (size_t i = 0; i < c->n; i++) {
        char name[40];
        short_name(c->paths[i], name, sizeof(name));
        failed |=
            scols_table_new_column(table, name, 0, SCOLS_FL_RIGHT) == NULL;
        if (i > 0)
            failed |= scols_table_new_column(table, "change", 0,
                                             SCOLS_FL_RIGHT) == NULL;
    }
    return failed;
}

static int add_policies(struct libscols_table *table, const comparison_t *c)
{
    struct libscols_line *line = scols_table_new_line(table, NULL);
    if (line == NULL)
        return 1;
    int failed = scols_line_set_data(line, 0, "routing.decode") != 0;
    for (size_t i = 0; i < c->n; i++) {
        const char *policy =
            json_string_value(json_object_get(c->runs[i], "policy"));
        failed |= scols_line_set_data(line, i == 0 ? 1 : 2 * i,
                                      policy != NULL ? policy : "-") != 0;
    }
    return failed;
}

static int add_figure(struct libscols_table *table, const comparison_t *c,
                      size_t figure)
{
    const akin_run_figure_t *f = &akin_run_figures[figure];
    const double *row = c->values + figure * c->n;
    struct libscols_line *line = scols_table_new_line(table, NULL);
    if (line == NULL)
        return 1;
    int failed = scols_line_set_data(line, 0, f->title) != 0;
    for (size_t i = 0; i < c->n; i++) {
        char text[64] = "-";
        if (isfinite(row[i]))
            (void)snprintf(text, sizeof(text), "%.*f", f->digits, row[i]);
        failed |= scols_line_set_data(line, i == 0 ? 1 : 2 * i, text) != 0;
        double percent = change(row, i, f->is_change);
        if (i == 0 || !isfinite(percent))
            continue;
        (void)snprintf(text, sizeof(text), "%+.1f %%", percent);
        failed |= scols_line_set_data(line, 2 * i + 1, text) != 0;
    }
    return failed;
}

static int print_table(const comparison_t *c)
{
    struct libscols_table *table = scols_new_table();
    int failed =
        table == NULL || add_columns(table, c) || add_policies(table, c);
    for (size_t f = 0; f < akin_run_n_figures && !failed; f++)
        failed = add_figure(table, c, f);
    errno = 0;
    if (!failed)
        failed = scols_print_table(table) != 0 || fflush(stdout) != 0;
    scols_unref_table(table);
    if (!failed)
        return AKIN_EXIT_OK;
    (void)fprintf(stderr, "akin: cannot print the table: %s\n",
                  errno != 0 ? strerror(errno) : "out of memory");
    return AKIN_EXIT_FAILED;
}

int akin_command_compare(int argc, char **argv)
{
    static const struct argp argp = {
        arguments,
        parse_option,
        "SUMMARY.json...",
        "Show the summaries of several runs side by side, and how each "
        "differs from the first.",
        NULL,
        NULL,
        NULL};
    options_t o = {0};
    akin_error_t err = {{0}};
    comparison_t c = {0};
    o.paths = calloc((size_t)argc, sizeof(*o.paths));
    if (o.paths == NULL)
        return akin_command_fail(AKIN_ERR_NOMEM, &err);
    int code = AKIN_EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) == 0) {
        akin_status_t status = init(&c, &o, &err);
        if (status != AKIN_OK)
            code = akin_command_fail(status, &err);
        else if (o.json)
            code = akin_command_print_json(comparison_json(&c));
        else
            code = print_table(&c);
    }
    cleanup(&c);
    free(o.paths);
    return code;
}
