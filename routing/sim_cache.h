/* Sim cache: the prompts whose KV a prefill worker still has. */
#ifndef AKIN_ROUTING_SIM_CACHE_H
#define AKIN_ROUTING_SIM_CACHE_H

#include "base/error.h"

#include <stdint.h>

/** Something cached: what the prompts of a domain share, or the rest of the
 * prompt of an entry. */
typedef struct akini_sim_cached akini_sim_cached_t;

/** The one that was not used for longest goes first. Zero but for the size is
 * an empty one. */
typedef struct akini_sim_cache {
    uint64_t max_tokens; /* 0: nothing is kept */
    uint64_t n_tokens;
    akini_sim_cached_t *all; /* hash by key, in the order of their last use */
} akini_sim_cache_t;

/** Empty it. */
void akini_sim_cache_clear(akini_sim_cache_t *cache);

/** Tokens of a key, which counts as a use; 0: it is not there. */
uint32_t akini_sim_cache_use(akini_sim_cache_t *cache, uint64_t key);

/** Keep a key, or use it. One larger than the cache is not kept.
 * \return AKIN_OK, AKIN_ERR_NOMEM */
akin_status_t akini_sim_cache_add(akini_sim_cache_t *cache, uint64_t key,
                                  uint32_t n_tokens) AKIN_MUST_CHECK;

#endif
