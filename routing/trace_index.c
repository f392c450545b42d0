/* Trace index: what its JSON says, and whether that is consistent. */
#include "routing/trace_index.h"

#include "routing/trace_record.h"
#include "routing/trace_rows.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Texts of a file: a message shows this much of them. */
#define SHOWN "%.120s"

void akini_trace_index_cleanup(akini_trace_index_t *index)
{
    free(index->model);
    free(index->data);
    free(index->records);
    free(index->texts);
    memset(index, 0, sizeof(*index));
}

static akin_status_t copy_text(const char *text, char **copy_p,
                               akin_error_t *err)
{
    *copy_p = strdup(text);
    return *copy_p != NULL
               ? AKIN_OK
               : akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
}

/* A file beside the index, so that a trace can be moved and no index can make
 * us read anything else. */
static akin_status_t read_data_name(const json_t *root, char **data_p,
                                    akin_error_t *err)
{
    const char *name = "";
    akin_status_t status = akini_trace_json_text(root, "data", 1, &name, err);
    if (status != AKIN_OK)
        return status;
    if (strchr(name, '/') != NULL || strcmp(name, ".") == 0 ||
        strcmp(name, "..") == 0)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "\"data\" is \"" SHOWN "\", not the name of a "
                              "file beside the index",
                              name);
    return copy_text(name, data_p, err);
}

/* Sums per expert come as objects of objects by number. */
static int is_aggregated(const json_t *root)
{
    return json_is_object(json_object_get(root, "token_scores")) ||
           json_is_object(json_object_get(root, "gate_scores")) ||
           json_is_object(json_object_get(root, "0")) ||
           json_is_object(json_object_get(root, "1"));
}

static akin_status_t read_shape(const json_t *root, const char *layers,
                                akini_trace_index_t *index, akin_error_t *err)
{
    const char *model = "";
    akin_trace_shape_t *shape = &index->shape;
    akin_status_t status = AKIN_OK;
    if ((status = akini_trace_json_text(root, "model", 0, &model, err)) !=
            AKIN_OK ||
        (status = copy_text(model, &index->model, err)) != AKIN_OK ||
        (status = akini_trace_json_u32(root, layers, &shape->n_layers, err)) !=
            AKIN_OK ||
        (status = akini_trace_json_u32(root, "experts", &shape->n_experts,
                                       err)) != AKIN_OK)
        return status;
    return akini_trace_json_u32(root, "top_k", &shape->top_k, err);
}

akin_status_t akini_trace_head_parse(const json_t *json,
                                     akini_trace_index_t *index,
                                     akin_error_t *err)
{
    const json_t *format = json_object_get(json, "format");
    const json_t *stands_in = json_object_get(json, "prompt_stands_in");
    if (!json_is_string(format) ||
        strcmp(json_string_value(format), AKINI_TRACE_FORMAT) != 0)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "\"format\" is not \"" AKINI_TRACE_FORMAT "\"");
    akin_status_t status = read_shape(json, "layers", index, err);
    if (status == AKIN_OK)
        status =
            akini_trace_json_u32(json, "id_bytes", &index->shape.id_bytes, err);
    if (status == AKIN_OK)
        status = read_data_name(json, &index->data, err);
    if (status == AKIN_OK && stands_in != NULL && !json_is_boolean(stands_in))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "\"prompt_stands_in\" is not true or false");
    index->prompt_stands_in = json_is_true(stands_in);
    return status;
}

/* One of the published sets, whose rows are of one byte per id. */
static akin_status_t parse_foreign_head(const json_t *root,
                                        akini_trace_index_t *index,
                                        akin_error_t *err)
{
    const char *layers = "layers";
    if (json_object_get(root, "moe_layers") != NULL) {
        if (json_object_get(root, "layers") != NULL)
            return akin_error_set(err, AKIN_ERR_FORMAT,
                                  "both \"layers\" and \"moe_layers\"");
        layers = "moe_layers";
    }
    index->shape.id_bytes = 1;
    return read_shape(root, layers, index, err);
}

json_t *akini_trace_head_json(const akini_trace_index_t *index)
{
    json_t *json = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:s}", "format", AKINI_TRACE_FORMAT,
        "model", index->model, "layers", (json_int_t)index->shape.n_layers,
        "experts", (json_int_t)index->shape.n_experts, "top_k",
        (json_int_t)index->shape.top_k, "id_bytes",
        (json_int_t)index->shape.id_bytes, "data", index->data);
    if (json != NULL && index->prompt_stands_in &&
        json_object_set_new(json, "prompt_stands_in", json_true()) != 0) {
        json_decref(json);
        return NULL;
    }
    return json;
}

/* Move the texts of the records from the JSON into memory of the index. */
static akin_status_t keep_texts(akini_trace_index_t *index, akin_error_t *err)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < index->n_records; i++)
        bytes +=
            strlen(index->records[i].id) + strlen(index->records[i].domain) + 2;
    index->texts = malloc(bytes + 1);
    if (index->texts == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    char *next = index->texts;
    for (uint32_t i = 0; i < index->n_records; i++) {
        akin_trace_record_t *record = &index->records[i];
        const char *id = next;
        next = stpcpy(next, record->id) + 1;
        record->id = id;
        const char *domain = next;
        next = stpcpy(next, record->domain) + 1;
        record->domain = domain;
    }
    return AKIN_OK;
}

static akin_status_t read_records(const json_t *list, int ours,
                                  akini_trace_index_t *index, akin_error_t *err)
{
    const size_t n = json_array_size(list);
    if (n == 0 || n > UINT32_MAX)
        return akin_error_set(
            err, AKIN_ERR_FORMAT,
            "\"records\" is not a list of one record or more");
    index->records = calloc(n, sizeof(*index->records));
    if (index->records == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        json_t *json = json_array_get(list, i);
        akin_trace_record_t *record = &index->records[i];
        akin_status_t status =
            ours ? akini_trace_record_parse(json, record, err)
                 : akini_trace_record_parse_foreign(json, record, err);
        if (status != AKIN_OK)
            return akin_error_prefix(err, status, "records[%zu]: ", i);
    }
    index->n_records = (uint32_t)n;
    return keep_texts(index, err);
}

static int by_offset(const void *a, const void *b)
{
    const akin_trace_record_t *x = *(const akin_trace_record_t *const *)a;
    const akin_trace_record_t *y = *(const akin_trace_record_t *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Records that share a name, or rows, would be one request twice. */
static akin_status_t check_records(const akini_trace_index_t *index,
                                   akin_error_t *err)
{
    const uint32_t n = index->n_records;
    const uint64_t row_bytes = akini_trace_row_bytes(&index->shape);
    akin_status_t status = AKIN_OK;
    const akin_trace_record_t **order = calloc(n, sizeof(*order));
    if (order == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    for (uint32_t i = 0; i < n; i++)
        order[i] = &index->records[i];
    qsort(order, n, sizeof(*order), akini_trace_record_by_id);
    for (uint32_t i = 1; i < n && status == AKIN_OK; i++)
        if (strcmp(order[i - 1]->id, order[i]->id) == 0)
            status = akin_error_set(err, AKIN_ERR_FORMAT,
                                    "two records have the id \"" SHOWN "\"",
                                    order[i]->id);
    qsort(order, n, sizeof(*order), by_offset);
    for (uint32_t i = 1; i < n && status == AKIN_OK; i++)
        if (order[i]->offset - order[i - 1]->offset <
            order[i - 1]->n_tokens * row_bytes)
            status = akin_error_set(err, AKIN_ERR_FORMAT,
                                    "the rows of the records \"" SHOWN
                                    "\" and \"" SHOWN "\" overlap",
                                    order[i - 1]->id, order[i]->id);
    free(order);
    return status;
}

static akin_status_t read_root(const json_t *root, const char *name,
                               akini_trace_index_t *index, akin_error_t *err)
{
    const json_t *format = json_object_get(root, "format");
    const json_t *records = json_object_get(root, "records");
    if (!json_is_object(root))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: not the index of a trace: not an object",
                              name);
    if (format == NULL && records == NULL && is_aggregated(root))
        return akin_error_set(
            err, AKIN_ERR_FORMAT,
            "%s: sums per expert over all tokens; a trace needs the experts "
            "of each token, which cannot be had from sums",
            name);
    if (format == NULL && !json_is_array(records))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: not the index of a trace: no list "
                              "\"records\"",
                              name);
    akin_status_t status = format != NULL
                               ? akini_trace_head_parse(root, index, err)
                               : parse_foreign_head(root, index, err);
    if (status != AKIN_OK)
        return akin_error_prefix(err, status, "%s: ", name);
    status = akini_trace_shape_check(&index->shape, name, err);
    if (status != AKIN_OK)
        return status;
    status = read_records(records, format != NULL, index, err);
    if (status == AKIN_OK)
        status = check_records(index, err);
    return status == AKIN_OK ? status
                             : akin_error_prefix(err, status, "%s: ", name);
}

akin_status_t akini_trace_index_parse(const char *text, size_t bytes,
                                      const char *name,
                                      akini_trace_index_t *index,
                                      akin_error_t *err)
{
    json_error_t where;
    if (bytes == 0)
        return akin_error_set(err, AKIN_ERR_FORMAT, "%s: the file is empty",
                              name);
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL)
        return akin_error_set(err,
                              json_error_code(&where) ==
                                      json_error_out_of_memory
                                  ? AKIN_ERR_NOMEM
                                  : AKIN_ERR_FORMAT,
                              "%s:%d: not the index of a trace, or cut short: "
                              "%s",
                              name, where.line, where.text);
    akin_status_t status = read_root(root, name, index, err);
    json_decref(root);
    if (status != AKIN_OK)
        akini_trace_index_cleanup(index);
    return status;
}
