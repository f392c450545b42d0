/* Calibration: requests with their prompt and decode counts, in memory. */
#ifndef AKIN_ROUTING_CALIBRATION_H
#define AKIN_ROUTING_CALIBRATION_H

#include "routing/trace.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A request whose trace names no domain. */
#define AKIN_CALIBRATION_NO_DOMAIN UINT32_MAX

typedef struct akin_calibration_params {
    const uint32_t *records; /* [n_records] of the trace; NULL: all */
    uint32_t n_records;
    uint32_t prompt_tokens; /* rows that stand in for the prompt where the
                               trace does not know it; 0: none may */
    uint32_t min_tokens;    /* records with fewer rows are left out */
    uint32_t max_tokens; /* of a prompt, and of what follows it, that are taken;
                            0: all */
    bool no_counts;      /* lengths and domains alone */
} akin_calibration_params_t;

/** Everything is owned by the calibration. */
typedef struct akin_calibration {
    char *model; /* or NULL */
    uint32_t n_requests;
    uint32_t n_layers;
    uint32_t n_experts;
    uint32_t top_k;
    uint16_t *prefill;  /* [n_requests][n_layers][n_experts] counts, or NULL */
    uint16_t *decode;   /* the same shape, or NULL */
    uint32_t *n_prompt; /* [n_requests] tokens of the prefill counts */
    uint32_t *n_decode; /* [n_requests] tokens of the decode counts */
    uint32_t *records;  /* [n_requests] index in the trace */
    char **ids;         /* [n_requests] of the trace */
    uint32_t *domain;   /* [n_requests] or AKIN_CALIBRATION_NO_DOMAIN */
    char **domains;     /* [n_domains] names, in the order of the requests */
    uint32_t n_domains;
    uint32_t n_short; /* records left out, for having too few rows */
} akin_calibration_t;

/**
 * Count the experts of some records, prompt and decode apart. A record without
 * a row of decode is left out. For every layer the counts add up to
 * tokens x top_k (ALGORITHMS.md 1), or the record is refused.
 *
 * \param[in]  trace    borrowed; may be closed afterwards.
 * \param[in]  params
 * \param[out] calibration_p  owned by the caller.
 * \param[out] err            names the record and the way out.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: an index that the trace has not got or that comes
 *         twice, a prompt that is unknown while prompt_tokens is 0, no record
 *         left.
 * \return AKIN_ERR_RANGE: a record so long that a count passed 65,535.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_calibration_create(const akin_trace_t *trace,
                                      const akin_calibration_params_t *params,
                                      akin_calibration_t **calibration_p,
                                      akin_error_t *err) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akin_calibration_destroy(akin_calibration_t *calibration);

#ifdef __cplusplus
}
#endif

#endif
