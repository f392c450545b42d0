/* Requests with planted domains: counts that a gate could have written, drawn
 * from a seed alone. */
#ifndef AKIN_TESTS_UNIT_PLANTED_REQUESTS_H
#define AKIN_TESTS_UNIT_PLANTED_REQUESTS_H

#include "base/rng.h"

#include <stdint.h>
#include <string.h>

typedef struct planted_shape {
    uint32_t n_layers;
    uint32_t n_experts;
    uint32_t top_k;
    uint32_t n_domains;
} planted_shape_t;

/**
 * Counts of a prompt: every token takes top_k different experts of every
 * layer, three in four of them from its domain's share of the experts.
 *
 * \param[out] counts  [n_layers][n_experts]
 */
static inline void planted_counts(const planted_shape_t *shape, uint64_t seed,
                                  uint64_t request, uint32_t n_tokens,
                                  uint16_t *counts)
{
    uint64_t index = 0;
    uint32_t share = shape->n_experts / shape->n_domains;
    uint32_t first = (uint32_t)(request % shape->n_domains) * share;
    memset(counts, 0,
           sizeof(*counts) * shape->n_layers * (size_t)shape->n_experts);
    for (uint32_t layer = 0; layer < shape->n_layers; layer++) {
        uint16_t *row = counts + (size_t)layer * shape->n_experts;
        for (uint32_t token = 0; token < n_tokens; token++) {
            uint8_t taken[256] = {0};
            for (uint32_t k = 0; k < shape->top_k;) {
                int near = akin_rng_below(seed, request, index++, 4) != 0;
                uint32_t e =
                    near ? first + (uint32_t)akin_rng_below(seed, request,
                                                            index++, share)
                         : (uint32_t)akin_rng_below(seed, request, index++,
                                                    shape->n_experts);
                if (taken[e])
                    continue;
                taken[e] = 1;
                row[e]++;
                k++;
            }
        }
    }
}

#endif
