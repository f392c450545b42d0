/* Worker wait: a rank without a role, until the router gives it one. */
#ifndef AKIN_ROLES_WORKER_WAIT_H
#define AKIN_ROLES_WORKER_WAIT_H

#include "roles/worker.h"

/** What the router has said to a rank that waits. Messages are owned. */
typedef struct akini_worker_wait {
    akin_worker_t *worker;
    int is_stopped;               /* STOP: it is not needed */
    akin_message_group_t group;   /* GROUP; its blobs are in group_data */
    void *group_data;             /* NULL: it has not come */
    akin_message_assume_t assume; /* ASSUME, likewise; its peers have been
                                   * connected to, as far as they live */
    void *assume_data;
} akini_worker_wait_t;

/** From now on the worker's messages come here. */
void akini_worker_wait_begin(akini_worker_wait_t *wait, akin_worker_t *worker);
/** The worker has a role, or ends. */
void akini_worker_wait_end(akini_worker_wait_t *wait);

/** Tell the router how it went: READY or ASSUMED. */
void akini_worker_wait_say(akini_worker_wait_t *wait, akin_message_type_t type,
                           akin_status_t status);

#endif
