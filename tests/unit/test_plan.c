/* Plan: ranks get the GPUs, NICs and cores that a person would give them, on
 * machines whose parts are known. */
#include "launch/plan.h"

#include "plan_check.h"
#include "runner.h"
#include "topologies.h"

/* Ranks of a role on a node. */
static uint32_t count(const akin_plan_t *plan, uint32_t node,
                      akin_job_role_t role)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_ranks; i++)
        n += plan->ranks[i].node == node && plan->ranks[i].role == role;
    return n;
}

/* Workers of four ranks lie on one node, in one NUMA node, on the GPUs and
 * switches 0-3 or 4-7. */
static void check_groups_of_four(const akin_plan_t *plan)
{
    for (uint32_t first = 1; first < plan->n_ranks; first += 4)
        for (uint32_t i = 0; i < 4; i++) {
            const akin_plan_rank_t *lead = &plan->ranks[first];
            const akin_plan_rank_t *r = &plan->ranks[first + i];
            char device[16];
            (void)snprintf(device, sizeof(device), "mlx5_%u:1", r->gpu);
            CU_ASSERT_EQUAL(r->node, lead->node);
            CU_ASSERT_EQUAL(r->numa, lead->numa);
            CU_ASSERT_EQUAL(r->gpu, r->numa * 4 + i);
            CU_ASSERT_STRING_EQUAL(r->nic, device);
            CU_ASSERT(r->is_rdma);
        }
}

/* 2 prefill and 8 decode workers of 4 ranks on 5 nodes of 8 GPUs. */
static void test_groups(void)
{
    akin_node_t node = topology_read(MI300X);
    const akin_job_t job = plan_job(2, 8, 4, 5, 8);
    akin_plan_t plan = plan_make(&job, &node);
    CU_ASSERT_EQUAL_FATAL(plan.n_ranks, 41);
    check_groups_of_four(&plan);
    for (uint32_t i = 0; i < 5; i++) {
        const uint32_t n_prefill = count(&plan, i, AKIN_JOB_PREFILL);
        CU_ASSERT(n_prefill == 0 || n_prefill == 4);
        CU_ASSERT_EQUAL(n_prefill + count(&plan, i, AKIN_JOB_DECODE), 8);
    }
    /* The router has 4 cores of 48, the 4 ranks beside it share the others;
     * elsewhere 4 ranks share 48. */
    CU_ASSERT_EQUAL(plan.ranks[0].node, 0);
    CU_ASSERT(topology_is_set(plan.ranks[0].cores, "0-3,96-99"));
    CU_ASSERT_EQUAL(plan.ranks[0].n_cores, 4);
    CU_ASSERT(plan.ranks[0].is_rdma);
    CU_ASSERT_EQUAL(plan.ranks[1].node, 0);
    CU_ASSERT(topology_is_set(plan.ranks[1].cores, "4-14,100-110"));
    CU_ASSERT_EQUAL(plan.ranks[1].n_cores, 11);
    CU_ASSERT(topology_is_set(plan.ranks[4].cores, "37-47,133-143"));
    for (uint32_t r = 5; r < 41; r++)
        CU_ASSERT_EQUAL(
            plan.ranks[r].n_cores,
            plan.ranks[r].node == 0 && plan.ranks[r].numa == 0 ? 11 : 12);
    akin_plan_cleanup(&plan);
    akin_plan_cleanup(&plan);
    akin_node_cleanup(&node);
}

/* 8 prefill and 16 decode workers of a rank on 3 nodes of 8 GPUs. */
static void test_singles(void)
{
    akin_node_t node = topology_read(MI300X);
    const akin_job_t job = plan_job(8, 16, 1, 3, 8);
    akin_plan_t plan = plan_make(&job, &node);
    CU_ASSERT_EQUAL(plan.n_ranks, 25);
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t n_prefill = count(&plan, i, AKIN_JOB_PREFILL);
        CU_ASSERT(n_prefill == 2 || n_prefill == 3);
        CU_ASSERT_EQUAL(n_prefill + count(&plan, i, AKIN_JOB_DECODE), 8);
    }
    for (uint32_t r = 1; r < 25; r++) {
        char device[16];
        (void)snprintf(device, sizeof(device), "mlx5_%u:1", plan.ranks[r].gpu);
        CU_ASSERT_STRING_EQUAL(plan.ranks[r].nic, device);
    }
    akin_plan_cleanup(&plan);
    akin_node_cleanup(&node);
}

/* Two GPUs and a NIC below each switch: 1 prefill, 3 decode workers. */
static void test_four_gpus(void)
{
    static const char *const cores[] = {"0-1,16-17", "2-4,18-20", "8-11,24-27",
                                        "5-7,21-23", "12-15,28-31"};
    static const uint32_t gpus[] = {AKIN_PLAN_NO_GPU, 0, 2, 1, 3};
    static const char *const nics[] = {"mlx5_0:1", "mlx5_0:1", "mlx5_1:1",
                                       "mlx5_0:1", "mlx5_1:1"};
    akin_node_t node = topology_read(FOUR_GPUS);
    const akin_job_t job = plan_job(1, 3, 1, 1, 4);
    akin_plan_t plan = plan_make(&job, &node);
    CU_ASSERT_EQUAL_FATAL(plan.n_ranks, 5);
    for (uint32_t r = 0; r < 5; r++) {
        CU_ASSERT_EQUAL(plan.ranks[r].gpu, gpus[r]);
        CU_ASSERT_STRING_EQUAL(plan.ranks[r].nic, nics[r]);
        CU_ASSERT(topology_is_set(plan.ranks[r].cores, cores[r]));
    }
    akin_plan_cleanup(&plan);
    akin_node_cleanup(&node);
}

static void test_one_nic(void)
{
    akin_node_t node = topology_read(ONE_NIC);
    const akin_job_t job = plan_job(1, 1, 2, 1, 4);
    akin_plan_t plan = plan_make(&job, &node);
    for (uint32_t r = 0; r < 5; r++) {
        CU_ASSERT_STRING_EQUAL(plan.ranks[r].nic, "mlx5_0:1");
        CU_ASSERT(plan.ranks[r].is_rdma);
    }
    /* The router is where the NIC is. */
    CU_ASSERT_EQUAL(plan.ranks[0].numa, 1);
    CU_ASSERT(topology_is_set(plan.ranks[0].cores, "6-7"));
    CU_ASSERT(topology_is_set(plan.ranks[1].cores, "0-2"));
    CU_ASSERT(topology_is_set(plan.ranks[3].cores, "8-9"));
    akin_plan_cleanup(&plan);
    akin_node_cleanup(&node);
}

/* Pairs of GPUs lie at NUMA nodes in another order than their numbers; each
 * pair's NIC is the one of its NUMA node. */
static void test_mi250x(void)
{
    static const uint32_t numa[] = {3, 3, 1, 1, 0, 0, 2, 2};
    static const char *const nics[] = {"hsi0", "hsi0", "hsi1", "hsi1",
                                       "hsi2", "hsi2", "hsi3", "hsi3"};
    akin_node_t node = topology_read(MI250X);
    const akin_job_t job = plan_job(1, 3, 2, 1, 8);
    akin_plan_t plan = plan_make(&job, &node);
    for (uint32_t r = 1; r < plan.n_ranks; r++) {
        const akin_plan_rank_t *rank = &plan.ranks[r];
        CU_ASSERT_EQUAL(rank->numa, numa[rank->gpu]);
        CU_ASSERT_STRING_EQUAL(rank->nic, nics[rank->gpu]);
        CU_ASSERT_FALSE(rank->is_rdma);
        /* Two ranks to a worker and to a NUMA node. */
        CU_ASSERT_EQUAL(rank->numa, plan.ranks[(r - 1) / 2 * 2 + 1].numa);
    }
    akin_plan_cleanup(&plan);
    akin_node_cleanup(&node);
}

/* This machine with as many ranks as cores, and without GPUs. */
static void test_this_machine(void)
{
    akin_node_t node = topology_read(NULL);
    if (node.n_cores >= 3) {
        const akin_job_t job = plan_job(1, node.n_cores - 2, 1, 1, 0);
        akin_plan_t plan = plan_make(&job, &node);
        for (uint32_t r = 0; r < plan.n_ranks; r++)
            CU_ASSERT_EQUAL(plan.ranks[r].n_cores, 1);
        akin_plan_cleanup(&plan);
    }
    akin_job_t job = plan_job(1, node.n_cores, 1, 1, 0);
    job.oversubscribe = 1;
    akin_plan_t plan = plan_make(&job, &node);
    CU_ASSERT(plan.shares_cores);
    for (uint32_t r = 0; r < plan.n_ranks; r++) {
        CU_ASSERT_EQUAL(plan.ranks[r].gpu, AKIN_PLAN_NO_GPU);
        CU_ASSERT(!hwloc_bitmap_iszero(plan.ranks[r].cores));
        CU_ASSERT(plan.ranks[r].n_cores >= 1);
    }
    akin_plan_cleanup(&plan);
    akin_node_cleanup(&node);
}

/* Without GPUs a rank has a share of one NUMA node, or several of them. */
static void test_cores_alone(void)
{
    akin_node_t node = topology_read(MI250X);
    akin_job_t job = plan_job(2, 6, 1, 1, 0);
    akin_plan_t plan = plan_make(&job, &node);
    for (uint32_t r = 0; r < plan.n_ranks; r++)
        CU_ASSERT_EQUAL(plan_count_numa(&node, plan.ranks[r].cores), 1);
    for (uint32_t m = 0; m < 4; m++) {
        uint32_t n = 0;
        for (uint32_t r = 1; r < plan.n_ranks; r++)
            n += plan.ranks[r].numa == m;
        CU_ASSERT_EQUAL(n, 2);
    }
    akin_plan_cleanup(&plan);
    job = plan_job(1, 1, 1, 1, 0);
    plan = plan_make(&job, &node);
    CU_ASSERT_EQUAL(plan_count_numa(&node, plan.ranks[1].cores), 2);
    CU_ASSERT_EQUAL(plan_count_numa(&node, plan.ranks[2].cores), 2);
    CU_ASSERT_EQUAL(plan.ranks[0].n_cores + plan.ranks[1].n_cores +
                        plan.ranks[2].n_cores,
                    64);
    akin_plan_cleanup(&plan);
    akin_node_cleanup(&node);
}

/* A worker larger than a node takes as few nodes as hold it. */
static void test_large_groups(void)
{
    akin_node_t node = topology_read(MI300X);
    akin_job_t job = plan_job(1, 2, 12, 5, 8);
    job.prefill_ep = 4;
    akin_plan_t plan = plan_make(&job, &node);
    for (uint32_t w = 0; w < 2; w++) {
        uint32_t n_nodes = 0, seen[5] = {0};
        for (uint32_t i = 0; i < 12; i++)
            n_nodes += seen[plan.ranks[5 + w * 12 + i].node]++ == 0;
        CU_ASSERT_EQUAL(n_nodes, 2);
    }
    for (uint32_t r = 2; r <= 4; r++) {
        CU_ASSERT_EQUAL(plan.ranks[r].node, plan.ranks[1].node);
        CU_ASSERT_EQUAL(plan.ranks[r].numa, plan.ranks[1].numa);
    }
    akin_plan_cleanup(&plan);
    akin_node_cleanup(&node);
}

/* Spread out, the workers of 3 would leave 5 + 5, which two of 5 fit in and
 * a third does not; sizes that only fit when packed are packed. */
static void test_packed(void)
{
    akin_node_t node = topology_read(MI300X);
    akin_job_t job = plan_job(2, 5, 2, 2, 8);
    job.prefill_ep = 3;
    akin_plan_t plan = plan_make(&job, &node);
    CU_ASSERT_EQUAL(plan.ranks[1].node, plan.ranks[4].node);
    akin_plan_cleanup(&plan);
    akin_node_cleanup(&node);
}

/* A worker's ranks on one node; the same plan every time. */
static void test_many(void)
{
    akin_node_t node = topology_read(MI300X);
    akin_job_t job = plan_job(256, 768, 4, 512, 8);
    akin_plan_t plan = plan_make(&job, &node), again = plan_make(&job, &node);
    CU_ASSERT_EQUAL_FATAL(plan.n_ranks, 4097);
    check_groups_of_four(&plan);
    for (uint32_t r = 0; r < plan.n_ranks; r++) {
        CU_ASSERT(plan.ranks[r].node == again.ranks[r].node &&
                  plan.ranks[r].gpu == again.ranks[r].gpu);
        CU_ASSERT_STRING_EQUAL(plan.ranks[r].nic, again.ranks[r].nic);
        CU_ASSERT(
            hwloc_bitmap_isequal(plan.ranks[r].cores, again.ranks[r].cores));
    }
    akin_plan_cleanup(&plan);
    akin_plan_cleanup(&again);
    akin_node_cleanup(&node);
}

/* Sizes drawn by chance: a plan obeys the laws or is refused, and workers that
 * fit a node are on one. */
static void test_random(void)
{
    static const char *const files[] = {MI300X, MI250X, FOUR_GPUS, ONE_NIC};
    uint32_t draw = 12345, n_made = 0;
    akin_node_t nodes[4];
    for (int i = 0; i < 4; i++)
        nodes[i] = topology_read(files[i]);
    for (int i = 0; i < 300; i++) {
        const akin_node_t *node = &nodes[i % 4];
        uint32_t d[8];
        for (int k = 0; k < 8; k++) {
            draw = draw * 1664525 + 1013904223;
            d[k] = draw >> 16;
        }
        akin_error_t err = {{0}};
        akin_job_t job = plan_job(1 + d[0] % 6, 1 + d[1] % 9, 1 + d[2] % 5,
                                  1 + d[3] % 5, d[4] % (node->n_gpus + 1));
        job.prefill_ep = 1 + d[5] % 5;
        job.n_spare = d[6] % 3;
        akin_plan_t plan = {0};
        const akin_status_t status = plan_try(&job, node, &plan, &err);
        CU_ASSERT(status == AKIN_OK || status == AKIN_ERR_CONFIG);
        if (status == AKIN_OK) {
            n_made++;
            plan_check(&plan, &job, node);
            for (uint32_t r = 1; r < plan.n_ranks; r++) {
                const akin_job_place_t p = akin_job_place(&job, r);
                if (job.n_gpus == 0 || p.n_ranks <= job.n_gpus)
                    CU_ASSERT_EQUAL(plan.ranks[r].node,
                                    plan.ranks[p.first].node);
            }
        } else {
            CU_ASSERT(err.text[0] != '\0' && plan.ranks == NULL);
        }
        akin_plan_cleanup(&plan);
    }
    CU_ASSERT(n_made > 50);
    for (int i = 0; i < 4; i++)
        akin_node_cleanup(&nodes[i]);
}

static const runner_test_t tests[] = {
    {"groups", test_groups},           {"singles", test_singles},
    {"four_gpus", test_four_gpus},     {"one_nic", test_one_nic},
    {"mi250x", test_mi250x},           {"this_machine", test_this_machine},
    {"cores_alone", test_cores_alone}, {"large_groups", test_large_groups},
    {"packed", test_packed},           {"many", test_many},
    {"random", test_random},
};

RUNNER_MAIN("plan", tests)
