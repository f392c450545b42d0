/* Kernels: the arithmetic of a forward pass, one table of functions per
 * instruction set. Every output element is computed in an order that depends
 * only on the element, never on the batch around it. */
#ifndef AKIN_MATH_KERNELS_H
#define AKIN_MATH_KERNELS_H

#include "base/error.h"
#include "math/matrix.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Attention walks the keys in tiles of this many tokens, whatever the block
 * size, so that the block size cannot change a bit. */
#define AKIN_ATTENTION_TILE_TOKENS 64

/** One query group: the query heads that share a key/value head. */
typedef struct akin_attention {
    const float *queries;          /* [n_queries][head_dim] */
    float *out;                    /* [n_queries][head_dim] */
    uint32_t n_queries;            /* heads / kv_heads */
    uint32_t head_dim;             /* up to AKIN_ATTENTION_MAX_DIM */
    uint32_t n_keys;               /* position of the query + 1 */
    uint32_t block_tokens;         /* divides AKIN_ATTENTION_TILE_TOKENS */
    const uint16_t *const *keys;   /* per block: bf16 [block_tokens][dim] */
    const uint16_t *const *values; /* per block: bf16 [block_tokens][dim] */
    float scale;                   /* 1 / sqrt(head_dim) */
} akin_attention_t;

#define AKIN_ATTENTION_MAX_DIM 512

/**
 * Matrix product of some rows of W with some vectors: y[t][o] = sum over i of
 * w[o][i] * x[t][i], i in steps of one vector register, one accumulator per
 * element, then a fixed tree over its lanes.
 *
 * \param[in]  w       first row; row-major [n_rows][n_cols], any alignment.
 * \param[in]  x       [n] pointers to [n_cols] floats.
 * \param[out] y       [n] pointers to [n_rows] floats.
 */
typedef void (*akin_matmul_fn_t)(const void *w, size_t n_rows, size_t n_cols,
                                 const float *const *x, float *const *y,
                                 size_t n);

typedef struct akin_kernels {
    const char *name; /* "avx512", "avx2", "portable" */
    int lanes;        /* floats per vector */
    akin_matmul_fn_t matmul[AKIN_DTYPE_COUNT];
    /** y[i] = x[i] as float. */
    void (*widen[AKIN_DTYPE_COUNT])(const void *x, float *y, size_t n);
    /** y[i] = bf16 nearest to x[i], ties to even; NaN stays NaN. */
    void (*narrow_bf16)(const float *x, uint16_t *y, size_t n);
    /** y = x / sqrt(mean(x^2) + eps) * w; y may be x. */
    void (*rms_norm)(const float *x, const float *w, float eps, float *y,
                     size_t n);
    /** In place: pairs (i, i + half) turned by the angles of cos and sin. */
    void (*rope)(float *x, const float *cos, const float *sin, size_t half);
    /** gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i]. */
    void (*silu_mul)(float *gate, const float *up, size_t n);
    /** x[i] = exp(x[i]), relative error below 3e-7; -inf gives 0. */
    void (*exp)(float *x, size_t n);
    /** y[i] = y[i] + sum over j of weights[j] * x[j][i], j ascending. */
    void (*combine)(float *y, const float *const *x, const float *weights,
                    size_t n_terms, size_t n);
    /** y[i] = y[i] + x[i]. */
    void (*add)(float *y, const float *x, size_t n);
    /** Softmax attention of one query group over paged keys and values. */
    void (*attend)(const akin_attention_t *attention);
    /** Sum of all 64-bit words, and of the single bytes after the last whole
     * 128: a plain read of memory, for measurements. */
    uint64_t (*read)(const void *data, size_t bytes);
} akin_kernels_t;

/** Paths from best to worst. */
typedef enum akin_kernel_path {
    AKIN_KERNEL_AVX512,
    AKIN_KERNEL_AVX2,
    AKIN_KERNEL_PORTABLE,
    AKIN_KERNEL_COUNT
} akin_kernel_path_t;

/** Name of a path: "avx512", "avx2", "portable". */
const char *akin_kernel_path_name(akin_kernel_path_t path);

/** The kernels of a path, or NULL if this CPU or this build has not got it. */
const akin_kernels_t *akin_kernels_of(akin_kernel_path_t path);

/** Best path that this CPU has. */
akin_kernel_path_t akin_kernels_best(void);

/**
 * Kernels by name.
 *
 * \param[in]  name       "auto" (the best), "avx512", "avx2", "portable".
 * \param[out] kernels_p  static.
 * \param[out] err        lists the names and what this CPU has.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: unknown name.
 * \return AKIN_ERR_UNSUPPORTED: this CPU has not got it.
 */
akin_status_t akin_kernels_find(const char *name,
                                const akin_kernels_t **kernels_p,
                                akin_error_t *err) AKIN_MUST_CHECK;

/** y = W x for whole matrices, dispatched by the stored type. */
static inline void akin_matmul(const akin_kernels_t *kernels,
                               const akin_matrix_t *w, size_t first_row,
                               size_t n_rows, const float *const *x,
                               float *const *y, size_t n)
{
    kernels->matmul[w->dtype](akin_matrix_row(w, first_row), n_rows, w->cols, x,
                              y, n);
}

#ifdef __cplusplus
}
#endif

#endif
