/* Route pool: its memory, and its counts. */
#define _DEFAULT_SOURCE /* madvise */
#include "routing/route_pool_impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB (1024.0 * 1024.0)
#define HUGE_BYTES ((size_t)2 << 20)

akin_route_pool_t *akini_route_pool_create(uint32_t n_layers,
                                           uint32_t n_experts, uint32_t top_k,
                                           uint32_t n_entries,
                                           uint32_t n_domains)
{
    akin_route_pool_t *pool = calloc(1, sizeof(*pool));
    if (pool == NULL)
        return NULL;
    pool->n_layers = n_layers;
    pool->n_experts = n_experts;
    pool->top_k = top_k;
    pool->id_bytes = n_experts <= 256 ? 1 : 2;
    pool->n_entries = n_entries;
    pool->n_domains = n_domains;
    pool->domains = calloc(n_domains, sizeof(*pool->domains));
    pool->entries = calloc(n_entries, sizeof(*pool->entries));
    pool->by_domain = calloc(n_entries, sizeof(*pool->by_domain));
    pool->first = calloc((size_t)n_domains + 1, sizeof(*pool->first));
    if (pool->domains == NULL || pool->entries == NULL ||
        pool->by_domain == NULL || pool->first == NULL) {
        akin_route_pool_destroy(pool);
        return NULL;
    }
    return pool;
}

void akin_route_pool_destroy(akin_route_pool_t *pool)
{
    if (pool == NULL)
        return;
    for (uint32_t d = 0; pool->domains != NULL && d < pool->n_domains; d++)
        free(pool->domains[d]);
    free(pool->domains);
    free(pool->entries);
    free(pool->by_domain);
    free(pool->first);
    free(pool->ids);
    free(pool->prompt_counts);
    free(pool->decode_counts);
    free(pool);
}

/* Rows are read in no order: with pages of 4 KiB most of the time would go into
 * finding them. */
static uint8_t *allocate_rows(size_t bytes)
{
    if (bytes < 2 * HUGE_BYTES)
        return calloc(bytes, 1);
    const size_t rounded = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    uint8_t *rows = aligned_alloc(HUGE_BYTES, rounded);
    if (rows == NULL)
        return NULL;
    /* A refusal costs time alone. */
    (void)madvise(rows, rounded, MADV_HUGEPAGE);
    memset(rows, 0, rounded);
    return rows;
}

akin_status_t akini_route_pool_add_rows(akin_route_pool_t *pool,
                                        uint64_t max_bytes, bool has_counts,
                                        akin_error_t *err)
{
    const size_t cells = akin_route_pool_cells(pool);
    size_t n_rows = 0;
    for (uint32_t i = 0; i < pool->n_entries; i++) {
        pool->entries[i].row = n_rows;
        n_rows += pool->entries[i].n_output - 1;
    }
    const double of_rows =
        (double)n_rows * (double)akin_route_pool_row_bytes(pool);
    const double of_counts =
        has_counts ? 2.0 * (double)pool->n_entries * (double)cells *
                         (double)sizeof(*pool->prompt_counts)
                   : 0.0;
    if (max_bytes > 0 && of_rows + of_counts > (double)max_bytes)
        return akin_error_set(
            err, AKIN_ERR_INVALID,
            "routes: %u requests with %.0f decode tokens need %.0f MiB, more "
            "than the %.0f MiB that are allowed: have fewer requests or "
            "shorter outputs, or allow more",
            pool->n_entries, (double)n_rows, (of_rows + of_counts) / MIB,
            (double)max_bytes / MIB);
    /* One row more, so that there is an address where there is none. */
    pool->ids = allocate_rows((n_rows + 1) * akin_route_pool_row_bytes(pool));
    if (has_counts) {
        pool->prompt_counts =
            calloc(pool->n_entries, cells * sizeof(*pool->prompt_counts));
        pool->decode_counts =
            calloc(pool->n_entries, cells * sizeof(*pool->decode_counts));
    }
    if (pool->ids == NULL || (has_counts && (pool->prompt_counts == NULL ||
                                             pool->decode_counts == NULL)))
        return akin_error_set(err, AKIN_ERR_NOMEM,
                              "routes: out of memory for %.0f MiB",
                              (of_rows + of_counts) / MIB);
    return AKIN_OK;
}

void akini_route_pool_sort(akin_route_pool_t *pool)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < pool->n_domains; d++) {
        pool->first[d] = n;
        for (uint32_t i = 0; i < pool->n_entries; i++)
            if (pool->entries[i].domain == d)
                pool->by_domain[n++] = i;
    }
    pool->first[pool->n_domains] = n;
}

uint8_t *akini_route_pool_row(const akin_route_pool_t *pool, size_t row)
{
    return pool->ids + row * akin_route_pool_row_bytes(pool);
}

void akini_route_pool_put(const akin_route_pool_t *pool, uint8_t *row,
                          uint32_t layer, const uint16_t *experts)
{
    uint8_t *at = row + (size_t)layer * pool->top_k * pool->id_bytes;
    for (uint32_t i = 0; i < pool->top_k; i++) {
        if (pool->id_bytes == 1)
            at[i] = (uint8_t)experts[i];
        else
            ((uint16_t *)(void *)at)[i] = experts[i];
    }
}

void akin_route_pool_count(const akin_route_pool_t *pool, uint32_t entry,
                           uint32_t first, uint32_t n, uint16_t *counts)
{
    const size_t row = pool->entries[entry].row + first;
    for (uint32_t t = 0; t < n; t++) {
        const uint8_t *at = akini_route_pool_row(pool, row + t);
        const uint16_t *wide = (const uint16_t *)(const void *)at;
        for (uint32_t l = 0; l < pool->n_layers; l++)
            for (uint32_t i = 0; i < pool->top_k; i++) {
                const size_t j = (size_t)l * pool->top_k + i;
                const uint32_t e = pool->id_bytes == 1 ? at[j] : wide[j];
                uint16_t *count = &counts[(size_t)l * pool->n_experts + e];
                *count = (uint16_t)(*count + (*count < UINT16_MAX));
            }
    }
}
