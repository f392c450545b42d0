/* Dot block: the loop of the dot products of one array with several rows, to be
 * inlined into functions that have clones. */
#ifndef AKIN_ROUTING_DOT_BLOCK_H
#define AKIN_ROUTING_DOT_BLOCK_H

#include "routing/lanes.h"

#include <stddef.h>
#include <string.h>

enum {
    /* Rows read at a time: enough chains of additions to hide their latency,
     * few enough for the registers of every instruction set. */
    AKINI_DOT_ROWS = 4
};

/*
 * Add the products of a flush, n <= AKINI_FLUSH_CELLS cells, to the sums of
 * the rows. n_rows is a constant of the caller, so that the lanes stay in
 * registers. Even and odd vectors have lanes of their own; the tail is an odd
 * one. Where n is a constant, too, the tails cost nothing.
 */
AKINI_INLINE void akini_dot_flush(const float *a, const float *const *rows,
                                  const int n_rows, size_t n,
                                  akini_wide_t (*sums)[2])
{
    akini_lanes_t even[AKINI_DOT_ROWS], odd[AKINI_DOT_ROWS];
    size_t whole = n - n % AKINI_LANES;
    size_t i = 0;
    for (int r = 0; r < n_rows; r++)
        even[r] = odd[r] = (akini_lanes_t){0.0f};
    for (; whole - i >= 2 * AKINI_LANES; i += 2 * AKINI_LANES) {
        akini_lanes_t x = *(const akini_lanes_t *)(a + i);
        akini_lanes_t y = *(const akini_lanes_t *)(a + i + AKINI_LANES);
        for (int r = 0; r < n_rows; r++) {
            const float *b = rows[r] + i;
            even[r] += x * *(const akini_lanes_t *)b;
            odd[r] += y * *(const akini_lanes_t *)(b + AKINI_LANES);
        }
    }
    if (i < whole) {
        akini_lanes_t x = *(const akini_lanes_t *)(a + i);
        for (int r = 0; r < n_rows; r++)
            even[r] += x * *(const akini_lanes_t *)(rows[r] + i);
    }
    if (whole < n) {
        float x[AKINI_LANES] = {0.0f}, y[AKINI_LANES] = {0.0f};
        memcpy(x, a + whole, (n - whole) * sizeof(*x));
        for (int r = 0; r < n_rows; r++) {
            memcpy(y, rows[r] + whole, (n - whole) * sizeof(*y));
            odd[r] += *(const akini_lanes_t *)x * *(const akini_lanes_t *)y;
        }
    }
    for (int r = 0; r < n_rows; r++) {
        even[r] += odd[r];
        akini_lanes_widen(&even[r], sums[r]);
    }
}

/* As akini_dot_flush(), over any number of cells. */
AKINI_INLINE void akini_dot_add(const float *a, const float *const *rows,
                                const int n_rows, size_t n,
                                akini_wide_t (*sums)[2])
{
    const float *at[AKINI_DOT_ROWS];
    size_t from = 0;
    for (; n - from >= AKINI_FLUSH_CELLS; from += AKINI_FLUSH_CELLS) {
        for (int r = 0; r < n_rows; r++)
            at[r] = rows[r] + from;
        akini_dot_flush(a + from, at, n_rows, AKINI_FLUSH_CELLS, sums);
    }
    for (int r = 0; r < n_rows; r++)
        at[r] = rows[r] + from;
    if (from < n)
        akini_dot_flush(a + from, at, n_rows, n - from, sums);
}

/*
 * Dot products of a with the rows. n_rows is a constant of the caller, at most
 * AKINI_DOT_ROWS.
 */
AKINI_INLINE void akini_dot_block(const float *a, const float *const *rows,
                                  const int n_rows, size_t n, double *sums)
{
    akini_wide_t wide[AKINI_DOT_ROWS][2];
    for (int r = 0; r < n_rows; r++)
        wide[r][0] = wide[r][1] = (akini_wide_t){0.0};
    akini_dot_add(a, rows, n_rows, n, wide);
    for (int r = 0; r < n_rows; r++)
        sums[r] = akini_lanes_fold(wide[r]);
}

#endif
