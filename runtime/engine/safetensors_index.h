/* Safetensors index: model.safetensors.index.json, which says in which shard
 * each tensor lies. */
#ifndef AKIN_ENGINE_SAFETENSORS_INDEX_H
#define AKIN_ENGINE_SAFETENSORS_INDEX_H

#include "base/error.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

typedef struct akini_tensor_index {
    json_t *root;
    json_t *weight_map;  /* tensor name -> shard file; borrowed from root */
    json_t *shards;      /* shard file -> its place among the shards */
    int has_total_bytes; /* metadata.total_size was there */
    uint64_t total_bytes;
} akini_tensor_index_t;

/**
 * Read and check an index. Shards must be plain file names: an index must not
 * reach outside its directory.
 *
 * \param[in]  path     the index file.
 * \param[out] index_p  owned by the caller, akini_tensor_index_cleanup().
 * \param[out] err      names the file and the key.
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND, AKIN_ERR_IO, AKIN_ERR_NOMEM
 * \return AKIN_ERR_FORMAT
 */
akin_status_t akini_tensor_index_read(const char *path,
                                      akini_tensor_index_t *index_p,
                                      akin_error_t *err) AKIN_MUST_CHECK;

/** Free; an all-zero index is allowed. */
void akini_tensor_index_cleanup(akini_tensor_index_t *index);

#endif
