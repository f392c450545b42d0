/* Plan apply: puts a process where the plan has its rank. */
#ifndef AKIN_LAUNCH_PLAN_APPLY_H
#define AKIN_LAUNCH_PLAN_APPLY_H

#include "launch/plan.h"

/** Of the environment: the plan of the job, as akin_plan_read() takes it. */
#define AKIN_PLAN_VARIABLE "AKIN_PLAN"

/**
 * Bind this process to the cores of its rank, and set UCX_NET_DEVICES,
 * ROCR_VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES and OMP_NUM_THREADS for it; before
 * MPI, UCX, GPU libraries and threads. UCX_NET_DEVICES and OMP_NUM_THREADS stay
 * as the user has set them. Checks that the cores, the GPU and the NIC are
 * there, and the NIC is up.
 *
 * \param[in]  n_ranks  of the job as it was started.
 * \param[out] err      what is missing, on which host, and the way out.
 * \return AKIN_OK
 * \return AKIN_ERR_CONFIG: this is not where the plan would have it.
 * \return what akin_node_read() returns.
 */
akin_status_t akin_plan_apply(const akin_plan_t *plan, uint32_t rank,
                              uint32_t n_ranks,
                              akin_error_t *err) AKIN_MUST_CHECK;

#endif
