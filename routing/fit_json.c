/* Fit JSON: typed values of a fit file by key. */
#include "routing/fit_json.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_BYTES = 81, PATH_BYTES = 128 };

/* Where a walk through a list has come to. */
typedef struct walk {
    const akini_fit_json_t *json;
    const akini_fit_list_t *list;
    size_t at[AKINI_FIT_JSON_DEPTH];
    float *next; /* NULL: only the shape is checked */
} walk_t;

/* Python's json module writes numbers that JSON has not got. */
static bool is_python_number(const char *text, size_t bytes,
                             const json_error_t *why)
{
    if (strstr(why->text, "NaN") != NULL ||
        strstr(why->text, "Infinity") != NULL)
        return true;
    static const char infinity[] = "Infinity";
    size_t at = why->position > 0 ? (size_t)why->position : 0;
    return at < bytes && bytes - at >= sizeof(infinity) - 1 &&
           memcmp(text + at, infinity, sizeof(infinity) - 1) == 0;
}

akin_status_t akini_fit_json_parse(const char *text, size_t bytes,
                                   const char *name, json_t **root_p,
                                   akin_error_t *err)
{
    json_error_t why;
    *root_p = NULL;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
    if (root == NULL) {
        if (json_error_code(&why) == json_error_out_of_memory)
            return akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory",
                                  name);
        return akin_error_set(
            err, AKIN_ERR_FORMAT, "%s:%d:%d: %s%s", name, why.line, why.column,
            why.text,
            is_python_number(text, bytes, &why)
                ? "; JSON has neither NaN nor Infinity, which Python writes "
                  "for a number that is not finite: make the fit again"
                : "");
    }
    if (!json_is_object(root)) {
        json_decref(root);
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: must hold a JSON object", name);
    }
    *root_p = root;
    return AKIN_OK;
}

const json_t *akini_fit_json_get(const akini_fit_json_t *json, const char *key)
{
    const json_t *value = json_object_get(json->root, key);
    return json_is_null(value) ? NULL : value;
}

akin_status_t akini_fit_json_missing(const akini_fit_json_t *json,
                                     const char *key)
{
    return akin_error_set(json->err, AKIN_ERR_FORMAT,
                          "%s: %s is missing; is this a fit file?", json->name,
                          key);
}

/* A value as it shows in a message; lists may be long. */
static void show(const json_t *value, char text[SHOWN_BYTES])
{
    if (json_is_array(value)) {
        (void)snprintf(text, SHOWN_BYTES, "a list of %zu",
                       json_array_size(value));
        return;
    }
    if (json_is_object(value)) {
        (void)snprintf(text, SHOWN_BYTES, "an object");
        return;
    }
    char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    const char *shown = dump != NULL ? dump : "a value";
    bool is_cut = strlen(shown) >= SHOWN_BYTES;
    (void)snprintf(text, SHOWN_BYTES, "%.77s%s", shown, is_cut ? "..." : "");
    free(dump);
}

akin_status_t akini_fit_json_wrong(const akini_fit_json_t *json,
                                   const char *path, const json_t *value,
                                   const char *expected)
{
    char text[SHOWN_BYTES];
    show(value, text);
    return akin_error_set(json->err, AKIN_ERR_FORMAT,
                          "%s: %s is %s, must be %s", json->name, path, text,
                          expected);
}

akin_status_t akini_fit_json_whole(const akini_fit_json_t *json,
                                   const char *key, uint64_t min, uint64_t max,
                                   uint64_t *value_p)
{
    const json_t *value = akini_fit_json_get(json, key);
    if (value == NULL)
        return AKIN_OK;
    json_int_t number = json_integer_value(value);
    if (json_is_integer(value) && number >= 0 && (uint64_t)number >= min &&
        (uint64_t)number <= max) {
        *value_p = (uint64_t)number;
        return AKIN_OK;
    }
    char expected[80];
    (void)snprintf(expected, sizeof(expected),
                   "a whole number from %llu to "
                   "%llu",
                   (unsigned long long)min, (unsigned long long)max);
    return akini_fit_json_wrong(json, key, value, expected);
}

akin_status_t akini_fit_json_real(const akini_fit_json_t *json, const char *key,
                                  double min, double max, double *value_p)
{
    const json_t *value = akini_fit_json_get(json, key);
    if (value == NULL)
        return AKIN_OK;
    double number = json_number_value(value);
    if (json_is_number(value) && number >= min && number <= max) {
        *value_p = number;
        return AKIN_OK;
    }
    char expected[80];
    (void)snprintf(expected, sizeof(expected), "a number from %g to %g", min,
                   max);
    return akini_fit_json_wrong(json, key, value, expected);
}

akin_status_t akini_fit_json_text(const akini_fit_json_t *json, const char *key,
                                  const char **value_p)
{
    const json_t *value = akini_fit_json_get(json, key);
    if (value == NULL)
        return AKIN_OK;
    if (!json_is_string(value))
        return akini_fit_json_wrong(json, key, value, "a text");
    *value_p = json_string_value(value);
    return AKIN_OK;
}

/* Failure at the place of the walk, `depth` lists deep. */
static akin_status_t wrong_at(const walk_t *walk, size_t depth,
                              const json_t *value, const char *expected)
{
    char path[PATH_BYTES];
    int n = snprintf(path, sizeof(path), "%s", walk->list->key);
    for (size_t i = 0; i < depth && n > 0 && (size_t)n < sizeof(path); i++)
        n += snprintf(path + n, sizeof(path) - (size_t)n, "[%zu]", walk->at[i]);
    return akini_fit_json_wrong(walk->json, path, value, expected);
}

static akin_status_t check_size(const walk_t *walk, size_t depth,
                                const json_t *value)
{
    if (json_is_array(value) &&
        json_array_size(value) == walk->list->sizes[depth])
        return AKIN_OK;
    char expected[64];
    (void)snprintf(expected, sizeof(expected), "a list of %zu %s",
                   walk->list->sizes[depth],
                   depth + 1 == walk->list->n_sizes ? "numbers" : "lists");
    return wrong_at(walk, depth, value, expected);
}

static akin_status_t walk_numbers(walk_t *walk, size_t depth,
                                  const json_t *values)
{
    size_t *i = &walk->at[depth];
    for (*i = 0; *i < walk->list->sizes[depth]; (*i)++) {
        const json_t *value = json_array_get(values, *i);
        float number = (float)json_number_value(value);
        if (!json_is_number(value) || !isfinite(number) ||
            !(number >= walk->list->min && number <= walk->list->max))
            return wrong_at(walk, depth + 1, value, walk->list->expected);
        *walk->next++ = number;
    }
    return AKIN_OK;
}

/* Depth is at most AKINI_FIT_JSON_DEPTH - 1. */
static akin_status_t walk_lists(walk_t *walk, size_t depth, const json_t *value)
{
    bool is_innermost =
        depth + 1 >= walk->list->n_sizes || depth + 1 >= AKINI_FIT_JSON_DEPTH;
    if (walk->next == NULL) {
        akin_status_t status = check_size(walk, depth, value);
        if (status != AKIN_OK || is_innermost)
            return status;
    } else if (is_innermost) {
        return walk_numbers(walk, depth, value);
    }
    size_t *i = &walk->at[depth];
    for (*i = 0; *i < walk->list->sizes[depth]; (*i)++) {
        akin_status_t status =
            walk_lists(walk, depth + 1, json_array_get(value, *i));
        if (status != AKIN_OK)
            return status;
    }
    return AKIN_OK;
}

akin_status_t akini_fit_json_numbers(const akini_fit_json_t *json,
                                     const akini_fit_list_t *list,
                                     float **numbers_p)
{
    const json_t *value = akini_fit_json_get(json, list->key);
    if (value == NULL)
        return akini_fit_json_missing(json, list->key);
    walk_t walk = {.json = json, .list = list};
    akin_status_t status = walk_lists(&walk, 0, value);
    if (status != AKIN_OK)
        return status;
    /* No overflow: the text holds that many numbers. */
    size_t n = 1;
    for (size_t i = 0; i < list->n_sizes; i++)
        n *= list->sizes[i];
    float *numbers = calloc(n, sizeof(*numbers));
    if (numbers == NULL)
        return akin_error_set(json->err, AKIN_ERR_NOMEM,
                              "%s: out of memory for the %zu numbers of %s",
                              json->name, n, list->key);
    walk.next = numbers;
    status = walk_lists(&walk, 0, value);
    if (status != AKIN_OK) {
        free(numbers);
        return status;
    }
    *numbers_p = numbers;
    return AKIN_OK;
}
