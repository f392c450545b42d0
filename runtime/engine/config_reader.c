/* Config reader: typed values of a JSON object by key. */
#include "engine/config_reader.h"

#include "engine/model_file.h"

#include <math.h>
#include <stdio.h>

const json_t *akini_config_get(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

akin_status_t akini_config_get_either(const akini_config_reader_t *r,
                                      const char *key, const char *other,
                                      const json_t **value_p,
                                      const char **key_p)
{
    const json_t *first = akini_config_get(r->root, key);
    const json_t *second =
        other != NULL ? akini_config_get(r->root, other) : NULL;
    *value_p = first != NULL ? first : second;
    *key_p = first != NULL ? key : other;
    if (first != NULL && second != NULL && !json_equal(first, second))
        return akin_error_set(r->err, AKIN_ERR_FORMAT,
                              "%s: keys \"%s\" and \"%s\" disagree", r->name,
                              key, other);
    return AKIN_OK;
}

akin_status_t akini_config_missing(const akini_config_reader_t *r,
                                   const char *key, const char *other)
{
    if (other != NULL)
        return akin_error_set(r->err, AKIN_ERR_FORMAT,
                              "%s: key \"%s\" (or \"%s\") is missing", r->name,
                              key, other);
    return akin_error_set(r->err, AKIN_ERR_FORMAT, "%s: key \"%s\" is missing",
                          r->name, key);
}

akin_status_t akini_config_wrong(const akini_config_reader_t *r,
                                 const char *key, const json_t *value,
                                 const char *expected)
{
    char shown[AKINI_JSON_SHOWN_BYTES];
    akini_model_json_show(value, shown);
    return akin_error_set(r->err, AKIN_ERR_FORMAT,
                          "%s: key \"%s\" is %s, it must be %s", r->name, key,
                          shown, expected);
}

akin_status_t akini_config_refuse(const akini_config_reader_t *r,
                                  const char *key, const json_t *value,
                                  const char *supported)
{
    char shown[AKINI_JSON_SHOWN_BYTES];
    akini_model_json_show(value, shown);
    return akin_error_set(r->err, AKIN_ERR_UNSUPPORTED,
                          "%s: key \"%s\" is %s, which the engine has not got; "
                          "supported: %s",
                          r->name, key, shown, supported);
}

akin_status_t akini_config_to_size(const akini_config_reader_t *r,
                                   const char *key, const json_t *value,
                                   uint32_t max, uint32_t *size_p)
{
    json_int_t n = json_integer_value(value);
    if (!json_is_integer(value) || n < 1 || n > (json_int_t)max) {
        char expected[64];
        (void)snprintf(expected, sizeof(expected),
                       "a whole number from 1 to %u", max);
        return akini_config_wrong(r, key, value, expected);
    }
    *size_p = (uint32_t)n;
    return AKIN_OK;
}

akin_status_t akini_config_to_real(const akini_config_reader_t *r,
                                   const char *key, const json_t *value,
                                   double min, double max, double *real_p)
{
    double real = json_number_value(value);
    if (!json_is_number(value) || !isfinite(real) || real < min || real > max) {
        char expected[64];
        (void)snprintf(expected, sizeof(expected), "a number from %g to %g",
                       min, max);
        return akini_config_wrong(r, key, value, expected);
    }
    *real_p = real;
    return AKIN_OK;
}

akin_status_t akini_config_to_bool(const akini_config_reader_t *r,
                                   const char *key, const json_t *value,
                                   int *bool_p)
{
    if (!json_is_boolean(value))
        return akini_config_wrong(r, key, value, "true or false");
    *bool_p = json_is_true(value);
    return AKIN_OK;
}
