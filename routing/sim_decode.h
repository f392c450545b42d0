/* Sim decode: decode workers, their batches and their steps. */
#ifndef AKIN_ROUTING_SIM_DECODE_H
#define AKIN_ROUTING_SIM_DECODE_H

#include "routing/sim_requests.h"

typedef struct akini_sim_worker {
    uint32_t *members; /* [n_running] slots in the step, then [n_waiting] */
    uint32_t n_running;
    uint32_t n_waiting; /* join at the next step */
    uint32_t capacity;
    uint32_t n_assigned; /* these, and those whose KV is under way */
    uint64_t kv_tokens;  /* reserved for them */
    double nic_s;        /* when its NIC is free */
    int is_stepping;
    double seconds;  /* of the step */
    double distinct; /* experts of the step, over the layers */
    double busiest;  /* of the busiest rank of each layer */
} akini_sim_worker_t;

typedef struct akini_sim_decode {
    const akin_sim_params_t *params;
    akini_sim_requests_t *requests;
    akini_sim_worker_t *workers; /* [n_decode] */
    uint8_t *eligible;           /* [n_decode] has room */
    uint64_t *active;            /* [n_experts / 64] union of a layer */
    uint8_t *rank_of;            /* [n_experts] scratch */
} akini_sim_decode_t;

/** All idle; cleanup() also after a failure. */
akin_status_t akini_sim_decode_init(akini_sim_decode_t *decode,
                                    const akin_sim_params_t *params,
                                    akini_sim_requests_t *requests);

void akini_sim_decode_cleanup(akini_sim_decode_t *decode);

/** Set `eligible` for a request of so many tokens.
 * \return 0 if no worker has room. */
int akini_sim_decode_find_room(akini_sim_decode_t *decode, uint64_t tokens);

/** The KV of a request has come. */
akin_status_t akini_sim_decode_join(akini_sim_decode_t *decode, uint32_t w,
                                    uint32_t slot) AKIN_MUST_CHECK;

/** Begin a step with all that the worker has: draw the experts of every
 * request's token and set `seconds`.
 * \return 0 if it has none and stays idle. */
int akini_sim_decode_start(akini_sim_decode_t *decode, uint32_t w);

#endif
