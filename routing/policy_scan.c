/* Policy scan: loops without branches, which become vectors. */
#include "routing/policy_scan.h"

#include "routing/lanes.h"

/* Workers whose hits are counted before one of them is looked for. */
#define BLOCK 256u

/* All ones for a worker that may be chosen. */
AKINI_INLINE uint32_t mask_of(uint8_t eligible)
{
    return 0u - (uint32_t)(eligible != 0);
}

AKINI_INLINE uint32_t count_at(const uint32_t *loads, const uint8_t *eligible,
                               uint32_t n, uint32_t load)
{
    uint32_t count = 0;
    for (uint32_t w = 0; w < n; w++)
        count += (uint32_t)(loads[w] == load) & mask_of(eligible[w]);
    return count;
}

AKINI_INLINE uint32_t count_any(const uint8_t *eligible, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t w = 0; w < n; w++)
        count += eligible[w] != 0;
    return count;
}

AKINI_CLONES uint32_t akini_scan_least(const uint32_t *loads,
                                       const uint8_t *eligible, uint32_t n,
                                       uint32_t *count_p)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t w = 0; w < n; w++) {
        const uint32_t load = loads[w] | ~mask_of(eligible[w]);
        least = load < least ? load : least;
    }
    *count_p = least == UINT32_MAX ? 0 : count_at(loads, eligible, n, least);
    return least;
}

AKINI_CLONES uint32_t akini_scan_nth_at(const uint32_t *loads,
                                        const uint8_t *eligible, uint32_t n,
                                        uint32_t load, uint64_t rank)
{
    uint32_t w = 0;
    for (; n - w > BLOCK; w += BLOCK) {
        const uint32_t count = count_at(loads + w, eligible + w, BLOCK, load);
        if (rank < count)
            break;
        rank -= count;
    }
    for (; w < n; w++)
        if (eligible[w] != 0 && loads[w] == load && rank-- == 0)
            return w;
    return n;
}

AKINI_CLONES uint32_t akini_scan_count(const uint8_t *eligible, uint32_t n)
{
    return count_any(eligible, n);
}

AKINI_CLONES uint32_t akini_scan_nth(const uint8_t *eligible, uint32_t n,
                                     uint64_t rank)
{
    uint32_t w = 0;
    for (; n - w > BLOCK; w += BLOCK) {
        const uint32_t count = count_any(eligible + w, BLOCK);
        if (rank < count)
            break;
        rank -= count;
    }
    for (; w < n; w++)
        if (eligible[w] != 0 && rank-- == 0)
            return w;
    return n;
}
