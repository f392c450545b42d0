/* Trace: the index and its mapped data. */
#include "routing/trace.h"

#include "routing/trace_file.h"
#include "routing/trace_index.h"
#include "routing/trace_rows.h"

#include <stdlib.h>

#define MAX_INDEX_BYTES ((uint64_t)1 << 30)
#define SHOWN "%.120s"

struct akin_trace {
    akini_trace_index_t index;
    uint8_t *data; /* mapped */
    size_t data_bytes;
};

static akin_status_t read_index(const char *path, akini_trace_index_t *index,
                                akin_error_t *err)
{
    void *map = NULL;
    size_t bytes = 0;
    akin_status_t status =
        akini_trace_file_map(path, MAX_INDEX_BYTES, &map, &bytes, err);
    if (status != AKIN_OK)
        return status;
    status = akini_trace_index_parse(map, bytes, path, index, err);
    akini_trace_file_unmap(map, bytes);
    return status;
}

/* The index's `data` beside it; without one its own name with .u8 for .json. */
static akin_status_t data_path(const char *path, const char *data,
                               char **data_p, akin_error_t *err)
{
    *data_p = NULL;
    if (data == NULL && !akini_trace_file_is_json(path))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: the index names no data file, and its own "
                              "name does not end in .json",
                              path);
    *data_p = data != NULL ? akini_trace_file_beside(path, data)
                           : akini_trace_file_renamed(path, ".u8");
    return *data_p != NULL
               ? AKIN_OK
               : akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory", path);
}

static akin_status_t check_data(const akin_trace_t *trace, const char *path,
                                akin_error_t *err)
{
    const akini_trace_index_t *index = &trace->index;
    const uint64_t row_bytes = akini_trace_row_bytes(&index->shape);
    akini_trace_checker_t checker = {0};
    akin_status_t status =
        akini_trace_checker_init(&index->shape, &checker, err);
    for (uint32_t i = 0; i < index->n_records && status == AKIN_OK; i++) {
        const akin_trace_record_t *record = &index->records[i];
        const uint64_t bytes = record->n_tokens * row_bytes;
        if (record->offset > trace->data_bytes ||
            bytes > trace->data_bytes - record->offset)
            status = akin_error_set(
                err, AKIN_ERR_FORMAT,
                "%llu bytes of rows from byte %llu on, the file ends at %zu: "
                "it is cut short, or not of this index",
                (unsigned long long)bytes, (unsigned long long)record->offset,
                trace->data_bytes);
        else
            status = akini_trace_check_bytes(
                &checker, trace->data + record->offset, record->n_tokens, err);
        if (status != AKIN_OK)
            status = akin_error_prefix(
                err, status, "%s: record \"" SHOWN "\": ", path, record->id);
    }
    akini_trace_checker_cleanup(&checker);
    return status;
}

akin_status_t akin_trace_open(const char *path, akin_trace_t **trace_p,
                              akin_error_t *err)
{
    char *data = NULL;
    void *map = NULL;
    *trace_p = NULL;
    akin_trace_t *trace = calloc(1, sizeof(*trace));
    if (trace == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory", path);
    akin_status_t status = read_index(path, &trace->index, err);
    if (status == AKIN_OK)
        status = data_path(path, trace->index.data, &data, err);
    if (status == AKIN_OK)
        status =
            akini_trace_file_map(data, SIZE_MAX, &map, &trace->data_bytes, err);
    trace->data = map;
    if (status == AKIN_OK)
        status = check_data(trace, data, err);
    free(data);
    if (status != AKIN_OK) {
        akin_trace_close(trace);
        return status;
    }
    *trace_p = trace;
    return AKIN_OK;
}

void akin_trace_close(akin_trace_t *trace)
{
    if (trace == NULL)
        return;
    akini_trace_file_unmap(trace->data, trace->data_bytes);
    akini_trace_index_cleanup(&trace->index);
    free(trace);
}

const akin_trace_shape_t *akin_trace_shape(const akin_trace_t *trace)
{
    return &trace->index.shape;
}

const char *akin_trace_model(const akin_trace_t *trace)
{
    return trace->index.model;
}

int akin_trace_prompt_stands_in(const akin_trace_t *trace)
{
    return trace->index.prompt_stands_in;
}

const akin_trace_record_t *akin_trace_records(const akin_trace_t *trace,
                                              uint32_t *n_p)
{
    *n_p = trace->index.n_records;
    return trace->index.records;
}

static const uint8_t *row_at(const akin_trace_t *trace, uint32_t record,
                             uint32_t row)
{
    return trace->data + trace->index.records[record].offset +
           row * akini_trace_row_bytes(&trace->index.shape);
}

void akin_trace_routes(const akin_trace_t *trace, uint32_t record,
                       uint32_t first, uint32_t n, uint16_t *routes)
{
    const akin_trace_shape_t *shape = &trace->index.shape;
    akini_trace_ids_unpack(shape, row_at(trace, record, first),
                           n * akini_trace_row_ids(shape), routes);
}

void akin_trace_count(const akin_trace_t *trace, uint32_t record,
                      uint32_t first, uint32_t n, uint16_t *counts)
{
    const akin_trace_shape_t *shape = &trace->index.shape;
    const uint8_t *id = row_at(trace, record, first);
    for (uint32_t r = 0; r < n; r++) {
        uint16_t *layer = counts;
        for (uint32_t l = 0; l < shape->n_layers; l++) {
            for (uint32_t j = 0; j < shape->top_k; j++) {
                uint16_t *cell = layer + *id++;
                if (shape->id_bytes == 2)
                    cell += *id++ << 8;
                *cell = (uint16_t)(*cell + (*cell != UINT16_MAX));
            }
            layer += shape->n_experts;
        }
    }
}
