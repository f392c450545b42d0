/* Trace rows: the bytes of the experts that tokens chose. */
#ifndef AKIN_ROUTING_TRACE_ROWS_H
#define AKIN_ROUTING_TRACE_ROWS_H

#include "routing/trace.h"

/* As many cells as a signature may have. */
#define AKINI_TRACE_MAX_CELLS ((uint64_t)1 << 24)
#define AKINI_TRACE_MAX_EXPERTS 65536u

/** Of a row, at most 2^25. */
static inline size_t akini_trace_row_ids(const akin_trace_shape_t *shape)
{
    return (size_t)shape->n_layers * shape->top_k;
}

static inline size_t akini_trace_row_bytes(const akin_trace_shape_t *shape)
{
    return akini_trace_row_ids(shape) * shape->id_bytes;
}

/**
 * \param[in]  name  of the file or call, for the message.
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT: a number is out of range.
 */
akin_status_t akini_trace_shape_check(const akin_trace_shape_t *shape,
                                      const char *name,
                                      akin_error_t *err) AKIN_MUST_CHECK;

/** Bytes to ids. \param[out] ids [n_ids] */
void akini_trace_ids_unpack(const akin_trace_shape_t *shape,
                            const uint8_t *bytes, size_t n_ids, uint16_t *ids);

/** Ids to bytes. \param[out] bytes [n_ids x id_bytes] */
void akini_trace_ids_pack(const akin_trace_shape_t *shape, const uint16_t *ids,
                          size_t n_ids, uint8_t *bytes);

/** What checking rows needs; zero, then init. */
typedef struct akini_trace_checker {
    akin_trace_shape_t shape;
    uint32_t *seen; /* [n_experts] the last stamp of each */
    uint32_t stamp; /* of a row's layer; 0 only before the first */
    uint16_t *ids;  /* [n_layers][top_k] of one row */
} akini_trace_checker_t;

/** \return AKIN_OK, AKIN_ERR_NOMEM */
akin_status_t akini_trace_checker_init(const akin_trace_shape_t *shape,
                                       akini_trace_checker_t *checker,
                                       akin_error_t *err) AKIN_MUST_CHECK;

void akini_trace_checker_cleanup(akini_trace_checker_t *checker);

/**
 * Every layer of a row names top_k different experts of the model.
 *
 * \param[in]  ids     [n_layers][top_k]
 * \param[in]  row     its number, for the message.
 * \param[out] err     names row, layer and expert.
 * \return AKIN_OK, AKIN_ERR_FORMAT
 */
akin_status_t akini_trace_check_row(akini_trace_checker_t *checker,
                                    const uint16_t *ids, uint32_t row,
                                    akin_error_t *err) AKIN_MUST_CHECK;

/** The same of packed rows. \param[in] bytes [n_rows][row bytes] */
akin_status_t akini_trace_check_bytes(akini_trace_checker_t *checker,
                                      const uint8_t *bytes, uint32_t n_rows,
                                      akin_error_t *err) AKIN_MUST_CHECK;

#endif
