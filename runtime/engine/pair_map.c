/* Pair map: linear probing, at most half full. */
#include "engine/pair_map.h"

#include <stdlib.h>

/* The finaliser of SplitMix64: every key bit reaches every hash bit. */
static uint64_t mix(uint64_t key)
{
    key = (key ^ key >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    key = (key ^ key >> 27) * UINT64_C(0x94d049bb133111eb);
    return key ^ key >> 31;
}

/* The slot that holds a key, or the free one where it belongs. */
static akini_pair_slot_t *find(const akini_pair_map_t *map, uint64_t key)
{
    size_t i = (size_t)mix(key) & (map->n_slots - 1);
    while (map->slots[i].value != AKINI_PAIR_NONE && map->slots[i].key != key)
        i = (i + 1) & (map->n_slots - 1);
    return &map->slots[i];
}

akin_status_t akini_pair_map_reserve(akini_pair_map_t *map, size_t n)
{
    if (n <= map->n_slots / 2)
        return AKIN_OK;
    akini_pair_map_t bigger = {.n_slots = 64, .n_used = map->n_used};
    while (bigger.n_slots / 2 < n)
        bigger.n_slots *= 2;
    bigger.slots = calloc(bigger.n_slots, sizeof(*bigger.slots));
    if (bigger.slots == NULL)
        return AKIN_ERR_NOMEM;
    for (size_t i = 0; i < bigger.n_slots; i++)
        bigger.slots[i].value = AKINI_PAIR_NONE;
    for (size_t i = 0; i < map->n_slots; i++)
        if (map->slots[i].value != AKINI_PAIR_NONE)
            *find(&bigger, map->slots[i].key) = map->slots[i];
    free(map->slots);
    *map = bigger;
    return AKIN_OK;
}

akin_status_t akini_pair_map_add(akini_pair_map_t *map, uint64_t key,
                                 uint64_t value)
{
    akin_status_t status = akini_pair_map_reserve(map, map->n_used + 1);
    if (status != AKIN_OK)
        return status;
    akini_pair_slot_t *slot = find(map, key);
    if (slot->value != AKINI_PAIR_NONE)
        return AKIN_ERR_EXISTS;
    slot->key = key;
    slot->value = value;
    map->n_used++;
    return AKIN_OK;
}

uint64_t akini_pair_map_get(const akini_pair_map_t *map, uint64_t key)
{
    return map->n_slots == 0 ? AKINI_PAIR_NONE : find(map, key)->value;
}

void akini_pair_map_cleanup(akini_pair_map_t *map)
{
    free(map->slots);
    *map = (akini_pair_map_t){0};
}
