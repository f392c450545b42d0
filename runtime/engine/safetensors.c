/* Safetensors: a set of mapped files and the lookup of tensors by name. */
#include "engine/safetensors.h"

#include "base/log.h"
#include "engine/model_file.h"
#include "engine/safetensors_header.h"
#include "engine/safetensors_index.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Without these two uthash ends the process when memory runs out. */
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element)->lost = 1)
#include <uthash.h>

#define SINGLE_FILE "model.safetensors"
#define INDEX_FILE "model.safetensors.index.json"
/* Tensor names come from files: a message shows this much of them. */
#define SHOWN "%.120s"

struct node {
    const akin_tensor_t *tensor;
    int lost; /* uthash had no memory for it */
    UT_hash_handle hh;
};

struct shard {
    char *path;
    void *map;
    size_t map_bytes;
    akini_tensor_header_t header;
    struct node *nodes; /* [header.n_tensors] */
};

struct akin_tensor_set {
    char *source; /* the file that lists the tensors, for messages */
    struct shard *shards;
    size_t n_shards;
    struct node *by_name;
    uint64_t bytes;
};

static akin_status_t no_memory(const char *path, akin_error_t *err)
{
    return akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory", path);
}

/*
 * Shared, so that all ranks of a host use one copy in the page cache. Not
 * populated: opening must not read hundreds of gigabytes. The kernel's default
 * readahead stays: an expert is a run of megabytes read from front to back, so
 * MADV_RANDOM would cut it into single pages, and MADV_SEQUENTIAL would free
 * early the pages that the next step needs again.
 */
static akin_status_t map_file(const char *path, struct shard *shard,
                              akin_error_t *err)
{
    int fd = -1;
    uint64_t bytes = 0;
    akin_status_t status = akini_model_file_open(path, &fd, &bytes, err);
    if (status != AKIN_OK)
        return status;
    void *map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, 0);
    int code = errno;
    /* The mapping keeps the file; 118 shards need no 118 descriptors. */
    (void)close(fd);
    if (map == MAP_FAILED)
        return akin_error_set(
            err, code == ENOMEM ? AKIN_ERR_NOMEM : AKIN_ERR_IO,
            "%s: cannot map %llu bytes: %s%s", path, (unsigned long long)bytes,
            strerror(code),
            code == ENOMEM ? "; raise `ulimit -v` or vm.max_map_count" : "");
    shard->map = map;
    shard->map_bytes = (size_t)bytes;
    return AKIN_OK;
}

static struct node *find_node(const akin_tensor_set_t *set, const char *name)
{
    struct node *node;
    HASH_FIND_STR(set->by_name, name, node);
    return node;
}

static akin_status_t add_names(akin_tensor_set_t *set, struct shard *shard,
                               akin_error_t *err)
{
    for (size_t i = 0; i < shard->header.n_tensors; i++) {
        const akin_tensor_t *tensor = &shard->header.tensors[i];
        struct node *node = &shard->nodes[i];
        const struct node *twin = find_node(set, tensor->name);
        if (twin != NULL)
            return akin_error_set(
                err, AKIN_ERR_FORMAT, "%s: tensor \"" SHOWN "\" is also in %s",
                shard->path, tensor->name, twin->tensor->file);
        node->tensor = tensor;
        HASH_ADD_KEYPTR(hh, set->by_name, tensor->name, strlen(tensor->name),
                        node);
        if (node->lost)
            return no_memory(shard->path, err);
    }
    return AKIN_OK;
}

static akin_status_t open_shard(akin_tensor_set_t *set, const char *dir,
                                const char *file, akin_error_t *err)
{
    struct shard *shard = &set->shards[set->n_shards++];
    shard->path = akini_model_path(dir, file);
    if (shard->path == NULL)
        return no_memory(dir, err);
    akin_status_t status = map_file(shard->path, shard, err);
    if (status != AKIN_OK)
        return status;
    status = akini_tensor_header_parse(shard->map, shard->map_bytes,
                                       shard->path, &shard->header, err);
    if (status != AKIN_OK)
        return status;
    set->bytes += shard->header.bytes;
    shard->nodes = calloc(shard->header.n_tensors + 1, sizeof(*shard->nodes));
    if (shard->nodes == NULL)
        return no_memory(shard->path, err);
    return add_names(set, shard, err);
}

/* The index and the shards must tell the same story: what differs is a mixed
 * or unfinished download, whose weights would be garbage. */
static akin_status_t check_index(const akin_tensor_set_t *set,
                                 const akini_tensor_index_t *index,
                                 akin_error_t *err)
{
    const char *name;
    json_t *value;
    json_object_foreach(index->weight_map, name, value)
    {
        const char *file = json_string_value(value);
        const json_t *place = json_object_get(index->shards, file);
        const struct shard *shard =
            &set->shards[(size_t)json_integer_value(place)];
        const struct node *node = find_node(set, name);
        if (node == NULL)
            return akin_error_set(err, AKIN_ERR_FORMAT,
                                  "%s: tensor \"" SHOWN "\" is not in the "
                                  "shard %s that the index names",
                                  set->source, name, shard->path);
        if (node->tensor->file != shard->path)
            return akin_error_set(
                err, AKIN_ERR_FORMAT,
                "%s: tensor \"" SHOWN "\" stands in %s, the index names %s",
                set->source, name, node->tensor->file, shard->path);
    }
    if (HASH_COUNT(set->by_name) != json_object_size(index->weight_map))
        for (const struct node *node = set->by_name; node != NULL;
             node = node->hh.next)
            if (json_object_get(index->weight_map, node->tensor->name) == NULL)
                return akin_error_set(
                    err, AKIN_ERR_FORMAT,
                    "%s: tensor \"" SHOWN "\" of %s is not in the index",
                    set->source, node->tensor->name, node->tensor->file);
    if (index->has_total_bytes && index->total_bytes != set->bytes)
        return akin_error_set(
            err, AKIN_ERR_FORMAT,
            "%s: \"metadata.total_size\" is %llu, the tensors have %llu bytes",
            set->source, (unsigned long long)index->total_bytes,
            (unsigned long long)set->bytes);
    return AKIN_OK;
}

static akin_status_t open_index(akin_tensor_set_t *set, const char *dir,
                                akin_error_t *err)
{
    akini_tensor_index_t index = {0};
    akin_status_t status = akini_tensor_index_read(set->source, &index, err);
    if (status != AKIN_OK)
        return status;
    set->shards = calloc(json_object_size(index.shards), sizeof(*set->shards));
    if (set->shards == NULL)
        status = no_memory(set->source, err);
    const char *file;
    json_t *place;
    json_object_foreach(index.shards, file, place) if (status == AKIN_OK)
        status = open_shard(set, dir, file, err);
    if (status == AKIN_OK)
        status = check_index(set, &index, err);
    akini_tensor_index_cleanup(&index);
    return status;
}

/* Which of the two layouts a directory has. */
static akin_status_t find_source(const char *dir, char **source_p,
                                 int *indexed_p, akin_error_t *err)
{
    static const char *const files[] = {SINGLE_FILE, INDEX_FILE};
    for (int i = 0; i < 2; i++) {
        char *path = akini_model_path(dir, files[i]);
        if (path == NULL)
            return no_memory(dir, err);
        /* Anything but absence is told by the open that follows. */
        if (access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR)) {
            *source_p = path;
            *indexed_p = i;
            return AKIN_OK;
        }
        free(path);
    }
    if (access(dir, F_OK) != 0)
        return akin_error_set(err, AKIN_ERR_NOT_FOUND,
                              "%s: no such model directory", dir);
    return akin_error_set(err, AKIN_ERR_NOT_FOUND,
                          "%s: holds neither " SINGLE_FILE " nor " INDEX_FILE,
                          dir);
}

akin_status_t akin_tensor_set_open(const char *dir, akin_tensor_set_t **set_p,
                                   akin_error_t *err)
{
    *set_p = NULL;
    akin_tensor_set_t *set = calloc(1, sizeof(*set));
    if (set == NULL)
        return no_memory(dir, err);
    int indexed = 0;
    akin_status_t status = find_source(dir, &set->source, &indexed, err);
    if (status != AKIN_OK)
        goto err_close;
    if (indexed) {
        status = open_index(set, dir, err);
    } else {
        set->shards = calloc(1, sizeof(*set->shards));
        status = set->shards == NULL ? no_memory(dir, err)
                                     : open_shard(set, dir, SINGLE_FILE, err);
    }
    if (status != AKIN_OK)
        goto err_close;
    AKIN_LOG(ENGINE, DEBUG, "%s: %zu tensors, %llu bytes, %zu files", dir,
             akin_tensor_set_count(set), (unsigned long long)set->bytes,
             set->n_shards);
    *set_p = set;
    return AKIN_OK;

err_close:
    akin_tensor_set_close(set);
    return status;
}

void akin_tensor_set_close(akin_tensor_set_t *set)
{
    if (set == NULL)
        return;
    HASH_CLEAR(hh, set->by_name);
    for (size_t i = 0; i < set->n_shards; i++) {
        struct shard *shard = &set->shards[i];
        free(shard->nodes);
        akini_tensor_header_cleanup(&shard->header);
        if (shard->map != NULL)
            (void)munmap(shard->map, shard->map_bytes);
        free(shard->path);
    }
    free(set->shards);
    free(set->source);
    free(set);
}

size_t akin_tensor_set_count(const akin_tensor_set_t *set)
{
    return HASH_COUNT(set->by_name);
}

uint64_t akin_tensor_set_bytes(const akin_tensor_set_t *set)
{
    return set->bytes;
}

akin_status_t akin_tensor_find(const akin_tensor_set_t *set, const char *name,
                               akin_tensor_t *tensor_p, akin_error_t *err)
{
    const struct node *node = find_node(set, name);
    if (node == NULL)
        return akin_error_set(err, AKIN_ERR_NOT_FOUND,
                              "%s: tensor \"" SHOWN "\" is missing",
                              set->source, name);
    *tensor_p = *node->tensor;
    return AKIN_OK;
}

/* "[151936, 2048]". */
static void show_shape(const akin_tensor_t *tensor, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < tensor->n_dims; i++) {
        int n =
            snprintf(text + used, bytes - used, "%s%llu", i == 0 ? "" : ", ",
                     (unsigned long long)tensor->shape[i]);
        if (n < 0 || (size_t)n >= bytes - used)
            return;
        used += (size_t)n;
    }
}

akin_status_t akin_tensor_find_matrix(const akin_tensor_set_t *set,
                                      const char *name, uint32_t rows,
                                      uint32_t cols, akin_matrix_t *matrix_p,
                                      akin_error_t *err)
{
    akin_tensor_t tensor = {0};
    akin_status_t status = akin_tensor_find(set, name, &tensor, err);
    if (status != AKIN_OK)
        return status;
    int is_vector = rows == 1 && tensor.n_dims == 1 && tensor.shape[0] == cols;
    int is_matrix = tensor.n_dims == 2 && tensor.shape[0] == rows &&
                    tensor.shape[1] == cols;
    if (!is_vector && !is_matrix) {
        char shape[AKIN_TENSOR_MAX_DIMS * 22];
        char expected[32];
        show_shape(&tensor, shape, sizeof(shape));
        if (rows == 1)
            (void)snprintf(expected, sizeof(expected), "%u", cols);
        else
            (void)snprintf(expected, sizeof(expected), "%u, %u", rows, cols);
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: tensor \"" SHOWN
                              "\" has shape [%s], config.json asks for [%s]",
                              tensor.file, name, shape, expected);
    }
    if (tensor.dtype == AKIN_DTYPE_COUNT)
        return akin_error_set(err, AKIN_ERR_UNSUPPORTED,
                              "%s: tensor \"" SHOWN
                              "\" has dtype %s; supported: BF16, F16, F32",
                              tensor.file, name, tensor.dtype_name);
    *matrix_p = (akin_matrix_t){
        .data = tensor.data, .dtype = tensor.dtype, .rows = rows, .cols = cols};
    return AKIN_OK;
}
