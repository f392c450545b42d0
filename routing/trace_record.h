/* Trace record: what the JSON of an index or a journal says of a request. */
#ifndef AKIN_ROUTING_TRACE_RECORD_H
#define AKIN_ROUTING_TRACE_RECORD_H

#include "routing/trace.h"

/* Bytes of an id, a domain or a name. */
#define AKINI_TRACE_MAX_TEXT 4096u

struct json_t;

/**
 * Read a whole number of an object.
 *
 * \param[out] err  names the key.
 * \return AKIN_OK, AKIN_ERR_FORMAT
 */
akin_status_t akini_trace_json_u32(const struct json_t *object, const char *key,
                                   uint32_t *value_p,
                                   akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Read a text of an object, borrowed from it. One that is not needed and
 * missing is "".
 */
akin_status_t akini_trace_json_text(const struct json_t *object,
                                    const char *key, int needed,
                                    const char **text_p,
                                    akin_error_t *err) AKIN_MUST_CHECK;

/** A record as it stands in an index; NULL: out of memory. */
struct json_t *akini_trace_record_json(const akin_trace_record_t *record);

/**
 * Read a record of our own format. The texts are borrowed from the JSON.
 *
 * \param[out] err  names the key.
 * \return AKIN_OK, AKIN_ERR_FORMAT
 */
akin_status_t akini_trace_record_parse(const struct json_t *json,
                                       akin_trace_record_t *record,
                                       akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Read a record of a published set. An id that is a number becomes a text in
 * the JSON, too.
 *
 * \return AKIN_OK, AKIN_ERR_FORMAT, AKIN_ERR_NOMEM
 */
akin_status_t
akini_trace_record_parse_foreign(struct json_t *json,
                                 akin_trace_record_t *record,
                                 akin_error_t *err) AKIN_MUST_CHECK;

/** Compare by id, for qsort() of pointers to records. */
int akini_trace_record_by_id(const void *a, const void *b);

#endif
