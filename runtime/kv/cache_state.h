/* Cache state: the inside of a KV cache, shared by the cache and its audit. */
#ifndef AKIN_KV_CACHE_STATE_H
#define AKIN_KV_CACHE_STATE_H

#include "kv/cache.h"
#include "kv/prefix_index.h"
#include "kv/slot_map.h"

/** Which list an unreferenced cached slot is in. */
typedef enum akini_kv_list_id {
    AKINI_KV_LIST_NOT,    /* referenced or free */
    AKINI_KV_LIST_IDLE,   /* by time of release, may be evicted */
    AKINI_KV_LIST_PARKED, /* came to the old end while others built on it */
    AKINI_KV_LIST_COUNT
} akini_kv_list_id_t;

typedef struct akini_kv_list {
    uint32_t oldest, newest;
    uint32_t n;
} akini_kv_list_t;

/** The generation is kept here: what lies in the slab may have been read from
 * another rank. */
typedef struct akini_kv_slot {
    uint64_t generation;
    uint64_t released; /* value of the cache's clock at the last release */
    uint32_t refs;
    uint32_t older, newer;   /* neighbours in its list */
    akini_kv_list_id_t list; /* NOT while refs > 0 */
} akini_kv_slot_t;

/**
 * A slot is free (in `free`), referenced (refs > 0) or cached (refs = 0, shown
 * by the index, in one of the lists).
 *
 * Eviction order: the least recently released block on which no block in the
 * index builds; without one, the least recently released of all. A block that
 * is due while others build on it is parked, so that it is looked at once and
 * not at every eviction; it returns to its place by time when the last of them
 * has gone. Each release parks a block at most once, which makes an eviction
 * O(1) amortised.
 */
struct akin_kv_cache {
    akin_kv_view_t view;
    int has_index;
    akini_kv_prefix_index_t index;
    akini_kv_slot_map_t free;
    akini_kv_slot_t *slots;
    akini_kv_list_t lists[AKINI_KV_LIST_COUNT];
    uint64_t clock;
    uint32_t cursor; /* where the search for a free slot begins */
    uint32_t n_referenced;
    uint64_t queries_blocks;
    uint64_t hits_blocks;
    uint64_t evictions;
};

#endif
