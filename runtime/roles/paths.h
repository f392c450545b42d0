/* Paths: what KV travels over between any two ranks of a job, and whether that
 * is what it should be. */
#ifndef AKIN_ROLES_PATHS_H
#define AKIN_ROLES_PATHS_H

#include "net/net.h"
#include "roles/host_record.h"
#include "roles/job.h"
#include "roles/transports.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef char akini_lane_t[AKIN_NET_LANE_BYTES];

/** Lanes of one rank to the ranks of the other role: of a prefill rank to all
 * decode ranks, of a decode rank to all prefill ranks. Others have none. */
typedef struct akini_lanes {
    uint32_t n_names;
    akini_lane_t *names; /* [n_names] each once */
    uint32_t n_peers;
    uint16_t *peers; /* [n_peers] index of the name */
} akini_lanes_t;

/**
 * \param[in] lanes  [n_lanes] of akin_net_peer_lane(), by rank of the peer.
 */
void akini_lanes_pack(akin_packer_t *p, const char *const *lanes,
                      uint32_t n_lanes);

/**
 * \param[in]  n_peers  that there have to be.
 * \param[out] lanes_p  for akini_lanes_cleanup(); empty on failure.
 * \return AKIN_OK, AKIN_ERR_NOMEM
 * \return AKIN_ERR_FORMAT: another version, damaged, or of other peers.
 */
akin_status_t akini_lanes_unpack(const void *data, size_t bytes,
                                 uint32_t n_peers,
                                 akini_lanes_t *lanes_p) AKIN_MUST_CHECK;

/** Idempotent on zeroed lanes. */
void akini_lanes_cleanup(akini_lanes_t *lanes);

/** What all ranks have told; borrows the job. */
typedef struct akini_paths {
    const akin_job_t *job;
    uint32_t n_ranks;
    akini_host_t *hosts;  /* [n_ranks] */
    akini_lanes_t *lanes; /* [n_ranks] */
    uint32_t n_hosts;
    uint32_t *host_of; /* [n_ranks] in order of their first rank */
} akini_paths_t;

/** Number the hosts; n_hosts and host_of follow from `hosts`. */
void akini_paths_count_hosts(akini_paths_t *paths);

typedef struct akini_pair {
    uint32_t prefill; /* ranks */
    uint32_t decode;
} akini_pair_t;

/** How many ranks the job has of a role, and the first of them. */
uint32_t akini_paths_ranks(const akini_paths_t *paths, akin_job_role_t role,
                           uint32_t *first_p);

akin_pair_place_t akini_paths_place(const akini_paths_t *paths,
                                    const akini_pair_t *pair);

/** The lane of one end of a pair to the other; borrowed. */
const char *akini_paths_lane(const akini_paths_t *paths,
                             const akini_pair_t *pair, akin_job_role_t end);

/** Whether that lane of that pair is not what it should be: shared memory on
 * one host; RDMA, or shared memory, between hosts. */
int akini_paths_is_fallback(const akini_paths_t *paths,
                            const akini_pair_t *pair);

/** Count them all; the probe stays as it was. */
void akini_paths_count(const akini_paths_t *paths,
                       akin_transports_t *transports);

/** "tcp/eth0" -> "tcp". */
void akini_lane_transport(const char *lane, char *name, size_t size);

/**
 * The pairs of a place that fall back: how many, one of them with both ends,
 * and why that may be.
 *
 * \param[out] text  [size]
 * \return non-zero if there are any.
 */
int akini_paths_describe_fallback(const akini_paths_t *paths,
                                  const akin_transports_t *transports,
                                  akin_pair_place_t place, char *text,
                                  size_t size);

/** The likely cause of a fall-back; paths_cause.c. */
void akini_paths_explain(const akini_paths_t *paths, const akini_pair_t *pair,
                         char *text, size_t size);

/** Both ends of a pair, for people: "rank 1 (prefill 0, host a, tcp/eth0) and
 * rank 3 (decode 0, host b, tcp/eth0)". */
void akini_paths_name_pair(const akini_paths_t *paths, const akini_pair_t *pair,
                           char *text, size_t size);

/**
 * Print what KV travels over: a line where that is the same for all pairs on
 * one host, a matrix of up to eight hosts with ranks of a role, else counts and
 * the hosts that differ.
 *
 * \return AKIN_OK, AKIN_ERR_NOMEM, AKIN_ERR_IO
 */
akin_status_t akini_paths_print(const akini_paths_t *paths,
                                const akin_transports_t *transports,
                                FILE *file) AKIN_MUST_CHECK;

/** Idempotent on zeroed paths. */
void akini_paths_cleanup(akini_paths_t *paths);

#ifdef __cplusplus
}
#endif

#endif
