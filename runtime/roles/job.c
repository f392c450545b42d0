/* Job: the table of keys and what the values must satisfy together. */
#include "roles/job.h"

#include "routing/policy.h"

#include <string.h>

const akin_config_row_t akin_job_rows[] = {
    {"model.path", AKIN_CONFIG_STRING, "", NULL, 0, 0, NULL,
     "Model directory: config.json, tokenizer.json and the weights."},
    {"model.name", AKIN_CONFIG_STRING, "", "", 0, 0, NULL,
     "Name that answers carry; empty: the last part of model.path."},
    {"engine.kind", AKIN_CONFIG_CHOICE, "", "cpu", 0, 0, "cpu",
     "Engine that runs the model steps."},
    {"engine.kernel", AKIN_CONFIG_CHOICE, "", "auto", 0, 0,
     "auto|avx512|avx2|portable",
     "Kernel path; auto takes the best one that every rank has."},
    {"engine.threads", AKIN_CONFIG_INT, "threads", "0", 0, 4096, NULL,
     "Threads of a rank's engine; 0 shares a host's cores among its ranks."},
    {"roles.prefill", AKIN_CONFIG_INT, "workers", "1", 1, 4096, NULL,
     "Prefill workers."},
    {"roles.decode", AKIN_CONFIG_INT, "workers", "1", 1, 4096, NULL,
     "Decode workers."},
    {"roles.ep", AKIN_CONFIG_INT, "ranks", "1", 1, 64, NULL,
     "Expert-parallel ranks per worker: they share its experts."},
    {"roles.prefill_ep", AKIN_CONFIG_INT, "ranks", "0", 0, 64, NULL,
     "Expert-parallel ranks per prefill worker; 0: as many as roles.ep."},
    {"roles.spare", AKIN_CONFIG_INT, "workers", "0", 0, 4096, NULL,
     "Workers that wait to take a lost one's place; with recovery.mode = "
     "\"spare\"."},
    {"kv.slab", AKIN_CONFIG_SIZE, "bytes", "256MiB", 1048576.0,
     17592186044416.0, NULL, "Memory for KV blocks on every worker rank."},
    {"kv.block_tokens", AKIN_CONFIG_INT, "tokens", "16", 8, 64, NULL,
     "Tokens per KV block: 8, 16, 32 or 64."},
    {"kv.prefix_cache", AKIN_CONFIG_BOOL, "", "true", 0, 0, NULL,
     "Keep full blocks for later prompts that begin alike."},
    {"kv.lease", AKIN_CONFIG_TIME, "", "30s", 1e6, 3.6e12, NULL,
     "How long a prefill worker keeps blocks that nobody released."},
    {"prefill.chunk_tokens", AKIN_CONFIG_INT, "tokens", "256", 1, 65536, NULL,
     "Prompt tokens of all requests in one prefill step."},
    {"decode.max_batch", AKIN_CONFIG_INT, "requests", "64", 1, 4096, NULL,
     "Most requests that a decode rank runs at a time."},
    {"ep.exchange", AKIN_CONFIG_CHOICE, "", "ucx", 0, 0, "ucx|mpi",
     "How the ranks of a worker swap rows. mpi: by collectives of the MPI "
     "library, which stays up, so that a rank's death ends the job."},
    {"ep.placement", AKIN_CONFIG_CHOICE, "", "auto", 0, 0,
     "auto|linear|round-robin|eplb|activation",
     "Which ranks of a worker hold which experts; auto: the maps of the fit if "
     "it has them for such workers, else activation with a fit that has decode "
     "rates (pbar), linear without. eplb and activation need "
     "such a fit. activation takes half of decode.max_batch for the usual "
     "batch of a step."},
    {"ep.replicas", AKIN_CONFIG_INT, "experts", "0", 0, 65536, NULL,
     "Slots of every layer for second copies of experts, shared among a "
     "worker's ranks."},
    {"ep.timeout", AKIN_CONFIG_TIME, "", "10s", 1e8, 3.6e12, NULL,
     "How long a worker's ranks wait for one of them before they give up."},
    {"ep.replace", AKIN_CONFIG_CHOICE, "", "off", 0, 0, "off|dry-run|on",
     "Place a layer of a decode worker anew, by the experts that its tokens "
     "chose of late, when that pays; dry-run counts and logs what it would do. "
     "Answers stay the same."},
    {"ep.replace_every", AKIN_CONFIG_INT, "steps", "1000", 2, 1e9, NULL,
     "Steps of a decode worker after which ep.replace looks for a change of "
     "one layer."},
    {"ep.replace_horizon", AKIN_CONFIG_TIME, "", "60s", 1e6, 8.64e13, NULL,
     "Time in which a change has to save more than moving the weights takes."},
    {"ep.replace_bandwidth", AKIN_CONFIG_SIZE, "bytes per second", "2GiB",
     1048576.0, 17592186044416.0, NULL,
     "How fast a decode worker takes the weights of experts."},
    {"ep.replace_force", AKIN_CONFIG_BOOL, "", "false", 0, 0, NULL,
     "Change a layer every time, paying or not, by one kind of placement after "
     "another: for tests."},
    {"router.max_in_flight", AKIN_CONFIG_INT, "requests", "1024", 1, 1048576,
     NULL, "Most requests inside the job; more wait in the input."},
    {"router.request_timeout", AKIN_CONFIG_TIME, "", "10min", 1e6, 8.64e13,
     NULL, "A request that takes longer from its prefill on fails."},
    {"router.grace", AKIN_CONFIG_TIME, "", "10s", 0, 3.6e12, NULL,
     "How long running requests may go on after SIGINT or SIGTERM."},
    {"router.retries", AKIN_CONFIG_INT, "times", "8", 0, 1000, NULL,
     "How often a request may begin again, elsewhere, before it fails."},
    {"router.socket", AKIN_CONFIG_STRING, "", "auto", 0, 0, NULL,
     "UNIX socket for akin ctl; auto: one in the user's runtime folder; empty: "
     "none."},
    {"net.heartbeat", AKIN_CONFIG_TIME, "", "500ms", 1e6, 6e10, NULL,
     "How often the router and a worker's rank show each other that they "
     "live."},
    {"net.heartbeat_timeout", AKIN_CONFIG_TIME, "", "2s", 1e7, 3.6e12, NULL,
     "A rank that is silent for longer is lost; its workers bear with the "
     "router for ten times as long."},
    {"recovery.mode", AKIN_CONFIG_CHOICE, "", "respawn", 0, 0,
     "respawn|spare|shrink",
     "What follows the loss of a worker. respawn: its ranks are started anew "
     "and take its place. spare: one of roles.spare takes its place, and the "
     "ranks that are started anew become spares. shrink: the job goes on with "
     "fewer."},
    {"recovery.max_respawns", AKIN_CONFIG_INT, "times", "5", 0, 1000000, NULL,
     "How often a rank is started anew within recovery.window."},
    {"recovery.window", AKIN_CONFIG_TIME, "", "10min", 1e6, 8.64e13, NULL,
     "Time in which recovery.max_respawns counts."},
    {"recovery.timeout", AKIN_CONFIG_TIME, "", "2min", 0, 8.64e13, NULL,
     "How long the job waits for a new worker where none of a role is left."},
    {"recovery.start_timeout", AKIN_CONFIG_TIME, "", "10min", 1e9, 8.64e13,
     NULL, "How long a rank that is started anew may take to be ready."},
    {"net.transfer_timeout", AKIN_CONFIG_TIME, "", "10s", 1e6, 3.6e12, NULL,
     "A KV transfer that takes longer is given up; the prompt is recomputed."},
    {"routing.prefill", AKIN_CONFIG_CHOICE, "", "prefix-hash", 0, 0,
     "prefix-hash|least-loaded", "How prompts are given to prefill workers."},
    {"routing.decode", AKIN_CONFIG_CHOICE, "", "auto", 0, 0,
     "auto|random|rr|jsq|p2c|domain|eldr-static|eldr|union|union-band|"
     "union-pull",
     "How requests are given to decode workers; auto: union-pull with a fit, "
     "union without. domain, eldr-static, eldr, union-band and union-pull need "
     "a fit."},
    {"routing.tau", AKIN_CONFIG_FLOAT, "", "0.1", 0, 2, NULL,
     "Width of the locality band, in cosine; unless set, the fit's own if it "
     "has one."},
    {"routing.pull", AKIN_CONFIG_FLOAT, "", "0.16", 0, 100, NULL,
     "Pull of the nearest centroids in union-pull: what a cosine of 1 is "
     "worth, "
     "in steps that activate every expert; unless set, the fit's own if it has "
     "one."},
    {"routing.fit", AKIN_CONFIG_STRING, "", "", 0, 0, NULL,
     "File that akin fit wrote for this model and number of decode workers; "
     "empty: none."},
    {"routing.seed", AKIN_CONFIG_INT, "", "0", 0, 9.007199254740992e15, NULL,
     "Seed of random choices of the policies."},
};

const size_t akin_job_n_rows = sizeof(akin_job_rows) / sizeof(akin_job_rows[0]);

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
    return check_recovery(config, job, err);
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
    };
    status = check(config, &job, err);
    if (status != AKIN_OK)
        return status;
    *job_p = job;
    return AKIN_OK;
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
