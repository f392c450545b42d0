/* Sim fit: what a router learns from generated requests before it meets those
 * of a simulation. */
#ifndef AKIN_ROUTING_SIM_FIT_H
#define AKIN_ROUTING_SIM_FIT_H

#include "routing/fit_make.h"
#include "routing/route_generator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_sim_fit_params {
    const akin_route_generator_t *generator;
    const akin_route_workload_t *workload; /* of the generator */
    uint32_t n_layers;                     /* of the generator, as are these */
    uint32_t n_experts;
    uint32_t top_k;
    uint32_t n_requests;
    const double *shares; /* [n_domains] of the domains; NULL: the workload's */
    uint64_t first;       /* number of the first one */
    uint32_t max_tokens; /* of a prompt, and of an output, that count; 0: all */
    uint32_t n_clusters; /* decode workers */
    akin_fit_variant_t variant;
    bool is_plain; /* clusters of any size */
    uint64_t seed;
} akin_sim_fit_params_t;

/**
 * Draw requests, count the experts of their prompts and outputs, fit.
 *
 * \param[in]  params
 * \param[out] fit     the caller's to clean up; empty on failure.
 * \param[out] err
 * \return as akin_fit_make().
 */
akin_status_t akin_sim_fit_make(const akin_sim_fit_params_t *params,
                                akin_fit_t *fit,
                                akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
