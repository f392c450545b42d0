/* Sim mix: from one mix of domains to another. */
#include "routing/sim_mix.h"

#include <math.h>

/* Of the way through the measured requests, from 0 to 1. */
static double way(const akin_sim_params_t *params, uint64_t index)
{
    if (index < params->n_warmup)
        return 0.0;
    return fmin((double)(index - params->n_warmup) / params->n_measured, 1.0);
}

uint32_t akini_sim_mix_phase(const akin_sim_params_t *params, uint64_t index)
{
    const double third = floor(3.0 * way(params, index));
    return (uint32_t)fmin(third, AKIN_SIM_PHASES - 1);
}

void akini_sim_mix_make(const akin_sim_params_t *params, uint64_t index,
                        akin_route_request_t *request)
{
    const akin_route_workload_t *workload = params->workload;
    double shares[AKIN_ROUTE_MAX_DOMAINS];
    const double past = fmin(fmax(3.0 * way(params, index) - 1.0, 0.0), 1.0);
    for (uint32_t d = 0; d < workload->n_domains; d++) {
        const double before = params->shares != NULL
                                  ? params->shares[d]
                                  : workload->domains[d].share;
        const double after =
            params->later_shares != NULL ? params->later_shares[d] : before;
        shares[d] = (1.0 - past) * before + past * after;
    }
    akin_route_request_make(params->generator, params->first + index, shares,
                            request);
}
