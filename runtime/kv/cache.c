/* KV cache: reference counts, generations and eviction of slots. */
#include "kv/cache_state.h"

#include "base/hash.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

uint64_t akin_kv_chain_hash(uint64_t parent, const uint32_t *tokens,
                            uint32_t n_tokens)
{
    uint64_t hash = akin_hash64(tokens, n_tokens * sizeof(*tokens), parent);
    return hash != AKIN_KV_ROOT_HASH ? hash : ~AKIN_KV_ROOT_HASH;
}

/* No generation of an earlier life of this rank may come again, and a slot is
 * not taken once per nanosecond: the time of day is beyond them all. */
static uint64_t first_generation(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

akin_status_t akin_kv_cache_create(const akin_kv_view_t *view, int with_prefix,
                                   akin_kv_cache_t **cache_p)
{
    *cache_p = NULL;
    assert(view->n_slots >= 1 && view->n_slots < AKINI_KV_ROOT);
    akin_kv_cache_t *cache = calloc(1, sizeof(*cache));
    if (cache == NULL)
        return AKIN_ERR_NOMEM;
    cache->view = *view;
    for (int i = 0; i < AKINI_KV_LIST_COUNT; i++)
        cache->lists[i] = (akini_kv_list_t){AKINI_KV_NONE, AKINI_KV_NONE, 0};
    cache->slots = calloc(view->n_slots, sizeof(*cache->slots));
    akin_status_t status =
        cache->slots == NULL
            ? AKIN_ERR_NOMEM
            : akini_kv_slot_map_init(&cache->free, view->n_slots);
    if (status == AKIN_OK && with_prefix) {
        status = akini_kv_prefix_index_init(&cache->index, view->n_slots,
                                            view->layout->shape.block_tokens);
        cache->has_index = status == AKIN_OK;
    }
    if (status != AKIN_OK) {
        akin_kv_cache_destroy(cache);
        return status;
    }
    const uint64_t generation = first_generation();
    for (uint32_t i = 0; i < view->n_slots; i++) {
        cache->slots[i].generation = generation;
        akin_kv_block_clear(akin_kv_slot(view, i), generation);
        akini_kv_slot_map_add(&cache->free, i);
    }
    *cache_p = cache;
    return AKIN_OK;
}

void akin_kv_cache_destroy(akin_kv_cache_t *cache)
{
    if (cache == NULL)
        return;
    if (cache->has_index)
        akini_kv_prefix_index_cleanup(&cache->index);
    akini_kv_slot_map_cleanup(&cache->free);
    free(cache->slots);
    free(cache);
}

static void list_insert_after(akin_kv_cache_t *cache, akini_kv_list_id_t id,
                              uint32_t slot, uint32_t older)
{
    akini_kv_list_t *list = &cache->lists[id];
    akini_kv_slot_t *s = &cache->slots[slot];
    s->list = id;
    s->older = older;
    s->newer =
        older != AKINI_KV_NONE ? cache->slots[older].newer : list->oldest;
    if (older != AKINI_KV_NONE)
        cache->slots[older].newer = slot;
    else
        list->oldest = slot;
    if (s->newer != AKINI_KV_NONE)
        cache->slots[s->newer].older = slot;
    else
        list->newest = slot;
    list->n++;
}

static void list_remove(akin_kv_cache_t *cache, uint32_t slot)
{
    akini_kv_slot_t *s = &cache->slots[slot];
    akini_kv_list_t *list = &cache->lists[s->list];
    if (s->older != AKINI_KV_NONE)
        cache->slots[s->older].newer = s->newer;
    else
        list->oldest = s->newer;
    if (s->newer != AKINI_KV_NONE)
        cache->slots[s->newer].older = s->older;
    else
        list->newest = s->older;
    list->n--;
    s->list = AKINI_KV_LIST_NOT;
}

/* A parked block on which nothing builds any more goes back to its place.
 * Whatever is older than it was parked too and returned in the same way, so
 * the walk from the old end passes hardly anybody. */
static void unpark(akin_kv_cache_t *cache, uint32_t slot)
{
    list_remove(cache, slot);
    uint32_t older = AKINI_KV_NONE;
    uint32_t s = cache->lists[AKINI_KV_LIST_IDLE].oldest;
    while (s != AKINI_KV_NONE &&
           cache->slots[s].released < cache->slots[slot].released) {
        older = s;
        s = cache->slots[s].newer;
    }
    list_insert_after(cache, AKINI_KV_LIST_IDLE, slot, older);
}

/* Ends what an unreferenced slot held; late readers meet a new generation. */
static void release_slot(akin_kv_cache_t *cache, uint32_t slot)
{
    akini_kv_slot_t *s = &cache->slots[slot];
    if (cache->has_index && cache->index.places[slot].node != AKINI_KV_NONE) {
        uint32_t parent = akini_kv_prefix_index_leave(&cache->index, slot);
        if (parent != AKINI_KV_NONE &&
            cache->slots[parent].list == AKINI_KV_LIST_PARKED)
            unpark(cache, parent);
    }
    akin_kv_block_clear(akin_kv_slot(&cache->view, slot), ++s->generation);
    akini_kv_slot_map_add(&cache->free, slot);
}

/* Blocks are parked in the order of their release, but for those that came
 * back in between. */
static void park(akin_kv_cache_t *cache, uint32_t slot)
{
    list_remove(cache, slot);
    uint32_t older = cache->lists[AKINI_KV_LIST_PARKED].newest;
    while (older != AKINI_KV_NONE &&
           cache->slots[older].released > cache->slots[slot].released)
        older = cache->slots[older].older;
    list_insert_after(cache, AKINI_KV_LIST_PARKED, slot, older);
}

static void evict(akin_kv_cache_t *cache)
{
    const akini_kv_list_t *idle = &cache->lists[AKINI_KV_LIST_IDLE];
    while (idle->n > 0 &&
           akini_kv_prefix_index_has_children(&cache->index, idle->oldest))
        park(cache, idle->oldest);
    uint32_t slot =
        idle->n > 0 ? idle->oldest : cache->lists[AKINI_KV_LIST_PARKED].oldest;
    assert(slot != AKINI_KV_NONE);
    list_remove(cache, slot);
    release_slot(cache, slot);
    cache->evictions++;
}

static uint32_t n_cached(const akin_kv_cache_t *cache)
{
    return cache->lists[AKINI_KV_LIST_IDLE].n +
           cache->lists[AKINI_KV_LIST_PARKED].n;
}

uint32_t akin_kv_cache_available(const akin_kv_cache_t *cache)
{
    return cache->free.n_set + n_cached(cache);
}

static void take_slot(akin_kv_cache_t *cache, uint32_t slot)
{
    akini_kv_slot_t *s = &cache->slots[slot];
    akini_kv_slot_map_remove(&cache->free, slot);
    akin_kv_block_clear(akin_kv_slot(&cache->view, slot), ++s->generation);
    s->refs = 1;
    cache->n_referenced++;
    cache->cursor = slot + 1;
}

/* Next fit: slots taken one after another tend to lie one after another. */
static uint32_t next_free(const akin_kv_cache_t *cache)
{
    uint32_t slot = akini_kv_slot_map_next(&cache->free, cache->cursor);
    if (slot == AKINI_KV_NONE)
        slot = akini_kv_slot_map_next(&cache->free, 0);
    return slot;
}

akin_status_t akin_kv_cache_take(akin_kv_cache_t *cache, uint32_t *slot_p)
{
    return akin_kv_cache_take_run(cache, 1, slot_p);
}

akin_status_t akin_kv_cache_take_run(akin_kv_cache_t *cache, uint32_t n,
                                     uint32_t *slots)
{
    if (n > akin_kv_cache_available(cache))
        return AKIN_ERR_FULL;
    while (cache->free.n_set < n)
        evict(cache);
    if (n > 1) {
        uint32_t first =
            akini_kv_slot_map_find_run(&cache->free, n, cache->cursor);
        if (first != AKINI_KV_NONE)
            cache->cursor = first;
    }
    for (uint32_t i = 0; i < n; i++) {
        slots[i] = next_free(cache);
        take_slot(cache, slots[i]);
    }
    return AKIN_OK;
}

void akin_kv_cache_ref(akin_kv_cache_t *cache, uint32_t slot)
{
    assert(slot < cache->view.n_slots && cache->slots[slot].refs > 0);
    cache->slots[slot].refs++;
}

void akin_kv_cache_unref(akin_kv_cache_t *cache, uint32_t slot)
{
    assert(slot < cache->view.n_slots && cache->slots[slot].refs > 0);
    if (--cache->slots[slot].refs > 0)
        return;
    cache->n_referenced--;
    if (cache->has_index && akini_kv_prefix_index_shows(&cache->index, slot)) {
        cache->slots[slot].released = ++cache->clock;
        list_insert_after(cache, AKINI_KV_LIST_IDLE, slot,
                          cache->lists[AKINI_KV_LIST_IDLE].newest);
    } else {
        release_slot(cache, slot);
    }
}

uint64_t akin_kv_cache_generation(const akin_kv_cache_t *cache, uint32_t slot)
{
    assert(slot < cache->view.n_slots);
    return cache->slots[slot].generation;
}

uint32_t akin_kv_cache_match(akin_kv_cache_t *cache, const uint32_t *tokens,
                             uint32_t n_tokens, uint32_t max_blocks,
                             uint32_t *slots)
{
    if (!cache->has_index)
        return 0;
    const uint32_t block_tokens = cache->view.layout->shape.block_tokens;
    uint32_t n = n_tokens / block_tokens;
    if (n > max_blocks)
        n = max_blocks;
    uint64_t hash = AKIN_KV_ROOT_HASH;
    uint32_t node = AKINI_KV_ROOT, found = 0;
    for (; found < n; found++, tokens += block_tokens) {
        hash = akin_kv_chain_hash(hash, tokens, block_tokens);
        node = akini_kv_prefix_index_find(&cache->index, node, hash, tokens);
        if (node == AKINI_KV_NONE)
            break;
        uint32_t slot = cache->index.nodes[node].shown;
        if (cache->slots[slot].refs++ == 0) {
            list_remove(cache, slot);
            cache->n_referenced++;
        }
        slots[found] = slot;
    }
    cache->queries_blocks += n;
    cache->hits_blocks += found;
    return found;
}

/* Full blocks enter the index, once. */
static void index_block(akin_kv_cache_t *cache, uint32_t slot, uint64_t parent,
                        uint64_t hash, const uint32_t *tokens,
                        uint32_t n_tokens)
{
    if (!cache->has_index ||
        n_tokens != cache->view.layout->shape.block_tokens ||
        cache->index.places[slot].node != AKINI_KV_NONE)
        return;
    akini_kv_prefix_index_enter(&cache->index, slot, parent, hash, tokens);
}

uint64_t akin_kv_cache_seal(akin_kv_cache_t *cache, uint32_t slot,
                            uint64_t parent, const uint32_t *tokens,
                            uint32_t n_tokens)
{
    assert(slot < cache->view.n_slots && cache->slots[slot].refs > 0);
    uint64_t hash = akin_kv_chain_hash(parent, tokens, n_tokens);
    akin_kv_block_seal(cache->view.layout, akin_kv_slot(&cache->view, slot),
                       hash, n_tokens);
    index_block(cache, slot, parent, hash, tokens, n_tokens);
    return hash;
}

akin_status_t akin_kv_cache_adopt(akin_kv_cache_t *cache, uint32_t slot,
                                  uint64_t parent,
                                  const akin_kv_descriptor_t *descriptor,
                                  const uint32_t *tokens)
{
    assert(slot < cache->view.n_slots && cache->slots[slot].refs > 0);
    const akin_kv_header_t *header =
        akin_kv_header(akin_kv_slot(&cache->view, slot));
    uint32_t n_tokens = descriptor->n_tokens;
    if (n_tokens == 0 || n_tokens > cache->view.layout->shape.block_tokens)
        return AKIN_ERR_INVALID;
    uint64_t hash = akin_kv_chain_hash(parent, tokens, n_tokens);
    if (hash != descriptor->chain_hash || hash != header->chain_hash ||
        n_tokens != header->n_tokens ||
        header->generation != cache->slots[slot].generation)
        return AKIN_ERR_INVALID;
    index_block(cache, slot, parent, hash, tokens, n_tokens);
    return AKIN_OK;
}

uint32_t akin_kv_cache_forget(akin_kv_cache_t *cache, const uint32_t *tokens,
                              uint32_t n_tokens)
{
    const uint32_t block_tokens = cache->view.layout->shape.block_tokens;
    if (!cache->has_index || n_tokens < block_tokens)
        return 0;
    uint64_t hash = akin_kv_chain_hash(AKIN_KV_ROOT_HASH, tokens, block_tokens);
    if (akini_kv_prefix_index_mark(&cache->index, hash, tokens) == 0)
        return 0;
    uint32_t n = 0;
    for (uint32_t slot = 0; slot < cache->view.n_slots; slot++) {
        if (!akini_kv_prefix_index_is_marked(&cache->index, slot))
            continue;
        n++;
        akini_kv_slot_t *s = &cache->slots[slot];
        if (s->refs > 0) {
            akini_kv_prefix_index_disown(&cache->index, slot);
            akin_kv_header(akin_kv_slot(&cache->view, slot))->generation =
                ++s->generation;
        } else {
            list_remove(cache, slot);
            release_slot(cache, slot);
        }
    }
    return n;
}

void akin_kv_cache_stats(const akin_kv_cache_t *cache,
                         akin_kv_cache_stats_t *stats_p)
{
    *stats_p = (akin_kv_cache_stats_t){.queries_blocks = cache->queries_blocks,
                                       .hits_blocks = cache->hits_blocks,
                                       .evictions = cache->evictions,
                                       .n_slots = cache->view.n_slots,
                                       .n_referenced = cache->n_referenced,
                                       .n_cached = n_cached(cache)};
}
