/* Plan: what does not fit is refused with what is short and what would help. */
#include "launch/plan.h"

#include "plan_check.h"
#include "runner.h"
#include "topologies.h"

static void check_text(const akin_error_t *err, const char *word)
{
    if (strstr(err->text, word) == NULL)
        (void)fprintf(stderr, "no \"%s\" in: %s\n", word, err->text);
    CU_ASSERT_PTR_NOT_NULL(strstr(err->text, word));
}

static void check_refused(const akin_job_t *job, const akin_node_t *node,
                          const char *word)
{
    akin_plan_t plan = {0};
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(plan_try(job, node, &plan, &err), AKIN_ERR_CONFIG);
    check_text(&err, word);
    CU_ASSERT_PTR_NULL(plan.ranks);
    akin_plan_cleanup(&plan);
}

/* What the message tells to do helps, and one step less does not. */
static void test_gpus_short(void)
{
    akin_node_t node = topology_read(MI300X);
    akin_job_t job = plan_job(2, 8, 4, 4, 8);
    akin_error_t err = {{0}};
    akin_plan_t plan = {0};
    check_refused(&job, &node,
                  "the workers' 40 ranks need 40 GPUs, but 4 nodes have 8 "
                  "each, 32: raise cluster.nodes to 5, or lower roles.decode "
                  "to 6");
    job.n_decode = 7;
    CU_ASSERT_EQUAL(plan_try(&job, &node, &plan, &err), AKIN_ERR_CONFIG);
    job.n_decode = 6;
    plan = plan_make(&job, &node);
    akin_plan_cleanup(&plan);
    job = plan_job(1, 1, 8, 1, 8);
    check_refused(&job, &node, "1 node has 8: raise cluster.nodes to 2");
    /* Three nodes have 24 GPUs for 24 ranks, but room for 6 workers of 3. */
    job = plan_job(4, 4, 3, 3, 8);
    check_refused(&job, &node,
                  "do not fit, though 3 nodes have 8 each, 24 GPUs");
    check_refused(&job, &node,
                  "raise cluster.nodes to 4, or lower roles.decode to 2");
    akin_node_cleanup(&node);
}

static void test_gpus_of_node(void)
{
    akin_node_t node = topology_read(FOUR_GPUS);
    const akin_job_t job = plan_job(1, 7, 1, 1, 8);
    check_refused(&job, &node, "four-gpus.xml) has 4 GPUs, but cluster.gpus");
    check_refused(&job, &node, "is 8");
    akin_node_cleanup(&node);
}

/* Leave a NUMA node's first cores only, as a cgroup would. */
static void keep_cores(akin_node_t *node, uint32_t numa, uint32_t n_keep)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < node->n_cores; i++)
        if (node->cores[i].numa != numa || n_keep-- > 0)
            node->cores[n++] = node->cores[i];
        else {
            hwloc_bitmap_free(node->cores[i].pus);
            n_keep = 0;
        }
    node->n_cores = n;
}

static void test_cores_short(void)
{
    akin_node_t node = topology_read(MI300X);
    akin_job_t job = plan_job(1, 1, 4, 1, 8);
    keep_cores(&node, 1, 3);
    check_refused(&job, &node,
                  "NUMA node 1 has 3 cores that may be used, but its 4 ranks "
                  "need 4");
    check_refused(&job, &node, "launch.oversubscribe");
    job.oversubscribe = 1;
    akin_plan_t plan = plan_make(&job, &node);
    CU_ASSERT(plan.shares_cores);
    for (uint32_t r = 5; r < 9; r++) {
        CU_ASSERT(topology_is_set(plan.ranks[r].cores, "48-50,144-146"));
        CU_ASSERT_EQUAL(plan.ranks[r].n_cores, 1);
    }
    CU_ASSERT_EQUAL(plan.ranks[1].n_cores, 11);
    akin_plan_cleanup(&plan);
    /* None at all: they run where there are some. */
    keep_cores(&node, 1, 0);
    plan = plan_make(&job, &node);
    CU_ASSERT(topology_is_set(plan.ranks[5].cores, "0-47,96-143"));
    akin_plan_cleanup(&plan);
    job.oversubscribe = 0;
    check_refused(&job, &node, "NUMA node 1 has 0 cores");
    akin_node_cleanup(&node);
}

static void test_cores_alone(void)
{
    akin_node_t node = topology_read(ONE_NIC);
    akin_job_t job = plan_job(4, 10, 1, 1, 0);
    check_refused(&job, &node,
                  "the job's 15 ranks need 15 cores, but 1 node has 12: raise "
                  "cluster.nodes to 2, lower roles.decode to 7, or set "
                  "launch.oversubscribe = true");
    job.n_decode = 7;
    akin_plan_t plan = plan_make(&job, &node);
    CU_ASSERT_FALSE(plan.shares_cores);
    akin_plan_cleanup(&plan);
    job = plan_job(1, 1, 32, 2, 0);
    job.oversubscribe = 1;
    plan = plan_make(&job, &node);
    CU_ASSERT(plan.shares_cores);
    /* The workers of 32 stay whole. */
    for (uint32_t r = 1; r < 65; r++)
        CU_ASSERT_EQUAL(plan.ranks[r].node,
                        plan.ranks[(r - 1) / 32 * 32 + 1].node);
    CU_ASSERT_NOT_EQUAL(plan.ranks[1].node, plan.ranks[33].node);
    akin_plan_cleanup(&plan);
    akin_node_cleanup(&node);
}

static void test_nics_down(void)
{
    akin_node_t node = topology_read(FOUR_GPUS);
    akin_job_t job = plan_job(2, 6, 1, 2, 4);
    /* Without its own NIC a GPU has the other one. */
    node.nics[1].state = AKIN_LINK_DOWN;
    akin_plan_t plan = plan_make(&job, &node);
    for (uint32_t r = 0; r < plan.n_ranks; r++)
        CU_ASSERT_STRING_EQUAL(plan.ranks[r].nic, "mlx5_0:1");
    akin_plan_cleanup(&plan);
    /* Without RDMA, Ethernet. */
    node.nics[0].state = AKIN_LINK_DOWN;
    plan = plan_make(&job, &node);
    for (uint32_t r = 1; r < plan.n_ranks; r++) {
        CU_ASSERT_FALSE(plan.ranks[r].is_rdma);
        CU_ASSERT_STRING_EQUAL(plan.ranks[r].nic,
                               plan.ranks[r].gpu < 2 ? "ens0np0" : "ens1np0");
    }
    akin_plan_cleanup(&plan);
    node.nics[2].state = node.nics[3].state = AKIN_LINK_DOWN;
    check_refused(&job, &node,
                  "all its NICs are down: mlx5_0, mlx5_1, ens0np0, ens1np0");
    check_refused(&job, &node, "node 0 (");
    /* A lone node needs none. */
    job = plan_job(1, 3, 1, 1, 4);
    plan = plan_make(&job, &node);
    CU_ASSERT_STRING_EQUAL(plan.ranks[1].nic, "");
    akin_plan_cleanup(&plan);
    akin_node_cleanup(&node);
}

static void test_hosts(void)
{
    akin_node_t node = topology_read(FOUR_GPUS);
    akin_job_t job = plan_job(2, 6, 1, 2, 4);
    job.hosts = "n1";
    check_refused(&job, &node,
                  "cluster.hosts names 1 node, but cluster.nodes is 2");
    job.hosts = "n1,n2,n3";
    check_refused(&job, &node, "names 3 nodes");
    job.hosts = "n1,,";
    check_refused(&job, &node, "name 2 is empty");
    job.hosts = "n1, n1";
    check_refused(&job, &node, "n1 is named twice");
    job.hosts = " n1 ,n2";
    akin_plan_t plan = plan_make(&job, &node);
    CU_ASSERT_STRING_EQUAL(plan.hosts[0], "n1");
    CU_ASSERT_STRING_EQUAL(plan.hosts[1], "n2");
    akin_plan_cleanup(&plan);
    akin_node_cleanup(&node);
}

static void test_nodes_differ(void)
{
    akin_node_t large = topology_read(MI300X), small = topology_read(ONE_NIC);
    const akin_node_t *nodes[] = {&large, &small};
    const char *hosts[] = {"big", "little"};
    akin_job_t job = plan_job(2, 6, 1, 2, 4);
    const akin_plan_params_t params = {&job, nodes, 2, hosts};
    akin_plan_t plan = {0};
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_plan_make(&params, &plan, &err), AKIN_OK);
    CU_ASSERT_STRING_EQUAL(plan.hosts[1], "little");
    akin_plan_cleanup(&plan);
    job.n_gpus = 5;
    CU_ASSERT_EQUAL(akin_plan_make(&params, &plan, &err), AKIN_ERR_CONFIG);
    check_text(&err, "node 1 (");
    check_text(&err, "one-nic.xml) has 4 GPUs");
    akin_node_cleanup(&large);
    akin_node_cleanup(&small);
}

static const runner_test_t tests[] = {
    {"gpus_short", test_gpus_short},     {"gpus_of_node", test_gpus_of_node},
    {"cores_short", test_cores_short},   {"cores_alone", test_cores_alone},
    {"nics_down", test_nics_down},       {"hosts", test_hosts},
    {"nodes_differ", test_nodes_differ},
};

RUNNER_MAIN("plan_refuse", tests)
