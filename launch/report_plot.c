/* Report plot: lines that grow point by point. */
#include "launch/report_plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void akini_report_plot_destroy(akini_report_plot_t *plot)
{
    free(plot->lines);
    free(plot->x);
    free(plot->y);
}

akin_status_t akini_report_plot_create(akini_report_plot_t *plot, size_t n_max)
{
    *plot = (akini_report_plot_t){.n_max = n_max};
    plot->lines = calloc(n_max, sizeof(*plot->lines));
    plot->x = calloc(n_max * AKINI_REPORT_POINTS_MAX, sizeof(*plot->x));
    plot->y = calloc(n_max * AKINI_REPORT_POINTS_MAX, sizeof(*plot->y));
    if (plot->lines != NULL && plot->x != NULL && plot->y != NULL)
        return AKIN_OK;
    akini_report_plot_destroy(plot);
    return AKIN_ERR_NOMEM;
}

/* The line of this name, or a new one; a plot has room for one per case. */
akin_report_line_t *akini_report_plot_line(akini_report_plot_t *plot,
                                           const char *label)
{
    for (size_t i = 0; i < plot->n; i++)
        if (strcmp(plot->lines[i].label, label) == 0)
            return &plot->lines[i];
    const size_t at = plot->n++;
    plot->lines[at] =
        (akin_report_line_t){.label = label,
                             .x = plot->x + at * AKINI_REPORT_POINTS_MAX,
                             .y = plot->y + at * AKINI_REPORT_POINTS_MAX};
    return &plot->lines[at];
}

/* Points stay in the order of x. */
void akini_report_plot_add(akini_report_plot_t *plot, akin_report_line_t *line,
                           double x, double y)
{
    if (!isfinite(x) || !isfinite(y) || line->n == AKINI_REPORT_POINTS_MAX)
        return;
    const size_t first = (size_t)(line - plot->lines) * AKINI_REPORT_POINTS_MAX;
    double *xs = plot->x + first;
    double *ys = plot->y + first;
    size_t at = line->n++;
    for (; at > 0 && xs[at - 1] > x; at--) {
        xs[at] = xs[at - 1];
        ys[at] = ys[at - 1];
    }
    xs[at] = x;
    ys[at] = y;
}
