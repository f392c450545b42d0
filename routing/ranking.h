/* Ranking: Spearman's rank correlation, one side prepared once. */
#ifndef AKIN_ROUTING_RANKING_H
#define AKIN_ROUTING_RANKING_H

#include "base/error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Scratch for ranking a fixed number of values; one thread. */
typedef struct akin_ranking akin_ranking_t;

/**
 * \param[in]  n          values per ranking, >= 1.
 * \param[out] ranking_p  owned by the caller.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_ranking_create(uint32_t n,
                                  akin_ranking_t **ranking_p) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akin_ranking_destroy(akin_ranking_t *ranking);

/**
 * Ranks less their mean; equal values share the mean of their ranks.
 *
 * \param[in]  values  [n], no NaN.
 * \param[out] ranks   [n], sum 0.
 */
void akin_ranking_centred(akin_ranking_t *ranking, const double *values,
                          double *ranks);

/**
 * Pearson's correlation of two lists of centred ranks, which is Spearman's rho
 * of the values.
 *
 * \return -1 to 1; 0 if either side does not vary.
 */
double akin_ranking_correlate(const double *a, const double *b, uint32_t n);

#ifdef __cplusplus
}
#endif

#endif
