/* Pair map: 64-bit keys to 64-bit values in one open table. */
#ifndef AKIN_ENGINE_PAIR_MAP_H
#define AKIN_ENGINE_PAIR_MAP_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/** A slot with AKINI_PAIR_NONE as value is free. */
#define AKINI_PAIR_NONE UINT64_MAX

typedef struct akini_pair_slot {
    uint64_t key;
    uint64_t value;
} akini_pair_slot_t;

/** Zero is an empty map; readers may share it when it grows no more. */
typedef struct akini_pair_map {
    akini_pair_slot_t *slots;
    size_t n_slots; /* 0 or a power of two, at least twice n_used */
    size_t n_used;
} akini_pair_map_t;

/** The key of two 32-bit numbers. */
static inline uint64_t akini_pair_key(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

/**
 * Make room, so that the map grows once instead of many times.
 *
 * \param[in] n  keys that it will hold in all.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akini_pair_map_reserve(akini_pair_map_t *map,
                                     size_t n) AKIN_MUST_CHECK;

/**
 * Add a key.
 *
 * \param[in] value  anything but AKINI_PAIR_NONE.
 * \return AKIN_OK
 * \return AKIN_ERR_EXISTS: the key is there; its value stays.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akini_pair_map_add(akini_pair_map_t *map, uint64_t key,
                                 uint64_t value) AKIN_MUST_CHECK;

/** Value of a key, or AKINI_PAIR_NONE. */
uint64_t akini_pair_map_get(const akini_pair_map_t *map, uint64_t key);

/** Free the slots; the map is empty afterwards. */
void akini_pair_map_cleanup(akini_pair_map_t *map);

#endif
