/* Sim heap: the events of a simulation in the order of their times. */
#ifndef AKIN_ROUTING_SIM_HEAP_H
#define AKIN_ROUTING_SIM_HEAP_H

#include "base/error.h"

#include <stdint.h>

typedef enum akini_sim_kind {
    AKINI_SIM_ARRIVAL,
    AKINI_SIM_PREFILLED, /* of a prefill worker: its step ends */
    AKINI_SIM_MOVED,     /* of a request: its KV is there */
    AKINI_SIM_STEP,      /* of a decode worker: it ends */
    AKINI_SIM_DEATH,     /* of a worker, those of prefill first */
    AKINI_SIM_LOSS,      /* the router knows of that */
    AKINI_SIM_RETURN     /* the worker is back */
} akini_sim_kind_t;

typedef struct akini_sim_event {
    double time_s;
    uint64_t order; /* of two at the same time the one put first comes first */
    akini_sim_kind_t kind;
    uint32_t of;    /* worker or slot of a request */
    uint32_t epoch; /* of that worker or request */
} akini_sim_event_t;

typedef struct akini_sim_heap {
    akini_sim_event_t *events; /* [n] a binary heap */
    uint32_t n;
    uint32_t capacity;
    uint64_t n_put;
} akini_sim_heap_t;

void akini_sim_heap_cleanup(akini_sim_heap_t *heap);

/** \return AKIN_OK, AKIN_ERR_NOMEM */
akin_status_t akini_sim_heap_put(akini_sim_heap_t *heap, double time_s,
                                 akini_sim_kind_t kind, uint32_t of,
                                 uint32_t epoch) AKIN_MUST_CHECK;

/** Take out the first one; there must be one. */
akini_sim_event_t akini_sim_heap_take(akini_sim_heap_t *heap);

#endif
