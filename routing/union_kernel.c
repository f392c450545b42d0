/* Loops of the policy `union` over the cells (layer, expert) of a model. */
#include "routing/union_kernel.h"

#include <string.h>

/*
 * Clones are picked by the loader before a sanitizer has started, so those
 * builds do without, and so do compilers that are not known to support them.
 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) &&         \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

/*
 * Sixteen floats, which the compiler splits to what the target has. The arrays
 * are those of the caller, hence may_alias and the alignment of a float.
 */
typedef float lanes_t __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t lanes_int_t
    __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t lanes_bits_t
    __attribute__((vector_size(64), aligned(4), may_alias));

/* Float lanes are added up to this many cells, then go to a double. */
#define FLUSH_CELLS 512

#define MAX_RATE (1.0f - 1e-6f)

/* Adding and taking away 1.5 * 2^23 rounds a small float to an integer. */
#define ROUNDER 12582912.0f
#define LOG2_E 1.44269504f
/* ln 2 in two parts; the high one times any exponent of a float is exact. */
#define LN2_HIGH 0.693145751953125f
#define LN2_LOW 1.42860677e-6f
#define SQRT_HALF 0.70710678f
/* exp of less is no longer a normal float: the expert is surely active. */
#define MIN_EXPONENT -87.0f

CLONES void akini_union_rates(const uint16_t *restrict counts,
                              const float *restrict prior,
                              float *restrict rates, size_t cells,
                              float n_tokens, float kappa)
{
    if (counts == NULL) {
        for (size_t i = 0; i < cells; i++)
            rates[i] = prior[i] > MAX_RATE ? MAX_RATE : prior[i];
        return;
    }
    float scale = 1.0f / (n_tokens + kappa);
    for (size_t i = 0; i < cells; i++) {
        float rate = ((float)counts[i] + kappa * prior[i]) * scale;
        rates[i] = rate > MAX_RATE ? MAX_RATE : rate;
    }
}

/*
 * With u = fl(1 - p), ln(1 - p) = ln(u) + ((1 - u) - p) / u up to a square of
 * the rounding error. ln(u) = e ln 2 + 2 atanh(s), s = (m - 1) / (m + 1), for
 * u = m 2^e with m in [sqrt(1/2), sqrt(2)): |s| < 0.172, and the first term
 * left out is below 1e-9.
 */
CLONES void akini_union_surprise(const float *restrict rates,
                                 float *restrict surprise, size_t padded)
{
    for (size_t i = 0; i < padded; i += AKINI_UNION_LANES) {
        lanes_t p = *(const lanes_t *)(rates + i);
        lanes_t u = 1.0f - p;
        lanes_t fix = ((1.0f - u) - p) / u;

        lanes_int_t bits;
        memcpy(&bits, &u, sizeof(bits));
        lanes_int_t mantissa = (bits & 0x007fffff) | 0x3f000000;
        lanes_int_t exponent = (bits >> 23) - 126;
        lanes_t m;
        memcpy(&m, &mantissa, sizeof(m));
        lanes_int_t low = m < SQRT_HALF; /* all ones where true */
        lanes_int_t one_or_half = 0x3f800000 + (low & 0x00800000);
        lanes_t twice;
        memcpy(&twice, &one_or_half, sizeof(twice));
        m *= twice;
        lanes_t e = __builtin_convertvector(exponent + low, lanes_t);

        lanes_t s = (m - 1.0f) / (m + 1.0f);
        lanes_t z = s * s;
        lanes_t series =
            z * (1.0f / 3 + z * (1.0f / 5 + z * (1.0f / 7 + z * (1.0f / 9))));
        lanes_t log_u =
            e * LN2_HIGH + (2.0f * s + (2.0f * s * series + e * LN2_LOW));
        *(lanes_t *)(surprise + i) = 0.0f - (log_u + fix);
    }
}

CLONES void akini_union_add(float *restrict sum, const float *restrict surprise,
                            size_t padded)
{
    for (size_t i = 0; i < padded; i++)
        sum[i] += surprise[i];
}

CLONES void akini_union_subtract(float *restrict sum,
                                 const float *restrict surprise, size_t padded)
{
    for (size_t i = 0; i < padded; i++) {
        float left = sum[i] - surprise[i];
        sum[i] = left > 0.0f ? left : 0.0f;
    }
}

/*
 * exp(x) = 2^n exp(r), n the integer nearest to x / ln 2 and |r| <= ln(2) / 2,
 * where the first term of the series left out is below 1e-8.
 */
CLONES double akini_union_refresh(const float *restrict sum,
                                  float *restrict idle, size_t padded)
{
    double distinct = 0.0;
    for (size_t from = 0; from < padded; from += FLUSH_CELLS) {
        size_t to = padded - from < FLUSH_CELLS ? padded : from + FLUSH_CELLS;
        lanes_t active = {0};
        for (size_t i = from; i < to; i += AKINI_UNION_LANES) {
            lanes_t x = -*(const lanes_t *)(sum + i);
            lanes_bits_t shift, bits;
            lanes_bits_t usual = (lanes_bits_t)(x >= MIN_EXPONENT);
            memcpy(&bits, &x, sizeof(bits));
            bits &= usual;
            memcpy(&x, &bits, sizeof(x));
            lanes_t rounded = x * LOG2_E + ROUNDER;
            lanes_t n = rounded - ROUNDER;
            lanes_t r = (x - n * LN2_HIGH) - n * LN2_LOW;
            lanes_t y =
                1.0f +
                r * (1.0f + r * (1.0f / 2 +
                                 r * (1.0f / 6 +
                                      r * (1.0f / 24 +
                                           r * (1.0f / 120 +
                                                r * (1.0f / 720 +
                                                     r * (1.0f / 5040)))))));
            memcpy(&shift, &rounded, sizeof(shift));
            memcpy(&bits, &y, sizeof(bits));
            bits = (bits + (shift << 23)) & usual;
            memcpy(&y, &bits, sizeof(y));
            *(lanes_t *)(idle + i) = y;
            active += 1.0f - y;
        }
        for (int lane = 0; lane < AKINI_UNION_LANES; lane++)
            distinct += (double)active[lane];
    }
    return distinct;
}

CLONES double akini_union_gain(const float *restrict idle,
                               const float *restrict rates, size_t padded)
{
    double gain = 0.0;
    for (size_t from = 0; from < padded; from += FLUSH_CELLS) {
        size_t to = padded - from < FLUSH_CELLS ? padded : from + FLUSH_CELLS;
        lanes_t added = {0};
        for (size_t i = from; i < to; i += AKINI_UNION_LANES)
            added +=
                *(const lanes_t *)(idle + i) * *(const lanes_t *)(rates + i);
        for (int lane = 0; lane < AKINI_UNION_LANES; lane++)
            gain += (double)added[lane];
    }
    return gain;
}
