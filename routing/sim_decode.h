/* Sim decode: decode workers, their batches and their steps. */
#ifndef AKIN_ROUTING_SIM_DECODE_H
#define AKIN_ROUTING_SIM_DECODE_H

#include "routing/sim_marks.h"
#include "routing/sim_requests.h"

typedef struct akini_sim_worker {
    uint32_t *members; /* [n_running] slots in the step, then [n_waiting] */
    uint32_t n_running;
    uint32_t n_waiting; /* join at the next step */
    uint32_t capacity;
    uint32_t epoch; /* events of an earlier one are void */
    bool is_dead;
    bool is_stepping;
    bool has_copies; /* in the step */
    double nic_s;    /* when its NIC is free */
    double seconds;  /* of the step */
    double distinct; /* experts of the step, over the layers */
    double busiest;  /* of the busiest rank of each layer */
} akini_sim_worker_t;

typedef struct akini_sim_decode {
    const akin_sim_params_t *params;
    akini_sim_requests_t *requests;
    akini_sim_worker_t *workers; /* [n_decode] */
    /* What a decision looks at, each in a row of its own. Assigned are those
     * that a worker has and those whose KV is under way. */
    uint32_t *n_assigned; /* [n_decode] */
    uint64_t *kv_tokens;  /* [n_decode] reserved for them */
    uint8_t *alive;       /* [n_decode] not known to be dead */
    uint8_t *open;        /* [n_decode] alive, and with a place */
    uint8_t *eligible;    /* [n_decode] open, with KV for the request at hand */
    uint32_t n_open;
    akini_sim_marks_t marks;
    uint32_t *seen;   /* [n_entries] last step that had a request of it */
    uint32_t n_steps; /* as far as the former goes */
    uint8_t *rank_of; /* [n_experts] scratch */
} akini_sim_decode_t;

/** All idle; cleanup() also after a failure. */
akin_status_t
akini_sim_decode_init(akini_sim_decode_t *decode,
                      const akin_sim_params_t *params,
                      akini_sim_requests_t *requests) AKIN_MUST_CHECK;

void akini_sim_decode_cleanup(akini_sim_decode_t *decode);

/** Workers that may be chosen for a request of so many tokens.
 * \return [n_decode], or NULL if there is none. */
const uint8_t *akini_sim_decode_find_room(akini_sim_decode_t *decode,
                                          uint64_t tokens);

/** A request of so many tokens is sent to a worker. */
void akini_sim_decode_assign(akini_sim_decode_t *decode, uint32_t w,
                             uint64_t tokens);

/** It is there no longer. */
void akini_sim_decode_release(akini_sim_decode_t *decode, uint32_t w,
                              uint64_t tokens);

/** The KV of a request has come. */
akin_status_t akini_sim_decode_join(akini_sim_decode_t *decode, uint32_t w,
                                    uint32_t slot) AKIN_MUST_CHECK;

/** Begin a step with all that the worker has: mark the experts of every
 * request's token and set `seconds`.
 * \return 0 if it has none and stays idle. */
int akini_sim_decode_start(akini_sim_decode_t *decode, uint32_t w);

/** A worker stops, and is empty. Its requests are the caller's to restart. */
void akini_sim_decode_die(akini_sim_decode_t *decode, uint32_t w);

/** May requests go there? */
void akini_sim_decode_allow(akini_sim_decode_t *decode, uint32_t w,
                            bool is_allowed);

#endif
