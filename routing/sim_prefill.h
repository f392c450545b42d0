/* Sim prefill: prefill workers, each with a queue. */
#ifndef AKIN_ROUTING_SIM_PREFILL_H
#define AKIN_ROUTING_SIM_PREFILL_H

#include "routing/sim_requests.h"

typedef struct akini_sim_prefiller {
    akini_sim_queue_t queue; /* behind the one that it prefills */
    uint32_t running;        /* slot, or AKINI_SIM_NONE */
    uint32_t n_assigned;
    double nic_s; /* when its NIC is free */
} akini_sim_prefiller_t;

typedef struct akini_sim_prefill {
    const akin_sim_params_t *params;
    akini_sim_requests_t *requests;
    akini_sim_prefiller_t *workers; /* [n_prefill] */
} akini_sim_prefill_t;

/** All idle; cleanup() also after a failure. */
akin_status_t akini_sim_prefill_init(akini_sim_prefill_t *prefill,
                                     const akin_sim_params_t *params,
                                     akini_sim_requests_t *requests);

void akini_sim_prefill_cleanup(akini_sim_prefill_t *prefill);

/** Give a request to the worker that has fewest, the lowest of several. */
uint32_t akini_sim_prefill_assign(akini_sim_prefill_t *prefill, uint32_t slot);

/** Begin with the next request of an idle worker.
 * \param[out] seconds_p  that it takes.
 * \return 0 if there is none. */
int akini_sim_prefill_start(akini_sim_prefill_t *prefill, uint32_t w,
                            double *seconds_p);

/** The running request of a worker has its first token; the worker is idle.
 * \return its slot. */
uint32_t akini_sim_prefill_end(akini_sim_prefill_t *prefill, uint32_t w);

#endif
