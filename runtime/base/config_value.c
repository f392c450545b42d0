/* Config values: text to a typed value, with range and choices. */
#include "base/config_internal.h"
#include "base/nearest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *akini_config_type_name(akin_config_type_t type)
{
    switch (type) {
    case AKIN_CONFIG_INT:
        return "a whole number";
    case AKIN_CONFIG_FLOAT:
        return "a number";
    case AKIN_CONFIG_BOOL:
        return "true or false";
    case AKIN_CONFIG_STRING:
        return "text in quotes";
    case AKIN_CONFIG_CHOICE:
        return "a word in quotes";
    case AKIN_CONFIG_SIZE:
        return "a size in quotes with a unit";
    case AKIN_CONFIG_TIME:
        return "a time in quotes with a unit";
    }
    return "a value";
}

static int has_range(const akin_config_row_t *row)
{
    return row->type != AKIN_CONFIG_BOOL && row->type != AKIN_CONFIG_STRING &&
           row->type != AKIN_CONFIG_CHOICE &&
           !(row->min == 0.0 && row->max == 0.0);
}

static void end_format(const akin_config_row_t *row, double end,
                       char buffer[AKINI_CONFIG_NUMBER_BYTES])
{
    if (row->type == AKIN_CONFIG_FLOAT) {
        /* A whole end of a range reads better without its ".0". */
        (void)snprintf(buffer, AKINI_CONFIG_NUMBER_BYTES, "%.15g", end);
    } else if (row->type == AKIN_CONFIG_INT) {
        (void)snprintf(buffer, AKINI_CONFIG_NUMBER_BYTES, "%.0f", end);
    } else {
        int64_t value = end >= 0x1p63 ? INT64_MAX : (int64_t)end;
        akini_config_quantity_format(value, row->type == AKIN_CONFIG_TIME,
                                     buffer);
    }
}

void akini_config_range_format(const akin_config_row_t *row, char *buffer,
                               size_t bytes)
{
    char low[AKINI_CONFIG_NUMBER_BYTES];
    char high[AKINI_CONFIG_NUMBER_BYTES];
    buffer[0] = '\0';
    if (!has_range(row))
        return;
    /* Quantities carry their unit, numbers get the row's. */
    int bare = row->type == AKIN_CONFIG_INT || row->type == AKIN_CONFIG_FLOAT;
    const char *unit = bare && row->unit != NULL ? row->unit : "";
    const char *space = unit[0] != '\0' ? " " : "";
    if (isinf(row->max)) {
        end_format(row, row->min, low);
        (void)snprintf(buffer, bytes, "at least %s%s%s", low, space, unit);
    } else if (isinf(row->min)) {
        end_format(row, row->max, high);
        (void)snprintf(buffer, bytes, "at most %s%s%s", high, space, unit);
    } else {
        end_format(row, row->min, low);
        end_format(row, row->max, high);
        (void)snprintf(buffer, bytes, "%s to %s%s%s", low, high, space, unit);
    }
}

static akin_status_t range_check(const akin_config_row_t *row, const char *text,
                                 long double value, akin_error_t *err)
{
    if (!has_range(row) ||
        (value >= (long double)row->min && value <= (long double)row->max))
        return AKIN_OK;
    char range[160];
    akini_config_range_format(row, range, sizeof(range));
    return akin_error_set(err, AKIN_ERR_CONFIG, "%s is out of range: %s", text,
                          range);
}

static akin_status_t int_parse(const akin_config_row_t *row, const char *text,
                               akini_config_value_t *value, akin_error_t *err)
{
    size_t sign = text[0] == '-' || text[0] == '+';
    size_t digits = strspn(text + sign, "0123456789");
    if (digits == 0 || text[sign + digits] != '\0')
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "\"%.64s\" is not a whole number", text);
    errno = 0;
    long long integer = strtoll(text, NULL, 10);
    if (errno == ERANGE)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "%.64s does not fit 64 bits", text);
    value->integer = integer;
    return range_check(row, text, (long double)integer, err);
}

static akin_status_t float_parse(const akin_config_row_t *row, const char *text,
                                 akini_config_value_t *value, akin_error_t *err)
{
    if (akini_config_float_parse(text, &value->number) != 0)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "\"%.64s\" is not a finite number", text);
    return range_check(row, text, (long double)value->number, err);
}

static akin_status_t bool_parse(const char *text, akini_config_value_t *value,
                                akin_error_t *err)
{
    /* libconfig takes true and false in any case, so do the other sources. */
    value->integer = strcasecmp(text, "true") == 0;
    if (!value->integer && strcasecmp(text, "false") != 0)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "\"%.64s\" is neither true nor false", text);
    return AKIN_OK;
}

static akin_status_t quantity_parse(const akin_config_row_t *row,
                                    const char *text,
                                    akini_config_value_t *value,
                                    akin_error_t *err)
{
    int is_time = row->type == AKIN_CONFIG_TIME;
    const char *wrong =
        akini_config_quantity_parse(text, is_time, &value->integer);
    if (wrong != NULL)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "\"%.64s\" %s; write it as \"%s\", with one of "
                              "the units %s",
                              text, wrong, is_time ? "250ms" : "256MiB",
                              akini_config_quantity_units(is_time));
    char quoted[80];
    (void)snprintf(quoted, sizeof(quoted), "\"%.64s\"", text);
    return range_check(row, quoted, (long double)value->integer, err);
}

/* The choices as a sentence, and the one that was nearly written. */
static akin_status_t choice_refuse(const akin_config_row_t *row,
                                   const char *text, akin_error_t *err)
{
    char list[256] = "";
    size_t used = 0;
    akin_nearest_t nearest;
    akin_nearest_init(&nearest, text);
    for (const char *p = row->choices; used < sizeof(list);) {
        size_t length = strcspn(p, "|");
        akin_nearest_offer(&nearest, p, length);
        int n = snprintf(list + used, sizeof(list) - used, "%s%.*s",
                         used == 0 ? "" : ", ", (int)length, p);
        used += n > 0 ? (size_t)n : 0;
        if (p[length] == '\0')
            break;
        p += length + 1;
    }
    int is_near = nearest.name[0] != '\0';
    return akin_error_set(err, AKIN_ERR_CONFIG, "\"%.64s\" is none of %s%s%s%s",
                          text, list, is_near ? "; did you mean \"" : "",
                          nearest.name, is_near ? "\"?" : "");
}

static akin_status_t choice_check(const akin_config_row_t *row,
                                  const char *text, akin_error_t *err)
{
    for (const char *p = row->choices;;) {
        size_t length = strcspn(p, "|");
        if (strlen(text) == length && memcmp(text, p, length) == 0)
            return AKIN_OK;
        if (p[length] == '\0')
            return choice_refuse(row, text, err);
        p += length + 1;
    }
}

akin_status_t akini_config_value_parse(const akin_config_row_t *row,
                                       const char *text,
                                       akini_config_value_t *value_p,
                                       akin_error_t *err)
{
    akini_config_value_t value = {.is_set = 1};
    akin_status_t status = AKIN_OK;
    switch (row->type) {
    case AKIN_CONFIG_INT:
        status = int_parse(row, text, &value, err);
        break;
    case AKIN_CONFIG_FLOAT:
        status = float_parse(row, text, &value, err);
        break;
    case AKIN_CONFIG_BOOL:
        status = bool_parse(text, &value, err);
        break;
    case AKIN_CONFIG_SIZE:
    case AKIN_CONFIG_TIME:
        status = quantity_parse(row, text, &value, err);
        break;
    case AKIN_CONFIG_CHOICE:
        status = choice_check(row, text, err);
        break;
    case AKIN_CONFIG_STRING:
        break;
    }
    if (status != AKIN_OK)
        return status;
    if (row->type == AKIN_CONFIG_STRING || row->type == AKIN_CONFIG_CHOICE) {
        value.text = strdup(text);
        if (value.text == NULL)
            return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    }
    *value_p = value;
    return AKIN_OK;
}

void akini_config_value_cleanup(akini_config_value_t *value)
{
    free(value->text);
    free(value->origin);
    *value = (akini_config_value_t){0};
}
