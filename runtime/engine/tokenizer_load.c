/* Loading: tokenizer.json from a file or from text. */
#include "engine/tokenizer.h"

#include "engine/tokenizer_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The largest known files have 33 MB. */
#define FILE_BYTES_MAX ((size_t)256 << 20)

static akin_status_t build(const json_t *root, akin_tokenizer_t **tokenizer_p,
                           akin_error_t *err)
{
    akin_tokenizer_t *tokenizer = calloc(1, sizeof(*tokenizer));
    if (tokenizer == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    akin_status_t status = akini_tokenizer_read_pipeline(tokenizer, root, err);
    if (status == AKIN_OK)
        status = akini_tokenizer_read_vocab(tokenizer, root, err);
    if (status != AKIN_OK) {
        akin_tokenizer_destroy(tokenizer);
        return status;
    }
    *tokenizer_p = tokenizer;
    return AKIN_OK;
}

static akin_status_t parse(const char *text, size_t bytes,
                           akin_tokenizer_t **tokenizer_p, akin_error_t *err)
{
    if (bytes > FILE_BYTES_MAX)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%zu bytes are too many for a tokenizer.json "
                              "(at most %zu)",
                              bytes, FILE_BYTES_MAX);
    json_error_t json_error;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &json_error);
    if (root == NULL) {
        if (json_error_code(&json_error) == json_error_out_of_memory)
            return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
        return akin_error_set(err, AKIN_ERR_FORMAT, "line %d, column %d: %s",
                              json_error.line, json_error.column,
                              json_error.text);
    }
    akin_status_t status = AKIN_OK;
    if (json_is_object(root))
        status = build(root, tokenizer_p, err);
    else
        status = akin_error_set(err, AKIN_ERR_FORMAT,
                                "the file must hold one JSON object");
    json_decref(root);
    return status;
}

akin_status_t akin_tokenizer_parse(const char *text, size_t bytes,
                                   const char *name,
                                   akin_tokenizer_t **tokenizer_p,
                                   akin_error_t *err)
{
    *tokenizer_p = NULL;
    akin_status_t status = parse(text, bytes, tokenizer_p, err);
    return status == AKIN_OK ? AKIN_OK
                             : akin_error_prefix(err, status, "%s: ", name);
}

/* Read a whole regular file; the text is malloc'ed. */
static akin_status_t read_file(FILE *file, const char *path, char **text_p,
                               size_t *bytes_p, akin_error_t *err)
{
    struct stat info;
    if (fstat(fileno(file), &info) != 0)
        return akin_error_set(err, AKIN_ERR_IO, "%s: %s", path,
                              strerror(errno));
    if (!S_ISREG(info.st_mode))
        return akin_error_set(err, AKIN_ERR_IO, "%s: not a regular file", path);
    if ((uintmax_t)info.st_size > FILE_BYTES_MAX)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: %jd bytes are too many for a tokenizer.json "
                              "(at most %zu)",
                              path, (intmax_t)info.st_size, FILE_BYTES_MAX);
    size_t bytes = (size_t)info.st_size;
    char *text = malloc(bytes + 1);
    if (text == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory", path);
    if (fread(text, 1, bytes, file) != bytes) {
        int read_errno = ferror(file) ? errno : EIO;
        free(text);
        return akin_error_set(err, AKIN_ERR_IO, "%s: cannot be read: %s", path,
                              strerror(read_errno));
    }
    *text_p = text;
    *bytes_p = bytes;
    return AKIN_OK;
}

akin_status_t akin_tokenizer_load(const char *path,
                                  akin_tokenizer_t **tokenizer_p,
                                  akin_error_t *err)
{
    *tokenizer_p = NULL;
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        akin_status_t status =
            errno == ENOENT ? AKIN_ERR_NOT_FOUND : AKIN_ERR_IO;
        return akin_error_set(err, status, "%s: %s", path, strerror(errno));
    }
    char *text = NULL;
    size_t bytes = 0;
    akin_status_t status = read_file(file, path, &text, &bytes, err);
    (void)fclose(file);
    if (status == AKIN_OK)
        status = akin_tokenizer_parse(text, bytes, path, tokenizer_p, err);
    free(text);
    return status;
}
