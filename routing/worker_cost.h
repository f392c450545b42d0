/* Worker cost: seconds of the steps of a worker of one or several ranks, by the
 * cost model of a rank. */
#ifndef AKIN_ROUTING_WORKER_COST_H
#define AKIN_ROUTING_WORKER_COST_H

#include "routing/cost_model.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * One token for each request of a batch. The ranks share attention by heads;
 * each adds what its experts give to the hidden vectors of all tokens, there
 * and back. The busiest rank has that part of the choices which it has of the
 * experts.
 */
typedef struct akin_worker_step {
    uint32_t n_ranks; /* 0: 1 */
    uint32_t batch;
    uint64_t context_tokens; /* of all requests */
    uint32_t distinct;       /* experts, added up over the layers */
    uint32_t busiest;        /* the same of the busiest rank of each layer */
} akin_worker_step_t;

/** \return seconds; 0 for an empty batch. */
double akin_worker_cost_step(const akin_cost_model_t *model,
                             const akin_worker_step_t *step);

/**
 * A chunk of prompts. The ranks share its experts evenly, as it activates
 * nearly all, and exchange its hidden vectors as above.
 *
 * \param[in] n_ranks         0: 1
 * \param[in] tokens          of the chunk.
 * \param[in] context_tokens  before them.
 * \return seconds.
 */
double akin_worker_cost_prefill(const akin_cost_model_t *model,
                                uint32_t n_ranks, uint32_t tokens,
                                uint64_t context_tokens);

#ifdef __cplusplus
}
#endif

#endif
