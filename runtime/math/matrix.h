/* Matrix: a borrowed view of a weight tensor in its stored type. */
#ifndef AKIN_MATH_MATRIX_H
#define AKIN_MATH_MATRIX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum akin_dtype {
    AKIN_DTYPE_BF16,
    AKIN_DTYPE_F16,
    AKIN_DTYPE_F32,
    AKIN_DTYPE_COUNT
} akin_dtype_t;

/** Bytes of one element. */
static inline size_t akin_dtype_bytes(akin_dtype_t dtype)
{
    return dtype == AKIN_DTYPE_F32 ? 4 : 2;
}

/** Row-major [rows][cols]; y = W x sums over cols. Nothing is assumed of the
 * alignment of `data`. */
typedef struct akin_matrix {
    const void *data;
    akin_dtype_t dtype;
    uint32_t rows;
    uint32_t cols;
} akin_matrix_t;

static inline size_t akin_matrix_bytes(const akin_matrix_t *m)
{
    return (size_t)m->rows * m->cols * akin_dtype_bytes(m->dtype);
}

/** First element of a row. */
static inline const void *akin_matrix_row(const akin_matrix_t *m, size_t row)
{
    return (const char *)m->data + row * m->cols * akin_dtype_bytes(m->dtype);
}

/**
 * Rows that a thread takes at a time: up to half a MiB, because streaming
 * stumbles at the borders of chunks, but only about a quarter of a matrix, so
 * that it is shared out, unless that is less than 16 KiB; whole blocks of the
 * kernels.
 */
static inline uint32_t akin_matrix_chunk_rows(const akin_matrix_t *m)
{
    const size_t block = 24;
    const size_t row_bytes = m->cols * akin_dtype_bytes(m->dtype);
    const size_t most = ((size_t)512 << 10) / row_bytes;
    const size_t least = ((size_t)16 << 10) / row_bytes;
    size_t rows = m->rows / 4;
    rows = rows > most ? most : rows;
    rows = rows < least ? least : rows;
    return (uint32_t)((rows + block - 1) / block * block);
}

#ifdef __cplusplus
}
#endif

#endif
