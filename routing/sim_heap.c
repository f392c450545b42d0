/* Sim heap: a binary heap of events. */
#include "routing/sim_heap.h"

#include <stdlib.h>

void akini_sim_heap_cleanup(akini_sim_heap_t *heap)
{
    free(heap->events);
    *heap = (akini_sim_heap_t){0};
}

static int is_before(const akini_sim_event_t *a, const akini_sim_event_t *b)
{
    if (a->time_s < b->time_s || a->time_s > b->time_s)
        return a->time_s < b->time_s;
    return a->order < b->order;
}

akin_status_t akini_sim_heap_put(akini_sim_heap_t *heap, double time_s,
                                 akini_sim_kind_t kind, uint32_t of,
                                 uint32_t epoch)
{
    if (heap->n == heap->capacity) {
        const uint32_t capacity = 2 * heap->capacity + 64;
        akini_sim_event_t *events =
            realloc(heap->events, capacity * sizeof(*events));
        if (events == NULL)
            return AKIN_ERR_NOMEM;
        heap->events = events;
        heap->capacity = capacity;
    }
    const akini_sim_event_t event = {time_s, heap->n_put++, kind, of, epoch};
    uint32_t i = heap->n++;
    for (; i > 0 && is_before(&event, &heap->events[(i - 1) / 2]);
         i = (i - 1) / 2)
        heap->events[i] = heap->events[(i - 1) / 2];
    heap->events[i] = event;
    return AKIN_OK;
}

akini_sim_event_t akini_sim_heap_take(akini_sim_heap_t *heap)
{
    const akini_sim_event_t first = heap->events[0];
    const akini_sim_event_t last = heap->events[--heap->n];
    uint32_t i = 0;
    for (uint32_t child = 1; child < heap->n; child = 2 * i + 1) {
        if (child + 1 < heap->n &&
            is_before(&heap->events[child + 1], &heap->events[child]))
            child++;
        if (!is_before(&heap->events[child], &last))
            break;
        heap->events[i] = heap->events[child];
        i = child;
    }
    heap->events[i] = last;
    return first;
}
