/* Plan seats: which GPU, NIC and cores of a node a rank gets. */
#ifndef AKIN_LAUNCH_PLAN_SEATS_H
#define AKIN_LAUNCH_PLAN_SEATS_H

#include "launch/plan.h"

/* The router moves messages and computes little. */
enum { AKINI_PLAN_ROUTER_CORES = 4 };

/** Cores that some ranks of a node share out: those of a NUMA node, or of
 * several for a rank that has them all. */
typedef struct akini_plan_pool {
    uint32_t n_cores;
    uint32_t n_ranks; /* without the router */
    uint32_t numa;    /* the first of it that has cores */
} akini_plan_pool_t;

/** A node while its ranks are seated. */
typedef struct akini_plan_seats {
    const akin_job_t *job;
    const akin_node_t *node;
    char place[320]; /* "node 1 (mi300x.xml)", for messages */
    int is_alone;    /* the only node */
    akin_plan_t *plan;
    uint32_t *ranks; /* [n_ranks] of workers, in order */
    uint32_t n_ranks;
    int has_router;
    uint32_t n_seats;
    uint32_t *seat_numa; /* [n_seats] */
    uint32_t *seat_rank; /* [n_seats] or UINT32_MAX */
    uint32_t n_pools;
    akini_plan_pool_t *pools;
    uint32_t *pool_of;    /* [n_numa] */
    uint32_t router_pool; /* with has_router */
    uint32_t router_numa;
} akini_plan_seats_t;

/**
 * Seat the ranks whose `node` is this one.
 *
 * \param[in,out] plan  gpu, nic, cores and numa of these ranks are filled in.
 * \return AKIN_OK, AKIN_ERR_CONFIG, AKIN_ERR_NOMEM
 */
akin_status_t akini_plan_seat(const akin_plan_params_t *params, uint32_t node,
                              akin_plan_t *plan,
                              akin_error_t *err) AKIN_MUST_CHECK;

/** The cores, once ranks have seats; and NICs, once they have cores. */
akin_status_t akini_plan_seat_cores(akini_plan_seats_t *seats,
                                    akin_error_t *err) AKIN_MUST_CHECK;
akin_status_t akini_plan_seat_nics(akini_plan_seats_t *seats,
                                   akin_error_t *err) AKIN_MUST_CHECK;

/** Whether ranks of a node may use a NIC: not down, RDMA where some has that,
 * and no slow port for management beside fast ones. */
int akini_plan_nic_suits(const akin_node_t *node, uint32_t nic);

#endif
