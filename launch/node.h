/* Node: what a machine of the cluster has for ranks: cores, GPUs and NICs, and
 * how close these are to each other. */
#ifndef AKIN_LAUNCH_NODE_H
#define AKIN_LAUNCH_NODE_H

#include "base/error.h"

#include <hwloc.h>
#include <stddef.h>
#include <stdint.h>

typedef enum akin_link_state {
    AKIN_LINK_UNKNOWN, /* not of this machine */
    AKIN_LINK_UP,
    AKIN_LINK_DOWN
} akin_link_state_t;

/** How two devices reach each other, the closest one last. */
typedef enum akin_closeness {
    AKIN_CLOSE_SYSTEM, /* across NUMA nodes */
    AKIN_CLOSE_NUMA,   /* through the memory of one NUMA node */
    AKIN_CLOSE_HOST,   /* below one PCIe host bridge */
    AKIN_CLOSE_SWITCH  /* below one PCIe switch */
} akin_closeness_t;

typedef struct akin_node_core {
    uint32_t numa;      /* index of its NUMA node */
    hwloc_bitmap_t pus; /* its SMT siblings, by operating system index */
} akin_node_core_t;

typedef struct akin_node_gpu {
    char name[32];  /* "rsmi3", "nvml0", or a PCI address */
    char model[64]; /* "": unknown */
    char pci[16];   /* "0000:c7:00.0" */
    uint32_t numa;
    uint64_t memory_bytes; /* 0: unknown */
} akin_node_gpu_t;

typedef struct akin_node_nic {
    char device[48]; /* as UCX_NET_DEVICES takes it: "mlx5_0:1", "eth0" */
    char name[32];   /* of the operating system: "mlx5_0", "eth0" */
    char pci[16];    /* "": none */
    uint32_t numa;
    int is_rdma;
    akin_link_state_t state;
    float link_gbs; /* of its PCIe link, 1e9 bytes per second; 0: unknown */
} akin_node_nic_t;

typedef struct akin_node {
    char *origin; /* "this machine" or the file, for messages */
    uint32_t n_numa;
    uint32_t n_cores, n_gpus, n_nics;
    akin_node_core_t *cores; /* in hwloc's order, neighbours side by side */
    akin_node_gpu_t *gpus;   /* in PCI order, as HIP and CUDA number them */
    akin_node_nic_t *nics;   /* RDMA devices first, then in PCI order */
    uint8_t *closeness;      /* [n_gpus * n_nics] akin_closeness_t */
} akin_node_t;

/**
 * Read a node from this machine, restricted to the cores that this process may
 * use, or from a file or a text of hwloc's XML (versions 2.x).
 *
 * \param[in]  path    NULL: this machine.
 * \param[out] node_p  for akin_node_cleanup().
 * \param[out] err     names the file and the way out.
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND: no such file; AKIN_ERR_IO
 * \return AKIN_ERR_FORMAT: not such XML, of another major version of hwloc, or
 *         of a machine without cores.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_node_read(const char *path, akin_node_t *node_p,
                             akin_error_t *err) AKIN_MUST_CHECK;

/** The same from a text; `origin` stands for the file in messages. */
akin_status_t akin_node_read_text(const char *text, size_t bytes,
                                  const char *origin, akin_node_t *node_p,
                                  akin_error_t *err) AKIN_MUST_CHECK;

/**
 * This machine as hwloc XML, for akin_node_read_text() elsewhere.
 *
 * \param[out] text_p  malloc'ed; free().
 * \return AKIN_OK, AKIN_ERR_IO, AKIN_ERR_NOMEM
 */
akin_status_t akin_node_export(char **text_p, size_t *bytes_p,
                               akin_error_t *err) AKIN_MUST_CHECK;

/** Idempotent on a zeroed node. */
void akin_node_cleanup(akin_node_t *node);

#endif
