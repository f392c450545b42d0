/* Trace record: JSON to a record and back. */
#include "routing/trace_record.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

akin_status_t akini_trace_json_u32(const json_t *object, const char *key,
                                   uint32_t *value_p, akin_error_t *err)
{
    const json_t *value = json_object_get(object, key);
    if (value == NULL)
        return akin_error_set(err, AKIN_ERR_FORMAT, "no \"%s\"", key);
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) > (json_int_t)UINT32_MAX)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "\"%s\" is not a whole number from 0 to %u", key,
                              UINT32_MAX);
    *value_p = (uint32_t)json_integer_value(value);
    return AKIN_OK;
}

/* A text that may be missing is "" then. */
akin_status_t akini_trace_json_text(const json_t *object, const char *key,
                                    int needed, const char **text_p,
                                    akin_error_t *err)
{
    const json_t *value = json_object_get(object, key);
    *text_p = "";
    if (value == NULL && !needed)
        return AKIN_OK;
    if (value == NULL)
        return akin_error_set(err, AKIN_ERR_FORMAT, "no \"%s\"", key);
    if (!json_is_string(value))
        return akin_error_set(err, AKIN_ERR_FORMAT, "\"%s\" is not a text",
                              key);
    if (json_string_length(value) > AKINI_TRACE_MAX_TEXT)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "\"%s\" is longer than %u bytes", key,
                              AKINI_TRACE_MAX_TEXT);
    *text_p = json_string_value(value);
    if (needed && **text_p == '\0')
        return akin_error_set(err, AKIN_ERR_FORMAT, "\"%s\" is empty", key);
    return AKIN_OK;
}

/* What both layouts have: the place and the number of the rows. */
static akin_status_t read_place(const json_t *json, akin_trace_record_t *record,
                                akin_error_t *err)
{
    const json_t *offset = json_object_get(json, "offset");
    if (!json_is_integer(offset) || json_integer_value(offset) < 0)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "\"offset\" is not a whole number from 0 on");
    record->offset = (uint64_t)json_integer_value(offset);
    akin_status_t status =
        akini_trace_json_u32(json, "n_tokens", &record->n_tokens, err);
    if (status == AKIN_OK && record->n_tokens == 0)
        return akin_error_set(err, AKIN_ERR_FORMAT, "\"n_tokens\" is 0");
    return status;
}

akin_status_t akini_trace_record_parse(const json_t *json,
                                       akin_trace_record_t *record,
                                       akin_error_t *err)
{
    *record = (akin_trace_record_t){.arrival_s = -1.0};
    akin_status_t status = AKIN_OK;
    if (!json_is_object(json))
        return akin_error_set(err, AKIN_ERR_FORMAT, "not an object");
    if ((status = akini_trace_json_text(json, "id", 1, &record->id, err)) !=
            AKIN_OK ||
        (status = akini_trace_json_text(json, "domain", 0, &record->domain,
                                        err)) != AKIN_OK ||
        (status = read_place(json, record, err)) != AKIN_OK ||
        (status = akini_trace_json_u32(json, "n_prompt", &record->n_prompt,
                                       err)) != AKIN_OK)
        return status;
    if (record->n_prompt > record->n_tokens)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "\"n_prompt\" is %u of %u rows", record->n_prompt,
                              record->n_tokens);
    const json_t *arrival = json_object_get(json, "arrival_s");
    if (arrival == NULL)
        return AKIN_OK;
    record->arrival_s = json_number_value(arrival);
    if (!json_is_number(arrival) || !(record->arrival_s >= 0.0) ||
        !isfinite(record->arrival_s))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "\"arrival_s\" is not a number from 0 on");
    return AKIN_OK;
}

/* The set's prompt_tokens count tokens whose rows the data do not have. */
akin_status_t akini_trace_record_parse_foreign(json_t *json,
                                               akin_trace_record_t *record,
                                               akin_error_t *err)
{
    *record = (akin_trace_record_t){.arrival_s = -1.0};
    if (!json_is_object(json))
        return akin_error_set(err, AKIN_ERR_FORMAT, "not an object");
    const json_t *id = json_object_get(json, "id");
    if (json_is_integer(id)) {
        json_t *text =
            json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(id));
        if (json_object_set_new(json, "id", text) != 0)
            return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    }
    const char *label =
        json_object_get(json, "domain") != NULL ? "domain" : "category";
    akin_status_t status =
        akini_trace_json_text(json, "id", 1, &record->id, err);
    if (status == AKIN_OK)
        status = akini_trace_json_text(json, label, 0, &record->domain, err);
    if (status == AKIN_OK)
        status = read_place(json, record, err);
    return status;
}

int akini_trace_record_by_id(const void *a, const void *b)
{
    const akin_trace_record_t *x = *(const akin_trace_record_t *const *)a;
    const akin_trace_record_t *y = *(const akin_trace_record_t *const *)b;
    return strcmp(x->id, y->id);
}

json_t *akini_trace_record_json(const akin_trace_record_t *record)
{
    json_t *json = json_pack("{s:s, s:I, s:I, s:I}", "id", record->id, "offset",
                             (json_int_t)record->offset, "n_tokens",
                             (json_int_t)record->n_tokens, "n_prompt",
                             (json_int_t)record->n_prompt);
    int failed = json == NULL;
    if (!failed && record->domain != NULL && record->domain[0] != '\0')
        failed = json_object_set_new(json, "domain",
                                     json_string(record->domain)) != 0;
    if (!failed && record->arrival_s >= 0.0)
        failed = json_object_set_new(json, "arrival_s",
                                     json_real(record->arrival_s)) != 0;
    if (!failed)
        return json;
    json_decref(json);
    return NULL;
}
