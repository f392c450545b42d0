/* Analyzer: what clang's analyzer cannot see, told to it before every source.
 *
 * It reads one source at a time, so without this it takes akin_error_set() for
 * a function that may return success.
 */
#ifndef AKIN_TESTS_CHECKS_ANALYZER_H
#define AKIN_TESTS_CHECKS_ANALYZER_H

#include "base/error.h"

static inline akin_status_t analyzer_failed(akin_status_t status)
{
    if (status == AKIN_OK)
        __builtin_unreachable();
    return status;
}

#define akin_error_set(...) analyzer_failed((akin_error_set)(__VA_ARGS__))
#define akin_error_prefix(...) analyzer_failed((akin_error_prefix)(__VA_ARGS__))

#endif
