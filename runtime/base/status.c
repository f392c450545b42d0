/* Status codes and their strings. */
#include "base/status.h"

#include <errno.h>

const char *akin_status_string(akin_status_t status)
{
    switch (status) {
#define AKIN_STATUS_CASE(name, text)                                           \
    case AKIN_##name:                                                          \
        return text;
        AKIN_STATUS_TABLE(AKIN_STATUS_CASE)
#undef AKIN_STATUS_CASE
    }
    return "unknown status";
}

akin_status_t akin_status_from_errno(int errno_value)
{
    switch (errno_value) {
    case ENOMEM:
        return AKIN_ERR_NOMEM;
    case ENOENT:
    case ENOTDIR:
        return AKIN_ERR_NOT_FOUND;
    case EEXIST:
        return AKIN_ERR_EXISTS;
    case EINVAL:
        return AKIN_ERR_INVALID;
    case ENOSPC:
    case EDQUOT:
        return AKIN_ERR_FULL;
    case ETIMEDOUT:
        return AKIN_ERR_TIMEOUT;
    default:
        return AKIN_ERR_IO;
    }
}
