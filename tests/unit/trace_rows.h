/* Rows of experts for tests of traces: drawn, different within a layer. */
#ifndef AKIN_TESTS_UNIT_TRACE_ROWS_H
#define AKIN_TESTS_UNIT_TRACE_ROWS_H

#include "base/rng.h"
#include "routing/trace.h"

/* [n_tokens][n_layers][top_k], a function of the key. Each layer is a walk
 * through the experts with a stride that is coprime to their number, so none
 * comes twice; n_experts must be a power of two. */
static inline void trace_rows_draw(const akin_trace_shape_t *shape,
                                   uint32_t n_tokens, uint64_t key,
                                   uint16_t *routes)
{
    const uint32_t mask = shape->n_experts - 1;
    for (uint32_t i = 0; i < n_tokens * shape->n_layers; i++) {
        const uint64_t bits = akin_rng_u64(key, 1, i);
        uint32_t expert = (uint32_t)bits & mask;
        const uint32_t stride = (uint32_t)(bits >> 32) | 1u;
        for (uint32_t j = 0; j < shape->top_k; j++) {
            *routes++ = (uint16_t)expert;
            expert = (expert + stride) & mask;
        }
    }
}

#endif
