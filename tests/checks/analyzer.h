/* Analyzer: what clang's analyzer cannot see, told to it before every source.
 *
 * It reads one source at a time, so it takes akin_error_set() for a function
 * that may return success, and it loses its way in the links of uthash and
 * utlist, where it then finds freed elements still linked.
 */
#ifndef AKIN_TESTS_CHECKS_ANALYZER_H
#define AKIN_TESTS_CHECKS_ANALYZER_H

#include "base/error.h"

#include <uthash.h>
#include <utlist.h>

static inline akin_status_t analyzer_failed(akin_status_t status)
{
    if (status == AKIN_OK)
        __builtin_unreachable();
    return status;
}

#define akin_error_set(...) analyzer_failed((akin_error_set)(__VA_ARGS__))
#define akin_error_prefix(...) analyzer_failed((akin_error_prefix)(__VA_ARGS__))

void *analyzer_unlink(void *head, void *element);

#undef HASH_DELETE
#define HASH_DELETE(hh, head, element)                                         \
    ((head) = analyzer_unlink((head), (element)))
#undef DL_DELETE
#define DL_DELETE(head, element) ((head) = analyzer_unlink((head), (element)))
#undef LL_DELETE
#define LL_DELETE(head, element) ((head) = analyzer_unlink((head), (element)))

#endif
