/* Sim prompt: draws the tokens of prompts. */
#include "routing/sim_prompt.h"

#include <stdlib.h>
#include <string.h>

akin_status_t akini_sim_prompt_init(akini_sim_prompt_t *prompt,
                                    const akin_sim_params_t *params)
{
    const akin_model_shape_t *shape = params->cost.shape;
    *prompt = (akini_sim_prompt_t){.params = params};
    prompt->urn =
        calloc((size_t)shape->n_layers * akin_route_slots(params->generator),
               sizeof(*prompt->urn));
    prompt->counts = calloc((size_t)shape->n_layers * shape->n_experts,
                            sizeof(*prompt->counts));
    return prompt->urn != NULL && prompt->counts != NULL ? AKIN_OK
                                                         : AKIN_ERR_NOMEM;
}

void akini_sim_prompt_cleanup(akini_sim_prompt_t *prompt)
{
    free(prompt->urn);
    free(prompt->counts);
}

uint32_t akini_sim_prompt_count(akini_sim_prompt_t *prompt,
                                const akin_route_request_t *route)
{
    const akin_sim_params_t *params = prompt->params;
    const akin_model_shape_t *shape = params->cost.shape;
    uint32_t n_tokens = route->n_prompt;
    uint16_t experts[AKIN_ROUTE_MAX_TOP_K];
    if (params->signature_tokens > 0 && params->signature_tokens < n_tokens)
        n_tokens = params->signature_tokens;
    memset(prompt->counts, 0,
           (size_t)shape->n_layers * shape->n_experts *
               sizeof(*prompt->counts));
    akin_route_urn_fill(params->generator, route, AKIN_ROUTE_PREFILL,
                        prompt->urn);
    for (uint32_t t = 0; t < n_tokens; t++)
        for (uint32_t l = 0; l < shape->n_layers; l++) {
            uint16_t *counts = prompt->counts + (size_t)l * shape->n_experts;
            akin_route_draw(params->generator, route, prompt->urn, t, l,
                            experts);
            for (uint32_t i = 0; i < shape->top_k; i++)
                counts[experts[i]]++;
        }
    return n_tokens;
}
