/* Pacer: when the ranks of a worker make their next step together. Pure. */
#ifndef AKIN_ROLES_PACER_H
#define AKIN_ROLES_PACER_H

#include "base/error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Most ranks of a worker. */
#define AKIN_PACER_MAX_RANKS 64u

/**
 * Kept by the leader of a worker. A step begins when no rank is in one and one
 * of them has work; all ranks take part. A plain value.
 */
typedef struct akin_pacer {
    uint32_t n_ranks;
    uint64_t number;  /* of the last step that began; 0: none */
    uint64_t ready;   /* bit r: rank r has work for the next step */
    uint64_t running; /* bit r: rank r has not ended the last step */
} akin_pacer_t;

/** \param[in] n_ranks  1 .. AKIN_PACER_MAX_RANKS */
void akin_pacer_init(akin_pacer_t *pacer, uint32_t n_ranks);

/** A rank has work. \param[in] rank  its place in the worker. */
void akin_pacer_ready(akin_pacer_t *pacer, uint32_t rank);

/**
 * A rank has ended a step, and has work for another one or not.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT: it is not in a step of that number.
 */
akin_status_t akin_pacer_done(akin_pacer_t *pacer, uint32_t rank,
                              uint64_t number, int has_work) AKIN_MUST_CHECK;

/** Begin the next step if it is time. \return its number; 0: not now. */
uint64_t akin_pacer_next(akin_pacer_t *pacer);

#ifdef __cplusplus
}
#endif

#endif
