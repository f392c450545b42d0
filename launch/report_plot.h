/* Report plot: lines that grow point by point. */
#ifndef AKIN_LAUNCH_REPORT_PLOT_H
#define AKIN_LAUNCH_REPORT_PLOT_H

#include "base/status.h"
#include "launch/report_svg.h"

#include <stddef.h>

/** Points of a line; further ones are left out. */
#define AKINI_REPORT_POINTS_MAX 512

typedef struct akini_report_plot {
    akin_report_line_t *lines; /* [n_max] */
    double *x, *y;             /* [n_max][AKINI_REPORT_POINTS_MAX] */
    size_t n, n_max;
} akini_report_plot_t;

/**
 * \param[out] plot   akini_report_plot_destroy() frees what it owns.
 * \param[in]  n_max  lines, at least 1.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akini_report_plot_create(akini_report_plot_t *plot,
                                       size_t n_max) AKIN_MUST_CHECK;

void akini_report_plot_destroy(akini_report_plot_t *plot);

/** The line of this name, or a new one: at most n_max names. The label is
 * borrowed. */
akin_report_line_t *akini_report_plot_line(akini_report_plot_t *plot,
                                           const char *label);

/** Add a point in the order of x; one that is not finite is left out. */
void akini_report_plot_add(akini_report_plot_t *plot, akin_report_line_t *line,
                           double x, double y);

#endif
