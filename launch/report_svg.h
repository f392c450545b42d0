/* Report SVG: charts of a page, drawn as inline SVG. */
#ifndef AKIN_LAUNCH_REPORT_SVG_H
#define AKIN_LAUNCH_REPORT_SVG_H

#include "launch/report_scale.h"

#include <stddef.h>
#include <stdio.h>

/** More lines cannot be told apart. */
#define AKIN_REPORT_LINES_MAX 28

/** Values of one name, from left to right; points that are not finite are left
 * out. */
typedef struct akin_report_line {
    const char *label;
    const double *x, *y; /* [n] */
    size_t n;
} akin_report_line_t;

typedef struct akin_report_chart {
    const char *title;
    const char *x_title, *y_title;   /* with units */
    const akin_report_line_t *lines; /* [n_lines] */
    size_t n_lines; /* at most AKIN_REPORT_LINES_MAX are drawn */
    int x_from_zero;
    int y_is_percent; /* 0 .. 100 whatever the values */
} akin_report_chart_t;

/** Bars of one name, in as many groups as the chart has names. */
typedef struct akin_report_bars {
    const char *title;
    const char *value_title;   /* with unit */
    const char *const *names;  /* [n] */
    const char *const *series; /* [n_series] */
    const double *values;      /* [n][n_series]; NaN: no bar */
    size_t n, n_series;
    int digits; /* behind the point, of the values at the bars */
} akin_report_bars_t;

/** One column per value; groups of them where there are too many. */
typedef struct akin_report_columns {
    const char *title;
    const char *x_title, *y_title; /* with units */
    const double *values;          /* [n], none below 0 */
    const unsigned char *colours;  /* [n], index of the series; NULL: all 0 */
    const char *const *series;     /* [n_series], NULL if there is one */
    size_t n, n_series;
} akin_report_columns_t;

/** Write text for HTML: markup escaped, control characters and what is not
 * UTF-8 replaced. */
void akin_report_text(FILE *out, const char *text);

/** The same up to so many characters, then an ellipsis. */
void akin_report_text_cut(FILE *out, const char *text, size_t max);

void akin_report_draw_lines(FILE *out, const akin_report_chart_t *chart);
void akin_report_draw_bars(FILE *out, const akin_report_bars_t *bars);
void akin_report_draw_columns(FILE *out, const akin_report_columns_t *columns);

/** Across files: a list of markers and their names below a chart. */
void akini_report_legend(FILE *out, const char *const *labels, size_t n,
                         int is_filled);

/** Across files: the frame of a chart. */
typedef struct akini_report_frame {
    double width, height;            /* of the whole */
    double left, right, top, bottom; /* margins */
    akin_report_scale_t x, y;
} akini_report_frame_t;

double akini_report_x(const akini_report_frame_t *f, double value);
double akini_report_y(const akini_report_frame_t *f, double value);
void akini_report_open(FILE *out, const char *title,
                       const akini_report_frame_t *f);
void akini_report_y_axis(FILE *out, const akini_report_frame_t *f,
                         const char *title);
void akini_report_x_axis(FILE *out, const akini_report_frame_t *f,
                         const char *title);
void akini_report_x_title(FILE *out, const akini_report_frame_t *f,
                          const char *title);

#endif
