/* Batch resume: checks output lines and collects whom they answer. */
#include "roles/batch_resume.h"

#include "roles/batch_input.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define LINE_ID_PREFIX "batch_req_line-"

typedef struct scan {
    const char *path;
    akin_id_set_t *done;
    akin_batch_resume_t *found;
    akin_error_t *err;
} scan_t;

static akin_status_t refuse(const scan_t *scan, uint64_t line, const char *what)
{
    return akin_error_set(scan->err, AKIN_ERR_FORMAT,
                          "%s:%llu: %s, so the run cannot go on with this "
                          "file: remove the line, or write to another file",
                          scan->path, (unsigned long long)line, what);
}

/* Line of the input that an error line without custom_id is about; 0: none. */
static uint64_t line_of_id(const json_t *id)
{
    const char *text = json_string_value(id);
    const size_t prefix = sizeof(LINE_ID_PREFIX) - 1;
    if (text == NULL || strncmp(text, LINE_ID_PREFIX, prefix) != 0 ||
        text[prefix] < '1' || text[prefix] > '9')
        return 0;
    char *end;
    errno = 0;
    unsigned long long line = strtoull(text + prefix, &end, 10);
    return errno == 0 && *end == '\0' ? line : 0;
}

static akin_status_t take_object(const scan_t *scan, const json_t *object,
                                 uint64_t number)
{
    const json_t *id = json_object_get(object, "custom_id");
    const json_t *response = json_object_get(object, "response");
    const json_t *error = json_object_get(object, "error");
    const json_t *code = json_object_get(response, "status_code");
    if (!json_is_string(id) && !json_is_null(id))
        return refuse(scan, number, "no line of batch output (custom_id)");
    /* OpenAI leaves the response out where no HTTP request was made. */
    const int no_response = json_is_null(response) && json_is_object(error);
    if (!json_is_integer(code) && !no_response)
        return refuse(scan, number, "no line of batch output (response)");

    akin_status_t status = AKIN_OK;
    if (json_is_string(id)) {
        status =
            akin_id_set_add(scan->done, json_string_value(id), number, NULL);
    } else {
        uint64_t line = line_of_id(json_object_get(object, "id"));
        if (line != 0)
            status = akin_id_set_add_line(scan->done, line);
    }
    if (status == AKIN_ERR_EXISTS)
        return refuse(scan, number, "a second answer to one request");
    if (status != AKIN_OK)
        return akin_error_set(scan->err, status, "%s:%llu: out of memory",
                              scan->path, (unsigned long long)number);
    const json_int_t http = no_response ? 500 : json_integer_value(code);
    scan->found->n_lines++;
    if (http == 200)
        scan->found->n_ok++;
    else
        scan->found->n_failed++;
    if (http >= 500)
        scan->found->n_server++;
    return AKIN_OK;
}

static akin_status_t take_line(const scan_t *scan,
                               const akin_batch_line_t *line)
{
    if (line->too_long)
        return refuse(scan, line->number, "a line of more than 64 MiB");
    json_error_t at;
    json_t *object = json_loadb(line->text, line->bytes,
                                JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &at);
    if (object == NULL) {
        if (json_error_code(&at) == json_error_out_of_memory)
            return akin_error_set(scan->err, AKIN_ERR_NOMEM,
                                  "%s:%llu: out of memory", scan->path,
                                  (unsigned long long)line->number);
        return refuse(scan, line->number, "not valid JSON");
    }
    akin_status_t status = take_object(scan, object, line->number);
    json_decref(object);
    return status;
}

static int is_torn_output(const akin_batch_line_t *line)
{
    static const char start[] = "{\"id\"";
    if (line->too_long)
        return 0;
    size_t n =
        sizeof(start) - 1 < line->bytes ? sizeof(start) - 1 : line->bytes;
    if (memcmp(line->text, start, n) == 0)
        return 1;
    for (size_t i = 0; i < line->bytes; i++)
        if (line->text[i] != '\0')
            return 0;
    return 1;
}

akin_status_t akini_batch_resume_scan(const char *path, akin_id_set_t *done,
                                      akin_batch_resume_t *resume_p,
                                      uint64_t *keep_p, akin_error_t *err)
{
    memset(resume_p, 0, sizeof(*resume_p));
    *keep_p = 0;
    akin_batch_input_t *input;
    akin_status_t status =
        akin_batch_input_open(path, AKIN_BATCH_OUTPUT_LINE_BYTES, &input, err);
    if (status != AKIN_OK)
        return status;
    const scan_t scan = {path, done, resume_p, err};
    akin_batch_line_t line;
    while ((status = akin_batch_input_next(input, &line, err)) == AKIN_OK) {
        if (line.torn && is_torn_output(&line)) {
            resume_p->torn_bytes = line.bytes;
            continue;
        }
        status = line.torn ? refuse(&scan, line.number,
                                    "the file ends with a piece of text that "
                                    "is no batch output")
                           : take_line(&scan, &line);
        if (status != AKIN_OK)
            break;
    }
    *keep_p = akin_batch_input_offset(input) - resume_p->torn_bytes;
    akin_batch_input_close(input);
    return status == AKIN_ERR_NOT_FOUND ? AKIN_OK : status;
}
