/* Rank: from the first MPI call to the last word of one rank of a job. */
#ifndef AKIN_ROLES_RANK_H
#define AKIN_ROLES_RANK_H

#include "base/error.h"
#include "net/supervisor.h"
#include "roles/router.h"

#ifdef __cplusplus
extern "C" {
#endif

/** In akin_rank_params_t: the rank runs wherever the launcher has put it. */
#define AKIN_RANK_NO_NODE UINT32_MAX

/** What the command line says; only rank 0 reads the job file. */
typedef struct akin_rank_params {
    const char *job_path;
    const char *const *settings; /* [n_settings] "key=value" */
    size_t n_settings;
    akin_router_batch_t batch;
    const akin_router_calibration_t *calibration; /* NULL: a batch run */
    /* The plan's: ranks of one node are to be on one host, those of others on
     * other hosts, and all ranks have a plan or none has. */
    uint32_t node;    /* of this rank, or AKIN_RANK_NO_NODE: there is no plan */
    const char *host; /* the name of that node, short or full; NULL: any */
    int n_threads;    /* of the engine unless the job says; 0: a share of the
                       * host's cores */
    /* Whether this rank could be put where the plan has it; where one could
     * not, the job ends at once with the message of the first such rank. */
    akin_status_t placed;
    akin_error_t placed_error;
} akin_rank_params_t;

/**
 * Read a job: defaults, file, AKIN_* environment, settings.
 *
 * \param[out] config_p  owned by the caller.
 * \param[out] job_p     borrows from the config.
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND, AKIN_ERR_IO, AKIN_ERR_CONFIG, AKIN_ERR_NOMEM
 */
akin_status_t akin_rank_read_job(const akin_rank_params_t *params,
                                 akin_config_t **config_p, akin_job_t *job_p,
                                 akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Say what SIGINT, SIGTERM and SIGUSR1 do in this rank: rank 0 stops in order,
 * the others leave them to it. Before any of them can come: a rank that is
 * lost while MPI starts would leave the others waiting there.
 */
void akin_rank_set_signals(void);

/**
 * Start MPI, agree on the job, load, wire up over UCX, end MPI, and serve in
 * this rank's role. Rank 0 prints what goes wrong.
 *
 * \return the rank's exit code: DESIGN.md section 9 on rank 0; on the others 0
 *         if rank 0 knows all about the end, else 1.
 */
int akin_rank_run(const akin_rank_params_t *params,
                  const akin_supervisor_life_t *life);

#ifdef __cplusplus
}
#endif

#endif
