/* Report SVG: text, axes and lines. */
#include "launch/report_svg.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <unistr.h>

enum { N_COLOURS = 7 };

static void put_character(FILE *out, const char *at, int n, ucs4_t c)
{
    if (c == '<')
        (void)fputs("&lt;", out);
    else if (c == '>')
        (void)fputs("&gt;", out);
    else if (c == '&')
        (void)fputs("&amp;", out);
    else if (c == '"')
        (void)fputs("&quot;", out);
    else if (c == '\'')
        (void)fputs("&#39;", out);
    else if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xfffe || c == 0xffff)
        (void)fputs("\xef\xbf\xbd", out);
    else
        (void)fwrite(at, 1, (size_t)n, out);
}

void akin_report_text_cut(FILE *out, const char *text, size_t max)
{
    size_t left = strlen(text);
    for (size_t i = 0; left > 0; i++) {
        if (i == max) {
            (void)fputs("\xe2\x80\xa6", out);
            return;
        }
        ucs4_t c;
        const int n = u8_mbtoucr(&c, (const uint8_t *)text, left);
        put_character(out, text, n, n > 0 ? c : 0);
        text += n > 0 ? n : 1;
        left -= n > 0 ? (size_t)n : 1;
    }
}

void akin_report_text(FILE *out, const char *text)
{
    akin_report_text_cut(out, text, SIZE_MAX);
}

double akini_report_x(const akini_report_frame_t *f, double value)
{
    return f->left + akin_report_scale_place(&f->x, value) *
                         (f->width - f->left - f->right);
}

double akini_report_y(const akini_report_frame_t *f, double value)
{
    return f->height - f->bottom -
           akin_report_scale_place(&f->y, value) *
               (f->height - f->top - f->bottom);
}

void akini_report_open(FILE *out, const char *title,
                       const akini_report_frame_t *f)
{
    (void)fprintf(out, "<figure>\n<figcaption>");
    akin_report_text(out, title);
    (void)fprintf(out,
                  "</figcaption>\n<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
                  "aria-label=\"",
                  f->width, f->height);
    akin_report_text(out, title);
    (void)fprintf(out, "\">\n");
}

void akini_report_x_title(FILE *out, const akini_report_frame_t *f,
                          const char *title)
{
    (void)fprintf(out,
                  "<text class=\"at\" x=\"%.1f\" y=\"%.1f\" "
                  "text-anchor=\"middle\">",
                  (f->left + f->width - f->right) / 2, f->height - 6);
    akin_report_text(out, title);
    (void)fprintf(out, "</text>\n");
}

void akini_report_x_axis(FILE *out, const akini_report_frame_t *f,
                         const char *title)
{
    const double bottom = f->height - f->bottom;
    char text[64];
    for (int i = 0; i < f->x.n_ticks; i++) {
        const double x = akini_report_x(f, akin_report_scale_tick(&f->x, i));
        akin_report_scale_text(&f->x, i, text, sizeof(text));
        (void)fprintf(out,
                      "<path class=\"g\" d=\"M%.1f %.1fV%.1f\"/><text "
                      "x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s"
                      "</text>\n",
                      x, f->top, bottom + 4, x, bottom + 18, text);
    }
    akini_report_x_title(out, f, title);
}

void akini_report_y_axis(FILE *out, const akini_report_frame_t *f,
                         const char *title)
{
    char text[64];
    for (int i = 0; i < f->y.n_ticks; i++) {
        const double y = akini_report_y(f, akin_report_scale_tick(&f->y, i));
        akin_report_scale_text(&f->y, i, text, sizeof(text));
        (void)fprintf(out,
                      "<path class=\"g\" d=\"M%.1f %.1fH%.1f\"/><text "
                      "x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                      f->left - 4, y, f->width - f->right, f->left - 8, y + 4,
                      text);
    }
    const double middle = (f->top + f->height - f->bottom) / 2;
    (void)fprintf(out,
                  "<text class=\"at\" transform=\"translate(14 %.1f) "
                  "rotate(-90)\" text-anchor=\"middle\">",
                  middle);
    akin_report_text(out, title);
    (void)fprintf(out, "</text>\n");
}

/* Lines differ in colour and in the shape of their points. */
static void draw_point(FILE *out, double x, double y, size_t line)
{
    static const char *const shapes[] = {
        "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "M-3.5-3.5h7v7h-7z",
        "M0-4.5L4.5 3.5h-9z", "M0-5L5 0L0 5L-5 0z"};
    (void)fprintf(out,
                  "<path class=\"f%zu\" transform=\"translate(%.1f %.1f)\" "
                  "d=\"%s\"/>",
                  line % N_COLOURS, x, y, shapes[line % 4]);
}

void akini_report_legend(FILE *out, const char *const *labels, size_t n,
                         int is_filled)
{
    (void)fprintf(out, "<ul class=\"legend\">");
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(out, "<li><svg width=\"26\" height=\"12\" "
                           "viewBox=\"0 0 26 12\" aria-hidden=\"true\">");
        if (is_filled) {
            (void)fprintf(out, "<path class=\"f%zu\" d=\"M7 0h12v12h-12z\"/>",
                          i % N_COLOURS);
        } else {
            (void)fprintf(out, "<path class=\"l%zu\" d=\"M0 6H26\"/>",
                          i % N_COLOURS);
            draw_point(out, 13, 6, i);
        }
        (void)fprintf(out, "</svg>");
        akin_report_text(out, labels[i]);
        (void)fprintf(out, "</li>");
    }
    (void)fprintf(out, "</ul>\n");
}

static int is_point(const akin_report_line_t *line, size_t i)
{
    return isfinite(line->x[i]) && isfinite(line->y[i]);
}

static void set_scales(akini_report_frame_t *f, const akin_report_chart_t *c,
                       size_t n_lines)
{
    double low = INFINITY;
    double high = -INFINITY;
    double top = 0.0;
    for (size_t l = 0; l < n_lines; l++)
        for (size_t i = 0; i < c->lines[l].n; i++) {
            if (!is_point(&c->lines[l], i))
                continue;
            low = fmin(low, c->lines[l].x[i]);
            high = fmax(high, c->lines[l].x[i]);
            top = fmax(top, c->lines[l].y[i]);
        }
    f->x = akin_report_scale(c->x_from_zero ? fmin(low, 0.0) : low, high, 7);
    f->y = c->y_is_percent ? akin_report_scale(0.0, 100.0, 4)
                           : akin_report_scale(0.0, top, 5);
}

static void draw_line(FILE *out, const akini_report_frame_t *f,
                      const akin_report_line_t *line, size_t index)
{
    int is_open = 0;
    (void)fprintf(out, "<g><title>");
    akin_report_text(out, line->label);
    (void)fprintf(out, "</title>");
    for (size_t i = 0; i < line->n; i++) {
        if (!is_point(line, i))
            continue;
        if (!is_open)
            (void)fprintf(out, "<path class=\"l%zu\" d=\"M", index % N_COLOURS);
        (void)fprintf(out, is_open ? "L%.1f %.1f" : "%.1f %.1f",
                      akini_report_x(f, line->x[i]),
                      akini_report_y(f, line->y[i]));
        is_open = 1;
    }
    if (is_open)
        (void)fprintf(out, "\"/>");
    /* Points of a curve of many would hide it. */
    const size_t stride = line->n > 16 ? 4 : 1;
    for (size_t i = 0; i < line->n; i += stride)
        if (is_point(line, i))
            draw_point(out, akini_report_x(f, line->x[i]),
                       akini_report_y(f, line->y[i]), index);
    (void)fprintf(out, "</g>\n");
}

void akin_report_draw_lines(FILE *out, const akin_report_chart_t *chart)
{
    const size_t n = chart->n_lines < AKIN_REPORT_LINES_MAX
                         ? chart->n_lines
                         : AKIN_REPORT_LINES_MAX;
    akini_report_frame_t f = {.width = 640,
                              .height = 320,
                              .left = 62,
                              .right = 22,
                              .top = 10,
                              .bottom = 46};
    const char *labels[AKIN_REPORT_LINES_MAX];
    set_scales(&f, chart, n);
    akini_report_open(out, chart->title, &f);
    akini_report_x_axis(out, &f, chart->x_title);
    akini_report_y_axis(out, &f, chart->y_title);
    for (size_t l = 0; l < n; l++) {
        labels[l] = chart->lines[l].label;
        draw_line(out, &f, &chart->lines[l], l);
    }
    (void)fprintf(out, "</svg>\n");
    akini_report_legend(out, labels, n, 0);
    if (n < chart->n_lines)
        (void)fprintf(out,
                      "<p class=\"note\">The first %zu of %zu are drawn; the "
                      "table has all.</p>\n",
                      n, chart->n_lines);
    (void)fprintf(out, "</figure>\n");
}
