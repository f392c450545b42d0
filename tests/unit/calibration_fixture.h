/* Calibration fixture: the published artifact's 32 requests as a calibration,
 * built by hand, and its pairs. */
#ifndef AKIN_TESTS_UNIT_CALIBRATION_FIXTURE_H
#define AKIN_TESTS_UNIT_CALIBRATION_FIXTURE_H

#include "vectors.h"

#include "routing/calibration.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    FIXTURE_N = 32,
    FIXTURE_L = 4,
    FIXTURE_E = 8,
    FIXTURE_CELLS = FIXTURE_L * FIXTURE_E,
    FIXTURE_PAIRS = 192,
    FIXTURE_TOP_K = 2
};

/* An array that a calibration may own. */
static inline void *fixture_array(size_t n, size_t bytes)
{
    void *array = calloc(n, bytes);
    if (array == NULL)
        abort();
    return array;
}

static inline void fixture_counts(const json_t *root, const char *key,
                                  uint16_t *out)
{
    static double wide[FIXTURE_N * FIXTURE_CELLS];
    vectors_get(json_object_get(root, key), wide, FIXTURE_N * FIXTURE_CELLS);
    for (size_t i = 0; i < FIXTURE_N * FIXTURE_CELLS; i++)
        out[i] = (uint16_t)wide[i];
}

/** Number of tokens behind counts: those of layer 0, over top_k. */
static inline uint32_t fixture_tokens(const uint16_t *counts)
{
    uint32_t sum = 0;
    for (size_t e = 0; e < FIXTURE_E; e++)
        sum += counts[e];
    return sum / FIXTURE_TOP_K;
}

/**
 * Request i has the id "r<i>" and the domain "d<i modulo n_domains>"; none if
 * n_domains is 0.
 *
 * \return to be destroyed with akin_calibration_destroy().
 */
static inline akin_calibration_t *fixture_calibration(const json_t *root,
                                                      uint32_t n_domains)
{
    akin_calibration_t *c = fixture_array(1, sizeof(*c));
    *c = (akin_calibration_t){
        .n_requests = FIXTURE_N,
        .n_layers = FIXTURE_L,
        .n_experts = FIXTURE_E,
        .top_k = FIXTURE_TOP_K,
        .prefill = fixture_array(FIXTURE_N * FIXTURE_CELLS, sizeof(uint16_t)),
        .decode = fixture_array(FIXTURE_N * FIXTURE_CELLS, sizeof(uint16_t)),
        .n_prompt = fixture_array(FIXTURE_N, sizeof(uint32_t)),
        .n_decode = fixture_array(FIXTURE_N, sizeof(uint32_t)),
        .records = fixture_array(FIXTURE_N, sizeof(uint32_t)),
        .ids = fixture_array(FIXTURE_N, sizeof(char *)),
        .domain = fixture_array(FIXTURE_N, sizeof(uint32_t)),
        .domains = fixture_array(FIXTURE_N, sizeof(char *)),
        .n_domains = n_domains,
    };
    fixture_counts(root, "prefill", c->prefill);
    fixture_counts(root, "decode", c->decode);
    for (uint32_t i = 0; i < n_domains; i++)
        if (asprintf(&c->domains[i], "d%u", i) < 0)
            abort();
    for (uint32_t i = 0; i < FIXTURE_N; i++) {
        c->records[i] = i;
        c->domain[i] =
            n_domains != 0 ? i % n_domains : AKIN_CALIBRATION_NO_DOMAIN;
        c->n_prompt[i] = fixture_tokens(c->prefill + i * FIXTURE_CELLS);
        c->n_decode[i] = fixture_tokens(c->decode + i * FIXTURE_CELLS);
        if (asprintf(&c->ids[i], "r%u", i) < 0)
            abort();
    }
    return c;
}

/** The artifact's pairs; [FIXTURE_PAIRS] each. */
static inline void fixture_pairs(const json_t *root, uint32_t *left,
                                 uint32_t *right)
{
    static double wide[FIXTURE_PAIRS];
    vectors_get(json_object_get(root, "pair_left"), wide, FIXTURE_PAIRS);
    for (size_t i = 0; i < FIXTURE_PAIRS; i++)
        left[i] = (uint32_t)wide[i];
    vectors_get(json_object_get(root, "pair_right"), wide, FIXTURE_PAIRS);
    for (size_t i = 0; i < FIXTURE_PAIRS; i++)
        right[i] = (uint32_t)wide[i];
}

#endif
