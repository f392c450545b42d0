/* Kernels of the AVX-512 path. */
#include "math/kernels_internal.h"
#include "math/simd_avx512.h"

#define KERNELS_NAME "avx512"
#define KERNELS_TABLE akini_kernels_avx512
#include "math/kernels_body.h"
