/* Trace journal: its lines written and read back. */
#include "routing/trace_journal.h"

#include "base/log.h"
#include "routing/trace_record.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two texts with every byte escaped, and the numbers. */
#define MAX_LINE_BYTES ((size_t)16 * AKINI_TRACE_MAX_TEXT)

#define SHOWN "%.120s"

/* One line of compact JSON; takes the reference. */
static char *dump_line(json_t *json)
{
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (text == NULL)
        return NULL;
    const size_t length = strlen(text);
    char *line = malloc(length + 2);
    if (line != NULL) {
        memcpy(line, text, length);
        memcpy(line + length, "\n", 2);
    }
    free(text);
    return line;
}

char *akini_trace_journal_head(const akini_trace_index_t *index)
{
    return dump_line(akini_trace_head_json(index));
}

char *akini_trace_journal_line(const akin_trace_record_t *record, uint64_t hash)
{
    json_t *json = akini_trace_record_json(record);
    if (json == NULL)
        return NULL;
    json_t *text = json_sprintf("%016llx", (unsigned long long)hash);
    if (json_object_set_new(json, "hash", text) != 0) {
        json_decref(json);
        return NULL;
    }
    return dump_line(json);
}

/* Is this the line of the same trace? If not, say what differs. */
static akin_status_t check_head(const char *text, size_t bytes,
                                const char *name,
                                const akini_trace_index_t *index,
                                akin_error_t *err)
{
    akini_trace_index_t head = {0};
    json_t *json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    akin_status_t status =
        json != NULL ? akini_trace_head_parse(json, &head, err)
                     : akin_error_set(err, AKIN_ERR_FORMAT, "not JSON");
    json_decref(json);
    const akin_trace_shape_t *a = &head.shape, *b = &index->shape;
    if (status != AKIN_OK)
        status = akin_error_prefix(err, status,
                                   "%s:1: not the journal of a trace: ", name);
    else if (strcmp(head.model, index->model) != 0)
        status = akin_error_set(err, AKIN_ERR_FORMAT,
                                "%s: a trace of the model \"" SHOWN
                                "\" was begun there, not of \"" SHOWN
                                "\"; remove it or name another output",
                                name, head.model, index->model);
    else if (a->n_layers != b->n_layers || a->n_experts != b->n_experts ||
             a->top_k != b->top_k || a->id_bytes != b->id_bytes)
        status = akin_error_set(
            err, AKIN_ERR_FORMAT,
            "%s: a trace of %u layers, %u experts, top_k %u, id_bytes %u was "
            "begun there, this one has %u, %u, %u and %u; remove it or name "
            "another output",
            name, a->n_layers, a->n_experts, a->top_k, a->id_bytes, b->n_layers,
            b->n_experts, b->top_k, b->id_bytes);
    else if (strcmp(head.data, index->data) != 0 ||
             head.prompt_stands_in != index->prompt_stands_in)
        status = akin_error_set(err, AKIN_ERR_FORMAT,
                                "%s: a trace was begun there with data \"" SHOWN
                                "\" and prompts that %s; remove it or name "
                                "another output",
                                name, head.data,
                                head.prompt_stands_in ? "stand in"
                                                      : "were recorded");
    akini_trace_index_cleanup(&head);
    return status;
}

static akin_status_t take_line(const char *line, size_t bytes,
                               akini_trace_journal_fn_t take, void *arg,
                               akin_error_t *err)
{
    akin_trace_record_t record;
    json_t *json = bytes <= MAX_LINE_BYTES
                       ? json_loadb(line, bytes, JSON_REJECT_DUPLICATES, NULL)
                       : NULL;
    if (json == NULL)
        return akin_error_set(err, AKIN_ERR_FORMAT, "not JSON");
    akin_status_t status = akini_trace_record_parse(json, &record, err);
    if (status == AKIN_OK) {
        const char *text = json_string_value(json_object_get(json, "hash"));
        char *end = NULL;
        unsigned long long hash = text != NULL ? strtoull(text, &end, 16) : 0;
        status = text == NULL || strlen(text) != 16 || *end != '\0'
                     ? akin_error_set(err, AKIN_ERR_FORMAT, "no \"hash\"")
                     : take(arg, &record, hash, err);
    }
    json_decref(json);
    return status;
}

akin_status_t akini_trace_journal_scan(const char *text, size_t bytes,
                                       const char *name,
                                       const akini_trace_index_t *index,
                                       akini_trace_journal_fn_t take, void *arg,
                                       uint64_t *keep_p, akin_error_t *err)
{
    unsigned long n = 0;
    *keep_p = 0;
    if (bytes == 0)
        return AKIN_OK;
    const char *at = text;
    const char *limit = text + bytes;
    while (at < limit) {
        const char *end = memchr(at, '\n', (size_t)(limit - at));
        akin_error_t why = {{0}};
        akin_status_t status;
        if (end == NULL)
            break;
        n++;
        if (n == 1)
            status = check_head(at, (size_t)(end - at), name, index, err);
        else
            status = take_line(at, (size_t)(end - at), take, arg, &why);
        if (n > 1 && status == AKIN_ERR_FORMAT) {
            AKIN_LOG(ROUTING, WARN,
                     "%s:%lu: %s: this record and those after it are left out",
                     name, n, why.text);
            break;
        }
        if (status != AKIN_OK)
            return n == 1 ? status
                          : akin_error_set(err, status, "%s:%lu: %s", name, n,
                                           why.text);
        at = end + 1;
    }
    *keep_p = (uint64_t)(at - text);
    if (*keep_p > 0)
        return AKIN_OK;
    /* A file that could not be the beginning of ours is somebody else's. */
    char *head = akini_trace_journal_head(index);
    akin_status_t status =
        head == NULL
            ? akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory", name)
        : bytes > strlen(head) || memcmp(text, head, bytes) != 0
            ? akin_error_set(err, AKIN_ERR_FORMAT,
                             "%s:1: not the journal of a trace", name)
            : AKIN_OK;
    free(head);
    return status;
}
