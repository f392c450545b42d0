/* AVX2 + FMA + F16C vectors: the primitives that kernels_body.h is written in.
 */
#ifndef AKIN_MATH_SIMD_AVX2_H
#define AKIN_MATH_SIMD_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VF_LANES 8
/* Before loops of constant bounds over the registers of a tile. */
#define VF_UNROLL _Pragma("GCC unroll 8")

/* Rows that are worked through together, rows of a register tile by its number
 * of vectors, and the number of vectors of the widest one. */
#define VF_BLOCK_ROWS 24
#define VF_TILE_ROWS_1 8
#define VF_TILE_ROWS_2 4
#define VF_TILE_ROWS_3 4
#define VF_TILE_ROWS_4 2
#define VF_TILE_WIDE 4
#define VF_TILE_ROWS_WIDE 2

typedef __m256 vf_t;

static inline vf_t vf_zero(void)
{
    return _mm256_setzero_ps();
}

static inline vf_t vf_set1(float x)
{
    return _mm256_set1_ps(x);
}

static inline vf_t vf_add(vf_t a, vf_t b)
{
    return _mm256_add_ps(a, b);
}

static inline vf_t vf_sub(vf_t a, vf_t b)
{
    return _mm256_sub_ps(a, b);
}

static inline vf_t vf_mul(vf_t a, vf_t b)
{
    return _mm256_mul_ps(a, b);
}

static inline vf_t vf_div(vf_t a, vf_t b)
{
    return _mm256_div_ps(a, b);
}

static inline vf_t vf_max(vf_t a, vf_t b)
{
    return _mm256_max_ps(a, b);
}

/* a * b + c in one rounding. */
static inline vf_t vf_fma(vf_t a, vf_t b, vf_t c)
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline vf_t vf_load_f32(const void *p)
{
    return _mm256_loadu_ps(p);
}

static inline vf_t vf_loadn_f32(const void *p, size_t n)
{
    float buffer[VF_LANES] = {0};
    memcpy(buffer, p, n * sizeof(float));
    return _mm256_loadu_ps(buffer);
}

static inline vf_t vf_from_bf16(__m128i x)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}

static inline __m128i vf_loadn_16bit(const void *p, size_t n)
{
    uint16_t buffer[VF_LANES] = {0};
    memcpy(buffer, p, n * sizeof(uint16_t));
    return _mm_loadu_si128((const void *)buffer);
}

static inline vf_t vf_load_bf16(const void *p)
{
    return vf_from_bf16(_mm_loadu_si128(p));
}

static inline vf_t vf_loadn_bf16(const void *p, size_t n)
{
    return vf_from_bf16(vf_loadn_16bit(p, n));
}

static inline vf_t vf_load_f16(const void *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128(p));
}

static inline vf_t vf_loadn_f16(const void *p, size_t n)
{
    return _mm256_cvtph_ps(vf_loadn_16bit(p, n));
}

static inline void vf_store(float *p, vf_t x)
{
    _mm256_storeu_ps(p, x);
}

static inline void vf_storen(float *p, vf_t x, size_t n)
{
    float buffer[VF_LANES];
    _mm256_storeu_ps(buffer, x);
    memcpy(p, buffer, n * sizeof(float));
}

/* Lane i meets i + 4, then i + 2 and i + 1; vf_sum4() is the same tree. */
static inline float vf_sum(vf_t a)
{
    __m128 q =
        _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    q = _mm_add_ps(q, _mm_permute_ps(q, 0x4e));
    q = _mm_add_ps(q, _mm_permute_ps(q, 0xb1));
    return _mm_cvtss_f32(q);
}

static inline void vf_sum4(const vf_t a[4], float out[4])
{
    __m256 t0 = _mm256_add_ps(_mm256_permute2f128_ps(a[0], a[1], 0x20),
                              _mm256_permute2f128_ps(a[0], a[1], 0x31));
    __m256 t1 = _mm256_add_ps(_mm256_permute2f128_ps(a[2], a[3], 0x20),
                              _mm256_permute2f128_ps(a[2], a[3], 0x31));
    /* Each half: the pair sums of one of t0's and one of t1's rows. */
    __m256 u = _mm256_add_ps(_mm256_shuffle_ps(t0, t1, 0x44),
                             _mm256_shuffle_ps(t0, t1, 0xee));
    u = _mm256_add_ps(u, _mm256_permute_ps(u, 0xb1));
    __m128 low = _mm256_castps256_ps128(u);
    __m128 high = _mm256_extractf128_ps(u, 1);
    /* low: rows 0 and 2 at lanes 0 and 2; high: rows 1 and 3. */
    _mm_storeu_ps(out, _mm_blend_ps(low, _mm_permute_ps(high, 0xa0), 0xa));
}

static inline float vf_hmax(vf_t a)
{
    __m128 q =
        _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    q = _mm_max_ps(q, _mm_permute_ps(q, 0x4e));
    q = _mm_max_ps(q, _mm_permute_ps(q, 0xb1));
    return _mm_cvtss_f32(q);
}

/* x * 2^n for integral n in [-252, 254], in two exact halves. */
static inline vf_t vf_scale2(vf_t x, vf_t n)
{
    __m256i i = _mm256_cvtps_epi32(n);
    __m256i h = _mm256_srai_epi32(i, 1);
    __m256i bias = _mm256_set1_epi32(127);
    __m256i a = _mm256_slli_epi32(_mm256_add_epi32(h, bias), 23);
    __m256i b =
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(i, h), bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(x, _mm256_castsi256_ps(a)),
                         _mm256_castsi256_ps(b));
}

static inline vf_t vf_round(vf_t x)
{
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* bf16 by rounding to nearest even on the bits; quiet NaNs are kept. */
static inline void vf_storen_bf16(uint16_t *p, vf_t x, size_t n)
{
    __m256i u = _mm256_castps_si256(x);
    __m256i odd =
        _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i r =
        _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x00400000));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    r = _mm256_srli_epi32(_mm256_blendv_epi8(r, quiet, nan), 16);
    __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(r),
                                      _mm256_extracti128_si256(r, 1));
    uint16_t buffer[VF_LANES];
    _mm_storeu_si128((void *)buffer, packed);
    memcpy(p, buffer, n * sizeof(uint16_t));
}

/* A macro: gcc drops calls of a function that only prefetches. */
#define vf_prefetch(p) __builtin_prefetch((p), 0, 3)

#endif
