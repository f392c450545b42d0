/* Route pool: what its files share. */
#ifndef AKIN_ROUTING_ROUTE_POOL_IMPL_H
#define AKIN_ROUTING_ROUTE_POOL_IMPL_H

#include "routing/route_pool.h"

/** An empty pool of a shape, with its entries, names and no rows yet.
 * \return NULL: out of memory. */
akin_route_pool_t *akini_route_pool_create(uint32_t n_layers,
                                           uint32_t n_experts, uint32_t top_k,
                                           uint32_t n_entries,
                                           uint32_t n_domains);

/** Number the rows of the entries and make room for them.
 * \return AKIN_OK, AKIN_ERR_INVALID: more than max_bytes; AKIN_ERR_NOMEM */
akin_status_t akini_route_pool_add_rows(akin_route_pool_t *pool,
                                        uint64_t max_bytes, bool has_counts,
                                        akin_error_t *err) AKIN_MUST_CHECK;

/** List the entries by their domains. */
void akini_route_pool_sort(akin_route_pool_t *pool);

/** A token's ids. */
uint8_t *akini_route_pool_row(const akin_route_pool_t *pool, size_t row);

/** Write the ids of a layer. */
void akini_route_pool_put(const akin_route_pool_t *pool, uint8_t *row,
                          uint32_t layer, const uint16_t *experts);

#endif
