/* Checkpoint numbers: drawing, rounding and encoding of the weights of a random
 * model, written apart from the project's own conversions. */
#ifndef AKIN_TESTS_UNIT_CHECKPOINT_NUMBER_H
#define AKIN_TESTS_UNIT_CHECKPOINT_NUMBER_H

#include "math/matrix.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* The nearest number of a type, ties to even, in double precision: the rounding
 * unit of the type at this size is a power of two, so both the division and
 * the product are exact. */
static inline double checkpoint_round(double x, akin_dtype_t dtype)
{
    if (x == 0 || dtype == AKIN_DTYPE_F32)
        return (double)(float)x;
    int exponent; /* |x| is in [2^(exponent - 1), 2^exponent) */
    (void)frexp(x, &exponent);
    int unit = exponent - (dtype == AKIN_DTYPE_BF16 ? 8 : 11);
    if (dtype == AKIN_DTYPE_F16 && unit < -24)
        unit = -24;
    return ldexp(nearbyint(ldexp(x, -unit)), unit);
}

static inline uint64_t checkpoint_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/** Bit pattern of a value that the type holds exactly. */
static inline uint32_t checkpoint_bits(float x, akin_dtype_t dtype)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    if (dtype == AKIN_DTYPE_F32)
        return bits;
    if (dtype == AKIN_DTYPE_BF16)
        return bits >> 16;
    uint32_t sign = (bits >> 16) & 0x8000;
    double magnitude = fabs((double)x);
    if (magnitude < 0x1p-14)
        return sign | (uint32_t)(magnitude * 0x1p24);
    int exponent;
    double fraction = frexp(magnitude, &exponent);
    return sign | (uint32_t)(exponent + 14) << 10 |
           ((uint32_t)(fraction * 2048) & 0x3ff);
}

#endif
