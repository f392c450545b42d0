/* Sim marks: which experts the tokens of a step choose, a byte for each. */
#ifndef AKIN_ROUTING_SIM_MARKS_H
#define AKIN_ROUTING_SIM_MARKS_H

#include "routing/route_pool.h"

typedef struct akini_sim_marks {
    uint8_t *bytes;   /* [n_layers][n_experts] 0 or 1 */
    size_t n_bytes;   /* of all, whole words */
    uint64_t *active; /* [n_experts / 64] bits of a layer */
} akini_sim_marks_t;

/** cleanup() also after a failure. */
akin_status_t
akini_sim_marks_init(akini_sim_marks_t *marks,
                     const akin_route_pool_t *pool) AKIN_MUST_CHECK;

void akini_sim_marks_cleanup(akini_sim_marks_t *marks);

void akini_sim_marks_clear(akini_sim_marks_t *marks);

/** Mark the experts of a token. */
void akini_sim_marks_add(akini_sim_marks_t *marks,
                         const akin_route_pool_t *pool, const uint8_t *row);

/** Experts marked, of all layers. */
uint32_t akini_sim_marks_count(const akini_sim_marks_t *marks);

/** Bits of a layer, in `active`. */
const uint64_t *akini_sim_marks_layer(akini_sim_marks_t *marks,
                                      const akin_route_pool_t *pool,
                                      uint32_t layer);

#endif
