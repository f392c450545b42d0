/* Stepper: the engine thread of a worker. It runs one job at a time: a step
 * and the choice of a token for every span that wants one. */
#ifndef AKIN_ROLES_STEPPER_H
#define AKIN_ROLES_STEPPER_H

#include "base/error.h"
#include "engine/engine.h"
#include "roles/batch_format.h"
#include "roles/message.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One span of a job, and what comes of it. */
typedef struct akin_stepper_row {
    /* In; memory behind the pointers must not change until the job is back. */
    void *owner; /* the caller's, not looked at */
    const uint32_t *tokens;
    uint32_t n_tokens;
    uint32_t position;
    const uint32_t *slots;
    const akin_message_sampling_t *how; /* NULL: no token is chosen */
    const uint32_t *history;            /* tokens 0 .. position + n_tokens */
    /* Out. */
    uint32_t token; /* at position + n_tokens */
    akin_token_logprob_t logprob;
    uint16_t *routes; /* [n_tokens][n_layers][top_k], the stepper's own, until
                       * the next job; NULL unless they are kept */
} akin_stepper_row_t;

typedef struct akin_stepper_job {
    akin_stepper_row_t *rows; /* [n_rows], room for max_rows */
    uint32_t n_rows;
    /* Out. */
    akin_status_t status;
    int64_t ns;        /* of the step and the sampling */
    uint32_t n_tokens; /* tokens that went through the model */
    uint16_t *served;  /* [n_layers] distinct experts that this rank computed;
                        * the stepper's own */
} akin_stepper_job_t;

typedef struct akin_stepper akin_stepper_t;

typedef struct akin_stepper_params {
    akin_engine_t *engine;      /* borrowed, used by the engine thread only */
    const akin_kv_view_t *view; /* borrowed */
    uint32_t max_rows;          /* spans of a job */
    uint32_t max_tokens;        /* tokens of a job; 0: one per span */
    int count_routes;           /* keep counts of the experts chosen */
    int keep_routes;            /* give the experts chosen with every row */
    void (*wake)(void *arg);    /* called by the engine thread: a job is done */
    void *arg;
} akin_stepper_params_t;

/**
 * Start the engine thread.
 *
 * \param[out] stepper_p  owned by the caller.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_stepper_create(const akin_stepper_params_t *params,
                                  akin_stepper_t **stepper_p) AKIN_MUST_CHECK;

/** Wait for the step that is running, end the thread, free. NULL is allowed. */
void akin_stepper_destroy(akin_stepper_t *stepper);

/** The job to fill, or NULL while it is with the engine thread. */
akin_stepper_job_t *akin_stepper_job(akin_stepper_t *stepper);

/** Hand the job over. A rank of several may have no row in a step. */
void akin_stepper_submit(akin_stepper_t *stepper);

/** The job that is done, once; NULL: none. Then it may be filled anew. */
akin_stepper_job_t *akin_stepper_finished(akin_stepper_t *stepper);

/**
 * Counts of the experts that the rows of past jobs chose, since the last
 * take; for use between finished and submit only.
 *
 * \param[out] n_tokens_p  tokens that they cover.
 * \return [n_layers][n_experts], the stepper's own; forget them with
 *         akin_stepper_clear_counts().
 */
uint16_t *akin_stepper_counts(const akin_stepper_t *stepper,
                              uint32_t *n_tokens_p);
void akin_stepper_clear_counts(akin_stepper_t *stepper);

#ifdef __cplusplus
}
#endif

#endif
