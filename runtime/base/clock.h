/* Clock: monotonic time in nanoseconds. */
#ifndef AKIN_BASE_CLOCK_H
#define AKIN_BASE_CLOCK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AKIN_NS_PER_US INT64_C(1000)
#define AKIN_NS_PER_MS INT64_C(1000000)
#define AKIN_NS_PER_S INT64_C(1000000000)

/**
 * Monotonic time since an arbitrary start, the same for all processes of one
 * host (CLOCK_MONOTONIC).
 *
 * \return nanoseconds.
 */
int64_t akin_clock_now_ns(void);

#ifdef __cplusplus
}
#endif

#endif
