/* UCX log: changes options of UCX that it has read at its start. */
#include "net/ucx_log.h"

#include "base/log.h"

#include <stdlib.h>
#include <ucs/config/global_opts.h>

void akini_ucx_log_hush(void)
{
    /* Variable, name without its prefix, value. */
    static const char *const options[][3] = {
        {"UCX_LOG_LEVEL", "LOG_LEVEL", "fatal"},
        {"UCX_WARN_UNUSED_ENV_VARS", "WARN_UNUSED_ENV_VARS", "n"},
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (getenv(options[i][0]) == NULL &&
            ucs_global_opts_set_value(options[i][1], options[i][2]) != UCS_OK)
            AKIN_LOG(NET, DEBUG, "UCX does not take %s", options[i][0]);
}
