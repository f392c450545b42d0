/* Job: the keys of the job file and their values as the roles use them. */
#ifndef AKIN_ROLES_JOB_H
#define AKIN_ROLES_JOB_H

#include "base/config.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The table of keys. */
extern const akin_config_row_t akin_job_rows[];
extern const size_t akin_job_n_rows;

/** What ep.replace asks for. */
typedef enum akin_replace_mode {
    AKIN_REPLACE_OFF,
    AKIN_REPLACE_DRY_RUN, /* changes are proposed and counted, not made */
    AKIN_REPLACE_ON
} akin_replace_mode_t;

/** What follows the loss of a worker. */
typedef enum akin_recovery {
    AKIN_RECOVERY_RESPAWN,
    AKIN_RECOVERY_SPARE,
    AKIN_RECOVERY_SHRINK
} akin_recovery_t;

/** A job; strings are borrowed from the config. */
typedef struct akin_job {
    const char *model_path;
    const char *model_name; /* served name */
    const char *engine;
    const char *kernel;
    int n_threads;              /* 0: the cores of a rank */
    const char *modelled_model; /* of the modelled engine */
    const char *modelled_model_origin;
    const char *modelled_machine;
    const char *modelled_machine_origin;
    const char *modelled_trace; /* "": none */
    const char *modelled_trace_origin;
    uint32_t modelled_kv_scale;
    const char *modelled_kv_scale_origin;
    double modelled_slowdown;
    uint32_t n_prefill;
    uint32_t n_decode;
    uint32_t ep;                  /* ranks of a decode worker */
    uint32_t prefill_ep;          /* ranks of a prefill worker */
    const char *exchange;         /* "ucx", "mpi" */
    const char *placement;        /* as configured, maybe "auto" */
    const char *placement_origin; /* where it was set */
    const char *ep_origin;        /* where roles.ep was set */
    const char *prefill_ep_key;   /* the key that prefill_ep comes from */
    const char *prefill_ep_origin;
    uint32_t n_replicas; /* expert slots per layer beyond one per expert */
    int64_t ep_timeout_ns;
    akin_replace_mode_t replace; /* while serving */
    uint32_t replace_every;      /* steps of a worker */
    int replace_force;
    int64_t replace_horizon_ns;
    uint64_t replace_bandwidth; /* bytes per second */
    uint64_t slab_bytes;
    uint32_t block_tokens;
    int prefix_cache;
    int64_t lease_ns;
    uint32_t chunk_tokens;  /* prefill tokens per step */
    uint32_t max_batch;     /* requests of a rank in a decode step */
    uint32_t max_in_flight; /* requests admitted at a time */
    const char *prefill_policy;
    const char *decode_setting; /* as configured, maybe "auto" */
    const char *decode_policy;  /* one of akin_policy_names */
    double tau;                 /* width of the locality band */
    int has_tau;                /* tau was set; else a fit's own goes first */
    double pull;                /* of the nearest centroids */
    int has_pull;               /* likewise */
    const char *fit_path;       /* "": none */
    const char *fit_origin;     /* where fit_path was set */
    uint64_t seed;
    int64_t transfer_timeout_ns;
    int64_t request_timeout_ns;
    int64_t grace_ns;
    uint32_t n_spare;        /* workers that wait */
    uint32_t n_retries;      /* of a request */
    const char *socket_path; /* for akin ctl; "auto", "": none */
    int64_t heartbeat_ns;
    int64_t heartbeat_timeout_ns;
    akin_recovery_t recovery;
    uint32_t max_respawns; /* of a rank, within respawn_window_ns */
    int64_t respawn_window_ns;
    int64_t recovery_timeout_ns; /* to wait where a role has no worker */
    int64_t start_timeout_ns;    /* of a rank that is started anew */
    uint32_t n_nodes;            /* of the cluster */
    uint32_t n_gpus;             /* of a node, for ranks; 0: cores alone */
    const char *topology;        /* hwloc XML files, commas between them; "" */
    const char *topology_origin; /* where it was set */
    const char *hosts;           /* names, commas between them; "" */
    int oversubscribe;           /* ranks may share cores */
    int64_t time_limit_ns;       /* of a batch job */
    int64_t stop_before_ns;      /* its end */
    int require_rdma;            /* KV must not go over tcp */
    int probe;                   /* measure bandwidths at start */
    int record_routes; /* no key: set by whoever starts the job, on all ranks
                        * alike; workers send the router the experts of every
                        * token */
} akin_job_t;

/**
 * Read the values out and check what the table cannot: numbers that must fit
 * together.
 *
 * \param[in]  config  over akin_job_rows; must outlive the job.
 * \param[out] err     names the keys.
 * \return AKIN_OK
 * \return AKIN_ERR_CONFIG
 */
akin_status_t akin_job_read(const akin_config_t *config, akin_job_t *job_p,
                            akin_error_t *err) AKIN_MUST_CHECK;

/**
 * The name that answers carry and requests may name.
 *
 * \param[in]  name  of model.name; "": the last part of the path.
 * \param[in]  path  of model.path.
 * \param[out] out   [bytes] cut there, NUL-terminated.
 */
void akin_job_served_name(const char *name, const char *path, char *out,
                          size_t bytes);

typedef enum akin_job_role {
    AKIN_JOB_ROUTER,
    AKIN_JOB_PREFILL,
    AKIN_JOB_DECODE,
    AKIN_JOB_SPARE
} akin_job_role_t;

/** "router", "prefill", "decode", "spare". */
const char *akin_job_role_name(akin_job_role_t role);

/** A rank's place in the job when that starts; a rank that joins later, or a
 * spare one, may become another worker of as many ranks. */
typedef struct akin_job_place {
    akin_job_role_t role;
    uint32_t worker;  /* its worker, among those of its role */
    uint32_t first;   /* first rank of its group, the leader */
    uint32_t n_ranks; /* of the group; 1 for the router */
} akin_job_place_t;

akin_job_place_t akin_job_place(const akin_job_t *job, uint32_t rank);

/** Ranks of all prefill workers; they come behind the router's. */
uint32_t akin_job_n_prefill_ranks(const akin_job_t *job);
/** Ranks of all decode workers; they come behind those. */
uint32_t akin_job_n_decode_ranks(const akin_job_t *job);
/** Ranks of all spare workers; they come last. */
uint32_t akin_job_n_spare_ranks(const akin_job_t *job);
/** Whether MPI stays up until the job's end, so that a death ends it. */
int akin_job_keeps_mpi(const akin_job_t *job);
/** Ranks of the job: the router, prefill, decode and spare workers. */
uint32_t akin_job_n_ranks(const akin_job_t *job);

#ifdef __cplusplus
}
#endif

#endif
