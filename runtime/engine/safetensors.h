/* Safetensors: mapped tensor files, one or several shards with an index. */
#ifndef AKIN_ENGINE_SAFETENSORS_H
#define AKIN_ENGINE_SAFETENSORS_H

#include "base/error.h"
#include "math/matrix.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AKIN_TENSOR_MAX_DIMS 8

/** A tensor inside a mapped file; `data` is borrowed from the set. */
typedef struct akin_tensor {
    const char *name;       /* borrowed from the set */
    const char *file;       /* path, for messages; borrowed from the set */
    akin_dtype_t dtype;     /* AKIN_DTYPE_COUNT: one that no kernel reads */
    const char *dtype_name; /* as in the file: "BF16", "F8_E4M3", ... */
    uint32_t n_dims;
    uint64_t shape[AKIN_TENSOR_MAX_DIMS];
    const void *data;
    uint64_t bytes;
} akin_tensor_t;

typedef struct akin_tensor_set akin_tensor_set_t;

/**
 * Map DIR/model.safetensors, or every shard that
 * DIR/model.safetensors.index.json names. Files are mapped shared and
 * read-only, never copied: the ranks of a host share their pages, and a page
 * is read only when it is touched. If both exist, model.safetensors is taken.
 * A file must not shrink while it is mapped: the kernel answers the touch of a
 * page that is gone with SIGBUS, which nothing here catches.
 *
 * \param[in]  dir    model directory.
 * \param[out] set_p  owned by the caller.
 * \param[out] err    names the file and the tensor.
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND, AKIN_ERR_IO: a file is missing or unreadable.
 * \return AKIN_ERR_FORMAT: header length beyond the file, header not JSON,
 *         offsets that overlap, leave a hole, disagree with shape and dtype or
 *         end beyond the file; a tensor twice; an index that disagrees with
 *         the shards.
 * \return AKIN_ERR_UNSUPPORTED: a dtype name that is unknown, or more than
 *         AKIN_TENSOR_MAX_DIMS dimensions.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_tensor_set_open(const char *dir, akin_tensor_set_t **set_p,
                                   akin_error_t *err) AKIN_MUST_CHECK;

/** Unmap; NULL is allowed. Tensors found before are invalid from then on. */
void akin_tensor_set_close(akin_tensor_set_t *set);

/**
 * Parse and check one safetensors image (header and offsets) that lies in
 * memory, without keeping anything: the part of opening a file that reads
 * untrusted bytes.
 *
 * \param[in]  data, bytes  the whole file.
 * \param[in]  name         stands for the path in messages.
 * \return as akin_tensor_set_open().
 */
akin_status_t akin_tensor_image_check(const void *data, size_t bytes,
                                      const char *name,
                                      akin_error_t *err) AKIN_MUST_CHECK;

/** Number of tensors. */
size_t akin_tensor_set_count(const akin_tensor_set_t *set);

/** Bytes of all tensors together. */
uint64_t akin_tensor_set_bytes(const akin_tensor_set_t *set);

/**
 * Find a tensor by name.
 *
 * \param[in]  name      exact name.
 * \param[out] tensor_p  copied out.
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND: err says which file should have had it.
 */
akin_status_t akin_tensor_find(const akin_tensor_set_t *set, const char *name,
                               akin_tensor_t *tensor_p,
                               akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Find a matrix [rows][cols], or a vector (rows == 1: shape [cols] or
 * [1][cols]), and check its shape and that its dtype is bf16, f16 or f32.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND
 * \return AKIN_ERR_FORMAT: another shape; err prints both.
 * \return AKIN_ERR_UNSUPPORTED: another dtype (I8, F8_E4M3, ...), named.
 */
akin_status_t akin_tensor_find_matrix(const akin_tensor_set_t *set,
                                      const char *name, uint32_t rows,
                                      uint32_t cols, akin_matrix_t *matrix_p,
                                      akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
