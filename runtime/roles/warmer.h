/* Warmer: brings the weights of experts into memory while the rank serves. */
#ifndef AKIN_ROLES_WARMER_H
#define AKIN_ROLES_WARMER_H

#include "engine/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_warmer akin_warmer_t;

/**
 * \param[in]  engine    borrowed.
 * \param[in]  wake      called by the warmer's thread when it is done.
 * \param[out] warmer_p  owned by the caller.
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akin_warmer_create(const akin_engine_t *engine,
                                 void (*wake)(void *arg), void *arg,
                                 akin_warmer_t **warmer_p) AKIN_MUST_CHECK;

/** Stop, which waits for the expert at hand, and free. NULL is allowed. */
void akin_warmer_destroy(akin_warmer_t *warmer);

/**
 * Begin with other experts, on a thread of their own; those before are stopped
 * at the expert at hand.
 *
 * \param[in] experts  [n_experts] non-zero: it is wanted; copied.
 * \return AKIN_OK, AKIN_ERR_NOMEM: nothing is under way.
 */
akin_status_t akin_warmer_start(akin_warmer_t *warmer, uint32_t layer,
                                const uint8_t *experts,
                                uint32_t n_experts) AKIN_MUST_CHECK;

/** Whether all of the last start are in memory. */
int akin_warmer_is_done(const akin_warmer_t *warmer);

#ifdef __cplusplus
}
#endif

#endif
