/* Fit decode map: the decode map out of the text of a fit file. */
#include "routing/fit_decode_map.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How far from length 1 an axis may be, as a centroid. */
#define MAX_OFF_UNIT 1e-3

enum { NAME_BYTES = 512 }; /* of a path in messages */

static akin_status_t copy_numbers(const akini_fit_json_t *json,
                                  const akini_fit_list_t *list, size_t n,
                                  float *out)
{
    float *numbers = NULL;
    akin_status_t status = akini_fit_json_numbers(json, list, &numbers);
    if (status == AKIN_OK)
        memcpy(out, numbers, n * sizeof(*out));
    free(numbers);
    return status;
}

static akin_status_t read_rates(const akini_fit_json_t *json, const char *key,
                                size_t cells, float *rates)
{
    const akini_fit_list_t list = {
        .key = key,
        .sizes = {cells},
        .n_sizes = 1,
        .max = 1.0f,
        .expected = "a number from 0 to 1",
    };
    return copy_numbers(json, &list, cells, rates);
}

static akin_status_t read_rows(const akini_fit_json_t *json, const char *key,
                               size_t n_rows, size_t cells, float *rows)
{
    const akini_fit_list_t list = {
        .key = key,
        .sizes = {n_rows, cells},
        .n_sizes = 2,
        .min = -FLT_MAX,
        .max = FLT_MAX,
        .expected = "a finite number",
    };
    return copy_numbers(json, &list, n_rows * cells, rows);
}

static akin_status_t check_axes(const akini_fit_json_t *json,
                                const akin_decode_map_t *map, size_t cells)
{
    for (uint32_t q = 0; q < map->n_axes; q++) {
        double squares = 0.0;
        for (size_t i = 0; i < cells; i++) {
            double value = (double)map->axes[q * cells + i];
            squares += value * value;
        }
        double length = sqrt(squares);
        if (!(fabs(length - 1.0) <= MAX_OFF_UNIT))
            return akin_error_set(json->err, AKIN_ERR_FORMAT,
                                  "%s: axes[%u] has the length %g, must be of "
                                  "length 1",
                                  json->name, q, length);
    }
    return AKIN_OK;
}

/* Both lists have as many rows, and a map holds no more than that. */
static akin_status_t count_axes(const akini_fit_json_t *json, uint32_t *n_p)
{
    static const char *const keys[] = {"axes", "responses"};
    size_t sizes[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        const json_t *rows = akini_fit_json_get(json, keys[i]);
        sizes[i] = json_array_size(rows);
        if (rows != NULL &&
            (!json_is_array(rows) || sizes[i] > AKIN_DECODE_MAP_AXES)) {
            char expected[64];
            (void)snprintf(expected, sizeof(expected),
                           "a list of at most %d lists", AKIN_DECODE_MAP_AXES);
            return akini_fit_json_wrong(json, keys[i], rows, expected);
        }
    }
    if (sizes[0] != sizes[1])
        return akin_error_set(json->err, AKIN_ERR_FORMAT,
                              "%s: there are %zu axes, but %zu responses",
                              json->name, sizes[0], sizes[1]);
    *n_p = (uint32_t)sizes[0];
    return AKIN_OK;
}

static akin_status_t read_number(const akini_fit_json_t *json, const char *key,
                                 double min, double max, float *value_p)
{
    double value = 0.0;
    if (akini_fit_json_get(json, key) == NULL)
        return akini_fit_json_missing(json, key);
    akin_status_t status = akini_fit_json_real(json, key, min, max, &value);
    *value_p = (float)value;
    return status;
}

static akin_status_t fill(const akini_fit_json_t *json, akin_decode_map_t *map)
{
    const size_t cells = (size_t)map->n_layers * map->n_experts;
    akin_status_t status = read_number(json, "carry", 0.0, 1.0, &map->carry);
    if (status == AKIN_OK)
        status = read_number(json, "prompt_tokens", 1.0, (double)UINT32_MAX,
                             &map->prompt_tokens);
    if (status == AKIN_OK)
        status = read_rates(json, "prompt_mean", cells, map->prompt_mean);
    if (status == AKIN_OK)
        status = read_rates(json, "decode_mean", cells, map->decode_mean);
    if (status != AKIN_OK || map->n_axes == 0)
        return status;
    status = read_rows(json, "axes", map->n_axes, cells, map->axes);
    if (status == AKIN_OK)
        status = check_axes(json, map, cells);
    if (status == AKIN_OK)
        status =
            read_rows(json, "responses", map->n_axes, cells, map->responses);
    return status;
}

static akin_status_t check_row(const akini_fit_json_t *json, const char *path,
                               const json_t *row, size_t cells)
{
    if (json_array_size(row) == cells)
        return AKIN_OK;
    char expected[64];
    (void)snprintf(expected, sizeof(expected), "a list of %zu numbers", cells);
    return akini_fit_json_wrong(json, path, row, expected);
}

/* A short text may name many layers and experts: memory is taken only for what
 * it holds the numbers of. */
static akin_status_t check_shape(const akini_fit_json_t *json, size_t cells,
                                 uint32_t n_axes)
{
    const json_t *mean = akini_fit_json_get(json, "prompt_mean");
    const json_t *axes = akini_fit_json_get(json, "axes");
    if (mean == NULL)
        return akini_fit_json_missing(json, "prompt_mean");
    akin_status_t status = check_row(json, "prompt_mean", mean, cells);
    for (uint32_t q = 0; status == AKIN_OK && q < n_axes; q++) {
        char path[32];
        (void)snprintf(path, sizeof(path), "axes[%u]", q);
        status = check_row(json, path, json_array_get(axes, q), cells);
    }
    return status;
}

akin_status_t akini_fit_decode_map_read(const akini_fit_json_t *json,
                                        akin_fit_t *fit)
{
    const json_t *value = akini_fit_json_get(json, "decode_map");
    if (value == NULL)
        return AKIN_OK;
    if (!json_is_object(value))
        return akini_fit_json_wrong(json, "decode_map", value, "an object");
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof(name), "%s: decode_map", json->name);
    const akini_fit_json_t map = {
        .root = value, .name = name, .err = json->err};
    uint32_t n_axes = 0;
    akin_status_t status = count_axes(&map, &n_axes);
    if (status == AKIN_OK)
        status =
            check_shape(&map, (size_t)fit->n_layers * fit->n_experts, n_axes);
    if (status != AKIN_OK)
        return status;
    status = akin_decode_map_init(&fit->decode_map, fit->n_layers,
                                  fit->n_experts, n_axes);
    if (status != AKIN_OK)
        return akin_error_set(json->err, status,
                              "%s: out of memory for %u axes", name, n_axes);
    status = fill(&map, &fit->decode_map);
    if (status != AKIN_OK)
        akin_decode_map_cleanup(&fit->decode_map);
    return status;
}
