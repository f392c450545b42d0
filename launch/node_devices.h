/* Node devices: the GPUs and NICs of a topology, and how close they are. */
#ifndef AKIN_LAUNCH_NODE_DEVICES_H
#define AKIN_LAUNCH_NODE_DEVICES_H

#include "launch/node.h"

/* A machine with more of them is refused. */
enum { AKINI_NODE_MAX_GPUS = 1024, AKINI_NODE_MAX_NICS = 8192 };

/** The NUMA nodes of a topology that have cores of their own. */
typedef struct akini_node_numa {
    uint32_t n;
    hwloc_obj_t *nodes; /* [n] */
} akini_node_numa_t;

/**
 * Fill in the GPUs, NICs and closeness of a node.
 *
 * \param[in,out] node  its origin is set; for akin_node_cleanup() in any case.
 * \return AKIN_OK, AKIN_ERR_FORMAT, AKIN_ERR_NOMEM
 */
akin_status_t akini_node_devices_read(hwloc_topology_t topology,
                                      const akini_node_numa_t *numa,
                                      akin_node_t *node,
                                      akin_error_t *err) AKIN_MUST_CHECK;

/** State of a NIC of this machine, and what UCX calls it. */
void akini_node_link_read(akin_node_nic_t *nic);

#endif
