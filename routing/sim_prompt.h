/* Sim prompt: how often the tokens of a prompt choose each expert. */
#ifndef AKIN_ROUTING_SIM_PROMPT_H
#define AKIN_ROUTING_SIM_PROMPT_H

#include "routing/sim.h"

typedef struct akini_sim_prompt {
    const akin_sim_params_t *params;
    uint16_t *urn;
    uint16_t *counts; /* [n_layers][n_experts] of the last one */
} akini_sim_prompt_t;

/** cleanup() also after a failure. */
akin_status_t akini_sim_prompt_init(akini_sim_prompt_t *prompt,
                                    const akin_sim_params_t *params);

void akini_sim_prompt_cleanup(akini_sim_prompt_t *prompt);

/** Draw the first tokens of a prompt into `counts`.
 * \return how many tokens. */
uint32_t akini_sim_prompt_count(akini_sim_prompt_t *prompt,
                                const akin_route_request_t *route);

#endif
