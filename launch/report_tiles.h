/* Report tiles: many small charts on one scale, and maps of colours. */
#ifndef AKIN_LAUNCH_REPORT_TILES_H
#define AKIN_LAUNCH_REPORT_TILES_H

#include <stddef.h>
#include <stdio.h>

/** Values of several workers over time, one small chart each. */
typedef struct akin_report_tiles {
    const char *title;
    const char *note;     /* below */
    const double *values; /* [n][n_points] of equal pieces of time */
    const double *means;  /* [n_points] of the workers, drawn in each */
    size_t n, n_points;
    double piece_s; /* the last piece may be shorter */
    double end_s;
    double top; /* of the scale, above 0 */
} akin_report_tiles_t;

/** Rows of cells, each in the colour of its value: 1 is in the middle, and
 * every colour is for twice what the one before it is for. */
typedef struct akin_report_map {
    const char *title;
    const char *x_title, *y_title;
    const char *note;     /* below */
    const char *unit;     /* of the values: "times the even share" */
    const double *values; /* [n_rows][n_columns] */
    const size_t *rows;   /* [n_rows] from top to bottom */
    const size_t *order;  /* [n_columns] from left to right */
    size_t n_rows, n_columns;
} akin_report_map_t;

/** Colours of a map. */
#define AKIN_REPORT_COLOURS 8u

/** The colour of a value: 0 below 1/8, 7 from 8 on. */
unsigned akin_report_colour(double value);

/** \param[in] id  a number of its own on the page. */
void akin_report_draw_tiles(FILE *out, const akin_report_tiles_t *tiles,
                            size_t id);
void akin_report_draw_map(FILE *out, const akin_report_map_t *map);

#endif
