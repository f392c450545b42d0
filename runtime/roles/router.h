/* Router: takes requests from the batch input, gives them to prefill and
 * decode workers, and writes the answers. */
#ifndef AKIN_ROLES_ROUTER_H
#define AKIN_ROLES_ROUTER_H

#include "base/error.h"
#include "engine/model_config.h"
#include "engine/tokenizer.h"
#include "ep/placement.h"
#include "kv/block.h"
#include "net/net.h"
#include "roles/job.h"
#include "roles/message.h"
#include "roles/transports.h"
#include "routing/fit.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Files and switches of a batch run; strings are borrowed. */
typedef struct akin_router_batch {
    const char *input_path;   /* "-": standard input */
    const char *output_path;  /* "-": standard output */
    const char *summary_path; /* NULL: none */
    int resume;
    int ordered;
    int deterministic_ids;
} akin_router_batch_t;

/** A run that records which experts the tokens choose, and no answers; strings
 * are borrowed. Of the batch it takes input and resume. */
typedef struct akin_router_calibration {
    const char *trace_path; /* of the trace's index */
    uint32_t n_tokens;      /* of every answer */
    int as_json;            /* what is said at the end */
} akin_router_calibration_t;

/** What a router works with; everything is borrowed. */
typedef struct akin_router_params {
    const akin_job_t *job;
    const akin_router_batch_t *batch;
    const akin_router_calibration_t *calibration; /* NULL: a batch run */
    const akin_model_config_t *model;
    const akin_tokenizer_t *tokenizer;
    const akin_fit_t *fit;        /* akin_job_fit_read(); NULL: none */
    akin_placement_t *placements; /* [n_decode workers] NULL: of one rank
                                     each; ep.replace changes them */
    const akin_placement_t *prefill_placement; /* of all prefill workers;
                                                  NULL: likewise */
    const akin_message_identity_t *identities; /* [n_ranks] of the job, copied
                                                  when the run begins; NULL:
                                                  nobody can join later */
    const akin_kv_layout_t *layout;            /* of every worker's slots */
    uint32_t n_slots;                          /* of every worker rank */
    const char *kernel;                  /* path that all ranks agreed on */
    const akin_transports_t *transports; /* as they are when the run begins;
                                            NULL: not known */
} akin_router_params_t;

/** How a run ended. */
typedef struct akin_router_end {
    int exit_code; /* DESIGN.md section 9: 0, 1, 3 or 4 */
    uint64_t n_answered;
    uint64_t n_failed;
} akin_router_end_t;

typedef struct akin_router akin_router_t;

/**
 * From now on SIGINT, SIGTERM and SIGUSR1 ask the run to stop, one that has not
 * begun as well. A SIGINT or SIGTERM after that ends the process at once;
 * SIGUSR1 may come any number of times. Call before any thread exists.
 */
void akin_router_catch_signals(void);

/**
 * Open input and output, so that a mistake shows before any model is loaded.
 *
 * \param[out] router_p  owned by the caller.
 * \return AKIN_OK, or the status of akin_batch_input_open(),
 *         akin_batch_output_open() or akin_trace_writer_create();
 *         AKIN_ERR_INVALID: unknown policy; AKIN_ERR_NOMEM.
 */
akin_status_t akin_router_create(const akin_router_params_t *params,
                                 akin_router_t **router_p,
                                 akin_error_t *err) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akin_router_destroy(akin_router_t *router);

/**
 * Serve the batch to its end, tell the workers to stop, and say how it went:
 * the summary on stderr, or, of a trace, a line on stdout.
 *
 * \param[in]  net  with all workers as peers.
 * \param[out] end_p
 * \return AKIN_OK: end_p says how it went.
 * \return why the run was broken off; what was finished is in the output.
 */
akin_status_t akin_router_run(akin_router_t *router, akin_net_t *net,
                              akin_router_end_t *end_p,
                              akin_error_t *err) AKIN_MUST_CHECK;

/** Net events of the router; `arg` is the router. */
void akin_router_on_message(void *arg, uint32_t from, uint16_t type,
                            const void *payload, size_t bytes);
void akin_router_on_peer_lost(void *arg, uint32_t rank, akin_status_t status);

#ifdef __cplusplus
}
#endif

#endif
