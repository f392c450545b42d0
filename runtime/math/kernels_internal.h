/* Kernel tables of the paths that this build has. */
#ifndef AKIN_MATH_KERNELS_INTERNAL_H
#define AKIN_MATH_KERNELS_INTERNAL_H

#include "math/kernels.h"

extern const akin_kernels_t akini_kernels_avx512;
extern const akin_kernels_t akini_kernels_avx2;
extern const akin_kernels_t akini_kernels_portable;

#endif
