/* Worker place: a rank's part in the change of its worker's placement. */
#ifndef AKIN_ROLES_WORKER_PLACE_H
#define AKIN_ROLES_WORKER_PLACE_H

#include "roles/pacer.h"
#include "roles/warmer.h"

#include <stddef.h>

struct akin_worker;

/**
 * The router tells all ranks of a worker the next map of a layer. Each brings
 * the weights that it will need and tells the leader; when all have, the leader
 * begins the next step under it. Zero: no change is under way.
 */
typedef struct akini_worker_place {
    uint64_t epoch; /* of the change under way; 0: none */
    uint32_t layer;
    uint64_t *holders; /* [n_experts] of the layer */
    akin_warmer_t *warmer;
    int is_warming; /* the leader has not been told yet */
    /* The leader's. */
    uint64_t placed[AKIN_PACER_MAX_RANKS]; /* last epoch that each rank has the
                                            * weights for */
    uint64_t refused;    /* last epoch that a rank cannot have */
    int64_t deadline_ns; /* for the ranks to have the weights */
} akin_worker_place_t;

/** PLACE or PLACED. Says whether it was one of them. */
int akini_worker_place_message(struct akin_worker *worker, uint32_t from,
                               uint16_t type, const void *payload,
                               size_t bytes);

/** Tell the leader once the weights are here. */
void akini_worker_place_turn(struct akin_worker *worker);

/** The placement that the next step is to run under; the leader asks. */
uint64_t akini_worker_place_epoch(const struct akin_worker *worker);

/** A step begins under this epoch: the change under way becomes the placement,
 * if it is that of it; a rank that has not got it cannot go on. */
void akini_worker_place_apply(struct akin_worker *worker, uint64_t epoch);

/** Drop a change that a rank is late for; the time of that. */
int64_t akini_worker_place_expire(struct akin_worker *worker, int64_t now_ns);

void akini_worker_place_cleanup(struct akin_worker *worker);

#endif
