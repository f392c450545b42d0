/* Decode map: what a request's prompt says about the experts that its decode
 * will activate, a linear map learned from a calibration. */
#ifndef AKIN_ROUTING_DECODE_MAP_H
#define AKIN_ROUTING_DECODE_MAP_H

#include "base/status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    AKIN_DECODE_MAP_AXES = 64 /* most that a map may have */
};

/**
 * A cell is an expert of a layer, a rate the chance that a token activates it.
 * The arrays lie in one block that the map owns. Zero is an empty map.
 */
typedef struct akin_decode_map {
    uint32_t n_layers;
    uint32_t n_experts;
    uint32_t n_axes;
    float carry;         /* share of what is special about the prompt that the
                            decode keeps, cell by cell */
    float prompt_tokens; /* mean length of the calibration's prompts, > 0 */
    float *prompt_mean;  /* [n_layers][n_experts] rates; NULL: empty map */
    float *decode_mean;  /* [n_layers][n_experts] rates */
    float *axes;         /* [n_axes][n_layers][n_experts]; NULL: n_axes is 0 */
    float *responses;    /* [n_axes][n_layers][n_experts]; NULL: the same */
} akin_decode_map_t;

/**
 * Take memory for a map, all zero but its sizes.
 *
 * \param[out] map        akin_decode_map_cleanup() it; empty on failure.
 * \param[in]  n_layers   >= 1.
 * \param[in]  n_experts  >= 1.
 * \param[in]  n_axes     0 to AKIN_DECODE_MAP_AXES.
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akin_decode_map_init(akin_decode_map_t *map, uint32_t n_layers,
                                   uint32_t n_experts,
                                   uint32_t n_axes) AKIN_MUST_CHECK;

/** Free what the map owns; NULL is allowed. The map is empty then. */
void akin_decode_map_cleanup(akin_decode_map_t *map);

/**
 * How much to trust a prompt of a length: min(1, f(T) / f(prompt_tokens)) with
 * f(T) = T / (T + 8), as few tokens say little about the rates behind them.
 */
float akin_decode_map_trust(float n_tokens, float prompt_tokens);

/**
 * Predict the decode rates of a request. With x = trust * (counts / n_tokens -
 * prompt_mean) they are decode_mean + carry * x + sum over the axes of
 * (axis . x) * response, clipped to 1e-4 and 1 - 1e-6. Sums run in a fixed
 * order: the result is the same to the bit whatever instruction set serves the
 * call. No memory is taken.
 *
 * \param[in]  map       not empty.
 * \param[in]  counts    [n_layers][n_experts] of the prompt; NULL: unknown.
 * \param[in]  n_tokens  behind the counts; 0: unknown.
 * \param[out] rates     [n_layers][n_experts]; nothing after it is written.
 */
void akin_decode_map_apply(const akin_decode_map_t *map, const uint16_t *counts,
                           uint32_t n_tokens, float *rates);

#ifdef __cplusplus
}
#endif

#endif
