/* Paths: counting what KV travels over, and finding where it should not. */
#include "roles/paths.h"

#include <stdlib.h>
#include <string.h>

static const char *const place_names[AKIN_PAIR_PLACES] = {"on one host",
                                                          "between hosts"};

void akini_paths_count_hosts(akini_paths_t *paths)
{
    paths->n_hosts = 0;
    for (uint32_t r = 0; r < paths->n_ranks; r++) {
        uint32_t first = 0;
        while (!akini_host_is_same(&paths->hosts[first], &paths->hosts[r]))
            first++;
        paths->host_of[r] =
            first < r ? paths->host_of[first] : paths->n_hosts++;
    }
}

uint32_t akini_paths_ranks(const akini_paths_t *paths, akin_job_role_t role,
                           uint32_t *first_p)
{
    const uint32_t n_prefill = akin_job_n_prefill_ranks(paths->job);
    *first_p = role == AKIN_JOB_PREFILL ? 1 : 1 + n_prefill;
    return role == AKIN_JOB_PREFILL ? n_prefill
                                    : akin_job_n_decode_ranks(paths->job);
}

akin_pair_place_t akini_paths_place(const akini_paths_t *paths,
                                    const akini_pair_t *pair)
{
    return paths->host_of[pair->prefill] == paths->host_of[pair->decode]
               ? AKIN_PAIR_INSIDE
               : AKIN_PAIR_BETWEEN;
}

const char *akini_paths_lane(const akini_paths_t *paths,
                             const akini_pair_t *pair, akin_job_role_t end)
{
    const int is_prefill = end == AKIN_JOB_PREFILL;
    const uint32_t own = is_prefill ? pair->prefill : pair->decode;
    const uint32_t peer = is_prefill ? pair->decode : pair->prefill;
    const akini_lanes_t *lanes = &paths->lanes[own];
    uint32_t first;
    (void)akini_paths_ranks(
        paths, is_prefill ? AKIN_JOB_DECODE : AKIN_JOB_PREFILL, &first);
    return peer - first < lanes->n_peers
               ? lanes->names[lanes->peers[peer - first]]
               : "unknown";
}

void akini_lane_transport(const char *lane, char *name, size_t size)
{
    (void)snprintf(name, size, "%.*s", (int)strcspn(lane, "/"), lane);
}

static int is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return 1;
    return 0;
}

/* Whether KV may go over that lane. */
static int is_right(const char *lane, akin_pair_place_t place)
{
    static const char *const shared[] = {"sysv",     "posix", "xpmem",
                                         "cma",      "knem",  "cuda_ipc",
                                         "rocm_ipc", "ze_ipc"};
    static const char *const remote[] = {"rc_mlx5",  "rc_verbs", "dc_mlx5",
                                         "ud_mlx5",  "ud_verbs", "srd",
                                         "gga_mlx5", "ugni_rdma"};
    char name[AKIN_NET_LANE_BYTES];
    akini_lane_transport(lane, name, sizeof(name));
    /* Containers of one machine may have names of their own. */
    return is_one_of(name, shared, sizeof(shared) / sizeof(shared[0])) ||
           (place == AKIN_PAIR_BETWEEN &&
            is_one_of(name, remote, sizeof(remote) / sizeof(remote[0])));
}

int akini_paths_is_fallback(const akini_paths_t *paths,
                            const akini_pair_t *pair)
{
    const akin_pair_place_t place = akini_paths_place(paths, pair);
    return !is_right(akini_paths_lane(paths, pair, AKIN_JOB_PREFILL), place) ||
           !is_right(akini_paths_lane(paths, pair, AKIN_JOB_DECODE), place);
}

/* The counter of a transport; those that find no place share the last one. */
static akin_transport_t *transport_of(akin_transports_t *all, const char *lane)
{
    char name[sizeof(all->transports[0].name)];
    akini_lane_transport(lane, name, sizeof(name));
    uint32_t i = 0;
    while (i < all->n_transports && strcmp(all->transports[i].name, name) != 0)
        i++;
    if (i == AKIN_TRANSPORTS_MAX) {
        i--;
        (void)snprintf(name, sizeof(name), "other");
    }
    if (i == all->n_transports)
        all->n_transports++;
    (void)snprintf(all->transports[i].name, sizeof(name), "%s", name);
    return &all->transports[i];
}

/* The next pair; {0} comes before the first one, and 0 after the last. */
static int next_pair(const akini_paths_t *paths, akini_pair_t *pair)
{
    uint32_t first_prefill, first_decode;
    const uint32_t n_prefill =
        akini_paths_ranks(paths, AKIN_JOB_PREFILL, &first_prefill);
    const uint32_t n_decode =
        akini_paths_ranks(paths, AKIN_JOB_DECODE, &first_decode);
    if (n_prefill == 0 || n_decode == 0)
        return 0;
    if (pair->prefill == 0) {
        *pair = (akini_pair_t){first_prefill, first_decode};
        return 1;
    }
    if (++pair->decode == first_decode + n_decode) {
        pair->decode = first_decode;
        pair->prefill++;
    }
    return pair->prefill < first_prefill + n_prefill;
}

void akini_paths_count(const akini_paths_t *paths, akin_transports_t *all)
{
    akini_pair_t pair = {0};
    all->n_hosts = paths->n_hosts;
    all->n_transports = 0;
    for (int i = 0; i < AKIN_PAIR_PLACES; i++)
        all->n_fallbacks[i] = 0;
    memset(all->transports, 0, sizeof(all->transports));
    while (next_pair(paths, &pair)) {
        const akin_pair_place_t place = akini_paths_place(paths, &pair);
        const char *lane = akini_paths_lane(paths, &pair, AKIN_JOB_DECODE);
        transport_of(all, lane)->n_pairs[place]++;
        all->n_fallbacks[place] += akini_paths_is_fallback(paths, &pair) != 0;
    }
}

void akini_paths_name_pair(const akini_paths_t *paths, const akini_pair_t *pair,
                           char *text, size_t size)
{
    const akin_job_place_t prefill = akin_job_place(paths->job, pair->prefill);
    const akin_job_place_t decode = akin_job_place(paths->job, pair->decode);
    (void)snprintf(text, size,
                   "rank %u (prefill %u, host %s, %s) and rank %u (decode %u, "
                   "host %s, %s)",
                   pair->prefill, prefill.worker,
                   paths->hosts[pair->prefill].name,
                   akini_paths_lane(paths, pair, AKIN_JOB_PREFILL),
                   pair->decode, decode.worker, paths->hosts[pair->decode].name,
                   akini_paths_lane(paths, pair, AKIN_JOB_DECODE));
}

int akini_paths_describe_fallback(const akini_paths_t *paths,
                                  const akin_transports_t *all,
                                  akin_pair_place_t place, char *text,
                                  size_t size)
{
    akini_pair_t pair = {0};
    char ends[320], cause[256], name[32];
    uint64_t n_pairs = 0;
    for (uint32_t i = 0; i < all->n_transports; i++)
        n_pairs += all->transports[i].n_pairs[place];
    do
        if (!next_pair(paths, &pair))
            return 0;
    while (akini_paths_place(paths, &pair) != place ||
           !akini_paths_is_fallback(paths, &pair));
    const char *lane = akini_paths_lane(paths, &pair, AKIN_JOB_DECODE);
    if (is_right(lane, place))
        lane = akini_paths_lane(paths, &pair, AKIN_JOB_PREFILL);
    akini_lane_transport(lane, name, sizeof(name));
    akini_paths_name_pair(paths, &pair, ends, sizeof(ends));
    akini_paths_explain(paths, &pair, cause, sizeof(cause));
    (void)snprintf(text, size,
                   "KV %s goes over %s in %llu of %llu pairs, as between %s: "
                   "%s",
                   place_names[place], name,
                   (unsigned long long)all->n_fallbacks[place],
                   (unsigned long long)n_pairs, ends, cause);
    return 1;
}

void akini_paths_cleanup(akini_paths_t *paths)
{
    for (uint32_t r = 0; paths->lanes != NULL && r < paths->n_ranks; r++)
        akini_lanes_cleanup(&paths->lanes[r]);
    free(paths->hosts);
    free(paths->lanes);
    free(paths->host_of);
    *paths = (akini_paths_t){0};
}
