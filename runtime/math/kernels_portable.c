/* Kernels of the portable path. */
#include "math/kernels_internal.h"
#include "math/simd_portable.h"

#define KERNELS_NAME "portable"
#define KERNELS_TABLE akini_kernels_portable
#include "math/kernels_body.h"
