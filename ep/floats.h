/* Floats: scratch arrays that begin at a cache line. */
#ifndef AKIN_EP_FLOATS_H
#define AKIN_EP_FLOATS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/** \return [rows][columns], owned by the caller, free(); NULL: no memory. */
static inline float *akini_floats_alloc(size_t rows, size_t columns)
{
    if (columns != 0 && rows > SIZE_MAX / 2 / sizeof(float) / columns)
        return NULL;
    size_t bytes = (rows * columns * sizeof(float) + 63) / 64 * 64;
    return (float *)aligned_alloc(64, bytes > 0 ? bytes : 64);
}

#endif
