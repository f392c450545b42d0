/* Replacer: when a worker's experts are worth placing anew, from what the
 * router sees of its decoding. Pure. */
#ifndef AKIN_ROLES_REPLACER_H
#define AKIN_ROLES_REPLACER_H

#include "ep/placement_change.h"
#include "roles/job.h"
#include "routing/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_replacer_params {
    akin_replace_mode_t mode; /* not off */
    int is_forced;            /* every time, whatever it is worth: layers in
                                 turn, by one kind of placement after another */
    uint64_t every;           /* steps between two considerations, >= 2 */
    double horizon_s;         /* in which a change has to pay for itself */
    double bandwidth_bytes_per_s;
    double expert_bytes;
    akin_placement_t *placements; /* [n_workers] of several ranks; borrowed, and
                                     changed by akin_replacer_placed() only */
    uint32_t n_workers;
} akin_replacer_params_t;

/** A layer's next map, for all ranks of a worker. */
typedef struct akin_replacer_order {
    uint32_t worker;
    uint64_t epoch;
    akin_placement_change_t change;
    uint64_t *holders; /* [n_experts] the replacer's own */
} akin_replacer_order_t;

/** Counters since creation. */
typedef struct akin_replacer_stats {
    akin_replace_mode_t mode;
    uint64_t n_considered;
    uint64_t n_proposed; /* found worth it, or forced */
    uint64_t n_applied;
    uint64_t n_dropped; /* not made by the worker, or lost with it */
    uint64_t n_moved;   /* experts that came to ranks; of a dry run: would */
    uint64_t n_bytes;
    double gain_s; /* what was predicted of those, less the time of the move */
} akin_replacer_stats_t;

typedef struct akin_replacer akin_replacer_t;

/** \param[out] replacer_p  owned by the caller. \return AKIN_OK,
 * AKIN_ERR_NOMEM */
akin_status_t
akin_replacer_create(const akin_replacer_params_t *params,
                     akin_replacer_t **replacer_p) AKIN_MUST_CHECK;

/** NULL is allowed. */
void akin_replacer_destroy(akin_replacer_t *replacer);

/**
 * Feed decode counts of a worker. Its rates are the mean of its first 16,384
 * tokens, and from then on one that remembers so many. Counts above n_tokens
 * are damaged and ignored.
 *
 * \param[in] counts  [n_layers][n_experts]
 */
void akin_replacer_counts(akin_replacer_t *replacer, uint32_t worker,
                          const uint16_t *counts, uint32_t n_tokens);

/**
 * Feed a step of a worker, and after so many look whether a change of one of
 * its layers would pay: what the busiest rank is expected to compute less in a
 * step, at what an expert costs there, for the steps of the horizon at the pace
 * of late, against the bytes to move. The cost of an expert is that of the
 * worker's own fit of step times; until that tells it apart, a step takes all
 * its time for them. Nothing is looked for before 1,024 tokens are counted, and
 * while a change of the worker is under way.
 *
 * \param[out] order_p  what to tell the ranks, or, of a dry run, people; until
 *                      the next call.
 * \return whether there is an order.
 */
int akin_replacer_step(akin_replacer_t *replacer, uint32_t worker,
                       const akin_policy_step_t *step, int64_t now_ns,
                       akin_replacer_order_t *order_p);

/**
 * The worker steps under the epoch of its order, or has dropped it.
 *
 * \return whether its placement has changed.
 */
int akin_replacer_placed(akin_replacer_t *replacer, uint32_t worker,
                         uint64_t epoch, akin_status_t status);

/** The worker is lost, and with it what it was told. */
void akin_replacer_lost(akin_replacer_t *replacer, uint32_t worker);

/** It is there again, under the placement that it had. */
void akin_replacer_back(akin_replacer_t *replacer, uint32_t worker);

akin_replacer_stats_t akin_replacer_stats(const akin_replacer_t *replacer);

#ifdef __cplusplus
}
#endif

#endif
