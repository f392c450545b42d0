/* Window: the latest signatures, some of which a fit may be reading while new
 * ones come in. */
#ifndef AKIN_ROUTING_WINDOW_H
#define AKIN_ROUTING_WINDOW_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct akini_window_entry {
    int64_t time_ns;
    uint32_t slot;
} akini_window_entry_t;

/**
 * A ring of entries over twice as many slots: as many may be pinned, for
 * another thread to read, as are in the window. Free slots are a stack, so
 * that memory is touched only as far as windows have ever reached.
 */
typedef struct akini_window {
    size_t dim;
    uint32_t capacity;
    uint32_t first; /* oldest entry */
    uint32_t n_entries;
    uint32_t n_pinned;
    uint32_t n_free;
    akini_window_entry_t *entries; /* [capacity] */
    uint32_t *pinned;              /* [capacity] slots */
    uint32_t *free_slots;          /* [2 * capacity] */
    uint8_t *marks;                /* [2 * capacity] */
    float *vectors;                /* [2 * capacity][dim] */
} akini_window_t;

/**
 * \param[in] capacity  entries, >= 1.
 * \param[in] dim       elements of a signature, >= 1.
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akini_window_init(akini_window_t *window, uint32_t capacity,
                                size_t dim) AKIN_MUST_CHECK;

void akini_window_cleanup(akini_window_t *window);

/** Drop the entries that are older than `oldest_ns`; one of just that time
 * stays. */
void akini_window_drop(akini_window_t *window, int64_t oldest_ns);

/** Append a copy; a full window loses its oldest entry. Neither allocates nor
 * waits. */
void akini_window_append(akini_window_t *window, int64_t time_ns,
                         const float *signature);

/**
 * Pin all entries: until akini_window_unpin() their vectors stay as they are,
 * dropped or not, and another thread may read window->pinned[n_pinned] and
 * akini_window_vector(). None may be pinned before.
 */
void akini_window_pin(akini_window_t *window);

void akini_window_unpin(akini_window_t *window);

static inline const float *akini_window_vector(const akini_window_t *window,
                                               uint32_t slot)
{
    return window->vectors + slot * window->dim;
}

#endif
