/* Float array: memory for the large arrays that every decision reads. */
#include "routing/float_array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINE_BYTES ((size_t)64)
#define HUGE_BYTES ((size_t)2 << 20)

float *akini_float_array_create(size_t n_rows, size_t n)
{
    if (n > (SIZE_MAX - HUGE_BYTES) / sizeof(float) / n_rows)
        return NULL;
    size_t bytes = n_rows * n * sizeof(float);
    size_t unit = bytes >= 2 * HUGE_BYTES ? HUGE_BYTES : LINE_BYTES;
    size_t rounded = (bytes + unit - 1) / unit * unit;
    float *array = aligned_alloc(unit, rounded);
    if (array == NULL)
        return NULL;
    /* A refusal costs time alone. */
    if (unit == HUGE_BYTES)
        (void)madvise(array, rounded, MADV_HUGEPAGE);
    memset(array, 0, rounded);
    return array;
}
