/* Kernel paths: the ones that this CPU has, tried one after the other. */
#ifndef AKIN_TESTS_UNIT_KERNEL_PATHS_H
#define AKIN_TESTS_UNIT_KERNEL_PATHS_H

#include "math/kernels.h"

/** Call a test with the kernels of every path that this CPU has. */
static inline void kernel_paths_each(void (*test)(const akin_kernels_t *))
{
    for (akin_kernel_path_t p = AKIN_KERNEL_AVX512; p < AKIN_KERNEL_COUNT; p++)
        if (akin_kernels_of(p) != NULL)
            test(akin_kernels_of(p));
}

#endif
