/* Float array: memory for the large arrays that every decision reads. */
#ifndef AKIN_ROUTING_FLOAT_ARRAY_H
#define AKIN_ROUTING_FLOAT_ARRAY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Zeros that start at a cache line, so that no vector spans two; large arrays
 * ask for huge pages, since a decision walks through all of them.
 *
 * \param[in] n_rows  >= 1.
 * \param[in] n       floats per row, >= 1.
 * \return [n_rows][n], free() it; NULL if there is no memory.
 */
float *akini_float_array_create(size_t n_rows, size_t n);

#ifdef __cplusplus
}
#endif

#endif
