/* Paths bed: a job whose ranks lie on hosts as a test says, and lanes between
 * them, through the codec that ranks use. */
#ifndef AKIN_TESTS_UNIT_PATHS_BED_H
#define AKIN_TESTS_UNIT_PATHS_BED_H

#include "roles/paths.h"
#include "roles/rank.h"

#include "runner.h"

#include <stdlib.h>
#include <string.h>

typedef struct paths_bed {
    akin_job_t job;
    akini_paths_t paths;
    akin_transports_t transports;
} paths_bed_t;

/** A host with one RDMA device, whose port is up. */
static inline akini_host_t paths_bed_host(const char *name)
{
    akini_host_t host = {.machine = 1,
                         .ipc = 1,
                         .node = AKIN_RANK_NO_NODE,
                         .has_shared_memory = 1,
                         .n_ports = 1,
                         .ports = {{"mlx5_0", 1, 1}}};
    (void)snprintf(host.name, sizeof(host.name), "%s", name);
    return host;
}

/** Lane of a rank to another one. */
typedef const char *(*paths_bed_lane_fn_t)(const akini_paths_t *paths,
                                           uint32_t from, uint32_t to);

/** Shared memory on one host, RDMA between hosts. */
static inline const char *paths_bed_good(const akini_paths_t *paths,
                                         uint32_t from, uint32_t to)
{
    return paths->host_of[from] == paths->host_of[to] ? "sysv/memory"
                                                      : "rc_mlx5/mlx5_0:1";
}

/** The hosts have names; lanes come with paths_bed_connect(). */
static inline void paths_bed_create(paths_bed_t *bed, uint32_t n_prefill,
                                    uint32_t n_decode, const char *const *names)
{
    *bed = (paths_bed_t){.job = {.n_prefill = n_prefill,
                                 .n_decode = n_decode,
                                 .ep = 1,
                                 .prefill_ep = 1}};
    akini_paths_t *paths = &bed->paths;
    paths->job = &bed->job;
    paths->n_ranks = 1 + n_prefill + n_decode;
    paths->hosts = calloc(paths->n_ranks, sizeof(*paths->hosts));
    paths->lanes = calloc(paths->n_ranks, sizeof(*paths->lanes));
    paths->host_of = calloc(paths->n_ranks, sizeof(*paths->host_of));
    CU_ASSERT_FATAL(paths->hosts != NULL && paths->lanes != NULL &&
                    paths->host_of != NULL);
    for (uint32_t r = 0; r < paths->n_ranks; r++)
        paths->hosts[r] = paths_bed_host(names[r]);
    akini_paths_count_hosts(paths);
}

static inline void paths_bed_connect(paths_bed_t *bed, paths_bed_lane_fn_t lane)
{
    akini_paths_t *paths = &bed->paths;
    for (uint32_t r = 1; r < paths->n_ranks; r++) {
        const int is_prefill = r <= bed->job.n_prefill;
        const uint32_t first = is_prefill ? 1 + bed->job.n_prefill : 1;
        const uint32_t n = is_prefill ? bed->job.n_decode : bed->job.n_prefill;
        const char *lanes[512];
        akin_packer_t packer = {0};
        for (uint32_t i = 0; i < n; i++)
            lanes[i] = lane(paths, r, first + i);
        akini_lanes_pack(&packer, lanes, n);
        akini_lanes_cleanup(&paths->lanes[r]);
        CU_ASSERT_EQUAL_FATAL(
            akini_lanes_unpack(packer.data, packer.bytes, n, &paths->lanes[r]),
            AKIN_OK);
        akin_packer_cleanup(&packer);
    }
    akini_paths_count(paths, &bed->transports);
}

/** The fall-back of a place as it is told; "" if there is none. */
static inline const char *paths_bed_told(paths_bed_t *bed,
                                         akin_pair_place_t place)
{
    static char text[512];
    text[0] = '\0';
    (void)akini_paths_describe_fallback(&bed->paths, &bed->transports, place,
                                        text, sizeof(text));
    return text;
}

#endif
