/* Clock over CLOCK_MONOTONIC. */
#include "base/clock.h"

#include <time.h>

int64_t akin_clock_now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * AKIN_NS_PER_S + t.tv_nsec;
}
