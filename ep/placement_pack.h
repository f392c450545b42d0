/* Placement packing: items into packs of equal room, heaviest first. */
#ifndef AKIN_EP_PLACEMENT_PACK_H
#define AKIN_EP_PLACEMENT_PACK_H

#include <stdint.h>

/** A thing to place; the index tells equal ones apart. */
typedef struct akini_placement_item {
    float weight; /* finite */
    uint32_t index;
} akini_placement_item_t;

/** Sort by falling weight, ties by rising index. */
void akini_placement_sort(akini_placement_item_t *items, uint32_t n_items);

/** Packs being filled; everything is borrowed. */
typedef struct akini_placement_packs {
    uint32_t n_packs;
    uint32_t capacity; /* items per pack at most */
    float *weights;    /* [n_packs] so far */
    uint32_t *counts;  /* [n_packs] so far */
} akini_placement_packs_t;

/**
 * Longest processing time first: the items in the given order, each to the
 * lightest pack that has room, the lowest index on ties.
 *
 * \param[in]  items  sorted; as many as the packs have room for at most.
 * \param[out] pack   [item.index] the pack.
 * \param[out] place  [item.index] items that the pack had before this one;
 *                    NULL is allowed.
 */
void akini_placement_pack(akini_placement_packs_t *packs,
                          const akini_placement_item_t *items, uint32_t n_items,
                          uint32_t *pack, uint32_t *place);

#endif
