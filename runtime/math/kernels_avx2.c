/* Kernels of the AVX2 path. */
#include "math/kernels_internal.h"
#include "math/simd_avx2.h"

#define KERNELS_NAME "avx2"
#define KERNELS_TABLE akini_kernels_avx2
#include "math/kernels_body.h"
