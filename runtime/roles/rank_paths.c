/* Rank paths: the exchange over MPI, and what rank 0 says of it. */
#include "roles/rank_paths.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

/* All ranks have come to the same verdict, from the same records. */
static akin_status_t agree(akini_self_t *self, akin_status_t status)
{
    const akin_error_t own = self->err;
    akin_status_t agreed = akin_boot_agree(self->boot, status, &self->err);
    if (status != AKIN_OK)
        self->err = own;
    return agreed;
}

akin_status_t akini_rank_swap(akini_self_t *self, akin_packer_t *packer,
                              unsigned char **blobs_p, size_t **offsets_p)
{
    *blobs_p = NULL;
    *offsets_p = NULL;
    akin_status_t status = packer->status;
    if (status != AKIN_OK)
        (void)akin_error_set(&self->err, status, "out of memory");
    status = akin_boot_agree(self->boot, status, &self->err);
    if (status == AKIN_OK)
        status = akin_boot_exchange(self->boot, packer->data, packer->bytes,
                                    blobs_p, offsets_p, &self->err);
    akin_packer_cleanup(packer);
    return status;
}

static akin_status_t read_hosts(akini_self_t *self, const unsigned char *blobs,
                                const size_t *offsets)
{
    akini_paths_t *paths = &self->paths;
    const uint32_t n = akin_boot_size(self->boot);
    paths->hosts = calloc(n, sizeof(*paths->hosts));
    paths->host_of = calloc(n, sizeof(*paths->host_of));
    paths->lanes = calloc(n, sizeof(*paths->lanes));
    if (paths->hosts == NULL || paths->host_of == NULL || paths->lanes == NULL)
        return akin_error_set(&self->err, AKIN_ERR_NOMEM, "out of memory");
    paths->n_ranks = n;
    for (uint32_t r = 0; r < n; r++)
        if (akini_host_unpack(blobs + offsets[r], offsets[r + 1] - offsets[r],
                              &paths->hosts[r]) != AKIN_OK)
            return akin_error_set(&self->err, AKIN_ERR_CONFIG,
                                  "rank %u runs another version of akin than "
                                  "rank %u: install the same one on all hosts",
                                  r, self->number);
    akini_paths_count_hosts(paths);
    return akini_hosts_check_plan(paths->hosts, n, &self->err);
}

akin_status_t akini_rank_tell_host(akini_self_t *self)
{
    akini_host_t own;
    akin_packer_t packer = {0};
    unsigned char *blobs;
    size_t *offsets;
    akini_host_read(AKINI_HOST_INFINIBAND, self->params->node,
                    self->params->host, &own);
    akini_host_pack(&packer, &own);
    akin_status_t status = akini_rank_swap(self, &packer, &blobs, &offsets);
    if (status == AKIN_OK)
        status = agree(self, read_hosts(self, blobs, offsets));
    free(blobs);
    free(offsets);
    return status;
}

/* The role on the other side of this rank's KV. */
static uint32_t n_kv_peers(const akini_paths_t *paths, uint32_t rank,
                           uint32_t *first_p)
{
    const akin_job_role_t role = akin_job_place(paths->job, rank).role;
    *first_p = 0;
    if (role == AKIN_JOB_PREFILL)
        return akini_paths_ranks(paths, AKIN_JOB_DECODE, first_p);
    if (role == AKIN_JOB_DECODE)
        return akini_paths_ranks(paths, AKIN_JOB_PREFILL, first_p);
    return 0;
}

static void pack_lanes(const akini_self_t *self, akin_packer_t *packer)
{
    uint32_t first;
    const uint32_t n = n_kv_peers(&self->paths, self->number, &first);
    const char **lanes = calloc(n > 0 ? n : 1, sizeof(*lanes));
    if (lanes == NULL) {
        packer->status = AKIN_ERR_NOMEM;
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        lanes[i] = akin_net_peer_lane(self->net, first + i);
    akini_lanes_pack(packer, lanes, n);
    free(lanes);
}

static akin_status_t read_lanes(akini_self_t *self, const unsigned char *blobs,
                                const size_t *offsets)
{
    akini_paths_t *paths = &self->paths;
    for (uint32_t r = 0; r < paths->n_ranks; r++) {
        uint32_t first;
        const uint32_t n = n_kv_peers(paths, r, &first);
        akin_status_t status =
            akini_lanes_unpack(blobs + offsets[r], offsets[r + 1] - offsets[r],
                               n, &paths->lanes[r]);
        if (status != AKIN_OK)
            return akin_error_set(&self->err, status,
                                  "what rank %u says of its lanes: %s", r,
                                  akin_status_string(status));
    }
    return AKIN_OK;
}

/* Fall-backs are told; one that the job does not allow ends it. */
static akin_status_t judge(akini_self_t *self)
{
    const akini_paths_t *paths = &self->paths;
    const akin_transports_t *all = &self->transports;
    const int is_router = self->place.role == AKIN_JOB_ROUTER;
    char text[sizeof(self->err.text)];
    if (is_router && akini_paths_print(paths, all, stderr) != AKIN_OK)
        AKIN_LOG(ROLES, WARN, "no memory to show what KV travels over");
    for (int place = 0; place < AKIN_PAIR_PLACES; place++) {
        if (!akini_paths_describe_fallback(paths, all, (akin_pair_place_t)place,
                                           text, sizeof(text)))
            continue;
        if (place == AKIN_PAIR_BETWEEN && self->job.require_rdma)
            return akin_error_set(&self->err, AKIN_ERR_CONFIG,
                                  "launch.require_rdma: %s", text);
        if (is_router)
            (void)fprintf(stderr, "akin: warning: %s\n", text);
    }
    return AKIN_OK;
}

akin_status_t akini_rank_tell_paths(akini_self_t *self)
{
    akin_packer_t packer = {0};
    unsigned char *blobs;
    size_t *offsets;
    self->paths.job = &self->job;
    pack_lanes(self, &packer);
    akin_status_t status = akini_rank_swap(self, &packer, &blobs, &offsets);
    if (status == AKIN_OK)
        status = agree(self, read_lanes(self, blobs, offsets));
    free(blobs);
    free(offsets);
    if (status != AKIN_OK)
        return status;
    akini_paths_count(&self->paths, &self->transports);
    return agree(self, judge(self));
}
