/* Error text: formatting into the caller's buffer. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

akin_status_t akin_error_set(akin_error_t *err, akin_status_t status,
                             const char *format, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(err->text, sizeof(err->text), format, args);
        va_end(args);
    }
    return status;
}

akin_status_t akin_error_prefix(akin_error_t *err, akin_status_t status,
                                const char *format, ...)
{
    if (err != NULL) {
        akin_error_t old = *err;
        va_list args;
        va_start(args, format);
        int length = vsnprintf(err->text, sizeof(err->text), format, args);
        va_end(args);
        if (length >= 0 && (size_t)length < sizeof(err->text))
            (void)snprintf(err->text + length,
                           sizeof(err->text) - (size_t)length, "%s", old.text);
    }
    return status;
}
