/* Expert step: one MoE layer's chosen experts over a batch of rows. Each
 * touched expert's weights are streamed once for all rows that chose it. */
#ifndef AKIN_EP_EXPERT_STEP_H
#define AKIN_EP_EXPERT_STEP_H

#include "base/error.h"
#include "base/team.h"
#include "ep/expert.h"
#include "math/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_expert_step akin_expert_step_t;

/** Sizes that the scratch memory is made for. */
typedef struct akin_expert_step_params {
    const akin_kernels_t *kernels;
    uint32_t hidden;
    uint32_t intermediate;
    uint32_t n_experts;
    uint32_t top_k;
    uint32_t max_rows;
} akin_expert_step_params_t;

/**
 * Make the scratch memory of an expert step.
 *
 * \param[in]  params
 * \param[out] step_p  owned by the caller; one team of threads uses it.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t
akin_expert_step_create(const akin_expert_step_params_t *params,
                        akin_expert_step_t **step_p) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akin_expert_step_destroy(akin_expert_step_t *step);

/** Rows of one layer. */
typedef struct akin_expert_batch {
    const akin_expert_t *experts; /* [n_experts] of this layer */
    const float *x;               /* [n_rows][hidden] normalised input */
    const uint16_t *routes;       /* [n_rows][top_k], the gate's order */
    const float *weights;         /* [n_rows][top_k] */
    uint32_t n_rows;              /* <= max_rows */
    float *y;                     /* [n_rows][hidden], added to */
} akin_expert_batch_t;

/**
 * y[row] += sum over j of weights[row][j] * expert[routes[row][j]](x[row]),
 * in the gate's order, expert(x) = down * (silu(gate * x) * (up * x)).
 *
 * Called by every thread of the team; ends with a barrier.
 *
 * \param[in,out] step
 * \param[in,out] team
 * \param[in]     rank   the calling thread: 0 .. n_threads - 1.
 * \param[in]     batch
 * \return distinct experts among the routes.
 */
uint32_t akin_expert_step_run(akin_expert_step_t *step, akin_team_t *team,
                              uint32_t rank, const akin_expert_batch_t *batch);

#ifdef __cplusplus
}
#endif

#endif
