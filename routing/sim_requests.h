/* Sim requests: those that are in a simulation, in slots that are used again
 * and again. */
#ifndef AKIN_ROUTING_SIM_REQUESTS_H
#define AKIN_ROUTING_SIM_REQUESTS_H

#include "routing/sim.h"

#define AKINI_SIM_NONE UINT32_MAX

typedef enum akini_sim_state {
    AKINI_SIM_QUEUED,   /* in the router */
    AKINI_SIM_PREFILL,  /* at a prefill worker */
    AKINI_SIM_ROUTED,   /* prefilled; waits for a decode worker with room */
    AKINI_SIM_TRANSFER, /* its KV is under way */
    AKINI_SIM_DECODE
} akini_sim_state_t;

/** What every step looks at comes first, so that it is in one line of the
 * cache. */
typedef struct akini_sim_request {
    const uint8_t *row; /* experts of the token that its next step computes */
    uint64_t index;     /* of the run */
    double token_s;     /* of its last token so far */
    uint32_t entry;     /* of the pool */
    uint32_t n_prompt;
    uint32_t n_output;
    uint32_t n_done; /* tokens of its output */
    uint64_t id;     /* of the policy: another one for every attempt */
    double arrival_s;
    double first_s;    /* of its first token */
    uint32_t n_start;  /* tokens that this attempt prefills */
    uint32_t n_cached; /* of these, which need not be computed */
    uint32_t n_filled; /* of these that are there */
    uint32_t n_chunk;  /* of these in the step that its worker is in */
    uint32_t n_attempts;
    uint32_t n_fruitless; /* of these since its last token */
    uint32_t epoch;       /* events of an earlier one are void */
    uint32_t prefill;
    uint32_t decode;
    uint32_t next; /* slot behind it in a queue or among the free */
    akini_sim_state_t state;
    bool is_inside;
    bool has_begun; /* some attempt came to the head of a prefill worker */
    bool is_lost;   /* about to leave a queue */
} akini_sim_request_t;

typedef struct akini_sim_requests {
    akini_sim_request_t *slots; /* [n_slots] */
    uint32_t n_slots;
    uint32_t capacity;
    uint32_t free; /* first of the free slots, or AKINI_SIM_NONE */
    uint32_t n_inside;
    uint32_t *n_of;   /* [n_entries] requests inside that are of an entry */
    uint32_t n_twice; /* entries with several */
} akini_sim_requests_t;

/** A queue of slots; both are AKINI_SIM_NONE when it is empty. */
typedef struct akini_sim_queue {
    uint32_t head;
    uint32_t tail;
} akini_sim_queue_t;

/** cleanup() also after a failure. */
akin_status_t
akini_sim_requests_init(akini_sim_requests_t *of,
                        const akin_route_pool_t *pool) AKIN_MUST_CHECK;

void akini_sim_requests_cleanup(akini_sim_requests_t *of);

/** A request of an entry. Pointers to requests end with this call.
 * \return AKIN_OK, AKIN_ERR_NOMEM, AKIN_ERR_RANGE: there are
 * AKIN_SIM_MAX_INSIDE. */
akin_status_t akini_sim_requests_take(akini_sim_requests_t *of, uint32_t entry,
                                      uint32_t *slot_p) AKIN_MUST_CHECK;

void akini_sim_requests_put(akini_sim_requests_t *of, uint32_t slot);

void akini_sim_queue_put(akini_sim_queue_t *queue, akini_sim_requests_t *of,
                         uint32_t slot);

/** Before all others. */
void akini_sim_queue_push(akini_sim_queue_t *queue, akini_sim_requests_t *of,
                          uint32_t slot);

/** There must be one. */
uint32_t akini_sim_queue_take(akini_sim_queue_t *queue,
                              const akini_sim_requests_t *of);

/** Take out those that are lost, and forget that they are. */
void akini_sim_queue_drop_lost(akini_sim_queue_t *queue,
                               akini_sim_requests_t *of);

#endif
