/* Trace rows: packed, unpacked and checked. */
#include "routing/trace_rows.h"

#include <stdlib.h>
#include <string.h>

akin_status_t akini_trace_shape_check(const akin_trace_shape_t *shape,
                                      const char *name, akin_error_t *err)
{
    if (shape->n_layers == 0 || shape->n_experts == 0 || shape->top_k == 0)
        return akin_error_set(
            err, AKIN_ERR_FORMAT,
            "%s: %u layers, %u experts, top_k %u: each must be 1 or more", name,
            shape->n_layers, shape->n_experts, shape->top_k);
    if (shape->n_experts > AKINI_TRACE_MAX_EXPERTS ||
        (uint64_t)shape->n_layers * shape->n_experts > AKINI_TRACE_MAX_CELLS)
        return akin_error_set(
            err, AKIN_ERR_FORMAT,
            "%s: %u layers of %u experts: at most %u experts and %llu in all "
            "layers are possible",
            name, shape->n_layers, shape->n_experts, AKINI_TRACE_MAX_EXPERTS,
            (unsigned long long)AKINI_TRACE_MAX_CELLS);
    if (shape->top_k > shape->n_experts)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: top_k is %u of %u experts", name,
                              shape->top_k, shape->n_experts);
    if (shape->id_bytes != 1 && shape->id_bytes != 2)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: id_bytes is %u, it must be 1 or 2", name,
                              shape->id_bytes);
    if (shape->id_bytes == 1 && shape->n_experts > 256)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: ids of one byte cannot name %u experts",
                              name, shape->n_experts);
    return AKIN_OK;
}

void akini_trace_ids_unpack(const akin_trace_shape_t *shape,
                            const uint8_t *bytes, size_t n_ids, uint16_t *ids)
{
    if (shape->id_bytes == 1) {
        for (size_t i = 0; i < n_ids; i++)
            ids[i] = bytes[i];
        return;
    }
    for (size_t i = 0; i < n_ids; i++)
        ids[i] = (uint16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8);
}

void akini_trace_ids_pack(const akin_trace_shape_t *shape, const uint16_t *ids,
                          size_t n_ids, uint8_t *bytes)
{
    if (shape->id_bytes == 1) {
        for (size_t i = 0; i < n_ids; i++)
            bytes[i] = (uint8_t)ids[i];
        return;
    }
    for (size_t i = 0; i < n_ids; i++) {
        bytes[2 * i] = (uint8_t)(ids[i] & 0xffu);
        bytes[2 * i + 1] = (uint8_t)(ids[i] >> 8);
    }
}

akin_status_t akini_trace_checker_init(const akin_trace_shape_t *shape,
                                       akini_trace_checker_t *checker,
                                       akin_error_t *err)
{
    checker->shape = *shape;
    checker->stamp = 0;
    checker->seen = calloc(shape->n_experts, sizeof(*checker->seen));
    checker->ids = calloc(akini_trace_row_ids(shape), sizeof(*checker->ids));
    if (checker->seen == NULL || checker->ids == NULL) {
        akini_trace_checker_cleanup(checker);
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    }
    return AKIN_OK;
}

void akini_trace_checker_cleanup(akini_trace_checker_t *checker)
{
    free(checker->seen);
    free(checker->ids);
    checker->seen = NULL;
    checker->ids = NULL;
}

akin_status_t akini_trace_check_row(akini_trace_checker_t *checker,
                                    const uint16_t *ids, uint32_t row,
                                    akin_error_t *err)
{
    const akin_trace_shape_t *shape = &checker->shape;
    for (uint32_t l = 0; l < shape->n_layers; l++, ids += shape->top_k) {
        if (++checker->stamp == 0) {
            memset(checker->seen, 0, shape->n_experts * sizeof(*checker->seen));
            checker->stamp = 1;
        }
        for (uint32_t j = 0; j < shape->top_k; j++) {
            if (ids[j] >= shape->n_experts)
                return akin_error_set(
                    err, AKIN_ERR_FORMAT,
                    "row %u, layer %u: expert %u, the model has %u", row, l,
                    (unsigned)ids[j], shape->n_experts);
            if (checker->seen[ids[j]] == checker->stamp)
                return akin_error_set(err, AKIN_ERR_FORMAT,
                                      "row %u, layer %u: expert %u twice", row,
                                      l, (unsigned)ids[j]);
            checker->seen[ids[j]] = checker->stamp;
        }
    }
    return AKIN_OK;
}

akin_status_t akini_trace_check_bytes(akini_trace_checker_t *checker,
                                      const uint8_t *bytes, uint32_t n_rows,
                                      akin_error_t *err)
{
    const size_t n_ids = akini_trace_row_ids(&checker->shape);
    const size_t row_bytes = akini_trace_row_bytes(&checker->shape);
    for (uint32_t r = 0; r < n_rows; r++, bytes += row_bytes) {
        akini_trace_ids_unpack(&checker->shape, bytes, n_ids, checker->ids);
        akin_status_t status =
            akini_trace_check_row(checker, checker->ids, r, err);
        if (status != AKIN_OK)
            return status;
    }
    return AKIN_OK;
}
