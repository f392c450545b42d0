/* Safetensors header: 8 bytes of little-endian length, JSON, then the data in
 * which every byte belongs to exactly one tensor. */
#include "engine/safetensors_header.h"

#include "engine/model_file.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN,
               "tensors are used as they lie in the file: little-endian");

#define LENGTH_BYTES 8
/* The limit of the format's reference implementation. */
#define MAX_HEADER_BYTES UINT64_C(100000000)

/* Every element type of the format. Types that no kernel reads are still
 * parsed, because a file may hold them in tensors that the model leaves out.
 */
static const struct dtype {
    const char *name;
    unsigned bits;
    akin_dtype_t dtype;
} dtypes[] = {
    {"BF16", 16, AKIN_DTYPE_BF16},        {"F16", 16, AKIN_DTYPE_F16},
    {"F32", 32, AKIN_DTYPE_F32},          {"BOOL", 8, AKIN_DTYPE_COUNT},
    {"F4", 4, AKIN_DTYPE_COUNT},          {"F6_E2M3", 6, AKIN_DTYPE_COUNT},
    {"F6_E3M2", 6, AKIN_DTYPE_COUNT},     {"U8", 8, AKIN_DTYPE_COUNT},
    {"I8", 8, AKIN_DTYPE_COUNT},          {"F8_E5M2", 8, AKIN_DTYPE_COUNT},
    {"F8_E4M3", 8, AKIN_DTYPE_COUNT},     {"F8_E8M0", 8, AKIN_DTYPE_COUNT},
    {"F8_E4M3FNUZ", 8, AKIN_DTYPE_COUNT}, {"F8_E5M2FNUZ", 8, AKIN_DTYPE_COUNT},
    {"I16", 16, AKIN_DTYPE_COUNT},        {"U16", 16, AKIN_DTYPE_COUNT},
    {"I32", 32, AKIN_DTYPE_COUNT},        {"U32", 32, AKIN_DTYPE_COUNT},
    {"F64", 64, AKIN_DTYPE_COUNT},        {"I64", 64, AKIN_DTYPE_COUNT},
    {"U64", 64, AKIN_DTYPE_COUNT},        {"C64", 64, AKIN_DTYPE_COUNT},
};

/* Names come from the file: a message shows this much of them. */
#define SHOWN "%.120s"

static const struct dtype *dtype_find(const char *name)
{
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return &dtypes[i];
    return NULL;
}

/* An element of an array that must be a whole number >= 0. */
static int get_size(const json_t *array, size_t i, uint64_t *size_p)
{
    const json_t *value = json_array_get(array, i);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return 0;
    *size_p = (uint64_t)json_integer_value(value);
    return 1;
}

static akin_status_t parse_shape(const json_t *shape, akin_tensor_t *tensor,
                                 akin_error_t *err)
{
    if (!json_is_array(shape))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: tensor \"" SHOWN
                              "\": \"shape\" must be an array",
                              tensor->file, tensor->name);
    size_t n = json_array_size(shape);
    if (n > AKIN_TENSOR_MAX_DIMS)
        return akin_error_set(
            err, AKIN_ERR_UNSUPPORTED,
            "%s: tensor \"" SHOWN "\" has %zu dimensions, at most %d are read",
            tensor->file, tensor->name, n, AKIN_TENSOR_MAX_DIMS);
    tensor->n_dims = (uint32_t)n;
    for (size_t i = 0; i < n; i++)
        if (!get_size(shape, i, &tensor->shape[i]))
            return akin_error_set(err, AKIN_ERR_FORMAT,
                                  "%s: tensor \"" SHOWN
                                  "\": \"shape\"[%zu] must be a whole number, "
                                  "0 or more",
                                  tensor->file, tensor->name, i);
    return AKIN_OK;
}

/* Bytes that shape and element type ask for; 0 if they cannot be counted. */
static int count_bytes(const akin_tensor_t *tensor, unsigned bits,
                       uint64_t *bytes_p)
{
    uint64_t n = bits;
    for (uint32_t i = 0; i < tensor->n_dims; i++)
        if (__builtin_mul_overflow(n, tensor->shape[i], &n))
            return 0;
    *bytes_p = n / 8;
    return n % 8 == 0;
}

/* One entry of the header; name and file are set already. */
static akin_status_t parse_tensor(const json_t *entry, const char *data,
                                  uint64_t data_bytes, akin_tensor_t *tensor,
                                  akin_error_t *err)
{
    const char *file = tensor->file;
    const char *name = tensor->name;
    const json_t *dtype = json_object_get(entry, "dtype");
    if (!json_is_string(dtype))
        return akin_error_set(
            err, AKIN_ERR_FORMAT,
            "%s: tensor \"" SHOWN "\": \"dtype\" must be a string", file, name);
    const struct dtype *type = dtype_find(json_string_value(dtype));
    if (type == NULL)
        return akin_error_set(err, AKIN_ERR_UNSUPPORTED,
                              "%s: tensor \"" SHOWN
                              "\" has the unknown dtype \"%.40s\"",
                              file, name, json_string_value(dtype));
    tensor->dtype = type->dtype;
    tensor->dtype_name = type->name;

    akin_status_t status =
        parse_shape(json_object_get(entry, "shape"), tensor, err);
    if (status != AKIN_OK)
        return status;

    const json_t *offsets = json_object_get(entry, "data_offsets");
    uint64_t begin;
    uint64_t end;
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
        !get_size(offsets, 0, &begin) || !get_size(offsets, 1, &end))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: tensor \"" SHOWN "\": \"data_offsets\" must "
                              "be two whole numbers, 0 or more",
                              file, name);
    if (begin > end)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: tensor \"" SHOWN
                              "\": \"data_offsets\" [%llu, %llu] run backwards",
                              file, name, (unsigned long long)begin,
                              (unsigned long long)end);
    if (end > data_bytes)
        return akin_error_set(
            err, AKIN_ERR_FORMAT,
            "%s: tensor \"" SHOWN
            "\": \"data_offsets\" [%llu, %llu] end beyond "
            "the file, which holds %llu bytes of data; is the download "
            "complete?",
            file, name, (unsigned long long)begin, (unsigned long long)end,
            (unsigned long long)data_bytes);
    if (!count_bytes(tensor, type->bits, &tensor->bytes))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: tensor \"" SHOWN
                              "\": \"shape\" and dtype %s make no whole number "
                              "of bytes below 2^61",
                              file, name, type->name);
    if (tensor->bytes != end - begin)
        return akin_error_set(
            err, AKIN_ERR_FORMAT,
            "%s: tensor \"" SHOWN "\": \"shape\" and dtype %s ask for %llu "
            "bytes, \"data_offsets\" [%llu, %llu] give %llu",
            file, name, type->name, (unsigned long long)tensor->bytes,
            (unsigned long long)begin, (unsigned long long)end,
            (unsigned long long)(end - begin));
    tensor->data = data + begin;
    return AKIN_OK;
}

static akin_status_t check_metadata(json_t *metadata, const char *file,
                                    akin_error_t *err)
{
    if (!json_is_object(metadata))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: \"__metadata__\" must be an object", file);
    const char *key;
    json_t *value;
    json_object_foreach(metadata, key, value) if (
        !json_is_string(
            value)) return akin_error_set(err, AKIN_ERR_FORMAT,
                                          "%s: \"__metadata__\": \"" SHOWN
                                          "\" must be a string",
                                          file, key);
    return AKIN_OK;
}

/* By place; an empty tensor comes before the one that starts where it lies. */
static int compare_places(const void *a_p, const void *b_p)
{
    const akin_tensor_t *a = a_p;
    const akin_tensor_t *b = b_p;
    uintptr_t a_start = (uintptr_t)a->data;
    uintptr_t b_start = (uintptr_t)b->data;
    if (a_start != b_start)
        return a_start < b_start ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* After sorting: every byte of the data belongs to exactly one tensor. A hole
 * could hide anything, and an overlap means that one of the two is wrong. */
static akin_status_t check_places(const akini_tensor_header_t *header,
                                  const char *data, uint64_t data_bytes,
                                  const char *file, akin_error_t *err)
{
    uint64_t end = 0;
    for (size_t i = 0; i < header->n_tensors; i++) {
        const akin_tensor_t *tensor = &header->tensors[i];
        uint64_t begin = (uint64_t)((const char *)tensor->data - data);
        if (begin < end)
            return akin_error_set(
                err, AKIN_ERR_FORMAT,
                "%s: tensor \"" SHOWN "\" overlaps tensor \"" SHOWN "\"", file,
                tensor->name, header->tensors[i - 1].name);
        if (begin > end)
            return akin_error_set(
                err, AKIN_ERR_FORMAT,
                "%s: a hole of %llu bytes lies before tensor \"" SHOWN "\"",
                file, (unsigned long long)(begin - end), tensor->name);
        end = begin + tensor->bytes;
    }
    if (end != data_bytes)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: %llu bytes after the last tensor belong to "
                              "none",
                              file, (unsigned long long)(data_bytes - end));
    return AKIN_OK;
}

/* Room for the tensors and for their names. */
static akin_status_t allocate(json_t *root, const char *file,
                              akini_tensor_header_t *header, akin_error_t *err)
{
    size_t name_bytes = 1;
    const char *key;
    json_t *entry;
    json_object_foreach(root, key, entry) name_bytes += strlen(key) + 1;
    header->names = malloc(name_bytes);
    header->tensors =
        calloc(json_object_size(root) + 1, sizeof(*header->tensors));
    if (header->names == NULL || header->tensors == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory", file);
    return AKIN_OK;
}

static akin_status_t parse_entries(json_t *root, const char *data,
                                   uint64_t data_bytes, const char *file,
                                   akini_tensor_header_t *header,
                                   akin_error_t *err)
{
    akin_status_t status = allocate(root, file, header, err);
    if (status != AKIN_OK)
        return status;
    char *name = header->names;
    const char *key;
    json_t *entry;
    json_object_foreach(root, key, entry)
    {
        if (strcmp(key, "__metadata__") == 0) {
            status = check_metadata(entry, file, err);
            if (status != AKIN_OK)
                return status;
            continue;
        }
        akin_tensor_t *tensor = &header->tensors[header->n_tensors++];
        size_t bytes = strlen(key) + 1;
        memcpy(name, key, bytes);
        tensor->name = name;
        tensor->file = file;
        name += bytes;
        status = parse_tensor(entry, data, data_bytes, tensor, err);
        if (status != AKIN_OK)
            return status;
    }
    qsort(header->tensors, header->n_tensors, sizeof(*header->tensors),
          compare_places);
    header->bytes = data_bytes;
    return check_places(header, data, data_bytes, file, err);
}

akin_status_t akini_tensor_header_parse(const void *data, size_t bytes,
                                        const char *file,
                                        akini_tensor_header_t *header_p,
                                        akin_error_t *err)
{
    if (bytes < LENGTH_BYTES)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: %zu bytes are too short for a safetensors "
                              "file, whose header length alone takes 8",
                              file, bytes);
    uint64_t length;
    memcpy(&length, data, LENGTH_BYTES);
    if (length > MAX_HEADER_BYTES)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: header length %llu is above the format's "
                              "limit of %llu; is this a safetensors file?",
                              file, (unsigned long long)length,
                              (unsigned long long)MAX_HEADER_BYTES);
    if (length > bytes - LENGTH_BYTES)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: header length %llu goes beyond the file of "
                              "%zu bytes; is the download complete?",
                              file, (unsigned long long)length, bytes);
    const char *text = (const char *)data + LENGTH_BYTES;
    if (length == 0 || text[0] != '{')
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: the header does not start with '{'; is this "
                              "a safetensors file?",
                              file);

    json_t *root = NULL;
    akini_tensor_header_t header = {0};
    akin_status_t status =
        akini_model_json_parse(text, (size_t)length, file, &root, err);
    if (status != AKIN_OK)
        return akin_error_prefix(err, status, "safetensors header of ");
    status = parse_entries(root, text + length, bytes - LENGTH_BYTES - length,
                           file, &header, err);
    json_decref(root);
    if (status != AKIN_OK) {
        akini_tensor_header_cleanup(&header);
        return status;
    }
    *header_p = header;
    return AKIN_OK;
}

void akini_tensor_header_cleanup(akini_tensor_header_t *header)
{
    free(header->tensors);
    free(header->names);
    *header = (akini_tensor_header_t){0};
}

akin_status_t akin_tensor_image_check(const void *data, size_t bytes,
                                      const char *name, akin_error_t *err)
{
    akini_tensor_header_t header = {0};
    akin_status_t status =
        akini_tensor_header_parse(data, bytes, name, &header, err);
    if (status == AKIN_OK)
        akini_tensor_header_cleanup(&header);
    return status;
}
