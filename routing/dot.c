/* Dot product of two float arrays. */
#include "routing/dot.h"

#include "routing/lanes.h"

AKINI_CLONES double akini_dot(const float *restrict a, const float *restrict b,
                              size_t n)
{
    double sum = 0.0;
    for (size_t from = 0; from < n; from += AKINI_FLUSH_CELLS) {
        size_t to = n - from < AKINI_FLUSH_CELLS ? n : from + AKINI_FLUSH_CELLS;
        akini_lanes_t part = {0};
        size_t i = from;
        for (; to - i >= AKINI_LANES; i += AKINI_LANES)
            part += *(const akini_lanes_t *)(a + i) *
                    *(const akini_lanes_t *)(b + i);
        for (int lane = 0; i < to; i++, lane++)
            part[lane] += a[i] * b[i];
        for (int lane = 0; lane < AKINI_LANES; lane++)
            sum += (double)part[lane];
    }
    return sum;
}
