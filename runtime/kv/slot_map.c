/* Slot map: a 64-ary tree of bits over the slots of a slab. */
#include "kv/slot_map.h"

#include <assert.h>
#include <stdlib.h>

/* Shorter runs that a search for a run looks at before it gives up. */
#define MAX_PROBES 64

akin_status_t akini_kv_slot_map_init(akini_kv_slot_map_t *map, uint32_t n_slots)
{
    *map = (akini_kv_slot_map_t){.n_slots = n_slots};
    uint64_t n = n_slots;
    do {
        n = (n + 63) / 64;
        assert(map->n_levels < AKINI_KV_MAP_LEVELS);
        uint64_t *words = calloc(n, sizeof(*words));
        if (words == NULL) {
            akini_kv_slot_map_cleanup(map);
            return AKIN_ERR_NOMEM;
        }
        map->levels[map->n_levels++] = words;
    } while (n > 1);
    return AKIN_OK;
}

void akini_kv_slot_map_cleanup(akini_kv_slot_map_t *map)
{
    for (uint32_t i = 0; i < map->n_levels; i++)
        free(map->levels[i]);
    *map = (akini_kv_slot_map_t){0};
}

void akini_kv_slot_map_add(akini_kv_slot_map_t *map, uint32_t slot)
{
    assert(slot < map->n_slots && !akini_kv_slot_map_has(map, slot));
    for (uint32_t i = 0; i < map->n_levels; i++, slot /= 64)
        map->levels[i][slot / 64] |= UINT64_C(1) << (slot % 64);
    map->n_set++;
}

void akini_kv_slot_map_remove(akini_kv_slot_map_t *map, uint32_t slot)
{
    assert(slot < map->n_slots && akini_kv_slot_map_has(map, slot));
    for (uint32_t i = 0; i < map->n_levels; i++, slot /= 64) {
        map->levels[i][slot / 64] &= ~(UINT64_C(1) << (slot % 64));
        if (map->levels[i][slot / 64] != 0)
            break;
    }
    map->n_set--;
}

int akini_kv_slot_map_has(const akini_kv_slot_map_t *map, uint32_t slot)
{
    return (int)(map->levels[0][slot / 64] >> (slot % 64) & 1);
}

uint32_t akini_kv_slot_map_next(const akini_kv_slot_map_t *map, uint32_t from)
{
    if (from >= map->n_slots)
        return AKINI_KV_NONE;
    /* Up to the first level that has a bit at or after the position, ... */
    uint64_t position = from;
    uint64_t n = ((uint64_t)map->n_slots + 63) / 64;
    uint32_t level = 0;
    for (;; level++) {
        if (level == map->n_levels)
            return AKINI_KV_NONE;
        uint64_t word = position / 64;
        if (word < n) {
            uint64_t rest =
                map->levels[level][word] & (UINT64_MAX << (position % 64));
            if (rest != 0) {
                position = word * 64 + (uint64_t)__builtin_ctzll(rest);
                break;
            }
        }
        position = word + 1;
        n = (n + 63) / 64;
    }
    /* ... and down again along the lowest bits. */
    while (level-- > 0)
        position = position * 64 +
                   (uint64_t)__builtin_ctzll(map->levels[level][position]);
    return (uint32_t)position;
}

/* Slots of the set that follow one another from `slot` on, counted up to n. */
static uint32_t run_length(const akini_kv_slot_map_t *map, uint32_t slot,
                           uint32_t n)
{
    uint64_t length = 0;
    for (uint64_t s = slot; length < n && s < map->n_slots;) {
        uint64_t gaps = ~(map->levels[0][s / 64] >> (s % 64));
        uint64_t left = 64 - s % 64;
        uint64_t ones = gaps == 0 ? 64 : (uint64_t)__builtin_ctzll(gaps);
        if (ones > left)
            ones = left;
        length += ones;
        s += ones;
        if (ones < left)
            break;
    }
    return length < n ? (uint32_t)length : n;
}

uint32_t akini_kv_slot_map_find_run(const akini_kv_slot_map_t *map, uint32_t n,
                                    uint32_t from)
{
    if (n == 0 || n > map->n_set)
        return AKINI_KV_NONE;
    int has_wrapped = from == 0;
    for (int probes = 0; probes < MAX_PROBES; probes++) {
        uint32_t slot = akini_kv_slot_map_next(map, from);
        if (slot == AKINI_KV_NONE) {
            if (has_wrapped)
                break;
            has_wrapped = 1;
            from = 0;
            continue;
        }
        uint32_t length = run_length(map, slot, n);
        if (length == n)
            return slot;
        from = slot + length;
    }
    return AKINI_KV_NONE;
}
