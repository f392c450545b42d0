/* Kernel dispatch: which paths this CPU has. */
#include "math/kernels.h"

#include "math/kernels_internal.h"

#include <stdio.h>
#include <string.h>

static const char *const path_names[AKIN_KERNEL_COUNT] = {
    [AKIN_KERNEL_AVX512] = "avx512",
    [AKIN_KERNEL_AVX2] = "avx2",
    [AKIN_KERNEL_PORTABLE] = "portable",
};

const char *akin_kernel_path_name(akin_kernel_path_t path)
{
    return path_names[path];
}

const akin_kernels_t *akin_kernels_of(akin_kernel_path_t path)
{
    switch (path) {
#ifdef __x86_64__
    case AKIN_KERNEL_AVX512:
        return __builtin_cpu_supports("avx512f") &&
                       __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq") &&
                       __builtin_cpu_supports("avx512vl")
                   ? &akini_kernels_avx512
                   : NULL;
    case AKIN_KERNEL_AVX2:
        /* Every CPU with AVX2 and FMA has F16C, which cannot be asked for. */
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
                   ? &akini_kernels_avx2
                   : NULL;
#endif
    case AKIN_KERNEL_PORTABLE:
        return &akini_kernels_portable;
    default:
        return NULL;
    }
}

akin_kernel_path_t akin_kernels_best(void)
{
    for (akin_kernel_path_t p = AKIN_KERNEL_AVX512; p < AKIN_KERNEL_COUNT; p++)
        if (akin_kernels_of(p) != NULL)
            return p;
    return AKIN_KERNEL_PORTABLE;
}

akin_status_t akin_kernels_find(const char *name,
                                const akin_kernels_t **kernels_p,
                                akin_error_t *err)
{
    *kernels_p = NULL;
    if (strcmp(name, "auto") == 0) {
        *kernels_p = akin_kernels_of(akin_kernels_best());
        return AKIN_OK;
    }
    for (akin_kernel_path_t p = AKIN_KERNEL_AVX512; p < AKIN_KERNEL_COUNT;
         p++) {
        if (strcmp(name, path_names[p]) != 0)
            continue;
        *kernels_p = akin_kernels_of(p);
        if (*kernels_p != NULL)
            return AKIN_OK;
        return akin_error_set(err, AKIN_ERR_UNSUPPORTED,
                              "kernel path \"%s\": this CPU has not got it; "
                              "the best it has is \"%s\"",
                              name, path_names[akin_kernels_best()]);
    }
    return akin_error_set(err, AKIN_ERR_INVALID,
                          "unknown kernel path \"%s\": use auto, avx512, avx2 "
                          "or portable",
                          name);
}
