/* Fit file: reading one whole, writing one beside and renaming it. */
#include "routing/fit.h"
#include "routing/fit_placement_json.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Jansson needs some forty bytes of memory for a number of a few bytes. */
#define MAX_BYTES ((size_t)256 << 20)
/* Digits after which a float reads back the same. */
#define FLOAT_DIGITS 9
#define MAX_DOUBLE_DIGITS 17

/* A fit file being written. */
typedef struct writer {
    FILE *file;
    bool is_first; /* no key was written yet */
    bool is_wrong; /* a value has no form in JSON */
    int code;      /* errno of the first write that failed; 0: none has */
    const char *wrong_key;
} writer_t;

static akin_status_t fail_errno(const char *path, const char *verb,
                                akin_error_t *err)
{
    int code = errno;
    akin_status_t status = akin_status_from_errno(code);
    if (status != AKIN_ERR_NOT_FOUND && status != AKIN_ERR_NOMEM &&
        status != AKIN_ERR_FULL)
        status = AKIN_ERR_IO;
    return akin_error_set(err, status, "%s: cannot %s the fit: %s", path, verb,
                          strerror(code));
}

static akin_status_t check_size(const char *path, const struct stat *stat,
                                akin_error_t *err)
{
    if (!S_ISREG(stat->st_mode))
        return akin_error_set(err, AKIN_ERR_IO,
                              "%s: is %s, a fit file is "
                              "needed",
                              path,
                              S_ISDIR(stat->st_mode) ? "a directory"
                                                     : "not a regular file");
    if (stat->st_size <= 0)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: is empty, not a fit file", path);
    if ((uint64_t)stat->st_size > MAX_BYTES)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: has %lld bytes, a fit file has at most %zu",
                              path, (long long)stat->st_size, MAX_BYTES);
    return AKIN_OK;
}

static akin_status_t read_all(const char *path, int fd, char *text,
                              size_t bytes, size_t *n_p, akin_error_t *err)
{
    size_t n = 0;
    while (n < bytes) {
        ssize_t got = read(fd, text + n, bytes - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno(path, "read", err);
        if (got == 0)
            break;
        n += (size_t)got;
    }
    *n_p = n;
    return AKIN_OK;
}

akin_status_t akin_fit_read(const char *path, akin_fit_t *fit,
                            akin_error_t *err)
{
    memset(fit, 0, sizeof(*fit));
    /* Without O_NONBLOCK the open of a FIFO would wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fail_errno(path, "open", err);
    char *text = NULL;
    size_t bytes = 0;
    struct stat stat;
    akin_status_t status = fstat(fd, &stat) != 0 ? fail_errno(path, "stat", err)
                                                 : check_size(path, &stat, err);
    if (status != AKIN_OK)
        goto out;
    text = malloc((size_t)stat.st_size);
    if (text == NULL) {
        status = akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory", path);
        goto out;
    }
    status = read_all(path, fd, text, (size_t)stat.st_size, &bytes, err);
    if (status == AKIN_OK)
        status = akin_fit_parse(text, bytes, path, fit, err);
out:
    free(text);
    (void)close(fd);
    return status;
}

static void note_failure(writer_t *writer)
{
    if (writer->code == 0)
        writer->code = errno != 0 ? errno : EIO;
}

/* Write a value, which is taken; NULL stands for one that JSON has not got. */
static void put(writer_t *writer, const char *key, json_t *value,
                size_t precision)
{
    if (value == NULL) {
        if (!writer->is_wrong)
            writer->wrong_key = key;
        writer->is_wrong = true;
    } else if (json_dumpf(value, writer->file,
                          JSON_ENCODE_ANY | JSON_COMPACT |
                              JSON_REAL_PRECISION(precision)) != 0) {
        note_failure(writer);
    }
    json_decref(value);
}

static void put_text(writer_t *writer, const char *text)
{
    if (fputs(text, writer->file) == EOF)
        note_failure(writer);
}

static void put_key(writer_t *writer, const char *key)
{
    put_text(writer, writer->is_first ? "{\n\"" : ",\n\"");
    put_text(writer, key);
    put_text(writer, "\": ");
    writer->is_first = false;
}

static void put_entry(writer_t *writer, const char *key, json_t *value)
{
    put_key(writer, key);
    put(writer, key, value, MAX_DOUBLE_DIGITS);
}

/* The fewest digits that read back the same; NaN leaves the key out. */
static void put_double(writer_t *writer, const char *key, double value)
{
    if (isnan(value))
        return;
    size_t digits = FLOAT_DIGITS;
    char text[40];
    for (; digits < MAX_DOUBLE_DIGITS; digits++) {
        (void)snprintf(text, sizeof(text), "%.*g", (int)digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    put_key(writer, key);
    put(writer, key, json_real(value), digits);
}

static void put_row(writer_t *writer, const char *key, const float *numbers,
                    size_t n)
{
    json_t *row = json_array();
    for (size_t i = 0; row != NULL && i < n; i++) {
        if (json_array_append_new(row, json_real((double)numbers[i])) != 0) {
            json_decref(row);
            row = NULL;
        }
    }
    put(writer, key, row, FLOAT_DIGITS);
}

static void put_rows(writer_t *writer, const char *key, const float *numbers,
                     size_t n_rows, size_t n)
{
    for (size_t i = 0; i < n_rows; i++) {
        put_text(writer, i == 0 ? "[\n" : ",\n");
        put_row(writer, key, numbers + i * n, n);
    }
    put_text(writer, "]");
}

static json_t *layers_json(const akin_fit_t *fit)
{
    json_t *layers = json_array();
    for (uint32_t i = 0; layers != NULL && i < fit->n_masked; i++) {
        if (json_array_append_new(layers, json_integer(fit->layers[i])) != 0) {
            json_decref(layers);
            return NULL;
        }
    }
    return layers;
}

static json_t *domains_json(const akin_fit_t *fit)
{
    json_t *domains = json_object();
    for (uint32_t i = 0; domains != NULL && i < fit->n_domains; i++) {
        if (json_object_set_new(domains, fit->domains[i].name,
                                json_integer(fit->domains[i].n_requests)) !=
            0) {
            json_decref(domains);
            return NULL;
        }
    }
    return domains;
}

static void put_idf(writer_t *writer, const akin_fit_t *fit)
{
    put_key(writer, "sig_idf");
    for (uint32_t i = 0; i < fit->n_masked; i++) {
        size_t first = (size_t)fit->layers[i] * fit->n_experts;
        for (uint32_t e = 0; e < fit->n_experts; e++) {
            put_text(writer, i == 0 && e == 0 ? "[" : e == 0 ? ",\n" : ",");
            put(writer, "sig_idf", json_real((double)fit->idf[first + e]),
                FLOAT_DIGITS);
        }
    }
    put_text(writer, "]");
}

static void put_pbar(writer_t *writer, const akin_fit_t *fit)
{
    size_t cells = (size_t)fit->n_layers * fit->n_experts;
    put_key(writer, "pbar");
    for (uint32_t k = 0; k < fit->n_clusters; k++) {
        put_text(writer, k == 0 ? "[" : ",\n");
        put_rows(writer, "pbar", fit->pbar + k * cells, fit->n_layers,
                 fit->n_experts);
    }
    put_text(writer, "]");
}

static void put_decode_map(writer_t *writer, const akin_decode_map_t *map)
{
    size_t cells = (size_t)map->n_layers * map->n_experts;
    put_key(writer, "decode_map");
    writer->is_first = true;
    put_entry(writer, "carry", json_real((double)map->carry));
    put_entry(writer, "prompt_tokens", json_real((double)map->prompt_tokens));
    put_key(writer, "prompt_mean");
    put_row(writer, "prompt_mean", map->prompt_mean, cells);
    put_key(writer, "decode_mean");
    put_row(writer, "decode_mean", map->decode_mean, cells);
    if (map->n_axes > 0) {
        put_key(writer, "axes");
        put_rows(writer, "axes", map->axes, map->n_axes, cells);
        put_key(writer, "responses");
        put_rows(writer, "responses", map->responses, map->n_axes, cells);
    }
    put_text(writer, "\n}");
}

static void put_fit(writer_t *writer, const akin_fit_t *fit)
{
    bool has_idf = fit->variant == AKIN_FIT_COUNT_IDF && fit->idf != NULL;
    if (fit->model != NULL)
        put_entry(writer, "model", json_string(fit->model));
    put_entry(writer, "algo", json_string("kmbal"));
    put_entry(writer, "k", json_integer(fit->n_clusters));
    put_entry(writer, "m", json_integer(fit->n_clusters));
    put_entry(writer, "L", json_integer(fit->n_layers));
    put_entry(writer, "e", json_integer(fit->n_experts));
    if (fit->top_k != 0)
        put_entry(writer, "top_k", json_integer(fit->top_k));
    if (fit->n_requests != 0)
        put_entry(writer, "n_fit", json_integer(fit->n_requests));
    put_entry(writer, "variant", json_string(has_idf ? "count_idf" : "count"));
    put_entry(writer, "layer_select",
              json_string(has_idf ? "forward_greedy" : "all"));
    put_entry(writer, "layer_mask", layers_json(fit));
    put_entry(writer, "sig_dtype", json_string("<i2"));
    /* Jansson's whole numbers are signed. */
    put_entry(writer, "seed",
              fit->seed > INT64_MAX ? NULL
                                    : json_integer((json_int_t)fit->seed));
    put_double(writer, "fit_peak_rho", fit->rho);
    put_double(writer, "tau", fit->tau);
    put_double(writer, "pull", fit->pull);
    if (fit->n_domains > 0)
        put_entry(writer, "domains", domains_json(fit));
    if (has_idf)
        put_idf(writer, fit);
    put_key(writer, "centroids");
    put_rows(writer, "centroids", fit->centroids, fit->n_clusters, fit->dim);
    if (fit->pbar != NULL)
        put_pbar(writer, fit);
    if (fit->decode_map.prompt_mean != NULL)
        put_decode_map(writer, &fit->decode_map);
    if (fit->placements != NULL)
        put_entry(writer, "placement", akini_fit_placement_json(fit));
    put_text(writer, "\n}\n");
}

/* Fill the file and make it durable. */
static akin_status_t write_file(writer_t *writer, const akin_fit_t *fit,
                                const char *path, akin_error_t *err)
{
    put_fit(writer, fit);
    if (writer->is_wrong)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: %s of the fit holds a value that JSON has "
                              "not got",
                              path, writer->wrong_key);
    if (fflush(writer->file) != 0 || fsync(fileno(writer->file)) != 0)
        note_failure(writer);
    if (writer->code != 0) {
        errno = writer->code;
        return fail_errno(path, "write", err);
    }
    struct stat stat;
    if (fstat(fileno(writer->file), &stat) != 0)
        return fail_errno(path, "stat", err);
    if ((uint64_t)stat.st_size > MAX_BYTES)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: the fit takes %lld bytes, a file has at "
                              "most %zu; make it with fewer clusters",
                              path, (long long)stat.st_size, MAX_BYTES);
    return AKIN_OK;
}

akin_status_t akin_fit_write(const akin_fit_t *fit, const char *path,
                             akin_error_t *err)
{
    struct stat there;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return akin_error_set(err, AKIN_ERR_IO,
                              "%s: is there and not a regular file; name "
                              "another for the fit",
                              path);
    char temporary[PATH_MAX];
    int n = snprintf(temporary, sizeof(temporary), "%s.tmp.%ld", path,
                     (long)getpid());
    if (n < 0 || (size_t)n >= sizeof(temporary))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "the path of the fit is too long");
    writer_t writer = {.file = fopen(temporary, "we"), .is_first = true};
    if (writer.file == NULL)
        return fail_errno(path, "create", err);
    akin_status_t status = write_file(&writer, fit, path, err);
    if (fclose(writer.file) != 0 && status == AKIN_OK)
        status = fail_errno(path, "write", err);
    if (status == AKIN_OK && rename(temporary, path) != 0)
        status = fail_errno(path, "rename", err);
    if (status != AKIN_OK)
        (void)unlink(temporary);
    return status;
}
