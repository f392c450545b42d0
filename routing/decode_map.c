/* Decode map: its memory and its prediction. */
#include "routing/decode_map.h"

#include "routing/dot.h"
#include "routing/float_array.h"
#include "routing/lanes.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_RATE 1e-4f
#define MOST_RATE (1.0f - 1e-6f)
/* Tokens at which half of a prompt's rates is chance. */
#define HALF_TRUST 8.0f

enum {
    ROWS = 4,          /* responses added at a time */
    BLOCK_CELLS = 2048 /* whose rates stay in the nearest cache meanwhile */
};

akin_status_t akin_decode_map_init(akin_decode_map_t *map, uint32_t n_layers,
                                   uint32_t n_experts, uint32_t n_axes)
{
    size_t cells = (size_t)n_layers * n_experts;
    memset(map, 0, sizeof(*map));
    float *rows = akini_float_array_create(2 + 2 * (size_t)n_axes, cells);
    if (rows == NULL)
        return AKIN_ERR_NOMEM;
    map->n_layers = n_layers;
    map->n_experts = n_experts;
    map->n_axes = n_axes;
    map->prompt_mean = rows;
    map->decode_mean = rows + cells;
    if (n_axes > 0) {
        map->axes = rows + 2 * cells;
        map->responses = map->axes + n_axes * cells;
    }
    return AKIN_OK;
}

void akin_decode_map_cleanup(akin_decode_map_t *map)
{
    if (map == NULL)
        return;
    free(map->prompt_mean);
    memset(map, 0, sizeof(*map));
}

float akin_decode_map_trust(float n_tokens, float prompt_tokens)
{
    float trust = n_tokens / (n_tokens + HALF_TRUST) *
                  ((prompt_tokens + HALF_TRUST) / prompt_tokens);
    return trust < 1.0f ? trust : 1.0f;
}

/* x = counts * scale - mean * trust. */
AKINI_CLONES static void centre(const uint16_t *counts, float scale,
                                const float *mean, float trust, float *x,
                                size_t cells)
{
    size_t whole = cells - cells % AKINI_LANES;
    for (size_t i = 0; i < whole; i += AKINI_LANES) {
        akini_lanes_t count = __builtin_convertvector(
            __builtin_convertvector(*(const akini_lanes_count_t *)(counts + i),
                                    akini_lanes_int_t),
            akini_lanes_t);
        *(akini_lanes_t *)(x + i) =
            count * scale - *(const akini_lanes_t *)(mean + i) * trust;
    }
    for (size_t i = whole; i < cells; i++)
        x[i] = (float)counts[i] * scale - mean[i] * trust;
}

/* rates += weights[0] * rows[0] + ..., row by row; inlined with a constant
 * n_rows. */
AKINI_INLINE void add_rows(const float *rows, size_t stride,
                           const double *weights, const uint32_t n_rows,
                           float *rates, size_t cells)
{
    size_t whole = cells - cells % AKINI_LANES;
    float w[ROWS];
    for (uint32_t r = 0; r < n_rows; r++)
        w[r] = (float)weights[r];
    for (size_t i = 0; i < whole; i += AKINI_LANES) {
        akini_lanes_t rate = *(const akini_lanes_t *)(rates + i);
        for (uint32_t r = 0; r < n_rows; r++)
            rate += w[r] * *(const akini_lanes_t *)(rows + r * stride + i);
        *(akini_lanes_t *)(rates + i) = rate;
    }
    for (size_t i = whole; i < cells; i++)
        for (uint32_t r = 0; r < n_rows; r++)
            rates[i] += w[r] * rows[r * stride + i];
}

/* x becomes mean + carry * x. */
AKINI_INLINE void carry_over(const float *mean, float carry, float *x,
                             size_t cells)
{
    for (size_t i = 0; i < cells; i++)
        x[i] = mean[i] + carry * x[i];
}

/* A rate that is no number is one below the least. */
AKINI_INLINE void clip(float *rates, size_t cells)
{
    for (size_t i = 0; i < cells; i++) {
        float rate = rates[i] >= LEAST_RATE ? rates[i] : LEAST_RATE;
        rates[i] = rate > MOST_RATE ? MOST_RATE : rate;
    }
}

/* From x in the place of the rates to the rates, a block of cells at a time. */
AKINI_CLONES static void respond(const akin_decode_map_t *map,
                                 const double *scores, float *rates)
{
    size_t cells = (size_t)map->n_layers * map->n_experts;
    for (size_t from = 0; from < cells; from += BLOCK_CELLS) {
        size_t n = cells - from < BLOCK_CELLS ? cells - from : BLOCK_CELLS;
        float *at = rates + from;
        uint32_t q = 0;
        carry_over(map->decode_mean + from, map->carry, at, n);
        for (; map->n_axes - q >= ROWS; q += ROWS)
            add_rows(map->responses + q * cells + from, cells, scores + q, ROWS,
                     at, n);
        for (; q < map->n_axes; q++)
            add_rows(map->responses + q * cells + from, cells, scores + q, 1,
                     at, n);
        clip(at, n);
    }
}

void akin_decode_map_apply(const akin_decode_map_t *map, const uint16_t *counts,
                           uint32_t n_tokens, float *rates)
{
    size_t cells = (size_t)map->n_layers * map->n_experts;
    double scores[AKIN_DECODE_MAP_AXES] = {0.0};
    if (counts != NULL && n_tokens > 0) {
        float trust =
            akin_decode_map_trust((float)n_tokens, map->prompt_tokens);
        centre(counts, trust / (float)n_tokens, map->prompt_mean, trust, rates,
               cells);
        akini_dot_rows(rates, map->axes, cells, NULL, map->n_axes, cells,
                       scores);
    } else {
        memset(rates, 0, cells * sizeof(*rates));
    }
    respond(map, scores, rates);
}
