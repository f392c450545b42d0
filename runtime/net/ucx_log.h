/* UCX log: what UCX itself says to the user. */
#ifndef AKIN_NET_UCX_LOG_H
#define AKIN_NET_UCX_LOG_H

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Have UCX say nothing but what ends the process: what it says of ranks that
 * died or cannot be reached, ranks say themselves, in words. A user who sets
 * UCX_LOG_LEVEL gets what he asks for. UCX has read its environment before
 * main(), so that a variable would come too late. Call before UCX is opened.
 */
void akini_ucx_log_hush(void);

#ifdef __cplusplus
}
#endif

#endif
