/* Placement packing: items into packs of equal room. */
#include "ep/placement_pack.h"

#include <stdlib.h>

static int by_weight(const void *left, const void *right)
{
    const akini_placement_item_t *a = left, *b = right;
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

void akini_placement_sort(akini_placement_item_t *items, uint32_t n_items)
{
    qsort(items, n_items, sizeof(*items), by_weight);
}

void akini_placement_pack(akini_placement_packs_t *packs,
                          const akini_placement_item_t *items, uint32_t n_items,
                          uint32_t *pack, uint32_t *place)
{
    for (uint32_t i = 0; i < n_items; i++) {
        uint32_t best = packs->n_packs;
        for (uint32_t p = 0; p < packs->n_packs; p++)
            if (packs->counts[p] < packs->capacity &&
                (best == packs->n_packs ||
                 packs->weights[p] < packs->weights[best]))
                best = p;
        if (best == packs->n_packs)
            return;
        pack[items[i].index] = best;
        if (place != NULL)
            place[items[i].index] = packs->counts[best];
        packs->counts[best]++;
        packs->weights[best] += items[i].weight;
    }
}
