/* Slot map: the set of free slots, as a tree of bits, so that the next free
 * slot and runs of free slots are found without a walk over the slab. */
#ifndef AKIN_KV_SLOT_MAP_H
#define AKIN_KV_SLOT_MAP_H

#include "base/status.h"

#include <stdint.h>

/** No slot, node or position. */
#define AKINI_KV_NONE UINT32_MAX

/** 64^6 > 2^32: enough levels for any 32-bit slot number. */
#define AKINI_KV_MAP_LEVELS 6

/** Bit i of a level says whether word i of the level below has any bit. */
typedef struct akini_kv_slot_map {
    uint64_t *levels[AKINI_KV_MAP_LEVELS]; /* [0]: one bit per slot */
    uint32_t n_levels;
    uint32_t n_slots;
    uint32_t n_set;
} akini_kv_slot_map_t;

/** An empty set of slots below n_slots (>= 1). */
akin_status_t akini_kv_slot_map_init(akini_kv_slot_map_t *map,
                                     uint32_t n_slots) AKIN_MUST_CHECK;
void akini_kv_slot_map_cleanup(akini_kv_slot_map_t *map);

/** Put in a slot that is not in the set. */
void akini_kv_slot_map_add(akini_kv_slot_map_t *map, uint32_t slot);
/** Take out a slot that is in the set. */
void akini_kv_slot_map_remove(akini_kv_slot_map_t *map, uint32_t slot);
int akini_kv_slot_map_has(const akini_kv_slot_map_t *map, uint32_t slot);

/** Lowest slot of the set at or after `from`; AKINI_KV_NONE if none. */
uint32_t akini_kv_slot_map_next(const akini_kv_slot_map_t *map, uint32_t from);

/**
 * First slot of a run of n slots of the set, looked for from `from` on, then
 * from 0. Gives up after a bounded number of shorter runs.
 *
 * \return AKINI_KV_NONE if none was found.
 */
uint32_t akini_kv_slot_map_find_run(const akini_kv_slot_map_t *map, uint32_t n,
                                    uint32_t from);

#endif
