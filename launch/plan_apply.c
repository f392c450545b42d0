/* Plan apply: affinity and environment of one rank, and what they need. */
#include "launch/plan_apply.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Hardware threads that a mask of the kernel is asked for. */
#define MAX_CPUS 65536

static const char *host(void)
{
    static char name[256];
    (void)gethostname(name, sizeof(name) - 1);
    return name;
}

static akin_status_t get_affinity(hwloc_bitmap_t cpus)
{
    const size_t bytes = CPU_ALLOC_SIZE(MAX_CPUS);
    cpu_set_t *mask = CPU_ALLOC(MAX_CPUS);
    if (mask == NULL)
        return AKIN_ERR_NOMEM;
    akin_status_t status =
        sched_getaffinity(0, bytes, mask) == 0 ? AKIN_OK : AKIN_ERR_IO;
    hwloc_bitmap_zero(cpus);
    for (unsigned c = 0; status == AKIN_OK && c < MAX_CPUS; c++)
        if (CPU_ISSET_S(c, bytes, mask))
            (void)hwloc_bitmap_set(cpus, c);
    CPU_FREE(mask);
    return status;
}

static void set_affinity(hwloc_const_bitmap_t cpus)
{
    const size_t bytes = CPU_ALLOC_SIZE(MAX_CPUS);
    cpu_set_t *mask = CPU_ALLOC(MAX_CPUS);
    if (mask == NULL)
        return;
    CPU_ZERO_S(bytes, mask);
    int c = -1;
    while ((c = hwloc_bitmap_next(cpus, c)) >= 0)
        CPU_SET_S((size_t)c, bytes, mask);
    /* The kernel leaves out what a control group forbids: see what came. */
    (void)sched_setaffinity(0, bytes, mask);
    CPU_FREE(mask);
}

static akin_status_t bind_cores(const akin_plan_rank_t *r, akin_error_t *err)
{
    hwloc_bitmap_t usable = hwloc_bitmap_alloc();
    char *wanted = NULL, *there = NULL;
    akin_status_t status = usable != NULL ? AKIN_OK : AKIN_ERR_NOMEM;
    set_affinity(r->cores);
    if (status == AKIN_OK)
        status = get_affinity(usable);
    if (status == AKIN_OK && !hwloc_bitmap_isequal(usable, r->cores)) {
        (void)hwloc_bitmap_list_asprintf(&wanted, r->cores);
        (void)hwloc_bitmap_list_asprintf(&there, usable);
        status = akin_error_set(
            err, AKIN_ERR_CONFIG,
            "the plan has this rank on cores %s of %s, but of these it may use "
            "%s only: have the batch system give the job whole nodes, or make "
            "the plan anew from the topology inside the job",
            wanted, host(),
            hwloc_bitmap_isincluded(usable, r->cores) ? there : "none");
    }
    if (status == AKIN_ERR_NOMEM || status == AKIN_ERR_IO)
        status = akin_error_set(err, status, "cores of %s: %s", host(),
                                akin_status_string(status));
    free(wanted);
    free(there);
    hwloc_bitmap_free(usable);
    return status;
}

/* The kernel's number of a device's maker; 0: unknown. */
static unsigned vendor_of(const char *pci)
{
    char path[96], text[16] = "";
    (void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/vendor", pci);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    (void)!read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    return (unsigned)strtoul(text, NULL, 16);
}

#define VENDOR_AMD 0x1002
#define VENDOR_NVIDIA 0x10de

static akin_status_t use_gpu(const akin_plan_rank_t *r, const akin_node_t *node,
                             akin_error_t *err)
{
    char number[16];
    if (r->gpu >= node->n_gpus)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "the plan gives this rank GPU %u of %s, which "
                              "has %u: make the plan from that machine's "
                              "topology, or start the job elsewhere",
                              r->gpu, host(), node->n_gpus);
    const akin_node_gpu_t *gpu = &node->gpus[r->gpu];
    const unsigned vendor = vendor_of(gpu->pci);
    const char *door = vendor == VENDOR_AMD      ? "/dev/kfd"
                       : vendor == VENDOR_NVIDIA ? "/dev/nvidiactl"
                                                 : NULL;
    if (door != NULL && access(door, R_OK | W_OK) != 0)
        return akin_error_set(
            err, AKIN_ERR_CONFIG,
            "the plan gives this rank GPU %u (%s) of %s, but %s cannot be "
            "opened there: ask the batch system for the GPUs, or have your "
            "user put into the group that owns it",
            r->gpu, gpu->name, host(), door);
    (void)snprintf(number, sizeof(number), "%u", r->gpu);
    /* One variable for each maker: HIP's own would count within ROCr's. */
    (void)setenv("ROCR_VISIBLE_DEVICES", number, 1);
    (void)setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    (void)setenv("CUDA_VISIBLE_DEVICES", number, 1);
    return AKIN_OK;
}

static akin_status_t use_nic(const akin_plan_rank_t *r, const akin_node_t *node,
                             akin_error_t *err)
{
    for (uint32_t n = 0; n < node->n_nics; n++) {
        const akin_node_nic_t *nic = &node->nics[n];
        if (strcmp(nic->device, r->nic) != 0)
            continue;
        if (nic->state == AKIN_LINK_DOWN)
            return akin_error_set(err, AKIN_ERR_CONFIG,
                                  "the plan gives this rank the NIC %s of %s, "
                                  "which is down: bring it up, or make the "
                                  "plan anew, which leaves it out",
                                  r->nic, host());
        (void)setenv("UCX_NET_DEVICES", r->nic, 0);
        return AKIN_OK;
    }
    return akin_error_set(err, AKIN_ERR_CONFIG,
                          "the plan gives this rank the NIC %s, which %s does "
                          "not have: make the plan from that machine's "
                          "topology, or start the job elsewhere",
                          r->nic, host());
}

static akin_status_t use_devices(const akin_plan_rank_t *r, akin_error_t *err)
{
    akin_node_t node;
    if (r->gpu == AKIN_PLAN_NO_GPU && r->nic[0] == '\0')
        return AKIN_OK;
    akin_status_t status = akin_node_read(NULL, &node, err);
    if (status != AKIN_OK)
        return status;
    if (r->gpu != AKIN_PLAN_NO_GPU)
        status = use_gpu(r, &node, err);
    if (status == AKIN_OK && r->nic[0] != '\0')
        status = use_nic(r, &node, err);
    akin_node_cleanup(&node);
    return status;
}

akin_status_t akin_plan_apply(const akin_plan_t *plan, uint32_t rank,
                              uint32_t n_ranks, akin_error_t *err)
{
    char threads[16];
    if (plan->n_ranks != n_ranks)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "the plan has %u ranks, but the job was started "
                              "with %u: make the plan anew from its job file",
                              plan->n_ranks, n_ranks);
    const akin_plan_rank_t *r = &plan->ranks[rank];
    /* The machine is read first: hwloc sees what this process may use. */
    akin_status_t status = use_devices(r, err);
    if (status == AKIN_OK)
        status = bind_cores(r, err);
    (void)snprintf(threads, sizeof(threads), "%u", r->n_cores);
    (void)setenv("OMP_NUM_THREADS", threads, 0);
    return status;
}
