/* Sampler: one token from a row of logits, a pure function of the row, the
 * history, the parameters and the position. */
#ifndef AKIN_ENGINE_SAMPLER_H
#define AKIN_ENGINE_SAMPLER_H

#include "base/error.h"
#include "math/kernels.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How to sample; all zero means greedy. */
typedef struct akin_sampling {
    float temperature;        /* >= 0; 0: greedy */
    float top_p;              /* (0, 1]; 0 and 1: off */
    float min_p;              /* [0, 1); 0: off */
    float repetition_penalty; /* > 0; 0 and 1: off */
    uint32_t top_k;           /* 0: off */
    uint64_t seed;
} akin_sampling_t;

/**
 * Check the ranges above.
 *
 * \param[out] err  names the field and its range.
 * \return AKIN_OK
 * \return AKIN_ERR_RANGE
 */
akin_status_t akin_sampling_check(const akin_sampling_t *sampling,
                                  akin_error_t *err) AKIN_MUST_CHECK;

/** Seed of a request that brought none: a hash of its custom_id. */
uint64_t akin_sampling_seed_from_id(const char *custom_id);

/** One candidate: a token and its logit. */
typedef struct akin_candidate {
    uint32_t id;
    float logit;
} akin_candidate_t;

typedef struct akin_sampler akin_sampler_t;

/**
 * Scratch memory for rows of `vocab` logits; one per thread.
 *
 * \param[in]  kernels    whose exp() is used; static.
 * \param[in]  vocab      at least 1.
 * \param[out] sampler_p  owned by the caller.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_sampler_create(const akin_kernels_t *kernels, uint32_t vocab,
                                  akin_sampler_t **sampler_p) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akin_sampler_destroy(akin_sampler_t *sampler);

/**
 * Choose the token at `position`. Order: repetition penalty over every token
 * of the history (a positive logit is divided, a negative one multiplied),
 * temperature, top-k, top-p (the token that crosses p stays), min-p (relative
 * to the best token), draw. Equal logits: the lowest id first. The draw is
 * Philox keyed by (seed, position).
 *
 * \param[in,out] sampler
 * \param[in]     sampling   checked before.
 * \param[in]     logits     [vocab], finite; not changed.
 * \param[in]     history    prompt and generated tokens so far.
 * \param[in]     position   position that the new token will have.
 * \return the token id.
 */
uint32_t akin_sampler_pick(akin_sampler_t *sampler,
                           const akin_sampling_t *sampling, const float *logits,
                           const uint32_t *history, size_t n_history,
                           uint64_t position);

/**
 * The n best tokens, best first; equal logits: the lowest id first.
 *
 * \param[in]  logits  [vocab]
 * \param[out] top     [min(n, vocab)]
 */
void akin_sampler_top(const float *logits, uint32_t vocab, uint32_t n,
                      akin_candidate_t *top);

/**
 * log(sum(exp(logits))), in double, in index order: a logprob is the logit
 * minus this.
 */
double akin_sampler_log_sum_exp(const float *logits, uint32_t vocab);

#ifdef __cplusplus
}
#endif

#endif
