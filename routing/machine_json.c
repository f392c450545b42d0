/* Machine: of a measurement that a file holds. */
#include "routing/machine.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A positive number of an object, or NaN. */
static double number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    const double number =
        json_is_number(value) ? json_number_value(value) : (double)NAN;
    return number > 0.0 && isfinite(number) ? number : (double)NAN;
}

static akin_status_t fill(const json_t *root, const char *source,
                          akin_machine_t *machine, akin_error_t *err)
{
    static const char *const keys[] = {"bytes", "seconds", "reference_seconds"};
    const json_t *object = json_is_array(root) ? json_array_get(root, 0) : root;
    const char *bench = json_string_value(json_object_get(object, "bench"));
    if (bench == NULL || strcmp(bench, "step") != 0)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: is not what `akin bench step --json` "
                              "prints: there is no \"bench\": \"step\"",
                              source);
    double values[3];
    for (size_t i = 0; i < 3; i++) {
        values[i] = number_of(object, keys[i]);
        if (isnan(values[i]))
            return akin_error_set(err, AKIN_ERR_FORMAT,
                                  "%s: \"%s\" is missing or no number above 0",
                                  source, keys[i]);
    }
    const double efficiency = values[2] / values[1];
    *machine = (akin_machine_t){
        .name = "cpu",
        .memory_bytes_per_s = values[0] / values[2],
        .flops_per_s = values[0] / values[1],
        .expert_efficiency = efficiency,
        .packed_efficiency = efficiency,
        .resident_efficiency = efficiency,
        .flops_efficiency = 1.0,
        .fabric = {10e9, 2e-6},
        .nic = {10e9, 2e-6},
    };
    return AKIN_OK;
}

akin_status_t akin_machine_parse_bench(const char *text, size_t bytes,
                                       const char *source,
                                       akin_machine_t *machine,
                                       akin_error_t *err)
{
    json_error_t error;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        return akin_error_set(err, AKIN_ERR_FORMAT, "%s: line %d: %s", source,
                              error.line, error.text);
    const akin_status_t status = fill(root, source, machine, err);
    json_decref(root);
    return status;
}

akin_status_t akin_machine_read_bench(const char *path, akin_machine_t *machine,
                                      akin_error_t *err)
{
    /* Far more than a bench prints. */
    static const size_t max_bytes = 1 << 16;
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        const int code = errno;
        return akin_error_set(err, akin_status_from_errno(code),
                              "%s: cannot open: %s", path, strerror(code));
    }
    char *text = malloc(max_bytes + 1);
    if (text == NULL) {
        (void)fclose(file);
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    }
    const size_t bytes = fread(text, 1, max_bytes + 1, file);
    const int failed = ferror(file);
    (void)fclose(file);
    akin_status_t status;
    if (failed)
        status = akin_error_set(err, AKIN_ERR_IO, "%s: cannot read", path);
    else if (bytes > max_bytes)
        status = akin_error_set(err, AKIN_ERR_FORMAT,
                                "%s: is above 64 KiB, so it is not what `akin "
                                "bench step --json` prints",
                                path);
    else
        status = akin_machine_parse_bench(text, bytes, path, machine, err);
    free(text);
    return status;
}
