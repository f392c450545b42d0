/* Sim marks: bytes rather than bits, as a byte is set without being read. */
#include "routing/sim_marks.h"

#include <stdlib.h>
#include <string.h>

akin_status_t akini_sim_marks_init(akini_sim_marks_t *marks,
                                   const akin_route_pool_t *pool)
{
    const size_t cells = akin_route_pool_cells(pool);
    marks->n_bytes = (cells + 7) / 8 * 8;
    marks->bytes = calloc(marks->n_bytes, 1);
    marks->active = calloc((pool->n_experts + 63) / 64, sizeof(*marks->active));
    return marks->bytes != NULL && marks->active != NULL ? AKIN_OK
                                                         : AKIN_ERR_NOMEM;
}

void akini_sim_marks_cleanup(akini_sim_marks_t *marks)
{
    free(marks->bytes);
    free(marks->active);
}

void akini_sim_marks_clear(akini_sim_marks_t *marks)
{
    memset(marks->bytes, 0, marks->n_bytes);
}

/* Inlined with a constant top_k. */
static inline __attribute__((always_inline)) void
mark_bytes(uint8_t *bytes, const uint8_t *row, uint32_t n_layers,
           uint32_t n_experts, const uint32_t top_k)
{
    for (uint32_t l = 0; l < n_layers; l++) {
        for (uint32_t i = 0; i < top_k; i++)
            bytes[row[i]] = 1;
        bytes += n_experts;
        row += top_k;
    }
}

static void mark_words(uint8_t *bytes, const uint16_t *row, uint32_t n_layers,
                       uint32_t n_experts, uint32_t top_k)
{
    for (uint32_t l = 0; l < n_layers; l++) {
        for (uint32_t i = 0; i < top_k; i++)
            bytes[row[i]] = 1;
        bytes += n_experts;
        row += top_k;
    }
}

void akini_sim_marks_add(akini_sim_marks_t *marks,
                         const akin_route_pool_t *pool, const uint8_t *row)
{
    if (pool->id_bytes == 2)
        mark_words(marks->bytes, (const uint16_t *)(const void *)row,
                   pool->n_layers, pool->n_experts, pool->top_k);
    else if (pool->top_k == 8)
        mark_bytes(marks->bytes, row, pool->n_layers, pool->n_experts, 8);
    else if (pool->top_k == 4)
        mark_bytes(marks->bytes, row, pool->n_layers, pool->n_experts, 4);
    else
        mark_bytes(marks->bytes, row, pool->n_layers, pool->n_experts,
                   pool->top_k);
}

/* Eight sums side by side, each of at most 255 words, then these. */
uint32_t akini_sim_marks_count(const akini_sim_marks_t *marks)
{
    const size_t n_words = marks->n_bytes / 8;
    uint32_t sum = 0;
    for (size_t from = 0; from < n_words; from += 255) {
        const size_t n = n_words - from < 255 ? n_words - from : 255;
        uint64_t sums = 0;
        for (size_t i = 0; i < n; i++) {
            uint64_t word;
            memcpy(&word, marks->bytes + 8 * (from + i), sizeof(word));
            sums += word;
        }
        const uint64_t even = sums & UINT64_C(0x00FF00FF00FF00FF);
        const uint64_t odd = sums >> 8 & UINT64_C(0x00FF00FF00FF00FF);
        sum += (uint32_t)((even + odd) * UINT64_C(0x0001000100010001) >> 48);
    }
    return sum;
}

const uint64_t *akini_sim_marks_layer(akini_sim_marks_t *marks,
                                      const akin_route_pool_t *pool,
                                      uint32_t layer)
{
    const uint8_t *bytes = marks->bytes + (size_t)layer * pool->n_experts;
    for (uint32_t from = 0; from < pool->n_experts; from += 64) {
        const uint32_t n =
            pool->n_experts - from < 64 ? pool->n_experts - from : 64;
        uint64_t bits = 0;
        for (uint32_t i = 0; i < n; i++)
            bits |= (uint64_t)bytes[from + i] << i;
        marks->active[from / 64] = bits;
    }
    return marks->active;
}
