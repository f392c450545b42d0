/* Request reader: typed access to the fields of a body. */
#include "roles/request_reader.h"

#include <float.h>
#include <math.h>

akin_status_t akini_reader_nomem(akin_request_error_t *error)
{
    (void)akin_request_error_set(error, 500, NULL, NULL, "out of memory");
    return AKIN_ERR_NOMEM;
}

json_t *akini_reader_get(const akini_reader_t *r, const char *name)
{
    json_t *value = json_object_get(r->body, name);
    return json_is_null(value) ? NULL : value;
}

akin_status_t akini_reader_refuse(const akini_reader_t *r, const char *name,
                                  const char *what, const json_t *value)
{
    char shown[AKINI_SHOWN_BYTES];
    return akin_request_error_set(r->error, 400, name, "invalid_value",
                                  "%s must be %s, not %s", name, what,
                                  akini_request_show(value, shown));
}

akin_status_t akini_reader_bool(const akini_reader_t *r, const char *name,
                                int *value_p)
{
    const json_t *value = akini_reader_get(r, name);
    if (value == NULL)
        return AKIN_OK;
    if (!json_is_boolean(value))
        return akini_reader_refuse(r, name, "true or false", value);
    *value_p = json_is_true(value);
    return AKIN_OK;
}

akin_status_t akini_reader_integer(const akini_reader_t *r, const char *name,
                                   int64_t min, int64_t max, const char *what,
                                   int64_t *value_p)
{
    const json_t *value = akini_reader_get(r, name);
    if (value == NULL)
        return AKIN_OK;
    if (!json_is_integer(value) || json_integer_value(value) < min ||
        json_integer_value(value) > max)
        return akini_reader_refuse(r, name, what, value);
    *value_p = json_integer_value(value);
    return AKIN_OK;
}

akin_status_t akini_reader_number(const akini_reader_t *r, const char *name,
                                  const akini_range_t *range, float *value_p)
{
    const json_t *value = akini_reader_get(r, name);
    if (value == NULL)
        return AKIN_OK;
    double x = json_number_value(value);
    if (!json_is_number(value) || !isfinite(x) || x < range->min ||
        x > range->max || (range->min_out && x <= range->min) ||
        (range->max_out && x >= range->max))
        return akini_reader_refuse(r, name, range->what, value);
    float f = (float)x;
    if (x > 0 && f < FLT_MIN)
        f = FLT_MIN;
    if (range->max_out && (double)f >= range->max)
        f = nextafterf((float)range->max, 0.0F);
    *value_p = f;
    return AKIN_OK;
}
