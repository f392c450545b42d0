/* Sim requests: slots, and queues of them. */
#include "routing/sim_requests.h"

#include <stdlib.h>

akin_status_t akini_sim_requests_init(akini_sim_requests_t *of,
                                      const akin_route_pool_t *pool)
{
    *of = (akini_sim_requests_t){
        .free = AKINI_SIM_NONE,
        .n_of = calloc(pool->n_entries, sizeof(*of->n_of)),
    };
    return of->n_of != NULL ? AKIN_OK : AKIN_ERR_NOMEM;
}

void akini_sim_requests_cleanup(akini_sim_requests_t *of)
{
    free(of->slots);
    free(of->n_of);
}

akin_status_t akini_sim_requests_take(akini_sim_requests_t *of, uint32_t entry,
                                      uint32_t *slot_p)
{
    uint32_t slot = of->free;
    uint32_t epoch = 0;
    if (slot != AKINI_SIM_NONE) {
        of->free = of->slots[slot].next;
        epoch = of->slots[slot].epoch;
    } else {
        if (of->n_slots == AKIN_SIM_MAX_INSIDE)
            return AKIN_ERR_RANGE;
        if (of->n_slots == of->capacity) {
            const uint32_t capacity = 2 * of->capacity + 64;
            akini_sim_request_t *slots =
                realloc(of->slots, capacity * sizeof(*slots));
            if (slots == NULL)
                return AKIN_ERR_NOMEM;
            of->slots = slots;
            of->capacity = capacity;
        }
        slot = of->n_slots++;
    }
    of->slots[slot] = (akini_sim_request_t){.entry = entry,
                                            .epoch = epoch,
                                            .next = AKINI_SIM_NONE,
                                            .is_inside = true};
    of->n_inside++;
    of->n_twice += ++of->n_of[entry] == 2;
    *slot_p = slot;
    return AKIN_OK;
}

void akini_sim_requests_put(akini_sim_requests_t *of, uint32_t slot)
{
    akini_sim_request_t *request = &of->slots[slot];
    request->is_inside = false;
    request->epoch++;
    request->next = of->free;
    of->free = slot;
    of->n_inside--;
    of->n_twice -= of->n_of[request->entry]-- == 2;
}

void akini_sim_queue_put(akini_sim_queue_t *queue, akini_sim_requests_t *of,
                         uint32_t slot)
{
    of->slots[slot].next = AKINI_SIM_NONE;
    if (queue->head == AKINI_SIM_NONE)
        queue->head = slot;
    else
        of->slots[queue->tail].next = slot;
    queue->tail = slot;
}

void akini_sim_queue_push(akini_sim_queue_t *queue, akini_sim_requests_t *of,
                          uint32_t slot)
{
    of->slots[slot].next = queue->head;
    if (queue->head == AKINI_SIM_NONE)
        queue->tail = slot;
    queue->head = slot;
}

uint32_t akini_sim_queue_take(akini_sim_queue_t *queue,
                              const akini_sim_requests_t *of)
{
    const uint32_t slot = queue->head;
    queue->head = of->slots[slot].next;
    return slot;
}

void akini_sim_queue_drop_lost(akini_sim_queue_t *queue,
                               akini_sim_requests_t *of)
{
    uint32_t next = queue->head;
    *queue = (akini_sim_queue_t){AKINI_SIM_NONE, AKINI_SIM_NONE};
    while (next != AKINI_SIM_NONE) {
        const uint32_t slot = next;
        next = of->slots[slot].next;
        if (!of->slots[slot].is_lost)
            akini_sim_queue_put(queue, of, slot);
        of->slots[slot].is_lost = false;
    }
}
