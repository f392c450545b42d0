/* Manual page of the simulation file. */
#ifndef AKIN_LAUNCH_SIM_PAGE_H
#define AKIN_LAUNCH_SIM_PAGE_H

#include <stdio.h>

/** Write akin.sim(5) as man(7) source. Failures are left to ferror(). */
void akini_sim_page_write(FILE *stream);

#endif
