/* Plan nodes: which worker runs on which node. */
#ifndef AKIN_LAUNCH_PLAN_NODES_H
#define AKIN_LAUNCH_PLAN_NODES_H

#include "base/error.h"
#include "roles/job.h"

#include <stdint.h>

/** Room for the workers' ranks on the nodes. */
typedef struct akini_plan_room {
    uint32_t n_nodes;
    const uint32_t *ranks; /* [n_nodes] GPUs, or cores that are not the
                            * router's */
    int is_unbounded;      /* more ranks than that may be on a node */
} akini_plan_room_t;

/**
 * Spread the workers over the nodes. The router is on node 0.
 *
 * \param[out] node_of  [ranks of the job]
 * \return AKIN_OK
 * \return AKIN_ERR_FULL: they do not fit.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akini_plan_spread(const akin_job_t *job,
                                const akini_plan_room_t *room,
                                uint32_t *node_of) AKIN_MUST_CHECK;

/**
 * Say why the workers do not fit and what would help.
 *
 * \return AKIN_ERR_CONFIG, or AKIN_ERR_NOMEM
 */
akin_status_t akini_plan_short(const akin_job_t *job,
                               const akini_plan_room_t *room,
                               akin_error_t *err) AKIN_MUST_CHECK;

#endif
