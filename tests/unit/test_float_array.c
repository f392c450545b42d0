/* Float array: its place, its zeros, and sizes that cannot be. */
#include "runner.h"

#include "routing/float_array.h"

#include <stdint.h>
#include <stdlib.h>

static void test_zeros(void)
{
    const size_t shapes[][2] = {{1, 1}, {3, 17}, {700, 6144}};
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
        size_t n = shapes[s][0] * shapes[s][1], wrong = 0;
        float *array = akini_float_array_create(shapes[s][0], shapes[s][1]);
        CU_ASSERT_PTR_NOT_NULL_FATAL(array);
        CU_ASSERT_EQUAL((uintptr_t)array % 64, 0);
        for (size_t i = 0; i < n; i++)
            wrong += array[i] != 0.0f;
        CU_ASSERT_EQUAL(wrong, 0);
        array[n - 1] = 1.0f;
        free(array);
    }
}

static void test_too_large(void)
{
    CU_ASSERT_PTR_NULL(akini_float_array_create(SIZE_MAX / 4, 2));
    CU_ASSERT_PTR_NULL(akini_float_array_create(1, SIZE_MAX / 4));
}

static const runner_test_t tests[] = {
    {"zeros", test_zeros},
    {"too large", test_too_large},
};

RUNNER_MAIN("float_array", tests)
