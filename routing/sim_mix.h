/* Sim mix: which requests of the pool a simulation has, in which order, and how
 * the mix of their domains changes. */
#ifndef AKIN_ROUTING_SIM_MIX_H
#define AKIN_ROUTING_SIM_MIX_H

#include "routing/sim.h"

typedef struct akini_sim_mix {
    const akin_sim_params_t *params;
    uint32_t *order;    /* [n_entries] in the order of the seed: all, or domain
                           by domain; of a trace's arrivals all, by time */
    uint32_t *n_taken;  /* [n_domains] */
    double *parts;      /* [n_domains] scratch */
    uint32_t n_domains; /* that are drawn from; 0: the order is of all */
} akini_sim_mix_t;

/** cleanup() also after a failure. */
akin_status_t
akini_sim_mix_init(akini_sim_mix_t *mix,
                   const akin_sim_params_t *params) AKIN_MUST_CHECK;

void akini_sim_mix_cleanup(akini_sim_mix_t *mix);

/** The entry of a request of the run; they are asked for in their order. */
uint32_t akini_sim_mix_take(akini_sim_mix_t *mix, uint64_t index);

/** When a request of a trace's arrivals comes. */
double akini_sim_mix_arrival(const akini_sim_mix_t *mix, uint64_t index);

/** Third of the measured requests; the first one's before them, the last one's
 * behind. */
uint32_t akini_sim_mix_phase(const akin_sim_params_t *params, uint64_t index);

#endif
