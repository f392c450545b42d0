/* Portable vectors of eight floats in plain C: the primitives that
 * kernels_body.h is written in. Products and sums are rounded separately. */
#ifndef AKIN_MATH_SIMD_PORTABLE_H
#define AKIN_MATH_SIMD_PORTABLE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VF_LANES 8
/* The compiler may unroll what it likes. */
#define VF_UNROLL

/* Row by row, with four vectors or one. */
#define VF_BLOCK_ROWS 1
#define VF_TILE_ROWS_1 1
#define VF_TILE_WIDE 4
#define VF_TILE_ROWS_WIDE 1

typedef struct vf {
    float v[VF_LANES];
} vf_t;

#define VF_EACH(i) for (int i = 0; i < VF_LANES; i++)

static inline vf_t vf_set1(float x)
{
    vf_t r;
    VF_EACH(i) r.v[i] = x;
    return r;
}

static inline vf_t vf_zero(void)
{
    return vf_set1(0.0f);
}

static inline vf_t vf_add(vf_t a, vf_t b)
{
    VF_EACH(i) a.v[i] += b.v[i];
    return a;
}

static inline vf_t vf_sub(vf_t a, vf_t b)
{
    VF_EACH(i) a.v[i] -= b.v[i];
    return a;
}

static inline vf_t vf_mul(vf_t a, vf_t b)
{
    VF_EACH(i) a.v[i] *= b.v[i];
    return a;
}

static inline vf_t vf_div(vf_t a, vf_t b)
{
    VF_EACH(i) a.v[i] /= b.v[i];
    return a;
}

static inline vf_t vf_max(vf_t a, vf_t b)
{
    VF_EACH(i) a.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
    return a;
}

static inline vf_t vf_fma(vf_t a, vf_t b, vf_t c)
{
    VF_EACH(i) c.v[i] += a.v[i] * b.v[i];
    return c;
}

static inline float vf_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

static inline vf_t vf_loadn_f32(const void *p, size_t n)
{
    vf_t r = vf_zero();
    memcpy(r.v, p, n * sizeof(float));
    return r;
}

static inline vf_t vf_load_f32(const void *p)
{
    vf_t r;
    memcpy(r.v, p, sizeof(r.v));
    return r;
}

static inline vf_t vf_loadn_bf16(const void *p, size_t n)
{
    uint16_t u[VF_LANES] = {0};
    vf_t r;
    memcpy(u, p, n * sizeof(uint16_t));
    VF_EACH(i) r.v[i] = vf_bits((uint32_t)u[i] << 16);
    return r;
}

static inline vf_t vf_load_bf16(const void *p)
{
    return vf_loadn_bf16(p, VF_LANES);
}

/* IEEE half to float: exponent and mantissa moved up, then an exact product
 * with 2^112 puts the bias right, subnormals included. */
static inline float vf_half(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t body = (uint32_t)(h & 0x7fffu) << 13;
    if ((h & 0x7c00u) == 0x7c00u)
        return vf_bits(sign | body | 0x70000000u);
    float magnitude = vf_bits(body) * 0x1p112f;
    return sign != 0 ? -magnitude : magnitude;
}

static inline vf_t vf_loadn_f16(const void *p, size_t n)
{
    uint16_t u[VF_LANES] = {0};
    vf_t r;
    memcpy(u, p, n * sizeof(uint16_t));
    VF_EACH(i) r.v[i] = vf_half(u[i]);
    return r;
}

static inline vf_t vf_load_f16(const void *p)
{
    return vf_loadn_f16(p, VF_LANES);
}

static inline void vf_storen(float *p, vf_t x, size_t n)
{
    memcpy(p, x.v, n * sizeof(float));
}

static inline void vf_store(float *p, vf_t x)
{
    memcpy(p, x.v, sizeof(x.v));
}

static inline float vf_sum(vf_t a)
{
    float q[4];
    for (int i = 0; i < 4; i++)
        q[i] = a.v[i] + a.v[i + 4];
    return (q[0] + q[2]) + (q[1] + q[3]);
}

static inline void vf_sum4(const vf_t a[4], float out[4])
{
    for (int i = 0; i < 4; i++)
        out[i] = vf_sum(a[i]);
}

static inline float vf_hmax(vf_t a)
{
    float m = a.v[0];
    VF_EACH(i) m = a.v[i] > m ? a.v[i] : m;
    return m;
}

static inline vf_t vf_scale2(vf_t x, vf_t n)
{
    VF_EACH(i) x.v[i] = ldexpf(x.v[i], (int)n.v[i]);
    return x;
}

static inline vf_t vf_round(vf_t x)
{
    VF_EACH(i) x.v[i] = rintf(x.v[i]);
    return x;
}

static inline void vf_storen_bf16(uint16_t *p, vf_t x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &x.v[i], sizeof(u));
        if ((u & 0x7fffffffu) > 0x7f800000u)
            u |= 0x00400000u;
        else
            u += 0x7fffu + (u >> 16 & 1u);
        p[i] = (uint16_t)(u >> 16);
    }
}

/* A macro: gcc drops calls of a function that only prefetches. */
#define vf_prefetch(p) __builtin_prefetch((p), 0, 3)

#endif
