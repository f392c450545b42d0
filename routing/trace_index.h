/* Trace index: what the JSON file of a trace says. */
#ifndef AKIN_ROUTING_TRACE_INDEX_H
#define AKIN_ROUTING_TRACE_INDEX_H

#include "routing/trace.h"

#define AKINI_TRACE_FORMAT "akin-trace-1"

/** Zero is an empty index. */
typedef struct akini_trace_index {
    char *model;
    char *data; /* file name beside the index; NULL: named after the index */
    akin_trace_shape_t shape;
    int prompt_stands_in;
    akin_trace_record_t *records; /* [n_records] their texts lie in `texts` */
    uint32_t n_records;
    char *texts;
} akini_trace_index_t;

/**
 * Read an index of either layout; what it says of itself is consistent then:
 * ids are unique, no two records share bytes.
 *
 * \param[in]  text   [bytes] not terminated.
 * \param[in]  name   of the file, for messages.
 * \param[out] index  zero before; the caller's to clean up.
 * \return AKIN_OK, AKIN_ERR_FORMAT, AKIN_ERR_NOMEM
 */
akin_status_t akini_trace_index_parse(const char *text, size_t bytes,
                                      const char *name,
                                      akini_trace_index_t *index,
                                      akin_error_t *err) AKIN_MUST_CHECK;

void akini_trace_index_cleanup(akini_trace_index_t *index);

/** What an index says before its records, as JSON; NULL: out of memory, or a
 * model's name that is not UTF-8. */
struct json_t;
struct json_t *akini_trace_head_json(const akini_trace_index_t *index);

/** Read that of our own format. \param[out] err names the key. */
akin_status_t akini_trace_head_parse(const struct json_t *json,
                                     akini_trace_index_t *index,
                                     akin_error_t *err) AKIN_MUST_CHECK;

#endif
