/* Vectors: numbers out of a JSON fixture, nested lists flattened. */
#ifndef AKIN_TESTS_UNIT_VECTORS_H
#define AKIN_TESTS_UNIT_VECTORS_H

#include "runner.h"

#include <jansson.h>

#include <stddef.h>

/** Load tests/fixtures/routing/<name>; ends the test if it cannot. */
static inline json_t *vectors_load(const char *name)
{
    char path[1024];
    (void)snprintf(path, sizeof(path), AKIN_FIXTURES "/routing/%s", name);
    json_t *root = json_load_file(path, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(root);
    return root;
}

static inline size_t vectors_flatten(const json_t *value, double *out,
                                     size_t room)
{
    if (!json_is_array(value)) {
        CU_ASSERT_FATAL(json_is_number(value) && room > 0);
        out[0] = json_number_value(value);
        return 1;
    }
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(value); i++)
        n += vectors_flatten(json_array_get(value, i), out + n, room - n);
    return n;
}

/** Fill out[n] from a list that holds exactly n numbers. */
static inline void vectors_get(const json_t *value, double *out, size_t n)
{
    CU_ASSERT_PTR_NOT_NULL_FATAL(value);
    CU_ASSERT_EQUAL_FATAL(vectors_flatten(value, out, n), n);
}

/** The same as floats; at most 4096 of them. */
static inline void vectors_get_floats(const json_t *value, float *out, size_t n)
{
    static double wide[4096];
    CU_ASSERT_FATAL(n <= sizeof(wide) / sizeof(wide[0]));
    vectors_get(value, wide, n);
    for (size_t i = 0; i < n; i++)
        out[i] = (float)wide[i];
}

#endif
