/* Manual page of the job file, from the table of keys. */
#ifndef AKIN_LAUNCH_INFO_CONF_PAGE_H
#define AKIN_LAUNCH_INFO_CONF_PAGE_H

#include <stdio.h>

/** Write akin.conf(5) as man(7) source; errors of the stream are the caller's
 * to look at. */
void akini_info_conf_page_write(FILE *stream);

#endif
