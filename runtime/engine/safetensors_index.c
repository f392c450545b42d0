/* Safetensors index: reading and checking model.safetensors.index.json. */
#include "engine/safetensors_index.h"

#include "engine/model_file.h"

#include <stdlib.h>
#include <string.h>

/* The largest published index has 4 MB; 36,945 tensors. */
#define MAX_INDEX_BYTES ((size_t)256 << 20)
/* Every shard is a mapping, and Linux gives a process about 65,530. */
#define MAX_SHARDS 16384

static int is_plain_name(const char *name)
{
    return name[0] != '\0' && strchr(name, '/') == NULL &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static akin_status_t read_total(akini_tensor_index_t *index, const char *path,
                                akin_error_t *err)
{
    const json_t *metadata = json_object_get(index->root, "metadata");
    const json_t *total = json_object_get(metadata, "total_size");
    if (metadata != NULL && !json_is_object(metadata))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: \"metadata\" must be an object", path);
    if (total == NULL)
        return AKIN_OK;
    if (!json_is_integer(total) || json_integer_value(total) < 0)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: \"metadata.total_size\" must be a whole "
                              "number of bytes",
                              path);
    index->has_total_bytes = 1;
    index->total_bytes = (uint64_t)json_integer_value(total);
    return AKIN_OK;
}

static akin_status_t read_weight_map(akini_tensor_index_t *index,
                                     const char *path, akin_error_t *err)
{
    index->weight_map = json_object_get(index->root, "weight_map");
    if (!json_is_object(index->weight_map) ||
        json_object_size(index->weight_map) == 0)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: \"weight_map\" must be an object that names "
                              "a shard for every tensor",
                              path);
    const char *name;
    json_t *value;
    json_object_foreach(index->weight_map, name, value)
    {
        const char *shard = json_string_value(value);
        if (shard == NULL)
            return akin_error_set(err, AKIN_ERR_FORMAT,
                                  "%s: \"weight_map\": the shard of \"%.120s\" "
                                  "must be a string",
                                  path, name);
        if (!is_plain_name(shard))
            return akin_error_set(err, AKIN_ERR_FORMAT,
                                  "%s: \"weight_map\": the shard \"%.80s\" of "
                                  "\"%.120s\" must be a plain file name",
                                  path, shard, name);
        if (json_object_get(index->shards, shard) != NULL)
            continue;
        size_t n = json_object_size(index->shards);
        if (n == MAX_SHARDS)
            return akin_error_set(err, AKIN_ERR_FORMAT,
                                  "%s: \"weight_map\" names more than %d "
                                  "shards",
                                  path, MAX_SHARDS);
        if (json_object_set_new(index->shards, shard,
                                json_integer((json_int_t)n)) != 0)
            return akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory",
                                  path);
    }
    return AKIN_OK;
}

akin_status_t akini_tensor_index_read(const char *path,
                                      akini_tensor_index_t *index_p,
                                      akin_error_t *err)
{
    char *text = NULL;
    size_t bytes = 0;
    akini_tensor_index_t index = {0};
    akin_status_t status =
        akini_model_file_read(path, MAX_INDEX_BYTES, &text, &bytes, err);
    if (status != AKIN_OK)
        return status;
    status = akini_model_json_parse(text, bytes, path, &index.root, err);
    free(text);
    if (status != AKIN_OK)
        return status;
    index.shards = json_object();
    if (index.shards == NULL)
        status = akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory", path);
    if (status == AKIN_OK)
        status = read_total(&index, path, err);
    if (status == AKIN_OK)
        status = read_weight_map(&index, path, err);
    if (status != AKIN_OK) {
        akini_tensor_index_cleanup(&index);
        return status;
    }
    *index_p = index;
    return AKIN_OK;
}

void akini_tensor_index_cleanup(akini_tensor_index_t *index)
{
    json_decref(index->shards);
    json_decref(index->root);
    *index = (akini_tensor_index_t){0};
}
