/* KV cache: slots of one rank with reference counts, and the prefix index
 * that finds full blocks again by their chain of tokens. */
#ifndef AKIN_KV_CACHE_H
#define AKIN_KV_CACHE_H

#include "kv/block.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_kv_cache akin_kv_cache_t;

/** Chain hash of the empty prefix. */
#define AKIN_KV_ROOT_HASH UINT64_C(0)

/**
 * Chain hash of a block: XXH3-64 of its tokens seeded by the parent's. It is
 * never AKIN_KV_ROOT_HASH: that one value becomes its complement.
 */
uint64_t akin_kv_chain_hash(uint64_t parent, const uint32_t *tokens,
                            uint32_t n_tokens);

/**
 * Take over a slab. Every slot gets a valid header with no tokens and a first
 * generation that no earlier cache of this rank had, so that blocks of an
 * earlier life are refused.
 *
 * \param[in]  view         borrowed memory and layout; must outlive the cache.
 * \param[in]  with_prefix  non-zero: keep full blocks for later prompts.
 * \param[out] cache_p      owned by the caller.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_kv_cache_create(const akin_kv_view_t *view, int with_prefix,
                                   akin_kv_cache_t **cache_p) AKIN_MUST_CHECK;

/** Free; NULL is allowed. The slab stays. */
void akin_kv_cache_destroy(akin_kv_cache_t *cache);

/**
 * Longest run of cached full blocks that begins these tokens, confirmed by
 * comparing tokens. Each slot found is referenced once for the caller.
 *
 * \param[in]  tokens, n_tokens  the prompt.
 * \param[in]  max_blocks        stop there (a prompt's last token must be
 *                               computed: pass (n_tokens - 1) / block_tokens).
 * \param[out] slots             [max_blocks]
 * \return blocks found.
 */
uint32_t akin_kv_cache_match(akin_kv_cache_t *cache, const uint32_t *tokens,
                             uint32_t n_tokens, uint32_t max_blocks,
                             uint32_t *slots);

/**
 * A fresh slot with one reference, its generation bumped, its header empty.
 * If no slot is free a cached block goes: the least recently released one on
 * which no other cached block builds, or, where there is none, the least
 * recently released. So a chain goes from its end, whatever the order in which
 * its blocks were released.
 *
 * \param[out] slot_p
 * \return AKIN_OK
 * \return AKIN_ERR_FULL: every slot is referenced.
 */
akin_status_t akin_kv_cache_take(akin_kv_cache_t *cache,
                                 uint32_t *slot_p) AKIN_MUST_CHECK;

/**
 * Several fresh slots at once: numbers that follow one another if a free run
 * is found, since runs are transferred as one piece, else ascending as far as
 * they go. All or none.
 *
 * \param[in]  n      0 is allowed.
 * \param[out] slots  [n]
 * \return AKIN_OK
 * \return AKIN_ERR_FULL: fewer than n slots are available.
 */
akin_status_t akin_kv_cache_take_run(akin_kv_cache_t *cache, uint32_t n,
                                     uint32_t *slots) AKIN_MUST_CHECK;

/** Slots that akin_kv_cache_take() could give now. */
uint32_t akin_kv_cache_available(const akin_kv_cache_t *cache);

/** One more reference to a slot that is referenced. */
void akin_kv_cache_ref(akin_kv_cache_t *cache, uint32_t slot);

/**
 * One reference less. At zero a block that is in the prefix index becomes
 * evictable, any other slot is free and its generation moves on, so that a
 * late reader is refused.
 */
void akin_kv_cache_unref(akin_kv_cache_t *cache, uint32_t slot);

/**
 * Finish a block: write tokens, chain hash and checksum into its header. A
 * full block enters the prefix index (if an equal one is there already, that
 * one stays and this one remains private). Sealing again after more tokens
 * were added is allowed while the block is not full.
 *
 * The caller still has a reference to the block before it. With that the index
 * can tell whose child the block is even if two blocks have one chain hash; a
 * block of which it cannot tell remains private.
 *
 * \param[in] slot      referenced by the caller.
 * \param[in] parent    chain hash of the block before it, or
 *                      AKIN_KV_ROOT_HASH.
 * \param[in] tokens    [n_tokens], 1 .. block_tokens.
 * \return the chain hash.
 */
uint64_t akin_kv_cache_seal(akin_kv_cache_t *cache, uint32_t slot,
                            uint64_t parent, const uint32_t *tokens,
                            uint32_t n_tokens);

/**
 * Let a block that a transfer brought take part in the prefix index, as
 * akin_kv_cache_seal() does with a computed one. The payload is not read: the
 * transfer has checked it and has put the slot's own generation into its
 * header, in which the checksum takes no part.
 *
 * \param[in] slot        referenced by the caller, as is the block before it.
 * \param[in] parent      chain hash of the block before it, or
 *                        AKIN_KV_ROOT_HASH.
 * \param[in] descriptor  what the transfer was started with.
 * \param[in] tokens      [descriptor->n_tokens]
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: tokens, parent, descriptor and header do not
 *         belong together; the block is not what the caller believes, and
 *         nothing was changed.
 */
akin_status_t akin_kv_cache_adopt(akin_kv_cache_t *cache, uint32_t slot,
                                  uint64_t parent,
                                  const akin_kv_descriptor_t *descriptor,
                                  const uint32_t *tokens) AKIN_MUST_CHECK;

/**
 * Drop the cached blocks that begin these tokens from the prefix index, and
 * all that builds on the first of them, because their content is in doubt.
 * Blocks that are referenced stay with their holders as private ones, and what
 * is sealed after them does not become a part of the index; the others are
 * free. The generation of all of them moves on, so that no reader to whom they
 * were promised takes them. O(slots).
 *
 * \param[in] tokens, n_tokens  a prompt.
 * \return blocks dropped, referenced ones included.
 */
uint32_t akin_kv_cache_forget(akin_kv_cache_t *cache, const uint32_t *tokens,
                              uint32_t n_tokens);

/** Generation of a slot, whatever its header says at the moment. */
uint64_t akin_kv_cache_generation(const akin_kv_cache_t *cache, uint32_t slot);

/**
 * Walk over everything and compare reference counts, lists, index and headers
 * with each other. For tests and for the end of debug builds: O(slots^2).
 *
 * \param[out] err  what disagrees.
 * \return AKIN_OK
 * \return AKIN_ERR_INTERNAL
 */
akin_status_t akin_kv_cache_audit(const akin_kv_cache_t *cache,
                                  akin_error_t *err) AKIN_MUST_CHECK;

/** Counters since creation. */
typedef struct akin_kv_cache_stats {
    uint64_t queries_blocks; /* full blocks that were looked for */
    uint64_t hits_blocks;    /* and found */
    uint64_t evictions;
    uint32_t n_slots;
    uint32_t n_referenced;
    uint32_t n_cached; /* unreferenced, in the index */
} akin_kv_cache_stats_t;

void akin_kv_cache_stats(const akin_kv_cache_t *cache,
                         akin_kv_cache_stats_t *stats_p);

#ifdef __cplusplus
}
#endif

#endif
