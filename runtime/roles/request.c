/* Request: memory of requests, and the errors that clients get. */
#include "roles/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistr.h>

void akin_request_destroy(akin_request_t *request)
{
    if (request == NULL)
        return;
    for (uint32_t i = 0; i < request->n_stops; i++)
        free(request->stops[i]);
    free(request->prompt);
    free(request->custom_id);
    free(request->domain);
    free(request);
}

/* A text that was cut may end inside a character: those bytes go. Bytes that
 * are not UTF-8 (a library's message that was cut before) become '?'. */
static void make_utf8(char *text)
{
    const uint8_t *bad;
    while ((bad = u8_check((const uint8_t *)text, strlen(text))) != NULL) {
        size_t at = (size_t)(bad - (const uint8_t *)text);
        size_t left = strlen(text + at);
        ucs4_t unused;
        if (u8_mbtoucr(&unused, bad, left) == -2) {
            text[at] = '\0';
            return;
        }
        text[at] = '?';
    }
}

static void copy_text(char *to, size_t bytes, const char *from)
{
    (void)snprintf(to, bytes, "%s", from == NULL ? "" : from);
    make_utf8(to);
}

akin_status_t akin_request_error_set(akin_request_error_t *error,
                                     int status_code, const char *param,
                                     const char *code, const char *format, ...)
{
    if (error == NULL)
        return AKIN_ERR_INVALID;
    error->status_code = status_code;
    copy_text(error->type, sizeof(error->type),
              status_code >= 400 && status_code < 500 ? "invalid_request_error"
                                                      : "server_error");
    copy_text(error->param, sizeof(error->param), param);
    copy_text(error->code, sizeof(error->code), code);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error->message, sizeof(error->message), format, args);
    va_end(args);
    make_utf8(error->message);
    return AKIN_ERR_INVALID;
}

void akin_request_error_init(akin_request_error_t *error,
                             const akin_request_t *request)
{
    memset(error, 0, sizeof(*error));
    error->line = request->line;
    if (request->custom_id != NULL && request->custom_id[0] != '\0') {
        error->has_id = 1;
        copy_text(error->custom_id, sizeof(error->custom_id),
                  request->custom_id);
    }
}
