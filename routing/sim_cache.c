/* Sim cache: a hash that remembers the order of use. */
#define HASH_NONFATAL_OOM 1
#include "routing/sim_cache.h"

#include <stdlib.h>

/* uthash takes back what it finds no room for and says so here. */
#define uthash_nonfatal_oom(element) ((element)->is_lost = 1)

#include <uthash.h>

struct akini_sim_cached {
    uint64_t key;
    uint32_t n_tokens;
    int is_lost;
    UT_hash_handle hh;
};

void akini_sim_cache_clear(akini_sim_cache_t *cache)
{
    akini_sim_cached_t *item = cache->all;
    HASH_CLEAR(hh, cache->all);
    while (item != NULL) {
        akini_sim_cached_t *next = item->hh.next;
        free(item);
        item = next;
    }
    cache->n_tokens = 0;
}

/* The one that was not used for longest. */
static void drop_first(akini_sim_cache_t *cache)
{
    akini_sim_cached_t *item = cache->all;
    if (item == NULL)
        return;
    HASH_DEL(cache->all, item);
    cache->n_tokens -= item->n_tokens;
    free(item);
}

/* To the end of the order. Gives 0 if there is no memory, and the item is gone.
 */
static int append(akini_sim_cache_t *cache, akini_sim_cached_t *item)
{
    item->is_lost = 0;
    HASH_ADD(hh, cache->all, key, sizeof(item->key), item);
    if (!item->is_lost)
        return 1;
    cache->n_tokens -= item->n_tokens;
    free(item);
    return 0;
}

uint32_t akini_sim_cache_use(akini_sim_cache_t *cache, uint64_t key)
{
    akini_sim_cached_t *item;
    HASH_FIND(hh, cache->all, &key, sizeof(key), item);
    if (item == NULL)
        return 0;
    const uint32_t n_tokens = item->n_tokens;
    HASH_DEL(cache->all, item);
    return append(cache, item) ? n_tokens : 0;
}

akin_status_t akini_sim_cache_add(akini_sim_cache_t *cache, uint64_t key,
                                  uint32_t n_tokens)
{
    if (n_tokens == 0 || n_tokens > cache->max_tokens ||
        akini_sim_cache_use(cache, key) > 0)
        return AKIN_OK;
    while (cache->n_tokens + n_tokens > cache->max_tokens)
        drop_first(cache);
    akini_sim_cached_t *item = calloc(1, sizeof(*item));
    if (item == NULL)
        return AKIN_ERR_NOMEM;
    item->key = key;
    item->n_tokens = n_tokens;
    cache->n_tokens += n_tokens;
    return append(cache, item) ? AKIN_OK : AKIN_ERR_NOMEM;
}
