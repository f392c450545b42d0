/* Dot product of float arrays. */
#ifndef AKIN_ROUTING_DOT_H
#define AKIN_ROUTING_DOT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Sum of a[i] * b[i]. It runs in 16 fixed lanes of float, two of each that take
 * vectors in turn and join every 512 elements to go to a double per lane; these
 * are folded in halves at the end. The build forbids fused multiply-add: the
 * result is the same to the bit whatever instruction set serves the call.
 *
 * \param[in] a  [n]
 * \param[in] b  [n]
 * \param[in] n  may be 0.
 */
double akini_dot(const float *a, const float *b, size_t n);

/**
 * Dot products of one array with rows of a matrix, those of akini_dot() to the
 * bit. Several rows are read at a time.
 *
 * \param[in]  a       [n]
 * \param[in]  rows    first row; row r starts at rows + r * stride.
 * \param[in]  stride  elements from row to row, >= n.
 * \param[in]  picked  [n_rows] numbers of the rows; NULL: 0, 1, 2 and so on.
 * \param[in]  n_rows  may be 0.
 * \param[in]  n       may be 0.
 * \param[out] sums    [n_rows]
 */
void akini_dot_rows(const float *a, const float *rows, size_t stride,
                    const uint32_t *picked, uint32_t n_rows, size_t n,
                    double *sums);

#ifdef __cplusplus
}
#endif

#endif
