/* Planted decodes: requests of two traits, which a prompt shows on some experts
 * and the decode on others, as a calibration built by hand. */
#ifndef AKIN_TESTS_UNIT_PLANTED_DECODE_H
#define AKIN_TESTS_UNIT_PLANTED_DECODE_H

#include "base/rng.h"
#include "routing/calibration.h"

#include <stdlib.h>

typedef struct planted_decode {
    uint32_t n_requests;
    uint32_t n_layers;
    uint32_t n_experts;
    uint32_t n_prompt; /* tokens of a prompt; 0: from 4 to 67, by request */
    uint32_t n_decode;
    uint64_t seed; /* of the requests, not of what their traits mean */
} planted_decode_t;

/* Tokens that take one expert of a layer each: the traits of a request shift
 * the chances, as the phase says. */
static inline void planted_decode_row(const planted_decode_t *planted,
                                      uint32_t request, uint32_t layer,
                                      uint32_t phase, uint32_t n_tokens,
                                      uint16_t *counts)
{
    enum { TRAITS = 2, MOST_EXPERTS = 64 };
    double chances[MOST_EXPERTS], sum = 0;
    for (uint32_t e = 0; e < planted->n_experts; e++) {
        chances[e] = 0.2;
        for (uint32_t t = 0; t < TRAITS; t++) {
            double trait = akin_rng_uniform(planted->seed, t, request);
            double effect = akin_rng_uniform(
                99, phase, (layer * MOST_EXPERTS + e) * TRAITS + t);
            chances[e] += trait * effect;
        }
        sum += chances[e];
    }
    uint64_t stream = 100 + (uint64_t)request * 2 + phase;
    for (uint32_t i = 0; i < n_tokens; i++) {
        double left = sum * akin_rng_uniform(planted->seed, stream,
                                             (uint64_t)layer * 100000 + i);
        uint32_t e = 0;
        while (e + 1 < planted->n_experts && left >= chances[e])
            left -= chances[e++];
        counts[e]++;
    }
}

/** \return to be destroyed with akin_calibration_destroy(). */
static inline akin_calibration_t *
planted_decode_create(const planted_decode_t *planted)
{
    const uint32_t n = planted->n_requests;
    const size_t cells = (size_t)planted->n_layers * planted->n_experts;
    akin_calibration_t *c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort();
    *c = (akin_calibration_t){
        .n_requests = n,
        .n_layers = planted->n_layers,
        .n_experts = planted->n_experts,
        .top_k = 1,
        .prefill = calloc(n, cells * sizeof(uint16_t)),
        .decode = calloc(n, cells * sizeof(uint16_t)),
        .n_prompt = calloc(n, sizeof(uint32_t)),
        .n_decode = calloc(n, sizeof(uint32_t)),
        .ids = calloc(n, sizeof(char *)),
    };
    if (c->prefill == NULL || c->decode == NULL || c->n_prompt == NULL ||
        c->n_decode == NULL || c->ids == NULL)
        abort();
    for (uint32_t i = 0; i < n; i++) {
        c->n_prompt[i] =
            planted->n_prompt != 0
                ? planted->n_prompt
                : 4 + (uint32_t)akin_rng_below(planted->seed, 50, i, 64);
        c->n_decode[i] = planted->n_decode;
        for (uint32_t l = 0; l < planted->n_layers; l++) {
            size_t at = i * cells + (size_t)l * planted->n_experts;
            planted_decode_row(planted, i, l, 0, c->n_prompt[i],
                               c->prefill + at);
            planted_decode_row(planted, i, l, 1, c->n_decode[i],
                               c->decode + at);
        }
    }
    return c;
}

#endif
