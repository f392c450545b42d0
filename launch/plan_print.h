/* Plan print: the plan as a table for people. */
#ifndef AKIN_LAUNCH_PLAN_PRINT_H
#define AKIN_LAUNCH_PLAN_PRINT_H

#include "launch/cluster.h"
#include "launch/plan.h"

#include <stdio.h>

/** "41 ranks on 5 nodes: 1 router, 2 x 4 prefill, 8 x 4 decode".
 *
 * \return its length, as snprintf() does. */
int akin_plan_title(const akin_job_t *job, const akin_plan_t *plan, char *text,
                    size_t bytes);

/**
 * A row for each rank, then what is used of each node.
 *
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akin_plan_print(const akin_job_t *job, const akin_plan_t *plan,
                              const akin_cluster_t *cluster,
                              FILE *stream) AKIN_MUST_CHECK;

#endif
