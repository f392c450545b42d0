/* Key page: the keys of a table as a part of a manual page. */
#ifndef AKIN_LAUNCH_KEY_PAGE_H
#define AKIN_LAUNCH_KEY_PAGE_H

#include "base/config.h"

#include <stdio.h>

/** Write a paragraph for each key as man(7) source: those without a group, then
 * a section for each group. Failures are left to ferror(). */
void akini_key_page_write(const akin_config_row_t *rows, size_t n_rows,
                          FILE *stream);

#endif
