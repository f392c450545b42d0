/* Report tiles: many small charts on one scale, and maps of colours. */
#include "launch/report_tiles.h"

#include "launch/report_svg.h"

#include <math.h>

#define WIDTH 640.0
#define LEFT 44.0
#define RIGHT 12.0
#define GAP 8.0

typedef struct grid {
    size_t n_columns, n_rows;
    double width, height; /* of a tile */
} grid_t;

static grid_t grid_of(size_t n)
{
    grid_t grid = {.n_columns = 8, .height = n > 48 ? 62.0 : 54.0};
    if (n <= 4)
        grid = (grid_t){.n_columns = n < 2 ? n : 2, .height = 96.0};
    else if (n <= 24)
        grid = (grid_t){.n_columns = 4,
                        .height = n <= 8    ? 96.0
                                  : n <= 16 ? 60.0
                                            : 50.0};
    grid.n_rows = (n + grid.n_columns - 1) / grid.n_columns;
    grid.width = (WIDTH - LEFT - RIGHT + GAP) / (double)grid.n_columns - GAP;
    return grid;
}

/* A curve through the middles of the pieces, from the first one's begin to the
 * last one's end. */
static void draw_curve(FILE *out, const akin_report_tiles_t *t,
                       const grid_t *grid, const double *values)
{
    const double x_unit = grid->width / t->end_s;
    const double y_unit = grid->height / t->top;
    for (size_t i = 0; i < t->n_points; i++) {
        const double begin = (double)i * t->piece_s;
        const double end = fmin(begin + t->piece_s, t->end_s);
        const double y = grid->height - fmin(values[i], t->top) * y_unit;
        if (i == 0)
            (void)fprintf(out, "0 %.1f", y);
        (void)fprintf(out, "L%.1f %.1f",
                      fmin((begin + end) / 2.0, t->end_s) * x_unit, y);
        if (i + 1 == t->n_points)
            (void)fprintf(out, "H%.1f", grid->width);
    }
}

static void draw_tile(FILE *out, const akin_report_tiles_t *t,
                      const grid_t *grid, size_t i, size_t id)
{
    const size_t row = i / grid->n_columns;
    const size_t column = i % grid->n_columns;
    const double x = LEFT + (double)column * (grid->width + GAP);
    const double y = 10.0 + (double)row * (grid->height + GAP);
    (void)fprintf(out,
                  "<g transform=\"translate(%.1f %.1f)\"><path class=\"t\" "
                  "d=\"M0 0H%.1fV%.1fH0z\"/><path class=\"a\" d=\"M0 %.1fL",
                  x, y, grid->width, grid->height, grid->height);
    draw_curve(out, t, grid, t->values + i * t->n_points);
    (void)fprintf(
        out,
        "V%.1fz\"/><use href=\"#m%zu\" class=\"w\"/><text class=\"at\" "
        "x=\"4\" y=\"12\">%zu</text></g>\n",
        grid->height, id, i);
}

/* Ends of the scales, at the first tile of the last row. */
static void draw_scales(FILE *out, const akin_report_tiles_t *t,
                        const grid_t *grid, double bottom)
{
    (void)fprintf(out,
                  "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.3g</text>"
                  "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">0</text>"
                  "<text x=\"%.1f\" y=\"%.1f\">0</text>"
                  "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.3g s"
                  "</text>\n",
                  LEFT - 6.0, bottom - grid->height + 10.0, t->top, LEFT - 6.0,
                  bottom, LEFT, bottom + 16.0, LEFT + grid->width,
                  bottom + 16.0, t->end_s);
}

void akin_report_draw_tiles(FILE *out, const akin_report_tiles_t *tiles,
                            size_t id)
{
    const grid_t grid = grid_of(tiles->n);
    const double bottom =
        10.0 + (double)grid.n_rows * (grid.height + GAP) - GAP;
    const akini_report_frame_t f = {.width = WIDTH, .height = bottom + 22.0};
    akini_report_open(out, tiles->title, &f);
    (void)fprintf(out, "<defs><path id=\"m%zu\" d=\"M", id);
    draw_curve(out, tiles, &grid, tiles->means);
    (void)fprintf(out, "\"/></defs>\n");
    for (size_t i = 0; i < tiles->n; i++)
        draw_tile(out, tiles, &grid, i, id);
    draw_scales(out, tiles, &grid, bottom);
    (void)fprintf(out, "</svg>\n<p class=\"note\">");
    akin_report_text(out, tiles->note);
    (void)fprintf(out, "</p>\n</figure>\n");
}

unsigned akin_report_colour(double value)
{
    double bound = 0.125;
    unsigned colour = 0;
    while (colour + 1 < AKIN_REPORT_COLOURS && value >= bound) {
        bound *= 2.0;
        colour++;
    }
    return colour;
}

/* All cells of a colour are one path, in units of cells; neighbours of a row
 * are drawn as one. The lowest colour is that of the ground. */
static void draw_colour(FILE *out, const akin_report_map_t *map,
                        unsigned colour)
{
    (void)fprintf(out, "<path class=\"m%u\" d=\"", colour);
    for (size_t row = 0; row < map->n_rows; row++) {
        const double *values = map->values + map->rows[row] * map->n_columns;
        for (size_t c = 0, end; c < map->n_columns; c = end) {
            end = c + 1;
            if (akin_report_colour(values[map->order[c]]) != colour)
                continue;
            while (end < map->n_columns &&
                   akin_report_colour(values[map->order[end]]) == colour)
                end++;
            (void)fprintf(out, "M%zu %zuh%zuv1h-%zuz", c, row, end - c,
                          end - c);
        }
    }
    (void)fprintf(out, "\"/>\n");
}

static void draw_legend(FILE *out, const char *unit)
{
    static const char *const bounds[AKIN_REPORT_COLOURS] = {
        "less", "1/8", "1/4", "1/2", "1", "2", "4", "8 or more"};
    (void)fprintf(out, "<ul class=\"legend key\"><li>");
    akin_report_text(out, unit);
    (void)fprintf(out, ":</li>");
    for (unsigned i = 0; i < AKIN_REPORT_COLOURS; i++)
        (void)fprintf(out,
                      "<li><svg width=\"16\" height=\"12\" viewBox=\"0 0 16 "
                      "12\" aria-hidden=\"true\"><path class=\"m%u t\" "
                      "d=\"M1 .5h14v11h-14z\"/></svg>%s</li>",
                      i, bounds[i]);
    (void)fprintf(out, "</ul>\n");
}

void akin_report_draw_map(FILE *out, const akin_report_map_t *map)
{
    const double height = fmin(fmax(220.0 / (double)map->n_rows, 9.0), 44.0);
    const double bottom = 10.0 + height * (double)map->n_rows;
    const akini_report_frame_t f = {.width = WIDTH,
                                    .height = bottom + 30.0,
                                    .left = LEFT + 8.0,
                                    .right = RIGHT,
                                    .top = 10.0,
                                    .bottom = 30.0};
    akini_report_open(out, map->title, &f);
    (void)fprintf(
        out,
        "<g shape-rendering=\"crispEdges\" transform=\"translate(%.1f "
        "%.1f) scale(%.5f %.3f)\">\n",
        f.left, f.top, (f.width - f.left - f.right) / (double)map->n_columns,
        height);
    for (unsigned colour = 1; colour < AKIN_REPORT_COLOURS; colour++)
        draw_colour(out, map, colour);
    (void)fprintf(
        out, "</g>\n<path class=\"g\" d=\"M%.1f %.1fH%.1fV%.1fH%.1fz\"/>\n",
        f.left, f.top, f.width - f.right, bottom, f.left);
    for (size_t row = 0; row < map->n_rows; row++)
        (void)fprintf(out,
                      "<text%s x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%zu"
                      "</text>\n",
                      height < 12.0 ? " class=\"s\"" : "", f.left - 6.0,
                      f.top + height * ((double)row + 0.5) +
                          (height < 12.0 ? 3.0 : 4.0),
                      map->rows[row]);
    (void)fprintf(out,
                  "<text class=\"at\" transform=\"translate(14 %.1f) "
                  "rotate(-90)\" text-anchor=\"middle\">",
                  (f.top + bottom) / 2.0);
    akin_report_text(out, map->y_title);
    (void)fprintf(out, "</text>\n");
    akini_report_x_title(out, &f, map->x_title);
    (void)fprintf(out, "</svg>\n");
    draw_legend(out, map->unit);
    (void)fprintf(out, "<p class=\"note\">");
    akin_report_text(out, map->note);
    (void)fprintf(out, "</p>\n</figure>\n");
}
