/* Plan check: laws that every plan obeys. */
#ifndef AKIN_TESTS_UNIT_PLAN_CHECK_H
#define AKIN_TESTS_UNIT_PLAN_CHECK_H

#include "launch/plan.h"

#include "runner.h"
#include "topologies.h"

#include <stdlib.h>

/* A job of prefill and decode workers of so many ranks on nodes of so many
 * GPUs. */
static inline akin_job_t plan_job(uint32_t n_prefill, uint32_t n_decode,
                                  uint32_t ep, uint32_t n_nodes,
                                  uint32_t n_gpus)
{
    return (akin_job_t){.n_prefill = n_prefill,
                        .n_decode = n_decode,
                        .ep = ep,
                        .prefill_ep = ep,
                        .n_nodes = n_nodes,
                        .n_gpus = n_gpus,
                        .topology = "",
                        .hosts = ""};
}

enum { PLAN_MAX_NODES = 4096 };

/* A plan over nodes that are all alike. */
static inline akin_status_t plan_try(const akin_job_t *job,
                                     const akin_node_t *node, akin_plan_t *plan,
                                     akin_error_t *err)
{
    static const akin_node_t *nodes[PLAN_MAX_NODES];
    for (uint32_t i = 0; i < job->n_nodes; i++)
        nodes[i] = node;
    const akin_plan_params_t params = {
        .job = job, .nodes = nodes, .n_nodes = job->n_nodes};
    return akin_plan_make(&params, plan, err);
}

/* Whether cores hold whole cores of the node, SMT siblings together. */
static inline int plan_has_whole_cores(const akin_node_t *node,
                                       hwloc_const_bitmap_t cores)
{
    for (uint32_t i = 0; i < node->n_cores; i++)
        if (hwloc_bitmap_intersects(node->cores[i].pus, cores) &&
            !hwloc_bitmap_isincluded(node->cores[i].pus, cores))
            return 0;
    return 1;
}

/* Number of NUMA nodes that a rank's cores are of. */
static inline uint32_t plan_count_numa(const akin_node_t *node,
                                       hwloc_const_bitmap_t cores)
{
    uint32_t n = 0;
    for (uint32_t m = 0; m < node->n_numa; m++)
        for (uint32_t i = 0; i < node->n_cores; i++)
            if (node->cores[i].numa == m &&
                hwloc_bitmap_intersects(node->cores[i].pus, cores)) {
                n++;
                break;
            }
    return n;
}

static inline void plan_check_rank(const akin_plan_t *plan,
                                   const akin_job_t *job,
                                   const akin_node_t *node,
                                   const akin_plan_rank_t *r)
{
    const akin_job_place_t place = akin_job_place(job, r->rank);
    CU_ASSERT(r->role == place.role && r->worker == place.worker);
    CU_ASSERT(r->node < plan->n_nodes);
    CU_ASSERT(!hwloc_bitmap_iszero(r->cores));
    CU_ASSERT(plan_has_whole_cores(node, r->cores));
    CU_ASSERT_EQUAL(r->gpu == AKIN_PLAN_NO_GPU,
                    r->role == AKIN_JOB_ROUTER || job->n_gpus == 0);
    if (r->gpu == AKIN_PLAN_NO_GPU)
        return;
    CU_ASSERT_FATAL(r->gpu < job->n_gpus);
    CU_ASSERT_EQUAL(r->numa, node->gpus[r->gpu].numa);
    CU_ASSERT_EQUAL(plan_count_numa(node, r->cores), 1);
}

/* No NIC that ranks may use is closer to a rank's GPU than its own. */
static inline void plan_check_nic(const akin_node_t *node,
                                  const akin_plan_rank_t *r)
{
    uint32_t own = UINT32_MAX, most = 0;
    if (r->gpu == AKIN_PLAN_NO_GPU || r->nic[0] == '\0')
        return;
    const uint8_t *row = &node->closeness[(size_t)r->gpu * node->n_nics];
    for (uint32_t i = 0; i < node->n_nics; i++) {
        if (strcmp(node->nics[i].device, r->nic) == 0)
            own = i;
        if (node->nics[i].state != AKIN_LINK_DOWN &&
            node->nics[i].is_rdma == r->is_rdma &&
            node->nics[i].link_gbs > 1.0F && row[i] > most)
            most = row[i];
    }
    CU_ASSERT_FATAL(own != UINT32_MAX);
    CU_ASSERT_EQUAL(row[own], most);
    CU_ASSERT_EQUAL(node->nics[own].is_rdma, r->is_rdma);
}

/* Cores and GPUs are used once; every rank has what it must. */
static inline void plan_check(const akin_plan_t *plan, const akin_job_t *job,
                              const akin_node_t *node)
{
    CU_ASSERT_EQUAL_FATAL(plan->n_ranks, akin_job_n_ranks(job));
    hwloc_bitmap_t *used = calloc(plan->n_nodes, sizeof(hwloc_bitmap_t));
    uint8_t *gpus = calloc(plan->n_nodes, (size_t)job->n_gpus + 1);
    CU_ASSERT_FATAL(used != NULL && gpus != NULL);
    for (uint32_t i = 0; i < plan->n_nodes; i++)
        used[i] = hwloc_bitmap_alloc();
    for (uint32_t i = 0; i < plan->n_ranks; i++) {
        const akin_plan_rank_t *r = &plan->ranks[i];
        CU_ASSERT_EQUAL(r->rank, i);
        plan_check_rank(plan, job, node, r);
        plan_check_nic(node, r);
        /* On a lone node ranks do without. */
        CU_ASSERT(r->nic[0] != '\0' || node->n_nics == 0 || plan->n_nodes == 1);
        CU_ASSERT_FALSE(hwloc_bitmap_intersects(used[r->node], r->cores));
        (void)hwloc_bitmap_or(used[r->node], used[r->node], r->cores);
        if (r->gpu != AKIN_PLAN_NO_GPU)
            CU_ASSERT_EQUAL(gpus[r->node * job->n_gpus + r->gpu]++, 0);
    }
    for (uint32_t i = 0; i < plan->n_nodes; i++)
        hwloc_bitmap_free(used[i]);
    free(used);
    free(gpus);
}

static inline akin_plan_t plan_make(const akin_job_t *job,
                                    const akin_node_t *node)
{
    akin_plan_t plan = {0};
    akin_error_t err = {{0}};
    const akin_status_t status = plan_try(job, node, &plan, &err);
    if (status != AKIN_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(status, AKIN_OK);
    if (!plan.shares_cores)
        plan_check(&plan, job, node);
    return plan;
}

#endif
