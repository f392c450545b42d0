/* Sim requests: those that are in a simulation, in slots that are used again
 * and again. */
#ifndef AKIN_ROUTING_SIM_REQUESTS_H
#define AKIN_ROUTING_SIM_REQUESTS_H

#include "routing/sim.h"

#define AKINI_SIM_NONE UINT32_MAX

typedef struct akini_sim_request {
    akin_route_request_t route;
    uint64_t index;  /* of the run */
    uint32_t n_done; /* tokens of its output */
    uint32_t worker; /* of prefill, later of decode */
    uint32_t next;   /* slot behind it in a queue or among the free */
    double arrival_s;
    double first_s;   /* of its first token */
    double token_s;   /* of its last one so far */
    uint16_t *urn;    /* of decode; while it runs, as is the next */
    uint16_t *counts; /* [n_layers][n_experts] of decode */
} akini_sim_request_t;

typedef struct akini_sim_requests {
    akini_sim_request_t *slots; /* [n_slots] */
    uint32_t n_slots;
    uint32_t capacity;
    uint32_t free; /* first of the free slots, or AKINI_SIM_NONE */
    uint32_t n_inside;
    void **memory; /* [n_memory] urns and counts that no request has */
    uint32_t n_memory;
    uint32_t memory_capacity;
    size_t urn_items;
    size_t n_cells;
} akini_sim_requests_t;

/** A queue of slots; both are AKINI_SIM_NONE when it is empty. */
typedef struct akini_sim_queue {
    uint32_t head;
    uint32_t tail;
} akini_sim_queue_t;

void akini_sim_requests_init(akini_sim_requests_t *of, size_t urn_items,
                             size_t n_cells);

void akini_sim_requests_cleanup(akini_sim_requests_t *of);

/** \return AKIN_OK, AKIN_ERR_NOMEM, AKIN_ERR_RANGE: there are
 * AKIN_SIM_MAX_INSIDE. Pointers to requests end with this call. */
akin_status_t akini_sim_requests_take(akini_sim_requests_t *of,
                                      uint32_t *slot_p) AKIN_MUST_CHECK;

/** Give a request its urn, not yet filled, and its counts, of 0. */
akin_status_t akini_sim_requests_begin(akini_sim_requests_t *of,
                                       uint32_t slot) AKIN_MUST_CHECK;

void akini_sim_requests_put(akini_sim_requests_t *of, uint32_t slot);

void akini_sim_queue_put(akini_sim_queue_t *queue, akini_sim_requests_t *of,
                         uint32_t slot);

/** There must be one. */
uint32_t akini_sim_queue_take(akini_sim_queue_t *queue,
                              const akini_sim_requests_t *of);

#endif
