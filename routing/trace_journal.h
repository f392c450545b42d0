/* Trace journal: the lines that a trace is resumed from. */
#ifndef AKIN_ROUTING_TRACE_JOURNAL_H
#define AKIN_ROUTING_TRACE_JOURNAL_H

#include "routing/trace_index.h"

/**
 * The first line: what the index will say before its records.
 *
 * \return with its newline, to be freed; NULL: out of memory.
 */
char *akini_trace_journal_head(const akini_trace_index_t *index);

/** Line of a record; hash is of its rows. As above. */
char *akini_trace_journal_line(const akin_trace_record_t *record,
                               uint64_t hash);

/**
 * Take a record of the journal.
 *
 * \param[in] record  its texts are the callee's to copy.
 * \return AKIN_OK: go on
 * \return AKIN_ERR_FORMAT: the record does not count, nor what follows it
 * \return anything else ends the scan with that status
 */
typedef akin_status_t (*akini_trace_journal_fn_t)(
    void *arg, const akin_trace_record_t *record, uint64_t hash,
    akin_error_t *err);

/**
 * Go through the lines up to the first that is torn or wrong.
 *
 * \param[in]  text    [bytes]
 * \param[in]  name    of the file, for messages.
 * \param[in]  index   what the first line must say.
 * \param[out] keep_p  bytes up to there; 0: not even the first line is whole.
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT: the first line is of something else.
 * \return AKIN_ERR_NOMEM, or what `take` returned
 */
akin_status_t akini_trace_journal_scan(const char *text, size_t bytes,
                                       const char *name,
                                       const akini_trace_index_t *index,
                                       akini_trace_journal_fn_t take, void *arg,
                                       uint64_t *keep_p,
                                       akin_error_t *err) AKIN_MUST_CHECK;

#endif
