/* Batch lines: the envelope around a request's body. */
#include "roles/batch_parse.h"

#include "base/nearest.h"
#include "roles/request_fields.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* Put "line N: " before the message. */
static akin_status_t at_line(akin_request_error_t *error, akin_status_t status)
{
    char message[sizeof(error->message)];
    memcpy(message, error->message, sizeof(message));
    char param[sizeof(error->param)];
    memcpy(param, error->param, sizeof(param));
    char code[sizeof(error->code)];
    memcpy(code, error->code, sizeof(code));
    (void)akin_request_error_set(error, error->status_code,
                                 param[0] == '\0' ? NULL : param,
                                 code[0] == '\0' ? NULL : code, "line %llu: %s",
                                 (unsigned long long)error->line, message);
    return status;
}

static akin_status_t refuse_missing(json_t *object, const char *name,
                                    akin_request_error_t *error)
{
    akin_nearest_t nearest;
    akin_nearest_init(&nearest, name);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
        akin_nearest_offer(&nearest, key, strlen(key));
    if (nearest.name[0] == '\0')
        return akin_request_error_set(error, 400, name,
                                      "missing_required_parameter",
                                      "%s is missing", name);
    return akin_request_error_set(
        error, 400, name, "missing_required_parameter",
        "%s is missing; was it meant by \"%s\"?", name, nearest.name);
}

static akin_status_t read_id(json_t *object, akin_request_error_t *error)
{
    const json_t *id = json_object_get(object, "custom_id");
    char shown[AKINI_SHOWN_BYTES];
    if (id == NULL)
        return refuse_missing(object, "custom_id", error);
    size_t bytes = json_string_length(id);
    if (!json_is_string(id) || bytes == 0 || bytes > AKIN_REQUEST_ID_BYTES ||
        strlen(json_string_value(id)) != bytes)
        return akin_request_error_set(
            error, 400, "custom_id", "invalid_value",
            "custom_id must be a text of 1 to %d bytes without NUL, not %s",
            AKIN_REQUEST_ID_BYTES, akini_request_show(id, shown));
    memcpy(error->custom_id, json_string_value(id), bytes + 1);
    error->has_id = 1;
    return AKIN_OK;
}

static akin_status_t read_url(json_t *object, akin_request_kind_t *kind_p,
                              akin_request_error_t *error)
{
    char shown[AKINI_SHOWN_BYTES];
    const json_t *method = json_object_get(object, "method");
    if (method == NULL)
        return refuse_missing(object, "method", error);
    if (!json_is_string(method) ||
        strcmp(json_string_value(method), "POST") != 0)
        return akin_request_error_set(error, 400, "method", "invalid_value",
                                      "method must be \"POST\", not %s",
                                      akini_request_show(method, shown));
    const json_t *url = json_object_get(object, "url");
    if (url == NULL)
        return refuse_missing(object, "url", error);
    const char *text = json_is_string(url) ? json_string_value(url) : "";
    if (strcmp(text, "/v1/completions") == 0)
        *kind_p = AKIN_REQUEST_COMPLETION;
    else if (strcmp(text, "/v1/chat/completions") == 0)
        *kind_p = AKIN_REQUEST_CHAT;
    else
        return akin_request_error_set(
            error, 400, "url", "invalid_url",
            "url must be \"/v1/completions\" or \"/v1/chat/completions\", not "
            "%s",
            akini_request_show(url, shown));
    return AKIN_OK;
}

static akin_status_t read_object(const akin_request_limits_t *limits,
                                 json_t *object, akin_request_t **request_p,
                                 akin_request_error_t *error)
{
    if (!json_is_object(object))
        return akin_request_error_set(error, 400, NULL, "invalid_json",
                                      "must be a JSON object with custom_id, "
                                      "method, url and body");
    akin_request_kind_t kind = AKIN_REQUEST_COMPLETION;
    akin_status_t status = read_id(object, error);
    if (status == AKIN_OK)
        status = read_url(object, &kind, error);
    if (status != AKIN_OK)
        return status;
    json_t *body = json_object_get(object, "body");
    if (body == NULL)
        return refuse_missing(object, "body", error);
    if (!json_is_object(body))
        return akin_request_error_set(error, 400, "body", "invalid_value",
                                      "body must be a JSON object");
    return akin_request_read(limits, kind, body, error->custom_id, request_p,
                             error);
}

akin_status_t akin_batch_parse(const akin_request_limits_t *limits,
                               const akin_batch_line_t *line,
                               akin_request_t **request_p,
                               akin_request_error_t *error)
{
    *request_p = NULL;
    memset(error, 0, sizeof(*error));
    error->line = line->number;
    if (line->too_long) {
        (void)akin_request_error_set(
            error, 400, NULL, "line_too_long",
            "the line has %zu bytes, more than the limit of a line",
            line->bytes);
        return at_line(error, AKIN_ERR_INVALID);
    }
    json_error_t at;
    json_t *object = json_loadb(line->text, line->bytes,
                                JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &at);
    if (object == NULL) {
        if (json_error_code(&at) == json_error_out_of_memory) {
            (void)akin_request_error_set(error, 500, NULL, NULL,
                                         "out of memory");
            return at_line(error, AKIN_ERR_NOMEM);
        }
        (void)akin_request_error_set(error, 400, NULL, "invalid_json",
                                     "not valid JSON at byte %d: %s",
                                     at.position, at.text);
        return at_line(error, AKIN_ERR_INVALID);
    }
    akin_status_t status = read_object(limits, object, request_p, error);
    json_decref(object);
    if (status != AKIN_OK || *request_p == NULL)
        return at_line(error, status);
    (*request_p)->line = line->number;
    return AKIN_OK;
}

akin_status_t akin_batch_admit(akin_id_set_t *seen, akin_id_set_t *done,
                               akin_request_t **request_p,
                               akin_request_error_t *error, int *done_p)
{
    akin_request_t *request = *request_p;
    const uint64_t line = request != NULL ? request->line : error->line;
    const char *id = request != NULL ? request->custom_id
                     : error->has_id ? error->custom_id
                                     : NULL;
    *done_p = 0;
    if (id == NULL) {
        *done_p = done != NULL && akin_id_set_has_line(done, line);
        return AKIN_OK;
    }
    uint64_t first = 0;
    akin_status_t status = akin_id_set_add(seen, id, line, &first);
    if (status == AKIN_OK)
        *done_p = done != NULL && akin_id_set_has(done, id);
    if (status != AKIN_ERR_EXISTS)
        return status;

    char shown[AKINI_SHOWN_BYTES] = "?";
    json_t *text = json_string(id);
    if (text != NULL)
        (void)akini_request_show(text, shown);
    json_decref(text);
    akin_request_destroy(request);
    *request_p = NULL;
    memset(error, 0, sizeof(*error));
    error->line = line;
    (void)akin_request_error_set(
        error, 400, "custom_id", "duplicate_custom_id",
        "line %llu: custom_id %s is that of line %llu already",
        (unsigned long long)line, shown, (unsigned long long)first);
    *done_p = done != NULL && akin_id_set_has_line(done, line);
    return AKIN_ERR_EXISTS;
}
