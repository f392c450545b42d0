/* Cluster: the nodes that a plan is for, from the job file, hwloc's XML files,
 * this machine, or all machines of a job. */
#ifndef AKIN_LAUNCH_CLUSTER_H
#define AKIN_LAUNCH_CLUSTER_H

#include "launch/node.h"
#include "net/boot.h"
#include "roles/job.h"

/** Most topology files of a cluster. */
#define AKIN_CLUSTER_FILES 256

typedef struct akin_cluster_params {
    const akin_job_t *job;
    const char *job_path;     /* files that the job file names are beside it */
    const char *const *files; /* [n_files] instead of cluster.topology */
    size_t n_files;
} akin_cluster_params_t;

typedef struct akin_cluster {
    uint32_t n_nodes;
    const akin_node_t **nodes; /* [n_nodes] into `kinds` */
    uint32_t n_kinds;
    akin_node_t *kinds; /* [n_kinds] nodes that differ */
    char **hosts;       /* [n_nodes] where they were collected; or NULL */
} akin_cluster_t;

/**
 * Read the nodes. The last file stands for all nodes that follow; without any
 * each node is like this machine.
 *
 * \param[out] cluster_p  for akin_cluster_cleanup().
 * \param[out] err        names the file, or the key.
 * \return AKIN_OK
 * \return AKIN_ERR_CONFIG: more files than nodes.
 * \return what akin_node_read() returns.
 */
akin_status_t akin_cluster_read(const akin_cluster_params_t *params,
                                akin_cluster_t *cluster_p,
                                akin_error_t *err) AKIN_MUST_CHECK;

/**
 * The machines of an MPI job that has one rank on each, by rank, with their
 * names. All ranks call it; each gets the cluster.
 *
 * \return AKIN_OK; AKIN_ERR_CONFIG: two ranks are on one machine; what
 *         akin_node_read_text() returns.
 */
akin_status_t akin_cluster_collect(akin_boot_t *boot, akin_cluster_t *cluster_p,
                                   akin_error_t *err) AKIN_MUST_CHECK;

/** Idempotent on a zeroed cluster. */
void akin_cluster_cleanup(akin_cluster_t *cluster);

#endif
