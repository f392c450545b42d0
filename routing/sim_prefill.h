/* Sim prefill: prefill workers, each with a queue and a cache. */
#ifndef AKIN_ROUTING_SIM_PREFILL_H
#define AKIN_ROUTING_SIM_PREFILL_H

#include "routing/prefix_hash.h"
#include "routing/sim_cache.h"
#include "routing/sim_requests.h"

typedef struct akini_sim_prefiller {
    akini_sim_queue_t queue; /* those in its step, then those that wait */
    uint32_t n_running;      /* in its step; 0: it is idle */
    uint32_t epoch;          /* events of an earlier one are void */
    double nic_s;            /* when its NIC is free */
    bool is_dead;
    akini_sim_cache_t cache;
} akini_sim_prefiller_t;

typedef struct akini_sim_prefill {
    const akin_sim_params_t *params;
    akini_sim_requests_t *requests;
    akini_sim_prefiller_t *workers; /* [n_prefill] */
    akin_prefix_router_t *prefix;   /* or NULL */
    uint32_t *loads;                /* [n_prefill] tokens to be prefilled */
    uint8_t *eligible;              /* [n_prefill] not known to be dead */
    uint32_t n_eligible;
} akini_sim_prefill_t;

/** All idle; cleanup() also after a failure. */
akin_status_t akini_sim_prefill_init(akini_sim_prefill_t *prefill,
                                     const akin_sim_params_t *params,
                                     akini_sim_requests_t *requests,
                                     akin_error_t *err) AKIN_MUST_CHECK;

void akini_sim_prefill_cleanup(akini_sim_prefill_t *prefill);

/** Give a request to a worker; one must be eligible. */
uint32_t akini_sim_prefill_assign(akini_sim_prefill_t *prefill, uint32_t slot);

/** Begin a step of an idle worker: the next tokens of the prompts that it has,
 * in the order in which they came.
 * \param[out] seconds_p  that it takes.
 * \return 0 if there are none. */
int akini_sim_prefill_start(akini_sim_prefill_t *prefill, uint32_t w,
                            double *seconds_p);

/** The step of a worker is over; the worker is idle. */
void akini_sim_prefill_end(akini_sim_prefill_t *prefill, uint32_t w);

/** Take out the next request of an idle worker whose prompt is done.
 * \param[out] slot_p  AKINI_SIM_NONE if there is none.
 * \return AKIN_OK, AKIN_ERR_NOMEM */
akin_status_t akini_sim_prefill_take(akini_sim_prefill_t *prefill, uint32_t w,
                                     uint32_t *slot_p) AKIN_MUST_CHECK;

/** A worker stops, and is empty. Its requests are the caller's to restart. */
void akini_sim_prefill_die(akini_sim_prefill_t *prefill, uint32_t w);

/** May requests go there? */
void akini_sim_prefill_allow(akini_sim_prefill_t *prefill, uint32_t w,
                             bool is_allowed);

#endif
