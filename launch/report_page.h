/* Report page: the parts of a page, in HTML that needs nothing beside it. */
#ifndef AKIN_LAUNCH_REPORT_PAGE_H
#define AKIN_LAUNCH_REPORT_PAGE_H

#include "launch/report_input.h"

#include <stdio.h>

/** Write a whole page. A failed write is left to ferror() and fclose().
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM: the page is not whole.
 */
akin_status_t
akin_report_page(FILE *out, const akin_report_input_t *input) AKIN_MUST_CHECK;

/** Across files: its sections of charts. */
akin_status_t akini_report_charts(FILE *out, const akin_report_input_t *input)
    AKIN_MUST_CHECK;

/** Across files: the workers' load, and the experts that they use. */
akin_status_t akini_report_workers(FILE *out, const akin_report_input_t *input)
    AKIN_MUST_CHECK;

/** Across files: times against load. */
akin_status_t akini_report_against(FILE *out, const akin_report_input_t *input)
    AKIN_MUST_CHECK;

/** Across files: simulations with a drift, by thirds; nothing if there are
 * none. */
akin_status_t akini_report_phases(FILE *out, const akin_report_input_t *input)
    AKIN_MUST_CHECK;

/** Across files: a heading; a text where there is nothing to show. */
void akini_report_heading(FILE *out, const char *text);
void akini_report_none(FILE *out, const char *text);

/** Across files: the table of all figures, the facts of the files, and what a
 * reader must be warned of. */
void akini_report_table(FILE *out, const akin_report_input_t *input);
void akini_report_facts(FILE *out, const akin_report_input_t *input);
void akini_report_warnings(FILE *out, const akin_report_input_t *input);

#endif
