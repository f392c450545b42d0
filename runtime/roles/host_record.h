/* Host record: what each rank tells all others of where it runs. */
#ifndef AKIN_ROLES_HOST_RECORD_H
#define AKIN_ROLES_HOST_RECORD_H

#include "base/error.h"
#include "net/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

/* More ports of one host are left out. */
#define AKINI_HOST_PORTS 32
#define AKINI_HOST_TEXT 128

/** A port of an RDMA device. */
typedef struct akini_host_port {
    char device[32]; /* "mlx5_0" */
    uint32_t number; /* from 1 */
    int is_active;
} akini_host_port_t;

typedef struct akini_host {
    char name[65];
    uint64_t machine;                  /* of the kernel that runs: two hosts may
                                          have one name */
    uint64_t ipc;                      /* IPC namespace, on that machine */
    uint32_t node;                     /* the plan's, or AKIN_RANK_NO_NODE */
    char wanted[65];                   /* name that the plan has; "": any */
    char tls[AKINI_HOST_TEXT];         /* UCX_TLS; "": not set */
    char net_devices[AKINI_HOST_TEXT]; /* UCX_NET_DEVICES; "": not set */
    int has_shared_memory; /* UCX_MM_ERROR_HANDLING lets UCX take it */
    uint32_t n_ports;
    akini_host_port_t ports[AKINI_HOST_PORTS]; /* of all RDMA devices */
} akini_host_t;

/**
 * What this process knows of its host.
 *
 * \param[in]  infiniband  folder with an entry for each RDMA device, usually
 *                         AKINI_HOST_INFINIBAND.
 * \param[in]  wanted      NULL: any.
 * \param[out] host_p      texts that are too long are cut.
 */
void akini_host_read(const char *infiniband, uint32_t node, const char *wanted,
                     akini_host_t *host_p);

#define AKINI_HOST_INFINIBAND "/sys/class/infiniband"

void akini_host_pack(akin_packer_t *p, const akini_host_t *host);

/**
 * \param[in] data  [bytes] from another rank; untrusted.
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT: another version, or damaged.
 */
akin_status_t akini_host_unpack(const void *data, size_t bytes,
                                akini_host_t *host_p) AKIN_MUST_CHECK;

int akini_host_is_same(const akini_host_t *a, const akini_host_t *b);

/**
 * Whether ranks run where the plan has them: those of a node on one host, those
 * of different nodes on different ones, each on the one that the plan names.
 * Names may be short or full; a numeric address is not compared.
 *
 * \param[in]  hosts  [n_ranks]
 * \param[out] err    names a rank, its node, and the hosts.
 * \return AKIN_OK, AKIN_ERR_CONFIG
 */
akin_status_t akini_hosts_check_plan(const akini_host_t *hosts,
                                     uint32_t n_ranks,
                                     akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
