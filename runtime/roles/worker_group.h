/* Worker group: a rank among those of its expert-parallel worker, which step
 * together. */
#ifndef AKIN_ROLES_WORKER_GROUP_H
#define AKIN_ROLES_WORKER_GROUP_H

#include "roles/pacer.h"

#include <stddef.h>

struct akin_worker;

/** Zero is a worker of one rank. */
typedef struct akini_worker_group {
    uint32_t n_ranks;    /* consecutive ranks of the job */
    uint32_t leader;     /* the first of them, which paces the steps */
    akin_pacer_t pacer;  /* the leader's */
    uint64_t due;        /* step to be begun now; 0: none */
    uint64_t due_epoch;  /* of the placement that it runs under */
    uint64_t number;     /* of the last step that began here */
    int is_stepping;     /* the engine is in it */
    int is_ready;        /* the leader knows that there is work here */
    int is_ending;       /* the router has said STOP */
    int64_t deadline_ns; /* by which the others have to speak; INT64_MAX: they
                            need not */
} akin_worker_group_t;

/** Whether a rank of the job belongs to the worker, too. */
int akini_worker_group_has(const struct akin_worker *worker, uint32_t rank);

/** Start; with one rank only, nothing of the below is called. */
void akini_worker_group_init(struct akin_worker *worker);

/** EP_READY, EP_STEP, EP_DONE or EP_END. Says whether it was one of them. */
int akini_worker_group_message(struct akin_worker *worker, uint32_t from,
                               uint16_t type, const void *payload,
                               size_t bytes);

/** The step is back from the engine, and the role has had it. */
void akini_worker_group_made(struct akin_worker *worker);

/** Tell of work, pace, and give the engine its part of a step. */
void akini_worker_group_turn(struct akin_worker *worker);

/** STOP came: the leader ends the worker once no rank is in a step. */
void akini_worker_group_stop(struct akin_worker *worker);

/** A rank of the worker is lost. */
void akini_worker_group_lost(struct akin_worker *worker, uint32_t rank);

/** Fail if the others are late; the time when they will be. */
int64_t akini_worker_group_expire(struct akin_worker *worker, int64_t now_ns);

#endif
