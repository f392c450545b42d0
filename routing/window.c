/* Window: the latest signatures, some of which a fit may be reading while new
 * ones come in. */
#include "routing/window.h"

#include "routing/float_array.h"

#include <stdlib.h>
#include <string.h>

/* Marks of a slot. */
enum { PINNED = 1, DROPPED = 2 };

akin_status_t akini_window_init(akini_window_t *window, uint32_t capacity,
                                size_t dim)
{
    const size_t n_slots = 2 * (size_t)capacity;
    *window = (akini_window_t){.dim = dim, .capacity = capacity};
    window->entries = calloc(capacity, sizeof(*window->entries));
    window->pinned = calloc(capacity, sizeof(*window->pinned));
    window->free_slots = calloc(n_slots, sizeof(*window->free_slots));
    window->marks = calloc(n_slots, sizeof(*window->marks));
    /* Its pages are there from the start: a decision has no time to wait for
     * new ones. */
    window->vectors = akini_float_array_create(n_slots, dim);
    if (window->entries == NULL || window->pinned == NULL ||
        window->free_slots == NULL || window->marks == NULL ||
        window->vectors == NULL) {
        akini_window_cleanup(window);
        return AKIN_ERR_NOMEM;
    }
    while (window->n_free < n_slots) {
        window->free_slots[window->n_free] =
            (uint32_t)n_slots - 1 - window->n_free;
        window->n_free++;
    }
    return AKIN_OK;
}

void akini_window_cleanup(akini_window_t *window)
{
    free(window->entries);
    free(window->pinned);
    free(window->free_slots);
    free(window->marks);
    free(window->vectors);
    *window = (akini_window_t){0};
}

static void release(akini_window_t *window, uint32_t slot)
{
    window->free_slots[window->n_free++] = slot;
}

static void drop_oldest(akini_window_t *window)
{
    uint32_t slot = window->entries[window->first].slot;
    window->first = (window->first + 1) % window->capacity;
    window->n_entries--;
    if ((window->marks[slot] & PINNED) != 0)
        window->marks[slot] |= DROPPED;
    else
        release(window, slot);
}

void akini_window_drop(akini_window_t *window, int64_t oldest_ns)
{
    while (window->n_entries > 0 &&
           window->entries[window->first].time_ns < oldest_ns)
        drop_oldest(window);
}

void akini_window_append(akini_window_t *window, int64_t time_ns,
                         const float *signature)
{
    if (window->n_entries == window->capacity)
        drop_oldest(window);
    /* At most `capacity` slots are pinned and fewer than that in the window,
     * so one of the 2 * capacity is free. */
    uint32_t slot = window->free_slots[--window->n_free];
    memcpy(window->vectors + slot * window->dim, signature,
           window->dim * sizeof(*signature));
    uint32_t at = (window->first + window->n_entries) % window->capacity;
    window->entries[at] =
        (akini_window_entry_t){.time_ns = time_ns, .slot = slot};
    window->n_entries++;
}

void akini_window_pin(akini_window_t *window)
{
    for (uint32_t i = 0; i < window->n_entries; i++) {
        uint32_t at = (window->first + i) % window->capacity;
        uint32_t slot = window->entries[at].slot;
        window->marks[slot] = PINNED;
        window->pinned[i] = slot;
    }
    window->n_pinned = window->n_entries;
}

void akini_window_unpin(akini_window_t *window)
{
    for (uint32_t i = 0; i < window->n_pinned; i++) {
        uint32_t slot = window->pinned[i];
        if ((window->marks[slot] & DROPPED) != 0)
            release(window, slot);
        window->marks[slot] = 0;
    }
    window->n_pinned = 0;
}
