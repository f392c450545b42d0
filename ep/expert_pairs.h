/* Expert pairs: the chosen experts of one MoE layer over any list of (vector,
 * expert) pairs. Each touched expert's weights are streamed once for all pairs
 * that name it, wherever their vectors come from. */
#ifndef AKIN_EP_EXPERT_PAIRS_H
#define AKIN_EP_EXPERT_PAIRS_H

#include "base/error.h"
#include "base/team.h"
#include "ep/expert.h"
#include "math/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_expert_pairs akin_expert_pairs_t;

/** Sizes that the scratch memory is made for. */
typedef struct akin_expert_pairs_params {
    const akin_kernels_t *kernels;
    uint32_t hidden;
    uint32_t intermediate;
    uint32_t n_experts;
    uint32_t max_pairs;
} akin_expert_pairs_params_t;

/** out = down * (silu(gate * x) * (up * x)) of one expert. */
typedef struct akin_expert_pair {
    const float *x; /* [hidden] */
    float *out;     /* [hidden] */
    uint32_t expert;
} akin_expert_pair_t;

/**
 * \param[out] pairs_p  owned by the caller; one team of threads uses it.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t
akin_expert_pairs_create(const akin_expert_pairs_params_t *params,
                         akin_expert_pairs_t **pairs_p) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akin_expert_pairs_destroy(akin_expert_pairs_t *pairs);

/**
 * Sort the pairs by expert. One thread calls it, then the team meets, then all
 * threads call akin_expert_pairs_run().
 *
 * \param[in] list  [n_pairs], each expert below n_experts; not kept.
 * \param[in] n_pairs  at most max_pairs.
 */
void akin_expert_pairs_sort(akin_expert_pairs_t *pairs,
                            const akin_expert_pair_t *list, uint32_t n_pairs);

/**
 * Compute what was sorted last. A pair's bits depend on its vector and its
 * expert alone. Called by every thread of the team; ends with a barrier.
 *
 * \param[in] experts  [n_experts] of the layer; those that no pair names are
 *                     not touched, except for the shape of the first one.
 * \return distinct experts among the pairs.
 */
uint32_t akin_expert_pairs_run(akin_expert_pairs_t *pairs, akin_team_t *team,
                               const akin_expert_t *experts);

#ifdef __cplusplus
}
#endif

#endif
