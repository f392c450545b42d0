/* Cache audit: recounts what a KV cache believes about its slots. */
#include "kv/cache_state.h"

#include <assert.h>

#define FAIL(err, ...)                                                         \
    akin_error_set(err, AKIN_ERR_INTERNAL, "KV cache: " __VA_ARGS__)

static akin_status_t audit_list(const akin_kv_cache_t *cache,
                                akini_kv_list_id_t id, akin_error_t *err)
{
    const akini_kv_list_t *list = &cache->lists[id];
    uint32_t older = AKINI_KV_NONE, n = 0;
    for (uint32_t s = list->oldest; s != AKINI_KV_NONE;
         s = cache->slots[s].newer) {
        const akini_kv_slot_t *slot = &cache->slots[s];
        if (++n > list->n)
            return FAIL(err, "list %d is longer than its count of %u", (int)id,
                        (unsigned)list->n);
        if (slot->list != id || slot->older != older)
            return FAIL(err, "slot %u is linked wrongly into list %d",
                        (unsigned)s, (int)id);
        if (older != AKINI_KV_NONE &&
            cache->slots[older].released >= slot->released)
            return FAIL(err, "list %d is out of order at slot %u", (int)id,
                        (unsigned)s);
        older = s;
    }
    if (n != list->n || older != list->newest)
        return FAIL(err, "list %d ends after %u of %u slots", (int)id,
                    (unsigned)n, (unsigned)list->n);
    return AKIN_OK;
}

static akin_status_t audit_header(const akin_kv_cache_t *cache, uint32_t slot,
                                  int is_free, akin_error_t *err)
{
    const akin_kv_header_t *header =
        akin_kv_header(akin_kv_slot(&cache->view, slot));
    if (header->magic != AKIN_KV_MAGIC || header->version != AKIN_KV_VERSION ||
        header->generation != cache->slots[slot].generation)
        return FAIL(err, "the header of slot %u does not have generation %llu",
                    (unsigned)slot,
                    (unsigned long long)cache->slots[slot].generation);
    uint64_t hash = 0;
    uint32_t n_tokens = 0;
    if (!is_free) {
        hash = cache->index.nodes[cache->index.places[slot].node].hash;
        n_tokens = cache->index.block_tokens;
    }
    if (header->chain_hash != hash || header->n_tokens != n_tokens)
        return FAIL(err, "the header of slot %u is not that of its block",
                    (unsigned)slot);
    return AKIN_OK;
}

static akin_status_t audit_slot(const akin_kv_cache_t *cache, uint32_t slot,
                                akin_error_t *err)
{
    const akini_kv_slot_t *s = &cache->slots[slot];
    const unsigned number = slot;
    int is_free = akini_kv_slot_map_has(&cache->free, slot);
    int is_listed = s->list != AKINI_KV_LIST_NOT;
    int is_held = s->refs > 0;
    if (is_free + is_listed + is_held != 1)
        return FAIL(err, "slot %u: free %d, cached %d, references %u", number,
                    is_free, is_listed, (unsigned)s->refs);
    int is_indexed =
        cache->has_index && cache->index.places[slot].node != AKINI_KV_NONE;
    if (is_free && is_indexed)
        return FAIL(err, "slot %u is free and in the prefix index", number);
    if (is_listed &&
        (!is_indexed || cache->index.places[slot].is_stranger ||
         cache->index.nodes[cache->index.places[slot].node].shown != slot))
        return FAIL(err, "slot %u is cached, but cannot be found", number);
    if (is_indexed && !is_held && !is_listed)
        return FAIL(err, "slot %u is lost in the prefix index", number);
    /* A parked block has a reason to be there. */
    if (s->list == AKINI_KV_LIST_PARKED &&
        !akini_kv_prefix_index_has_children(&cache->index, slot))
        return FAIL(err, "slot %u is parked without children", number);
    /* The header of a held slot may be that of a block that is being read. */
    return is_held ? AKIN_OK : audit_header(cache, slot, is_free, err);
}

akin_status_t akin_kv_cache_audit(const akin_kv_cache_t *cache,
                                  akin_error_t *err)
{
    akin_status_t status = AKIN_OK;
    if (cache->has_index)
        status = akini_kv_prefix_index_audit(&cache->index, err);
    for (int id = AKINI_KV_LIST_IDLE;
         status == AKIN_OK && id < AKINI_KV_LIST_COUNT; id++)
        status = audit_list(cache, (akini_kv_list_id_t)id, err);
    uint32_t n_free = 0, n_held = 0, n_listed = 0;
    for (uint32_t i = 0; status == AKIN_OK && i < cache->view.n_slots; i++) {
        status = audit_slot(cache, i, err);
        n_free += (uint32_t)akini_kv_slot_map_has(&cache->free, i);
        n_held += cache->slots[i].refs > 0;
        n_listed += cache->slots[i].list != AKINI_KV_LIST_NOT;
    }
    if (status != AKIN_OK)
        return status;
    if (n_free != cache->free.n_set || n_held != cache->n_referenced ||
        n_listed != cache->lists[AKINI_KV_LIST_IDLE].n +
                        cache->lists[AKINI_KV_LIST_PARKED].n)
        return FAIL(err,
                    "%u free, %u referenced, %u cached slots, but %u, %u "
                    "and %u were counted",
                    (unsigned)cache->free.n_set, (unsigned)cache->n_referenced,
                    (unsigned)(cache->lists[AKINI_KV_LIST_IDLE].n +
                               cache->lists[AKINI_KV_LIST_PARKED].n),
                    (unsigned)n_free, (unsigned)n_held, (unsigned)n_listed);
    return AKIN_OK;
}
