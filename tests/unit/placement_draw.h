/* Placement draws: random maps and rates for the tests of placement. */
#ifndef AKIN_TESTS_UNIT_PLACEMENT_DRAW_H
#define AKIN_TESTS_UNIT_PLACEMENT_DRAW_H

#include "base/rng.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { PLACEMENT_DRAW_EXPERTS = 128 };

/** Rates of one layer, top_k in sum, exponential or, if skewed, its square. */
static inline void placement_draw_rates(float *rates, uint32_t n_experts,
                                        double top_k, int is_skewed,
                                        uint64_t seed)
{
    double sum = 0.0;
    for (uint32_t e = 0; e < n_experts; e++) {
        double x = -log(1.0 - akin_rng_uniform(seed, 1, e));
        rates[e] = (float)(is_skewed ? x * x : x);
        sum += (double)rates[e];
    }
    for (uint32_t e = 0; e < n_experts; e++)
        rates[e] = (float)fmin((double)rates[e] * top_k / sum, 0.95);
}

/** A map of one layer: experts dealt out in a random order, replicas to random
 * ranks that have room. \return 0 if the last replicas found no room. */
static inline int placement_draw_holders(uint64_t *holders, uint32_t n_experts,
                                         uint32_t n_ranks, uint32_t n_replicas,
                                         uint64_t seed)
{
    uint32_t order[PLACEMENT_DRAW_EXPERTS], counts[64] = {0};
    for (uint32_t e = 0; e < n_experts; e++)
        order[e] = e;
    for (uint32_t e = n_experts - 1; e > 0; e--) {
        uint32_t other = (uint32_t)akin_rng_below(seed, 2, e, e + 1);
        uint32_t kept = order[e];
        order[e] = order[other];
        order[other] = kept;
    }
    for (uint32_t i = 0; i < n_experts; i++) {
        holders[order[i]] = UINT64_C(1) << i % n_ranks;
        counts[i % n_ranks]++;
    }
    const uint32_t n_slots = (n_experts + n_replicas) / n_ranks;
    uint32_t placed = 0;
    for (uint64_t i = 0; placed < n_replicas && i < 100000; i++) {
        uint64_t e = akin_rng_below(seed, 3, i, n_experts);
        uint64_t r = akin_rng_below(seed, 4, i, n_ranks);
        if (counts[r] < n_slots && (holders[e] >> r & 1) == 0) {
            holders[e] |= UINT64_C(1) << r;
            counts[r]++;
            placed++;
        }
    }
    return placed == n_replicas;
}

/** Bit e set with the chance 1 - idle[e]. */
static inline void placement_draw_active(uint64_t *active, const float *idle,
                                         uint32_t n_experts, uint64_t seed,
                                         uint64_t step)
{
    memset(active, 0, (n_experts + 63) / 64 * sizeof(*active));
    for (uint32_t e = 0; e < n_experts; e++)
        if (akin_rng_uniform(seed, 5, step * n_experts + e) >= (double)idle[e])
            active[e / 64] |= UINT64_C(1) << e % 64;
}

#endif
