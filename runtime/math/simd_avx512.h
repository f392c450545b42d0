/* AVX-512 vectors: the primitives that kernels_body.h is written in. */
#ifndef AKIN_MATH_SIMD_AVX512_H
#define AKIN_MATH_SIMD_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define VF_LANES 16
/* Before loops of constant bounds over the registers of a tile. */
#define VF_UNROLL _Pragma("GCC unroll 8")

/* Rows that are worked through together, rows of a register tile by its number
 * of vectors, and the number of vectors of the widest one. */
#define VF_BLOCK_ROWS 24
#define VF_TILE_ROWS_1 8
#define VF_TILE_ROWS_2 8
#define VF_TILE_ROWS_3 8
#define VF_TILE_ROWS_4 6
#define VF_TILE_WIDE 6
#define VF_TILE_ROWS_WIDE 4

typedef __m512 vf_t;

static inline vf_t vf_zero(void)
{
    return _mm512_setzero_ps();
}

static inline vf_t vf_set1(float x)
{
    return _mm512_set1_ps(x);
}

static inline vf_t vf_add(vf_t a, vf_t b)
{
    return _mm512_add_ps(a, b);
}

static inline vf_t vf_sub(vf_t a, vf_t b)
{
    return _mm512_sub_ps(a, b);
}

static inline vf_t vf_mul(vf_t a, vf_t b)
{
    return _mm512_mul_ps(a, b);
}

static inline vf_t vf_div(vf_t a, vf_t b)
{
    return _mm512_div_ps(a, b);
}

static inline vf_t vf_max(vf_t a, vf_t b)
{
    return _mm512_max_ps(a, b);
}

/* a * b + c in one rounding. */
static inline vf_t vf_fma(vf_t a, vf_t b, vf_t c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline __mmask16 vf_mask(size_t n)
{
    return (__mmask16)((1u << n) - 1u);
}

static inline vf_t vf_load_f32(const void *p)
{
    return _mm512_loadu_ps(p);
}

static inline vf_t vf_loadn_f32(const void *p, size_t n)
{
    return _mm512_maskz_loadu_ps(vf_mask(n), p);
}

static inline vf_t vf_from_bf16(__m256i x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

static inline vf_t vf_load_bf16(const void *p)
{
    return vf_from_bf16(_mm256_loadu_si256(p));
}

static inline vf_t vf_loadn_bf16(const void *p, size_t n)
{
    return vf_from_bf16(_mm256_maskz_loadu_epi16(vf_mask(n), p));
}

static inline vf_t vf_load_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(p));
}

static inline vf_t vf_loadn_f16(const void *p, size_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(vf_mask(n), p));
}

static inline void vf_store(float *p, vf_t x)
{
    _mm512_storeu_ps(p, x);
}

static inline void vf_storen(float *p, vf_t x, size_t n)
{
    _mm512_mask_storeu_ps(p, vf_mask(n), x);
}

/* Sums of four vectors over their lanes: lane i meets i + 8, then i + 4, i + 2
 * and i + 1. vf_sum() is the same tree. */
static inline void vf_sum4(const vf_t a[4], float out[4])
{
    __m512 t0 = _mm512_add_ps(_mm512_shuffle_f32x4(a[0], a[1], 0x44),
                              _mm512_shuffle_f32x4(a[0], a[1], 0xee));
    __m512 t1 = _mm512_add_ps(_mm512_shuffle_f32x4(a[2], a[3], 0x44),
                              _mm512_shuffle_f32x4(a[2], a[3], 0xee));
    __m512 u = _mm512_add_ps(_mm512_shuffle_f32x4(t0, t1, 0x88),
                             _mm512_shuffle_f32x4(t0, t1, 0xdd));
    u = _mm512_add_ps(u, _mm512_permute_ps(u, 0x4e));
    u = _mm512_add_ps(u, _mm512_permute_ps(u, 0xb1));
    const __m512i first =
        _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 8, 4, 0);
    _mm_storeu_ps(out, _mm512_castps512_ps128(_mm512_permutexvar_ps(first, u)));
}

static inline float vf_sum(vf_t a)
{
    __m256 h =
        _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 q =
        _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_permute_ps(q, 0x4e));
    q = _mm_add_ps(q, _mm_permute_ps(q, 0xb1));
    return _mm_cvtss_f32(q);
}

static inline float vf_hmax(vf_t a)
{
    return _mm512_reduce_max_ps(a);
}

/* x * 2^n, n integral: exact scaling with gradual underflow. */
static inline vf_t vf_scale2(vf_t x, vf_t n)
{
    return _mm512_scalef_ps(x, n);
}

static inline vf_t vf_round(vf_t x)
{
    return _mm512_roundscale_ps(x,
                                _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* bf16 by rounding to nearest even on the bits; quiet NaNs are kept. */
static inline void vf_storen_bf16(uint16_t *p, vf_t x, size_t n)
{
    __m512i u = _mm512_castps_si512(x);
    __m512i odd =
        _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    __m512i r =
        _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    r = _mm512_mask_or_epi32(r, nan, u, _mm512_set1_epi32(0x00400000));
    _mm256_mask_storeu_epi16(p, vf_mask(n),
                             _mm512_cvtepi32_epi16(_mm512_srli_epi32(r, 16)));
}

/* A macro: gcc drops calls of a function that only prefetches. */
#define vf_prefetch(p) __builtin_prefetch((p), 0, 3)

#endif
