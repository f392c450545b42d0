/* Kernel bodies, written once over the vf_* primitives and compiled once per
 * instruction set by kernels_<path>.c, which defines KERNELS_NAME and
 * KERNELS_TABLE and includes its simd_<path>.h first. */

#include "math/kernels.h"

#include <math.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define LINE_BYTES 64
#define AHEAD_BYTES ((size_t)12288)
#define TILE_TOKENS AKIN_ATTENTION_TILE_TOKENS
#define MAX_GROUP 8 /* query heads handled together */

/* ---- loads by stored type; `dtype` is a constant at every call ---- */

INLINE vf_t load_as(const void *p, akin_dtype_t dtype)
{
    if (dtype == AKIN_DTYPE_BF16)
        return vf_load_bf16(p);
    if (dtype == AKIN_DTYPE_F16)
        return vf_load_f16(p);
    return vf_load_f32(p);
}

INLINE vf_t loadn_as(const void *p, size_t n, akin_dtype_t dtype)
{
    if (dtype == AKIN_DTYPE_BF16)
        return vf_loadn_bf16(p, n);
    if (dtype == AKIN_DTYPE_F16)
        return vf_loadn_f16(p, n);
    return vf_loadn_f32(p, n);
}

/* ---- matrix product ---- */

/*
 * A register tile: n_r rows of W with n_t vectors, both constants at every
 * call. It fetches ahead what comes AHEAD_BYTES later in the order in which
 * tiles are worked through: along its own rows and, near their ends, along
 * those of the next tile; only for the first vectors, since the others find the
 * weights in the caches. (A row is often a single page long, where the
 * hardware's own streams end, and more than this would not stay in the first
 * cache beside the vectors.)
 */
INLINE void matmul_tile(int n_r, int n_t, akin_dtype_t dtype, const char *w,
                        size_t n_cols, const float *const *x, float *const *y,
                        size_t row, int is_first)
{
    const size_t element = akin_dtype_bytes(dtype);
    const size_t row_bytes = n_cols * element;
    const size_t line = LINE_BYTES / element;
    const size_t tile_bytes = (size_t)n_r * row_bytes;
    const size_t n_ahead = (AHEAD_BYTES + tile_bytes / 2) / tile_bytes;
    size_t ahead = n_ahead * tile_bytes, wrap = ahead;
    if (tile_bytes >= AHEAD_BYTES) {
        ahead = AHEAD_BYTES / (size_t)n_r;
        wrap = ahead + (size_t)(n_r - 1) * row_bytes;
    }
    vf_t acc[8][8];
    vf_t xv[8];
    for (int r = 0; r < n_r; r++)
        for (int t = 0; t < n_t; t++)
            acc[r][t] = vf_zero();

    size_t i = 0;
    for (; i + line <= n_cols; i += line) {
        const size_t at = i * element;
        const char *fetch = w + at + (at + ahead < row_bytes ? ahead : wrap);
        if (is_first)
            for (int r = 0; r < n_r; r++)
                vf_prefetch(fetch + (size_t)r * row_bytes);
        VF_UNROLL
        for (size_t s = 0; s < line; s += VF_LANES) {
            for (int t = 0; t < n_t; t++)
                xv[t] = vf_load_f32(x[t] + i + s);
            VF_UNROLL
            for (int r = 0; r < n_r; r++) {
                vf_t wv = load_as(w + (size_t)r * row_bytes + (i + s) * element,
                                  dtype);
                for (int t = 0; t < n_t; t++)
                    acc[r][t] = vf_fma(wv, xv[t], acc[r][t]);
            }
        }
    }
    while (i < n_cols) {
        size_t n = n_cols - i < VF_LANES ? n_cols - i : VF_LANES;
        for (int t = 0; t < n_t; t++)
            xv[t] = vf_loadn_f32(x[t] + i, n);
        for (int r = 0; r < n_r; r++) {
            vf_t wv =
                loadn_as(w + (size_t)r * row_bytes + i * element, n, dtype);
            for (int t = 0; t < n_t; t++)
                acc[r][t] = vf_fma(wv, xv[t], acc[r][t]);
        }
        i += n;
    }

    for (int t = 0; t < n_t; t++) {
        int r = 0;
        for (; r + 4 <= n_r; r += 4) {
            vf_t four[4] = {acc[r][t], acc[r + 1][t], acc[r + 2][t],
                            acc[r + 3][t]};
            vf_sum4(four, y[t] + row + r);
        }
        for (; r < n_r; r++)
            y[t][row + (size_t)r] = vf_sum(acc[r][t]);
    }
}

/* Rows of a tile that divide a block of n_r rows. */
#define TILE_ROWS(n_r, rows)                                                   \
    ((n_r) % (rows) == 0 ? (rows) : (n_r) % 4 == 0 && (rows) >= 4 ? 4 : 1)

/* All vectors of x for a block of n_r rows, cut into tiles of as many rows as
 * fit the registers beside that many vectors. */
INLINE void matmul_rows(int n_r, akin_dtype_t dtype, const char *w,
                        size_t n_cols, const float *const *x, float *const *y,
                        size_t n, size_t row)
{
    const size_t row_bytes = n_cols * akin_dtype_bytes(dtype);
    size_t t = 0;
#define TILES(rows, vectors)                                                   \
    do {                                                                       \
        const int step = TILE_ROWS(n_r, rows);                                 \
        for (int r = 0; r < n_r; r += step)                                    \
            matmul_tile(step, (vectors), dtype, w + (size_t)r * row_bytes,     \
                        n_cols, x + t, y + t, row + (size_t)r, t == 0);        \
        t += (vectors);                                                        \
    } while (0)
    while (n - t >= VF_TILE_WIDE)
        TILES(VF_TILE_ROWS_WIDE, VF_TILE_WIDE);
#if VF_BLOCK_ROWS > 1
    if (n - t == 4)
        TILES(VF_TILE_ROWS_4, 4);
    if (n - t >= 3)
        TILES(VF_TILE_ROWS_3, 3);
    if (n - t >= 2)
        TILES(VF_TILE_ROWS_2, 2);
#endif
    while (n - t >= 1)
        TILES(VF_TILE_ROWS_1, 1);
#undef TILES
}

/* Blocks of rows that the rows of every tile divide; their weights stay in the
 * second cache for the next vectors. */
INLINE void matmul_as(akin_dtype_t dtype, const char *w, size_t n_rows,
                      size_t n_cols, const float *const *x, float *const *y,
                      size_t n)
{
    const size_t row_bytes = n_cols * akin_dtype_bytes(dtype);
    size_t row = 0;
#if VF_BLOCK_ROWS > 1
    for (; row + VF_BLOCK_ROWS <= n_rows; row += VF_BLOCK_ROWS)
        matmul_rows(VF_BLOCK_ROWS, dtype, w + row * row_bytes, n_cols, x, y, n,
                    row);
    for (; row + 8 <= n_rows; row += 8)
        matmul_rows(8, dtype, w + row * row_bytes, n_cols, x, y, n, row);
#endif
    for (; row < n_rows; row++)
        matmul_rows(1, dtype, w + row * row_bytes, n_cols, x, y, n, row);
}

static void matmul_bf16(const void *w, size_t n_rows, size_t n_cols,
                        const float *const *x, float *const *y, size_t n)
{
    matmul_as(AKIN_DTYPE_BF16, w, n_rows, n_cols, x, y, n);
}

static void matmul_f16(const void *w, size_t n_rows, size_t n_cols,
                       const float *const *x, float *const *y, size_t n)
{
    matmul_as(AKIN_DTYPE_F16, w, n_rows, n_cols, x, y, n);
}

static void matmul_f32(const void *w, size_t n_rows, size_t n_cols,
                       const float *const *x, float *const *y, size_t n)
{
    matmul_as(AKIN_DTYPE_F32, w, n_rows, n_cols, x, y, n);
}

/* ---- conversions ---- */

INLINE void widen_as(akin_dtype_t dtype, const char *x, float *y, size_t n)
{
    const size_t element = akin_dtype_bytes(dtype);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(y + i, load_as(x + i * element, dtype));
    if (i < n)
        vf_storen(y + i, loadn_as(x + i * element, n - i, dtype), n - i);
}

static void widen_bf16(const void *x, float *y, size_t n)
{
    widen_as(AKIN_DTYPE_BF16, x, y, n);
}

static void widen_f16(const void *x, float *y, size_t n)
{
    widen_as(AKIN_DTYPE_F16, x, y, n);
}

static void widen_f32(const void *x, float *y, size_t n)
{
    widen_as(AKIN_DTYPE_F32, x, y, n);
}

static void narrow_bf16(const float *x, uint16_t *y, size_t n)
{
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_storen_bf16(y + i, vf_load_f32(x + i), VF_LANES);
    if (i < n)
        vf_storen_bf16(y + i, vf_loadn_f32(x + i, n - i), n - i);
}

/* ---- elementwise ---- */

#define EACH_VECTOR(i, m, n)                                                   \
    for (size_t i = 0, m;                                                      \
         i < (n) && ((m) = (n)-i < VF_LANES ? (n)-i : VF_LANES);               \
         i += VF_LANES)

/* exp by 2^k * e^r with |r| <= ln(2) / 2 and the Taylor terms up to r^7. */
INLINE vf_t vexp(vf_t x)
{
    const float ln2_high = 0x1.62e4p-1f; /* 15 bits: k * ln2_high is exact */
    const float ln2_low = 0x1.7f7d1cp-20f;
    x = vf_max(x, vf_set1(-105.0f));
    x = vf_sub(vf_zero(), vf_max(vf_sub(vf_zero(), x), vf_set1(-89.0f)));
    vf_t k = vf_round(vf_mul(x, vf_set1(1.44269504f)));
    vf_t r = vf_fma(k, vf_set1(-ln2_high), x);
    r = vf_fma(k, vf_set1(-ln2_low), r);
    vf_t p = vf_set1(1.0f / 5040.0f);
    p = vf_fma(p, r, vf_set1(1.0f / 720.0f));
    p = vf_fma(p, r, vf_set1(1.0f / 120.0f));
    p = vf_fma(p, r, vf_set1(1.0f / 24.0f));
    p = vf_fma(p, r, vf_set1(1.0f / 6.0f));
    p = vf_fma(p, r, vf_set1(0.5f));
    p = vf_fma(p, r, vf_set1(1.0f));
    p = vf_fma(p, r, vf_set1(1.0f));
    return vf_scale2(p, k);
}

static void rms_norm(const float *x, const float *w, float eps, float *y,
                     size_t n)
{
    vf_t sum = vf_zero();
    EACH_VECTOR(i, m, n)
    {
        vf_t v = vf_loadn_f32(x + i, m);
        sum = vf_fma(v, v, sum);
    }
    vf_t scale = vf_set1(1.0f / sqrtf(vf_sum(sum) / (float)n + eps));
    EACH_VECTOR(i, m, n)
    {
        vf_t v = vf_mul(vf_loadn_f32(x + i, m), scale);
        vf_storen(y + i, vf_mul(v, vf_loadn_f32(w + i, m)), m);
    }
}

static void rope(float *x, const float *cos, const float *sin, size_t half)
{
    EACH_VECTOR(i, m, half)
    {
        vf_t a = vf_loadn_f32(x + i, m);
        vf_t b = vf_loadn_f32(x + half + i, m);
        vf_t c = vf_loadn_f32(cos + i, m);
        vf_t s = vf_loadn_f32(sin + i, m);
        vf_storen(x + i, vf_sub(vf_mul(a, c), vf_mul(b, s)), m);
        vf_storen(x + half + i, vf_add(vf_mul(b, c), vf_mul(a, s)), m);
    }
}

static void silu_mul(float *gate, const float *up, size_t n)
{
    EACH_VECTOR(i, m, n)
    {
        vf_t g = vf_loadn_f32(gate + i, m);
        vf_t d = vf_add(vf_set1(1.0f), vexp(vf_sub(vf_zero(), g)));
        vf_t s = vf_div(g, d);
        vf_storen(gate + i, vf_mul(s, vf_loadn_f32(up + i, m)), m);
    }
}

static void exp_all(float *x, size_t n)
{
    EACH_VECTOR(i, m, n)
    {
        vf_storen(x + i, vexp(vf_loadn_f32(x + i, m)), m);
    }
}

static void combine(float *y, const float *const *x, const float *weights,
                    size_t n_terms, size_t n)
{
    EACH_VECTOR(i, m, n)
    {
        vf_t sum = vf_mul(vf_set1(weights[0]), vf_loadn_f32(x[0] + i, m));
        for (size_t j = 1; j < n_terms; j++)
            sum = vf_fma(vf_set1(weights[j]), vf_loadn_f32(x[j] + i, m), sum);
        vf_storen(y + i, vf_add(vf_loadn_f32(y + i, m), sum), m);
    }
}

static void add(float *y, const float *x, size_t n)
{
    EACH_VECTOR(i, m, n)
    {
        vf_storen(y + i, vf_add(vf_loadn_f32(y + i, m), vf_loadn_f32(x + i, m)),
                  m);
    }
}

/* ---- attention ---- */

/* Scores of n_q queries (a constant) with four keys. */
INLINE void score_four(int n_q, const float *q, size_t dim,
                       const uint16_t *const *keys,
                       float (*scores)[TILE_TOKENS], size_t at)
{
    vf_t acc[2][4];
    for (int g = 0; g < n_q; g++)
        for (int j = 0; j < 4; j++)
            acc[g][j] = vf_zero();
    EACH_VECTOR(i, m, dim)
    {
        for (int j = 0; j < 4; j++) {
            vf_t k = m == VF_LANES ? vf_load_bf16(keys[j] + i)
                                   : vf_loadn_bf16(keys[j] + i, m);
            for (int g = 0; g < n_q; g++) {
                const float *p = q + (size_t)g * dim + i;
                vf_t v = m == VF_LANES ? vf_load_f32(p) : vf_loadn_f32(p, m);
                acc[g][j] = vf_fma(v, k, acc[g][j]);
            }
        }
    }
    for (int g = 0; g < n_q; g++)
        vf_sum4(acc[g], scores[g] + at);
}

/* out[g] = out[g] * decay[g] + sum over the tile's tokens of p[g][j] * v[j],
 * for n_q queries and n_v vectors of the head (constants). */
INLINE void value_tile(int n_q, int n_v, float *out, size_t dim, size_t i,
                       size_t m, const uint16_t *const *values,
                       const float (*p)[TILE_TOKENS], const float *decay,
                       size_t n_tokens)
{
    vf_t acc[4][2];
    for (int g = 0; g < n_q; g++)
        for (int d = 0; d < n_v; d++) {
            const float *o = out + (size_t)g * dim + i + (size_t)d * VF_LANES;
            vf_t v = m == VF_LANES ? vf_load_f32(o) : vf_loadn_f32(o, m);
            acc[g][d] = vf_mul(v, vf_set1(decay[g]));
        }
    for (size_t j = 0; j < n_tokens; j++)
        for (int d = 0; d < n_v; d++) {
            const uint16_t *at = values[j] + i + (size_t)d * VF_LANES;
            vf_t v = m == VF_LANES ? vf_load_bf16(at) : vf_loadn_bf16(at, m);
            for (int g = 0; g < n_q; g++)
                acc[g][d] = vf_fma(vf_set1(p[g][j]), v, acc[g][d]);
        }
    for (int g = 0; g < n_q; g++)
        for (int d = 0; d < n_v; d++)
            vf_storen(out + (size_t)g * dim + i + (size_t)d * VF_LANES,
                      acc[g][d], m);
}

INLINE void value_group(int n_q, float *out, size_t dim,
                        const uint16_t *const *values,
                        const float (*p)[TILE_TOKENS], const float *decay,
                        size_t n_tokens)
{
    size_t i = 0;
    for (; i + 2 * VF_LANES <= dim; i += 2 * VF_LANES)
        value_tile(n_q, 2, out, dim, i, VF_LANES, values, p, decay, n_tokens);
    for (; i < dim; i += VF_LANES)
        value_tile(n_q, 1, out, dim, i, dim - i < VF_LANES ? dim - i : VF_LANES,
                   values, p, decay, n_tokens);
}

/* Softmax over a running maximum, tile by tile: the maximum and the sum of a
 * query are brought up to date after each tile, its output is scaled down by
 * what the maximum grew. */
static void attend_group(const akin_attention_t *a, const float *queries,
                         float *out, size_t n_q)
{
    const size_t dim = a->head_dim;
    float p[MAX_GROUP][TILE_TOKENS];
    float max[MAX_GROUP], sum[MAX_GROUP], decay[MAX_GROUP];
    const uint16_t *keys[TILE_TOKENS + 3], *values[TILE_TOKENS];
    for (size_t g = 0; g < n_q; g++) {
        max[g] = -INFINITY;
        sum[g] = 0.0f;
    }
    memset(out, 0, n_q * dim * sizeof(float));

    for (size_t first = 0; first < a->n_keys; first += TILE_TOKENS) {
        size_t n = a->n_keys - first;
        n = n < TILE_TOKENS ? n : TILE_TOKENS;
        for (size_t j = 0; j < n; j++) {
            size_t block = (first + j) / a->block_tokens;
            size_t row = (first + j) % a->block_tokens;
            keys[j] = a->keys[block] + row * dim;
            values[j] = a->values[block] + row * dim;
        }
        for (size_t j = n; j < n + 3; j++)
            keys[j] = keys[n - 1];

        for (size_t j = 0; j < n; j += 4) {
            size_t g = 0;
            for (; g + 2 <= n_q; g += 2)
                score_four(2, queries + g * dim, dim, keys + j, p + g, j);
            if (g < n_q)
                score_four(1, queries + g * dim, dim, keys + j, p + g, j);
        }

        for (size_t g = 0; g < n_q; g++) {
            for (size_t j = n; j < TILE_TOKENS; j++)
                p[g][j] = -INFINITY;
            vf_t top = vf_set1(-INFINITY);
            for (size_t j = 0; j < TILE_TOKENS; j += VF_LANES) {
                vf_t s = vf_mul(vf_load_f32(p[g] + j), vf_set1(a->scale));
                vf_store(p[g] + j, s);
                top = vf_max(top, s);
            }
            float now = vf_hmax(top);
            now = now > max[g] ? now : max[g];
            decay[g] = max[g] - now; /* -inf before the first tile */
            exp_all(&decay[g], 1);
            vf_t total = vf_zero();
            for (size_t j = 0; j < TILE_TOKENS; j += VF_LANES) {
                vf_t e = vexp(vf_sub(vf_load_f32(p[g] + j), vf_set1(now)));
                vf_store(p[g] + j, e);
                total = vf_add(total, e);
            }
            sum[g] = sum[g] * decay[g] + vf_sum(total);
            max[g] = now;
        }

        size_t g = 0;
        for (; g + 4 <= n_q; g += 4)
            value_group(4, out + g * dim, dim, values,
                        (const float(*)[TILE_TOKENS])(p + g), decay + g, n);
        for (; g < n_q; g++)
            value_group(1, out + g * dim, dim, values,
                        (const float(*)[TILE_TOKENS])(p + g), decay + g, n);
    }
    for (size_t g = 0; g < n_q; g++)
        EACH_VECTOR(i, m, dim)
        {
            float *o = out + g * dim + i;
            vf_storen(o, vf_div(vf_loadn_f32(o, m), vf_set1(sum[g])), m);
        }
}

static void attend(const akin_attention_t *a)
{
    for (size_t g = 0; g < a->n_queries; g += MAX_GROUP) {
        size_t n = a->n_queries - g;
        attend_group(a, a->queries + g * a->head_dim, a->out + g * a->head_dim,
                     n < MAX_GROUP ? n : MAX_GROUP);
    }
}

/* ---- a plain read ---- */

typedef uint64_t words_t __attribute__((vector_size(LINE_BYTES)));

static uint64_t read_words(const void *data, size_t bytes)
{
    const char *p = data;
    words_t sums[4] = {{0}, {0}, {0}, {0}};
    size_t i = 0;
    for (; i + sizeof(sums) <= bytes; i += sizeof(sums))
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            words_t words;
            memcpy(&words, p + i + (size_t)j * LINE_BYTES, sizeof(words));
            sums[j] += words;
        }
    const words_t all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    uint64_t sum = 0;
    for (int j = 0; j < 8; j++)
        sum += all[j];
    for (; i < bytes; i++)
        sum += (unsigned char)p[i];
    return sum;
}

const akin_kernels_t KERNELS_TABLE = {
    .name = KERNELS_NAME,
    .lanes = VF_LANES,
    .matmul = {[AKIN_DTYPE_BF16] = matmul_bf16,
               [AKIN_DTYPE_F16] = matmul_f16,
               [AKIN_DTYPE_F32] = matmul_f32},
    .widen = {[AKIN_DTYPE_BF16] = widen_bf16,
              [AKIN_DTYPE_F16] = widen_f16,
              [AKIN_DTYPE_F32] = widen_f32},
    .narrow_bf16 = narrow_bf16,
    .rms_norm = rms_norm,
    .rope = rope,
    .silu_mul = silu_mul,
    .exp = exp_all,
    .combine = combine,
    .add = add,
    .attend = attend,
    .read = read_words,
};
