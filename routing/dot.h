/* Dot product of two float arrays. */
#ifndef AKIN_ROUTING_DOT_H
#define AKIN_ROUTING_DOT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Sum of a[i] * b[i]. It runs in 16 fixed lanes of float, which go to a double
 * every 512 elements, and the build forbids fused multiply-add: the result is
 * the same to the bit whatever instruction set serves the call.
 *
 * \param[in] a  [n]
 * \param[in] b  [n]
 * \param[in] n  may be 0.
 */
double akini_dot(const float *a, const float *b, size_t n);

#ifdef __cplusplus
}
#endif

#endif
