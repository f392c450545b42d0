/* Replay placement: where the experts of a replay's expert-parallel workers
 * lie. */
#ifndef AKIN_ROUTING_REPLAY_PLACEMENT_H
#define AKIN_ROUTING_REPLAY_PLACEMENT_H

#include "ep/placement.h"
#include "routing/fit.h"

#ifdef __cplusplus
extern "C" {
#endif

/** "linear", "round-robin", "eplb" and "activation-shared" (one map for all
 * workers, from the mean of the clusters' decode rates), "activation" (each
 * worker's from its cluster's); NULL-terminated. */
extern const char *const akin_replay_placement_names[];

/** Does that placement need a fit with decode rates? */
int akin_replay_placement_needs_fit(const char *name);

typedef struct akin_replay_placement_params {
    const char *name;      /* of the list above */
    const akin_fit_t *fit; /* one cluster per worker; NULL where none is needed
                            */
    uint32_t n_workers;
    uint32_t n_layers;
    uint32_t n_experts;
    uint32_t n_ranks;
    uint32_t n_replicas;
    double batch; /* usual requests of a step */
} akin_replay_placement_params_t;

/**
 * \param[out] placements_p  [n_workers], akin_replay_placement_destroy().
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: an unknown name, a fit without decode rates, the
 *         errors of akin_placement_make().
 * \return AKIN_ERR_NOMEM
 */
akin_status_t
akin_replay_placement_create(const akin_replay_placement_params_t *params,
                             akin_placement_t **placements_p,
                             akin_error_t *err) AKIN_MUST_CHECK;

/** NULL is allowed. */
void akin_replay_placement_destroy(akin_placement_t *placements,
                                   uint32_t n_workers);

#ifdef __cplusplus
}
#endif

#endif
