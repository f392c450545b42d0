/* Sim mix: which domains the requests of a simulation are of, and when that
 * changes. */
#ifndef AKIN_ROUTING_SIM_MIX_H
#define AKIN_ROUTING_SIM_MIX_H

#include "routing/sim.h"

/** Third of the measured requests; the first one's before them, the last one's
 * behind. */
uint32_t akini_sim_mix_phase(const akin_sim_params_t *params, uint64_t index);

/** A request of the run, of the mix at its time. */
void akini_sim_mix_make(const akin_sim_params_t *params, uint64_t index,
                        akin_route_request_t *request);

#endif
