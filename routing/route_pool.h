/* Route pool: requests with the experts of all their tokens, made once and then
 * shared by any number of simulations. */
#ifndef AKIN_ROUTING_ROUTE_POOL_H
#define AKIN_ROUTING_ROUTE_POOL_H

#include "routing/route_generator.h"
#include "routing/trace.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_route_entry {
    uint32_t domain;    /* of the pool's */
    uint32_t n_prompt;  /* tokens, what the domain shares included */
    uint32_t n_output;  /* tokens, >= 1; the first one comes with the prompt */
    uint32_t n_counted; /* tokens of the prompt that its counts are of */
    double arrival_s;   /* in the trace; negative: unknown */
    size_t row;         /* of its first decode token; it has n_output - 1 */
} akin_route_entry_t;

/** It never changes after it is made, so that threads may share it. Everything
 * is owned by the pool. */
typedef struct akin_route_pool {
    uint32_t n_layers;
    uint32_t n_experts;
    uint32_t top_k;
    uint32_t id_bytes;      /* 1 up to 256 experts, else 2 */
    uint32_t shared_tokens; /* that prompts of a domain begin with */
    uint32_t n_entries;
    uint32_t n_domains;
    char **domains;              /* [n_domains] names; "": without a label */
    akin_route_entry_t *entries; /* [n_entries] */
    uint32_t *by_domain;         /* [n_entries] entries of the first domain,
                                    then of the second and so on */
    uint32_t *first;             /* [n_domains + 1] of each in by_domain */
    uint8_t *ids;                /* [rows][n_layers][top_k] of id_bytes */
    uint16_t *prompt_counts;     /* [n_entries][n_layers][n_experts], or NULL */
    uint16_t *decode_counts;     /* the same of all its decode tokens */
} akin_route_pool_t;

typedef struct akin_route_pool_params {
    uint32_t n_requests;     /* as many as there are domains or more */
    const double *shares;    /* [n_domains] parts of the domains, which need not
                                add up to 1; NULL: the workload's */
    uint64_t first;          /* number of the first request */
    uint32_t shared_tokens;  /* prompts of a domain begin with so many, the same
                                in all, besides their own */
    uint32_t counted_tokens; /* of a prompt that counts are of; 0: all */
    bool has_counts;
    uint64_t max_bytes; /* 0: no limit */
    uint32_t n_threads; /* 0: 1; the pool is the same */
    /** Called now and then; may be NULL. Non-zero: stop. */
    int (*progress)(void *arg, uint32_t n_done);
    void *arg;
} akin_route_pool_params_t;

/**
 * Draw requests and all of their tokens. The domains have the parts of the
 * shares as near as whole requests can, each at least one.
 *
 * \param[in]  generator  borrowed for the call.
 * \param[out] pool_p     owned by the caller.
 * \param[out] err        says what it would need, and what to lower.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: too few requests, more bytes than max_bytes, a
 *         prompt of more than AKIN_ROUTE_MAX_TOKENS.
 * \return AKIN_ERR_CANCELED: progress() stopped it.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_route_pool_generate(const akin_route_generator_t *generator,
                                       const akin_route_pool_params_t *params,
                                       akin_route_pool_t **pool_p,
                                       akin_error_t *err) AKIN_MUST_CHECK;

typedef struct akin_route_pool_trace {
    const uint32_t *records; /* [n_records] of the trace; NULL: all */
    uint32_t n_records;
    uint32_t prompt_tokens;  /* rows that stand in for a prompt that the trace
                                does not know; 0: none may */
    uint32_t counted_tokens; /* of a prompt that counts are of; 0: all */
    bool has_counts;
    uint64_t max_bytes; /* 0: no limit */
} akin_route_pool_trace_t;

/**
 * Requests of a trace, in its order; those without a row of decode are left
 * out. Counts end at 65,535.
 *
 * \param[in]  trace   borrowed for the call.
 * \param[out] pool_p  owned by the caller.
 * \return as akin_calibration_create(), and
 * \return AKIN_ERR_INVALID: more bytes than max_bytes.
 */
akin_status_t akin_route_pool_read(const akin_trace_t *trace,
                                   const akin_route_pool_trace_t *params,
                                   akin_route_pool_t **pool_p,
                                   akin_error_t *err) AKIN_MUST_CHECK;

/** NULL is allowed. */
void akin_route_pool_destroy(akin_route_pool_t *pool);

/** Experts of a layer x layers. */
static inline size_t akin_route_pool_cells(const akin_route_pool_t *pool)
{
    return (size_t)pool->n_layers * pool->n_experts;
}

/** Bytes of a token's ids. */
static inline size_t akin_route_pool_row_bytes(const akin_route_pool_t *pool)
{
    return (size_t)pool->n_layers * pool->top_k * pool->id_bytes;
}

/**
 * Add how often each expert is chosen in some decode tokens of a request;
 * counts stop at 65,535.
 *
 * \param[in]     first, n  first + n is at most its n_output - 1.
 * \param[in,out] counts    [n_layers][n_experts]
 */
void akin_route_pool_count(const akin_route_pool_t *pool, uint32_t entry,
                           uint32_t first, uint32_t n, uint16_t *counts);

#ifdef __cplusplus
}
#endif

#endif
