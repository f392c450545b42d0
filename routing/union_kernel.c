/* Loops of the policy `union` over the cells (layer, expert) of a model. */
#include "routing/union_kernel.h"

#include "routing/lanes.h"

#include <string.h>

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

/* One vector of a mixture; inlined with a constant n_rows. */
AKINI_INLINE void mix_lanes(const akini_union_mixture_t *m,
                            const uint32_t n_rows, size_t at,
                            akini_lanes_t *out)
{
    akini_lanes_t value = {0.0f};
    if (m->sum != NULL)
        value = *(const akini_lanes_t *)(m->sum + at);
    for (uint32_t r = 0; r < n_rows; r++)
        value += m->weights[r] * *(const akini_lanes_t *)(m->rows[r] + at);
    *out = value * m->scale;
}

static float mix_cell(const akini_union_mixture_t *m, size_t at)
{
    float value = m->sum != NULL ? m->sum[at] : 0.0f;
    for (uint32_t r = 0; r < m->n_rows; r++)
        value += m->weights[r] * m->rows[r][at];
    return value * m->scale;
}

AKINI_INLINE void mix(const akini_union_mixture_t *m, const uint32_t n_rows,
                      float *sum, size_t cells)
{
    size_t whole = cells - cells % AKINI_LANES;
    for (size_t i = 0; i < whole; i += AKINI_LANES)
        mix_lanes(m, n_rows, i, (akini_lanes_t *)(sum + i));
    for (size_t i = whole; i < cells; i++)
        sum[i] = mix_cell(m, i);
}

AKINI_CLONES void akini_union_mix(const akini_union_mixture_t *mixture,
                                  float *sum, size_t cells)
{
    const akini_union_mixture_t m = *mixture;
    if (m.n_rows == AKINI_UNION_MIX_ROWS)
        mix(&m, AKINI_UNION_MIX_ROWS, sum, cells);
    else
        mix(&m, m.n_rows, sum, cells);
}

AKINI_INLINE void rates_of(const uint16_t *counts,
                           const akini_union_mixture_t *m,
                           const uint32_t n_rows, float *rates, size_t cells,
                           float scale, float kappa)
{
    const akini_lanes_t most = (akini_lanes_t){0.0f} + MAX_RATE;
    size_t whole = cells - cells % AKINI_LANES;
    for (size_t i = 0; i < whole; i += AKINI_LANES) {
        akini_lanes_t rate;
        mix_lanes(m, n_rows, i, &rate);
        if (counts != NULL) {
            akini_lanes_t count = __builtin_convertvector(
                __builtin_convertvector(
                    *(const akini_lanes_count_t *)(counts + i),
                    akini_lanes_int_t),
                akini_lanes_t);
            rate = (count + kappa * rate) * scale;
        }
        akini_lanes_bits_t over = (akini_lanes_bits_t)(rate > most);
        *(akini_lanes_t *)(rates + i) =
            (akini_lanes_t)(((akini_lanes_bits_t)most & over) |
                            ((akini_lanes_bits_t)rate & ~over));
    }
    for (size_t i = whole; i < cells; i++) {
        float rate = mix_cell(m, i);
        if (counts != NULL)
            rate = ((float)counts[i] + kappa * rate) * scale;
        rates[i] = rate > MAX_RATE ? MAX_RATE : rate;
    }
}

AKINI_CLONES void akini_union_rates(const uint16_t *counts,
                                    const akini_union_mixture_t *prior,
                                    float *rates, size_t cells, float n_tokens,
                                    float kappa)
{
    const akini_union_mixture_t m = *prior;
    float scale = 1.0f / (n_tokens + kappa);
    if (m.n_rows == AKINI_UNION_MIX_ROWS)
        rates_of(counts, &m, AKINI_UNION_MIX_ROWS, rates, cells, scale, kappa);
    else if (m.n_rows == 1)
        rates_of(counts, &m, 1, rates, cells, scale, kappa);
    else
        rates_of(counts, &m, m.n_rows, rates, cells, scale, kappa);
}

/*
 * With u = fl(1 - p), ln(1 - p) = ln(u) + ((1 - u) - p) / u up to a square of
 * the rounding error. ln(u) = e ln 2 + 2 atanh(s), s = (m - 1) / (m + 1), for
 * u = m 2^e with m in [sqrt(1/2), sqrt(2)): |s| < 0.172, and the first term
 * left out is below 1e-9.
 */
AKINI_CLONES void akini_union_surprise(const float *restrict rates,
                                       float *restrict surprise, size_t padded)
{
    for (size_t i = 0; i < padded; i += AKINI_LANES) {
        akini_lanes_t p = *(const akini_lanes_t *)(rates + i);
        akini_lanes_t u = 1.0f - p;
        akini_lanes_t fix = ((1.0f - u) - p) / u;

        akini_lanes_int_t bits;
        memcpy(&bits, &u, sizeof(bits));
        akini_lanes_int_t mantissa = (bits & 0x007fffff) | 0x3f000000;
        akini_lanes_int_t exponent = (bits >> 23) - 126;
        akini_lanes_t m;
        memcpy(&m, &mantissa, sizeof(m));
        akini_lanes_int_t low = m < SQRT_HALF; /* all ones where true */
        akini_lanes_int_t one_or_half = 0x3f800000 + (low & 0x00800000);
        akini_lanes_t twice;
        memcpy(&twice, &one_or_half, sizeof(twice));
        m *= twice;
        akini_lanes_t e =
            __builtin_convertvector(exponent + low, akini_lanes_t);

        akini_lanes_t s = (m - 1.0f) / (m + 1.0f);
        akini_lanes_t z = s * s;
        akini_lanes_t series =
            z * (1.0f / 3 + z * (1.0f / 5 + z * (1.0f / 7 + z * (1.0f / 9))));
        akini_lanes_t log_u =
            e * LN2_HIGH + (2.0f * s + (2.0f * s * series + e * LN2_LOW));
        *(akini_lanes_t *)(surprise + i) = 0.0f - (log_u + fix);
    }
}

AKINI_CLONES void akini_union_still_idle(const float *restrict idle,
                                         const float *restrict rates,
                                         float *restrict after, size_t padded)
{
    for (size_t i = 0; i < padded; i++)
        after[i] = idle[i] * (1.0f - rates[i]);
}

AKINI_CLONES void akini_union_add(float *restrict sum,
                                  const float *restrict surprise, size_t padded)
{
    for (size_t i = 0; i < padded; i++)
        sum[i] += surprise[i];
}

AKINI_CLONES void akini_union_subtract(float *restrict sum,
                                       const float *restrict surprise,
                                       size_t padded)
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
AKINI_CLONES double akini_union_refresh(const float *restrict sum,
                                        float *restrict idle, size_t padded)
{
    double distinct = 0.0;
    for (size_t from = 0; from < padded; from += AKINI_FLUSH_CELLS) {
        size_t to = padded - from < AKINI_FLUSH_CELLS
                        ? padded
                        : from + AKINI_FLUSH_CELLS;
        akini_lanes_t active = {0};
        for (size_t i = from; i < to; i += AKINI_LANES) {
            akini_lanes_t x = -*(const akini_lanes_t *)(sum + i);
            akini_lanes_bits_t shift, bits;
            akini_lanes_bits_t usual = (akini_lanes_bits_t)(x >= MIN_EXPONENT);
            memcpy(&bits, &x, sizeof(bits));
            bits &= usual;
            memcpy(&x, &bits, sizeof(x));
            akini_lanes_t rounded = x * LOG2_E + ROUNDER;
            akini_lanes_t n = rounded - ROUNDER;
            akini_lanes_t r = (x - n * LN2_HIGH) - n * LN2_LOW;
            akini_lanes_t y =
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
            *(akini_lanes_t *)(idle + i) = y;
            active += 1.0f - y;
        }
        for (int lane = 0; lane < AKINI_LANES; lane++)
            distinct += (double)active[lane];
    }
    return distinct;
}
