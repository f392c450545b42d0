/* Report SVG: bars and columns. */
#include "launch/report_svg.h"

#include <math.h>
#include <stdlib.h>

/* More cannot be told apart on a screen. */
enum { COLUMNS_MAX = 192, NAME_CHARACTERS = 26 };

static double largest(const double *values, size_t n)
{
    double most = 0.0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(values[i]))
            most = fmax(most, values[i]);
    return most;
}

static void draw_group(FILE *out, const akini_report_frame_t *f,
                       const akin_report_bars_t *bars, size_t group, double y)
{
    const double height = 14;
    (void)fprintf(out,
                  "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\"><title>",
                  f->left - 8, y + height * (double)bars->n_series / 2 + 4);
    akin_report_text(out, bars->names[group]);
    (void)fprintf(out, "</title>");
    akin_report_text_cut(out, bars->names[group], NAME_CHARACTERS);
    (void)fprintf(out, "</text>");
    for (size_t s = 0; s < bars->n_series; s++) {
        const double value = bars->values[group * bars->n_series + s];
        const double top = y + (double)s * height;
        if (!isfinite(value)) {
            (void)fprintf(out, "<text x=\"%.1f\" y=\"%.1f\">no figure</text>",
                          f->left + 4, top + 11);
            continue;
        }
        const double x = akini_report_x(f, value);
        (void)fprintf(out,
                      "<path class=\"f%zu\" d=\"M%.1f %.1fH%.1fv%.1fH%.1fz\"/>"
                      "<text x=\"%.1f\" y=\"%.1f\">%.*f</text>",
                      s, f->left, top, x, height - 2, f->left, x + 5, top + 11,
                      bars->digits, value);
    }
    (void)fprintf(out, "\n");
}

void akin_report_draw_bars(FILE *out, const akin_report_bars_t *bars)
{
    const size_t n = bars->n < 64 ? bars->n : 64;
    const double pitch = 14.0 * (double)bars->n_series + 10.0;
    akini_report_frame_t f = {.width = 640,
                              .height = 10 + pitch * (double)n + 46,
                              .left = 190,
                              .right = 60,
                              .top = 10,
                              .bottom = 46};
    f.x = akin_report_scale(0.0, largest(bars->values, n * bars->n_series), 5);
    akini_report_open(out, bars->title, &f);
    akini_report_x_axis(out, &f, bars->value_title);
    for (size_t i = 0; i < n; i++)
        draw_group(out, &f, bars, i, 15 + pitch * (double)i);
    (void)fprintf(out, "</svg>\n");
    if (bars->n_series > 1)
        akini_report_legend(out, bars->series, bars->n_series, 1);
    if (n < bars->n)
        (void)fprintf(out,
                      "<p class=\"note\">The first %zu of %zu are drawn; the "
                      "table has all.</p>\n",
                      n, bars->n);
    (void)fprintf(out, "</figure>\n");
}

/* A column that stands for several shows their mean, and a line from the least
 * to the largest. */
static void draw_column(FILE *out, const akini_report_frame_t *f,
                        const akin_report_columns_t *c, size_t first,
                        size_t count, double x, double width)
{
    double sum = 0.0;
    double low = INFINITY;
    double high = 0.0;
    for (size_t i = first; i < first + count; i++) {
        const double value = isfinite(c->values[i]) ? c->values[i] : 0.0;
        sum += value;
        low = fmin(low, value);
        high = fmax(high, value);
    }
    const double zero = akini_report_y(f, 0.0);
    const double top = akini_report_y(f, sum / (double)count);
    (void)fprintf(out, "<path class=\"f%d\" d=\"M%.2f %.1fV%.1fh%.2fV%.1fz\"/>",
                  c->colours == NULL ? 0 : c->colours[first], x, zero, top,
                  width, zero);
    if (count > 1)
        (void)fprintf(out, "<path class=\"w\" d=\"M%.2f %.1fV%.1f\"/>",
                      x + width / 2, akini_report_y(f, low),
                      akini_report_y(f, high));
}

void akin_report_draw_columns(FILE *out, const akin_report_columns_t *c)
{
    const size_t group = (c->n + COLUMNS_MAX - 1) / COLUMNS_MAX;
    const size_t n = group == 0 ? 0 : (c->n + group - 1) / group;
    akini_report_frame_t f = {.width = 640,
                              .height = 260,
                              .left = 62,
                              .right = 22,
                              .top = 10,
                              .bottom = 46};
    f.y = akin_report_scale(0.0, largest(c->values, c->n), 5);
    akini_report_open(out, c->title, &f);
    akini_report_y_axis(out, &f, c->y_title);
    const double pitch = (f.width - f.left - f.right) / (double)(n > 0 ? n : 1);
    const double width = fmin(pitch * (pitch > 4 ? 0.8 : 1.0), 48.0);
    const size_t every = (n + 15) / 16;
    for (size_t i = 0; i < n; i++) {
        const size_t first = i * group;
        const double middle = f.left + ((double)i + 0.5) * pitch;
        draw_column(out, &f, c, first,
                    c->n - first < group ? c->n - first : group,
                    middle - width / 2, width);
        if (i % every == 0)
            (void)fprintf(out,
                          "<text x=\"%.1f\" y=\"%.1f\" "
                          "text-anchor=\"middle\">%zu</text>",
                          middle, f.height - f.bottom + 18, first);
        (void)fprintf(out, "\n");
    }
    akini_report_x_title(out, &f, c->x_title);
    (void)fprintf(out, "</svg>\n");
    if (c->n_series > 1)
        akini_report_legend(out, c->series, c->n_series, 1);
    if (group > 1)
        (void)fprintf(out,
                      "<p class=\"note\">A column is the mean of %zu workers, "
                      "its line goes from the least to the largest.</p>\n",
                      group);
    (void)fprintf(out, "</figure>\n");
}
