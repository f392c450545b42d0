/* Sim requests: slots, and the memory that a request has while it runs. */
#include "routing/sim_requests.h"

#include <stdlib.h>
#include <string.h>

void akini_sim_requests_init(akini_sim_requests_t *of, size_t urn_items,
                             size_t n_cells)
{
    *of = (akini_sim_requests_t){
        .free = AKINI_SIM_NONE, .urn_items = urn_items, .n_cells = n_cells};
}

void akini_sim_requests_cleanup(akini_sim_requests_t *of)
{
    for (uint32_t i = 0; i < of->n_slots; i++)
        free(of->slots[i].urn);
    for (uint32_t i = 0; i < of->n_memory; i++)
        free(of->memory[i]);
    free(of->slots);
    free(of->memory);
}

/* Twice as many slots, and room for the memory of all. */
static akin_status_t grow(akini_sim_requests_t *of)
{
    const uint32_t capacity = 2 * of->capacity + 64;
    akini_sim_request_t *slots =
        realloc(of->slots, capacity * sizeof(*of->slots));
    if (slots == NULL)
        return AKIN_ERR_NOMEM;
    of->slots = slots;
    void **memory = realloc(of->memory, capacity * sizeof(*memory));
    if (memory == NULL)
        return AKIN_ERR_NOMEM;
    of->memory = memory;
    of->capacity = capacity;
    return AKIN_OK;
}

akin_status_t akini_sim_requests_take(akini_sim_requests_t *of,
                                      uint32_t *slot_p)
{
    uint32_t slot = of->free;
    if (slot == AKINI_SIM_NONE) {
        if (of->n_slots == AKIN_SIM_MAX_INSIDE)
            return AKIN_ERR_RANGE;
        if (of->n_slots == of->capacity && grow(of) != AKIN_OK)
            return AKIN_ERR_NOMEM;
        slot = of->n_slots++;
    } else {
        of->free = of->slots[slot].next;
    }
    of->slots[slot] = (akini_sim_request_t){.next = AKINI_SIM_NONE};
    of->n_inside++;
    *slot_p = slot;
    return AKIN_OK;
}

akin_status_t akini_sim_requests_begin(akini_sim_requests_t *of, uint32_t slot)
{
    akini_sim_request_t *request = &of->slots[slot];
    if (of->n_memory > 0)
        request->urn = of->memory[--of->n_memory];
    else
        request->urn =
            malloc((of->urn_items + of->n_cells) * sizeof(*request->urn));
    if (request->urn == NULL)
        return AKIN_ERR_NOMEM;
    request->counts = request->urn + of->urn_items;
    memset(request->counts, 0, of->n_cells * sizeof(*request->counts));
    return AKIN_OK;
}

void akini_sim_requests_put(akini_sim_requests_t *of, uint32_t slot)
{
    akini_sim_request_t *request = &of->slots[slot];
    if (request->urn != NULL)
        of->memory[of->n_memory++] = request->urn;
    request->urn = NULL;
    request->next = of->free;
    of->free = slot;
    of->n_inside--;
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

uint32_t akini_sim_queue_take(akini_sim_queue_t *queue,
                              const akini_sim_requests_t *of)
{
    const uint32_t slot = queue->head;
    queue->head = of->slots[slot].next;
    return slot;
}
