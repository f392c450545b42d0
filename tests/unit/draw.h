/* Draws: reproducible numbers for tests, a pure function of seed and index. */
#ifndef AKIN_TESTS_UNIT_DRAW_H
#define AKIN_TESTS_UNIT_DRAW_H

#include "checkpoint_number.h"

#include <stddef.h>
#include <stdint.h>

/** 64 random bits. */
static inline uint64_t draw_bits(uint64_t seed, uint64_t index)
{
    return checkpoint_mix(checkpoint_mix(seed + 1) +
                          index * UINT64_C(0x9e3779b97f4a7c15));
}

/** Whole number in [0, bound). */
static inline uint32_t draw_below(uint64_t seed, uint64_t index, uint32_t bound)
{
    return (uint32_t)((draw_bits(seed, index) >> 32) * bound >> 32);
}

/** Uniform in [-1, 1). */
static inline double draw_signed(uint64_t seed, uint64_t index)
{
    return (double)(draw_bits(seed, index) >> 11) * 0x1p-52 - 1.0;
}

/** Fill with uniform numbers of [-scale, scale). */
static inline void draw_floats(float *x, size_t n, uint64_t seed, double scale)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(scale * draw_signed(seed, i));
}

/**
 * Fill a matrix of a stored type with uniform numbers of [-scale, scale).
 *
 * \param[out] bytes   n elements, any alignment.
 * \param[out] values  the same n numbers as floats.
 */
static inline void draw_matrix(void *bytes, float *values, size_t n,
                               akin_dtype_t dtype, uint64_t seed, double scale)
{
    unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++) {
        values[i] =
            (float)checkpoint_round(scale * draw_signed(seed, i), dtype);
        uint32_t bits = checkpoint_bits(values[i], dtype);
        for (size_t b = 0; b < akin_dtype_bytes(dtype); b++)
            *p++ = (unsigned char)(bits >> 8 * b);
    }
}

#endif
