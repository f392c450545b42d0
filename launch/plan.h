/* Plan: which rank runs on which node, GPU, NIC and cores. */
#ifndef AKIN_LAUNCH_PLAN_H
#define AKIN_LAUNCH_PLAN_H

#include "launch/node.h"
#include "roles/job.h"

#define AKIN_PLAN_NO_GPU UINT32_MAX

typedef struct akin_plan_rank {
    uint32_t rank;
    akin_job_role_t role;
    uint32_t worker; /* among those of its role */
    uint32_t node;
    uint32_t gpu;         /* of the node's, or AKIN_PLAN_NO_GPU */
    char nic[48];         /* for UCX_NET_DEVICES; "": left to UCX */
    int is_rdma;          /* whether that is an RDMA device */
    hwloc_bitmap_t cores; /* its hardware threads, by operating system index */
    uint32_t n_cores;     /* with SMT siblings counted once: OpenMP threads */
    uint32_t numa;        /* of the node's; of most of its cores */
} akin_plan_rank_t;

typedef struct akin_plan {
    uint32_t n_ranks;
    akin_plan_rank_t *ranks; /* [n_ranks] by rank */
    uint32_t n_nodes;
    char **hosts;     /* [n_nodes]; NULL: the nodes have no names yet */
    int shares_cores; /* more ranks than cores on some node, as was allowed */
} akin_plan_t;

typedef struct akin_plan_params {
    const akin_job_t *job;
    const akin_node_t *const *nodes; /* [n_nodes], may repeat */
    uint32_t n_nodes;
    const char *const *hosts; /* [n_nodes] or NULL */
} akin_plan_params_t;

/**
 * Place the ranks of a job.
 *
 * Workers are spread over the nodes so that prefill and decode workers are in
 * the same proportion on each; a worker's ranks lie on one node where they fit,
 * and there in one NUMA node where they fit. With job->n_gpus every rank of a
 * worker has a GPU of its own, the NIC that is closest to it (the least used of
 * those that are equally close) and a share of the cores of its NUMA node;
 * without, the ranks of a node share out its cores, by NUMA node. The router is
 * on the first node, has up to four cores of the NUMA node of a NIC, and no
 * GPU. Cores of ranks are disjoint, SMT siblings stay together; with
 * job->oversubscribe ranks share cores where there are too few: each may run on
 * all of them, and its n_cores is 1. NICs that are down are not used, nor those
 * with a much slower PCIe link than others, and RDMA devices go first. The
 * hosts are params->hosts, or else those of job->hosts.
 *
 * \param[out] plan_p  for akin_plan_cleanup().
 * \param[out] err     which resource is short, of which node, by how much, and
 *                     what would help.
 * \return AKIN_OK
 * \return AKIN_ERR_CONFIG: it does not fit.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_plan_make(const akin_plan_params_t *params,
                             akin_plan_t *plan_p,
                             akin_error_t *err) AKIN_MUST_CHECK;

/** Idempotent on a zeroed plan. */
void akin_plan_cleanup(akin_plan_t *plan);

#endif
