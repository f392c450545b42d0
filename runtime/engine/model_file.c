/* Model file: opening, bounded reading and JSON parsing. */
#include "engine/model_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *akini_model_path(const char *dir, const char *file)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", dir, file) < 0)
        return NULL;
    return path;
}

static akin_status_t fail_errno(const char *path, const char *verb,
                                akin_error_t *err)
{
    int code = errno;
    akin_status_t status = akin_status_from_errno(code);
    if (status != AKIN_ERR_NOT_FOUND && status != AKIN_ERR_NOMEM)
        status = AKIN_ERR_IO;
    return akin_error_set(err, status, "%s: cannot %s: %s", path, verb,
                          strerror(code));
}

akin_status_t akini_model_file_open(const char *path, int *fd_p,
                                    uint64_t *bytes_p, akin_error_t *err)
{
    /* Without O_NONBLOCK the open of a FIFO would wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fail_errno(path, "open", err);
    struct stat stat;
    akin_status_t status;
    if (fstat(fd, &stat) != 0)
        status = fail_errno(path, "stat", err);
    else if (S_ISDIR(stat.st_mode))
        status = akin_error_set(err, AKIN_ERR_IO,
                                "%s: is a directory, a file is needed", path);
    else if (!S_ISREG(stat.st_mode))
        status =
            akin_error_set(err, AKIN_ERR_IO, "%s: is not a regular file", path);
    else if (stat.st_size <= 0)
        status =
            akin_error_set(err, AKIN_ERR_FORMAT,
                           "%s: is empty; is the download complete?", path);
    else {
        *fd_p = fd;
        *bytes_p = (uint64_t)stat.st_size;
        return AKIN_OK;
    }
    (void)close(fd);
    return status;
}

akin_status_t akini_model_file_read(const char *path, size_t max_bytes,
                                    char **text_p, size_t *bytes_p,
                                    akin_error_t *err)
{
    int fd = -1;
    uint64_t size = 0;
    *text_p = NULL;
    akin_status_t status = akini_model_file_open(path, &fd, &size, err);
    if (status != AKIN_OK)
        return status;
    if (size > max_bytes) {
        status = akin_error_set(err, AKIN_ERR_FORMAT,
                                "%s: has %llu bytes, at most %zu are read",
                                path, (unsigned long long)size, max_bytes);
        goto err_close;
    }
    char *text = malloc((size_t)size);
    if (text == NULL) {
        status = akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory", path);
        goto err_close;
    }
    size_t n = 0;
    while (n < size) {
        ssize_t got = read(fd, text + n, (size_t)size - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            status = fail_errno(path, "read", err);
            goto err_free;
        }
        if (got == 0)
            break;
        n += (size_t)got;
    }
    (void)close(fd);
    *text_p = text;
    *bytes_p = n;
    return AKIN_OK;

err_free:
    free(text);
err_close:
    (void)close(fd);
    return status;
}

akin_status_t akini_model_json_parse(const char *text, size_t bytes,
                                     const char *name, json_t **object_p,
                                     akin_error_t *err)
{
    json_error_t why;
    *object_p = NULL;
    json_t *value = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
    if (value == NULL) {
        if (json_error_code(&why) == json_error_out_of_memory)
            return akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory",
                                  name);
        return akin_error_set(err, AKIN_ERR_FORMAT, "%s:%d:%d: %s", name,
                              why.line, why.column, why.text);
    }
    if (!json_is_object(value)) {
        json_decref(value);
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: must hold a JSON object", name);
    }
    *object_p = value;
    return AKIN_OK;
}

void akini_model_json_show(const json_t *value,
                           char text[AKINI_JSON_SHOWN_BYTES])
{
    char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    const char *shown = dump != NULL ? dump : "a value";
    int cut = strlen(shown) >= AKINI_JSON_SHOWN_BYTES;
    (void)snprintf(text, AKINI_JSON_SHOWN_BYTES, "%.77s%s", shown,
                   cut ? "..." : "");
    free(dump);
}
