/* Job: the values of the keys and what they must satisfy together. */
#include "roles/job.h"

#include "routing/policy.h"

#include <stdio.h>
#include <string.h>

static uint32_t u32(const akin_config_t *config, const char *key)
{
    return (uint32_t)akin_config_int(config, key);
}

/* The policy that an automatic choice comes to. */
static const char *resolve_policy(const char *setting, const char *fit_path)
{
    if (strcmp(setting, "auto") != 0)
        return setting;
    return fit_path[0] != '\0' ? "union-pull" : "union";
}

static akin_replace_mode_t replace_mode(const char *name)
{
    if (strcmp(name, "off") == 0)
        return AKIN_REPLACE_OFF;
    return strcmp(name, "on") == 0 ? AKIN_REPLACE_ON : AKIN_REPLACE_DRY_RUN;
}

static akin_recovery_t recovery(const char *name)
{
    if (strcmp(name, "respawn") == 0)
        return AKIN_RECOVERY_RESPAWN;
    return strcmp(name, "spare") == 0 ? AKIN_RECOVERY_SPARE
                                      : AKIN_RECOVERY_SHRINK;
}

/* Spare workers, heartbeats and the exchange that forbids recovery. */
static akin_status_t check_recovery(const akin_config_t *config,
                                    const akin_job_t *job, akin_error_t *err)
{
    const int is_mpi = akin_job_keeps_mpi(job);
    if (job->n_spare > 0 && job->recovery != AKIN_RECOVERY_SPARE)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "%s: roles.spare is %u, but recovery.mode is "
                              "\"%s\": spare workers need recovery.mode = "
                              "\"spare\"",
                              akin_config_origin(config, "roles.spare"),
                              job->n_spare,
                              akin_config_string(config, "recovery.mode"));
    if (job->n_spare > 0 && job->prefill_ep != job->ep)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "%s: roles.spare is %u, but prefill workers have "
                              "%u ranks and decode workers %u: a spare worker "
                              "has to fit both, so make roles.prefill_ep and "
                              "roles.ep equal",
                              akin_config_origin(config, "roles.spare"),
                              job->n_spare, job->prefill_ep, job->ep);
    if (job->n_spare > 0 && is_mpi)
        return akin_error_set(
            err, AKIN_ERR_CONFIG,
            "%s: roles.spare is %u, but with ep.exchange = "
            "\"mpi\" a death ends the job: take \"ucx\" or no "
            "spare workers",
            akin_config_origin(config, "roles.spare"), job->n_spare);
    if (job->heartbeat_timeout_ns < 2 * job->heartbeat_ns)
        return akin_error_set(
            err, AKIN_ERR_CONFIG,
            "%s: net.heartbeat_timeout must be at least twice "
            "net.heartbeat",
            akin_config_origin(config, "net.heartbeat_timeout"));
    if (job->lease_ns < job->transfer_timeout_ns * 3 / 2)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "%s: kv.lease must be at least one and a half "
                              "times net.transfer_timeout, or blocks would end "
                              "under a reader",
                              akin_config_origin(config, "kv.lease"));
    return AKIN_OK;
}

/* What a batch job has for its work and for its end. */
static akin_status_t check_launch(const akin_config_t *config,
                                  const akin_job_t *job, akin_error_t *err)
{
    if (job->stop_before_ns >= job->time_limit_ns)
        return akin_error_set(
            err, AKIN_ERR_CONFIG,
            "%s: launch.stop_before must be less than "
            "launch.time_limit, or the job would stop at once",
            akin_config_origin(config, "launch.stop_before"));
    return AKIN_OK;
}

static akin_status_t check(const akin_config_t *config, const akin_job_t *job,
                           akin_error_t *err)
{
    if ((job->block_tokens & (job->block_tokens - 1)) != 0)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "%s: kv.block_tokens is %u: it must be 8, 16, "
                              "32 or 64",
                              akin_config_origin(config, "kv.block_tokens"),
                              job->block_tokens);
    if (job->n_replicas > 0 && job->ep == 1 && job->prefill_ep == 1)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "%s: ep.replicas is %u, but workers of one rank "
                              "hold every expert: leave it at 0 or raise "
                              "roles.ep",
                              akin_config_origin(config, "ep.replicas"),
                              job->n_replicas);
    if (job->replace != AKIN_REPLACE_OFF && job->ep == 1)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "%s: ep.replace is \"%s\", but decode workers of "
                              "one rank hold every expert: leave it off or "
                              "raise roles.ep",
                              akin_config_origin(config, "ep.replace"),
                              akin_config_string(config, "ep.replace"));
    if (akin_policy_needs_fit(job->decode_policy) && job->fit_path[0] == '\0')
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "%s: routing.decode is \"%s\", which needs a "
                              "fit: make one with akin calibrate and akin fit, "
                              "and name it in routing.fit",
                              akin_config_origin(config, "routing.decode"),
                              job->decode_policy);
    akin_status_t status = check_recovery(config, job, err);
    return status == AKIN_OK ? check_launch(config, job, err) : status;
}

akin_status_t akin_job_read(const akin_config_t *config, akin_job_t *job_p,
                            akin_error_t *err)
{
    akin_status_t status = akin_config_check(config, err);
    if (status != AKIN_OK)
        return status;
    const char *policy = akin_config_string(config, "routing.decode");
    const char *fit_path = akin_config_string(config, "routing.fit");
    const uint32_t ep = u32(config, "roles.ep");
    const uint32_t prefill_ep = u32(config, "roles.prefill_ep");
    const char *prefill_ep_key =
        prefill_ep != 0 ? "roles.prefill_ep" : "roles.ep";
    const akin_job_t job = {
        .model_path = akin_config_string(config, "model.path"),
        .model_name = akin_config_string(config, "model.name"),
        .engine = akin_config_string(config, "engine.kind"),
        .kernel = akin_config_string(config, "engine.kernel"),
        .n_threads = (int)akin_config_int(config, "engine.threads"),
        .modelled_model = akin_config_string(config, "modelled.model"),
        .modelled_model_origin = akin_config_origin(config, "modelled.model"),
        .modelled_machine = akin_config_string(config, "modelled.machine"),
        .modelled_machine_origin =
            akin_config_origin(config, "modelled.machine"),
        .modelled_trace = akin_config_string(config, "modelled.trace"),
        .modelled_trace_origin = akin_config_origin(config, "modelled.trace"),
        .modelled_kv_scale = u32(config, "modelled.kv_scale"),
        .modelled_kv_scale_origin =
            akin_config_origin(config, "modelled.kv_scale"),
        .modelled_slowdown = akin_config_float(config, "modelled.slowdown"),
        .n_prefill = u32(config, "roles.prefill"),
        .n_decode = u32(config, "roles.decode"),
        .ep = ep,
        .prefill_ep = prefill_ep != 0 ? prefill_ep : ep,
        .exchange = akin_config_string(config, "ep.exchange"),
        .placement = akin_config_string(config, "ep.placement"),
        .placement_origin = akin_config_origin(config, "ep.placement"),
        .ep_origin = akin_config_origin(config, "roles.ep"),
        .prefill_ep_key = prefill_ep_key,
        .prefill_ep_origin = akin_config_origin(config, prefill_ep_key),
        .n_replicas = u32(config, "ep.replicas"),
        .ep_timeout_ns = akin_config_ns(config, "ep.timeout"),
        .replace = replace_mode(akin_config_string(config, "ep.replace")),
        .replace_every = u32(config, "ep.replace_every"),
        .replace_force = akin_config_bool(config, "ep.replace_force"),
        .replace_horizon_ns = akin_config_ns(config, "ep.replace_horizon"),
        .replace_bandwidth = akin_config_bytes(config, "ep.replace_bandwidth"),
        .slab_bytes = akin_config_bytes(config, "kv.slab"),
        .block_tokens = u32(config, "kv.block_tokens"),
        .prefix_cache = akin_config_bool(config, "kv.prefix_cache"),
        .lease_ns = akin_config_ns(config, "kv.lease"),
        .chunk_tokens = u32(config, "prefill.chunk_tokens"),
        .max_batch = u32(config, "decode.max_batch"),
        .max_in_flight = u32(config, "router.max_in_flight"),
        .prefill_policy = akin_config_string(config, "routing.prefill"),
        .decode_setting = policy,
        .decode_policy = resolve_policy(policy, fit_path),
        .tau = akin_config_float(config, "routing.tau"),
        .pull = akin_config_float(config, "routing.pull"),
        .has_pull =
            strcmp(akin_config_origin(config, "routing.pull"), "default") != 0,
        .has_tau =
            strcmp(akin_config_origin(config, "routing.tau"), "default") != 0,
        .fit_path = fit_path,
        .fit_origin = akin_config_origin(config, "routing.fit"),
        .seed = (uint64_t)akin_config_int(config, "routing.seed"),
        .transfer_timeout_ns = akin_config_ns(config, "net.transfer_timeout"),
        .request_timeout_ns = akin_config_ns(config, "router.request_timeout"),
        .grace_ns = akin_config_ns(config, "router.grace"),
        .n_spare = u32(config, "roles.spare"),
        .n_retries = u32(config, "router.retries"),
        .socket_path = akin_config_string(config, "router.socket"),
        .heartbeat_ns = akin_config_ns(config, "net.heartbeat"),
        .heartbeat_timeout_ns = akin_config_ns(config, "net.heartbeat_timeout"),
        .recovery = recovery(akin_config_string(config, "recovery.mode")),
        .max_respawns = u32(config, "recovery.max_respawns"),
        .respawn_window_ns = akin_config_ns(config, "recovery.window"),
        .recovery_timeout_ns = akin_config_ns(config, "recovery.timeout"),
        .start_timeout_ns = akin_config_ns(config, "recovery.start_timeout"),
        .n_nodes = u32(config, "cluster.nodes"),
        .n_gpus = u32(config, "cluster.gpus"),
        .topology = akin_config_string(config, "cluster.topology"),
        .topology_origin = akin_config_origin(config, "cluster.topology"),
        .hosts = akin_config_string(config, "cluster.hosts"),
        .oversubscribe = akin_config_bool(config, "launch.oversubscribe"),
        .time_limit_ns = akin_config_ns(config, "launch.time_limit"),
        .stop_before_ns = akin_config_ns(config, "launch.stop_before"),
        .require_rdma = akin_config_bool(config, "launch.require_rdma"),
        .probe = akin_config_bool(config, "launch.probe"),
    };
    status = check(config, &job, err);
    if (status != AKIN_OK)
        return status;
    *job_p = job;
    return AKIN_OK;
}

void akin_job_served_name(const char *name, const char *path, char *out,
                          size_t bytes)
{
    size_t n = strlen(name);
    if (n == 0) {
        n = strlen(path);
        while (n > 1 && path[n - 1] == '/')
            n--;
        name = path + n;
        while (name > path && name[-1] != '/')
            name--;
        n -= (size_t)(name - path);
    }
    (void)snprintf(out, bytes, "%.*s", (int)n, name);
}

uint32_t akin_job_n_prefill_ranks(const akin_job_t *job)
{
    return job->n_prefill * job->prefill_ep;
}

uint32_t akin_job_n_decode_ranks(const akin_job_t *job)
{
    return job->n_decode * job->ep;
}

uint32_t akin_job_n_spare_ranks(const akin_job_t *job)
{
    return job->n_spare * job->ep;
}

uint32_t akin_job_n_ranks(const akin_job_t *job)
{
    return 1 + akin_job_n_prefill_ranks(job) + akin_job_n_decode_ranks(job) +
           akin_job_n_spare_ranks(job);
}

int akin_job_keeps_mpi(const akin_job_t *job)
{
    return (job->ep > 1 || job->prefill_ep > 1) &&
           strcmp(job->exchange, "mpi") == 0;
}

akin_job_place_t akin_job_place(const akin_job_t *job, uint32_t rank)
{
    const uint32_t first_decode = 1 + akin_job_n_prefill_ranks(job);
    const uint32_t first_spare = first_decode + akin_job_n_decode_ranks(job);
    if (rank == 0)
        return (akin_job_place_t){.role = AKIN_JOB_ROUTER, .n_ranks = 1};
    akin_job_role_t role = AKIN_JOB_SPARE;
    uint32_t start = first_spare, n_ranks = job->ep;
    if (rank < first_decode) {
        role = AKIN_JOB_PREFILL;
        start = 1;
        n_ranks = job->prefill_ep;
    } else if (rank < first_spare) {
        role = AKIN_JOB_DECODE;
        start = first_decode;
    }
    const uint32_t worker = (rank - start) / n_ranks;
    return (akin_job_place_t){.role = role,
                              .worker = worker,
                              .first = start + worker * n_ranks,
                              .n_ranks = n_ranks};
}

const char *akin_job_role_name(akin_job_role_t role)
{
    static const char *const names[] = {"router", "prefill", "decode", "spare"};
    return names[role];
}
