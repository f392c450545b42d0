/* Trace writer: makes a trace record by record, durable and resumable. */
#ifndef AKIN_ROUTING_TRACE_WRITER_H
#define AKIN_ROUTING_TRACE_WRITER_H

#include "routing/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * While it is being made, a trace is its data file and a journal, PATH.part,
 * with one JSON line per record after a first line of the shape; a record
 * counts once its journal line is whole and its rows have the checksum that
 * stands there. akin_trace_writer_finish() writes the index and removes the
 * journal. Data of PATH x.json are x.u8 or, with ids of two bytes, x.u16.
 */
typedef struct akin_trace_writer akin_trace_writer_t;

typedef struct akin_trace_writer_params {
    const char *path; /* of the index */
    const char *model;
    akin_trace_shape_t shape; /* id_bytes 0: the least that holds n_experts */
    int prompt_stands_in;     /* n_prompt marks rows of decode */
    int resume; /* go on with a journal that was left; else one is an error */
} akin_trace_writer_params_t;

/**
 * \param[in]  params    texts are copied.
 * \param[out] writer_p  owned by the caller.
 * \param[out] err       names the file, and --resume where that is the way out.
 * \return AKIN_OK
 * \return AKIN_ERR_EXISTS: the index or foreign data exist, or a journal and
 *         resume is off.
 * \return AKIN_ERR_BUSY: another process is writing this trace.
 * \return AKIN_ERR_FORMAT: the journal is of another model or shape.
 * \return AKIN_ERR_INVALID: a shape out of range.
 * \return AKIN_ERR_NOT_FOUND, AKIN_ERR_FULL, AKIN_ERR_IO, AKIN_ERR_NOMEM
 */
akin_status_t akin_trace_writer_create(const akin_trace_writer_params_t *params,
                                       akin_trace_writer_t **writer_p,
                                       akin_error_t *err) AKIN_MUST_CHECK;

/** Close and free; without finish() the journal stays. NULL is allowed. */
void akin_trace_writer_destroy(akin_trace_writer_t *writer);

/** Does the trace hold a record of that id already? */
int akin_trace_writer_has(const akin_trace_writer_t *writer, const char *id);

/** Records so far, those of earlier runs included. */
uint32_t akin_trace_writer_count(const akin_trace_writer_t *writer);

/**
 * Append one record.
 *
 * \param[in] record  offset is ignored.
 * \param[in] routes  [n_tokens][n_layers][top_k]
 * \param[out] err    names the file, the record and the row.
 * \return AKIN_OK
 * \return AKIN_ERR_EXISTS: the id is there.
 * \return AKIN_ERR_INVALID: an id that is empty, not UTF-8 or above 4,096
 *         bytes (a domain likewise), no rows, n_prompt above n_tokens, an
 *         expert out of range or twice in a row; nothing was written.
 * \return AKIN_ERR_FULL, AKIN_ERR_IO, AKIN_ERR_NOMEM
 */
akin_status_t akin_trace_writer_append(akin_trace_writer_t *writer,
                                       const akin_trace_record_t *record,
                                       const uint16_t *routes,
                                       akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Make data and journal durable, write the index beside and rename it, remove
 * the journal. Records are in the order of their ids, so that equal
 * calibrations give equal indexes apart from the offsets.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: there is no record, so there is no trace.
 * \return AKIN_ERR_FULL, AKIN_ERR_IO, AKIN_ERR_NOMEM
 */
akin_status_t akin_trace_writer_finish(akin_trace_writer_t *writer,
                                       akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
