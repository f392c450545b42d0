/* What `akin info --transports` shows. */
#ifndef AKIN_LAUNCH_INFO_TRANSPORTS_H
#define AKIN_LAUNCH_INFO_TRANSPORTS_H

/** Print what UCX has on this machine, and what the environment leaves of it,
 * as tables or as JSON. Gives the exit code. */
int akini_info_transports(int as_json);

#endif
