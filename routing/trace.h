/* Trace: the experts that a model chose, token by token, for many requests. */
#ifndef AKIN_ROUTING_TRACE_H
#define AKIN_ROUTING_TRACE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A trace is two files. The index is a JSON object: `format`
 * ("akin-trace-1"), `model`, `layers`, `experts`, `top_k`, `id_bytes` (1 or
 * 2), `data` (file name beside the index) and `records`, each with `id`,
 * `offset` (bytes), `n_tokens`, `n_prompt` (rows of the prompt), and, where
 * known, `domain` and `arrival_s`. `prompt_stands_in` is true where rows of
 * decode were marked as the prompt's. The data are the records' rows: n_tokens
 * x layers x top_k expert ids of id_bytes, little-endian, in the gate's order.
 * Rows belong to one record; bytes between records are passed over.
 *
 * An index without `format` is read as one of the published route sets:
 * `layers` may be called `moe_layers`, `domain` `category`; ids take one byte,
 * the data lie in a file of the index's name that ends in .u8, and no row is
 * known to be of the prompt.
 */
typedef struct akin_trace akin_trace_t;

typedef struct akin_trace_shape {
    uint32_t n_layers;
    uint32_t n_experts;
    uint32_t top_k;
    uint32_t id_bytes; /* 1 or 2 */
} akin_trace_shape_t;

typedef struct akin_trace_record {
    const char *id;     /* unique in the trace */
    const char *domain; /* label of its kind, or "" */
    uint32_t n_tokens;  /* rows */
    uint32_t n_prompt;  /* the first rows that are the prompt's; 0: unknown */
    double arrival_s;   /* since the trace began; negative: unknown */
    uint64_t offset;    /* of its rows in the data, bytes */
} akin_trace_record_t;

/**
 * Map a trace and check it whole: the index, that the records lie inside the
 * data, that every row names top_k different experts of the model.
 *
 * \param[in]  path     of the index.
 * \param[out] trace_p  owned by the caller.
 * \param[out] err      names file, record and key.
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND, AKIN_ERR_IO
 * \return AKIN_ERR_FORMAT: not such a trace.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_trace_open(const char *path, akin_trace_t **trace_p,
                              akin_error_t *err) AKIN_MUST_CHECK;

/** Unmap and free; NULL is allowed. */
void akin_trace_close(akin_trace_t *trace);

const akin_trace_shape_t *akin_trace_shape(const akin_trace_t *trace);

/** Name of the model; "" if the index has none. */
const char *akin_trace_model(const akin_trace_t *trace);

/** Are the prompt rows only the first rows of decode, which flatter whatever
 * compares prompt and decode? */
int akin_trace_prompt_stands_in(const akin_trace_t *trace);

/** \return [*n_p], at least 1, borrowed from the trace. */
const akin_trace_record_t *akin_trace_records(const akin_trace_t *trace,
                                              uint32_t *n_p);

/**
 * Rows of a record as 16-bit ids.
 *
 * \param[in]  record  index, below the number of records.
 * \param[in]  first   first row; first + n is at most the record's n_tokens.
 * \param[in]  n       rows.
 * \param[out] routes  [n][n_layers][top_k]
 */
void akin_trace_routes(const akin_trace_t *trace, uint32_t record,
                       uint32_t first, uint32_t n, uint16_t *routes);

/**
 * Add how often each expert is chosen in some rows. A cell that would pass
 * 65,535 stays there.
 *
 * \param[in]     first, n  rows, as above.
 * \param[in,out] counts    [n_layers][n_experts]
 */
void akin_trace_count(const akin_trace_t *trace, uint32_t record,
                      uint32_t first, uint32_t n, uint16_t *counts);

#ifdef __cplusplus
}
#endif

#endif
