/* Decode map: the prediction against plain sums in double, its bounds, what
 * short prompts and unknown ones give. */
#include "guarded.h"
#include "runner.h"

#include "base/rng.h"
#include "routing/decode_map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST 1e-4f
#define MOST (1.0f - 1e-6f)

static double draw(uint64_t stream, uint64_t index)
{
    return akin_rng_uniform(20, stream, index) - 0.5;
}

/* A map whose predictions lie inside the bounds. */
static akin_decode_map_t draw_map(uint32_t n_layers, uint32_t n_experts,
                                  uint32_t n_axes)
{
    akin_decode_map_t map;
    size_t cells = (size_t)n_layers * n_experts;
    CU_ASSERT_EQUAL_FATAL(
        akin_decode_map_init(&map, n_layers, n_experts, n_axes), AKIN_OK);
    map.carry = 0.25f;
    map.prompt_tokens = 40;
    for (size_t i = 0; i < cells; i++) {
        map.prompt_mean[i] = (float)(0.5 + 0.5 * draw(1, i));
        map.decode_mean[i] = (float)(0.5 + 0.2 * draw(2, i));
    }
    for (size_t i = 0; i < n_axes * cells; i++) {
        map.axes[i] = (float)(2 * draw(3, i) / sqrt((double)cells));
        map.responses[i] = (float)(0.05 * draw(4, i));
    }
    return map;
}

static void draw_counts(uint16_t *counts, size_t cells, uint32_t n_tokens)
{
    for (size_t i = 0; i < cells; i++)
        counts[i] = (uint16_t)akin_rng_below(21, n_tokens, i, n_tokens + 1);
}

static double trust(double n_tokens, double prompt_tokens)
{
    return fmin(1, n_tokens / (n_tokens + 8) /
                       (prompt_tokens / (prompt_tokens + 8)));
}

static double predict(const akin_decode_map_t *map, const uint16_t *counts,
                      uint32_t n_tokens, size_t cell)
{
    size_t cells = (size_t)map->n_layers * map->n_experts;
    double s = trust(n_tokens, (double)map->prompt_tokens);
    double rate =
        (double)map->decode_mean[cell] +
        (double)map->carry * s *
            ((double)counts[cell] / n_tokens - (double)map->prompt_mean[cell]);
    for (uint32_t q = 0; q < map->n_axes; q++) {
        double score = 0;
        for (size_t i = 0; i < cells; i++)
            score +=
                (double)map->axes[q * cells + i] * s *
                ((double)counts[i] / n_tokens - (double)map->prompt_mean[i]);
        rate += score * (double)map->responses[q * cells + cell];
    }
    return fmin(fmax(rate, (double)LEAST), (double)MOST);
}

/* Cells that fill no vector, more than a block, axes in all remainders. */
static void test_sums(void)
{
    static const uint32_t shapes[][3] = {
        {1, 1, 1}, {7, 19, 11}, {3, 16, 4}, {2, 8, 0}, {5, 600, 6}, {4, 9, 64},
    };
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
        akin_decode_map_t map =
            draw_map(shapes[s][0], shapes[s][1], shapes[s][2]);
        size_t cells = (size_t)map.n_layers * map.n_experts;
        uint16_t *counts = calloc(cells, sizeof(*counts));
        CU_ASSERT_PTR_NOT_NULL_FATAL(counts);
        guarded_t room = guarded_create(cells * sizeof(float));
        float *rates = (void *)(room.end - cells * sizeof(float));
        for (uint32_t n_tokens = 1; n_tokens <= 200; n_tokens += 39) {
            draw_counts(counts, cells, n_tokens);
            akin_decode_map_apply(&map, counts, n_tokens, rates);
            for (size_t i = 0; i<cells; i += cells> 1000 ? 97 : 1)
                CU_ASSERT_DOUBLE_EQUAL(
                    rates[i], predict(&map, counts, n_tokens, i), 2e-6);
        }
        guarded_destroy(&room);
        free(counts);
        akin_decode_map_cleanup(&map);
        CU_ASSERT_PTR_NULL(map.prompt_mean);
    }
}

/* Without a prompt, and without anything to make of it, the mean stays. */
static void test_mean(void)
{
    akin_decode_map_t map = draw_map(3, 11, 9);
    uint16_t counts[33];
    float rates[33];
    draw_counts(counts, 33, 50);
    akin_decode_map_apply(&map, NULL, 50, rates);
    CU_ASSERT_EQUAL(memcmp(rates, map.decode_mean, sizeof(rates)), 0);
    akin_decode_map_apply(&map, counts, 0, rates);
    CU_ASSERT_EQUAL(memcmp(rates, map.decode_mean, sizeof(rates)), 0);
    akin_decode_map_cleanup(&map);
    map = draw_map(3, 11, 0);
    map.carry = 0;
    akin_decode_map_apply(&map, counts, 50, rates);
    CU_ASSERT_EQUAL(memcmp(rates, map.decode_mean, sizeof(rates)), 0);
    akin_decode_map_cleanup(&map);
}

/* The same rates behind more tokens move the prediction farther, as T/(T+8)
 * does, up to the calibration's length. */
static void test_short_prompts(void)
{
    akin_decode_map_t map = draw_map(2, 16, 5);
    uint16_t counts[32];
    float whole[32], rates[32];
    for (size_t i = 0; i < 32; i++)
        counts[i] = (uint16_t)((i % 3) * 20);
    akin_decode_map_apply(&map, counts, 40, whole);
    for (uint32_t part = 1; part <= 4; part *= 2) {
        uint16_t fewer[32];
        for (size_t i = 0; i < 32; i++)
            fewer[i] = (uint16_t)(counts[i] / part);
        akin_decode_map_apply(&map, fewer, 40 / part, rates);
        double t = 40.0 / part;
        double ratio = t / (t + 8) * 48 / 40;
        for (size_t i = 0; i < 32; i++)
            CU_ASSERT_DOUBLE_EQUAL(
                (double)rates[i] - (double)map.decode_mean[i],
                ratio * ((double)whole[i] - (double)map.decode_mean[i]), 1e-6);
    }
    for (size_t i = 0; i < 32; i++)
        counts[i] = (uint16_t)(counts[i] * 10);
    akin_decode_map_apply(&map, counts, 400, rates);
    for (size_t i = 0; i < 32; i++)
        CU_ASSERT_DOUBLE_EQUAL(rates[i], whole[i], 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(akin_decode_map_trust(8, 24), 0.5 / 0.75, 1e-6);
    CU_ASSERT_EQUAL(akin_decode_map_trust(25, 24), 1.0f);
    akin_decode_map_cleanup(&map);
}

/* Whatever the numbers, a rate is one. */
static void test_clips(void)
{
    akin_decode_map_t map = draw_map(1, 20, 2);
    uint16_t counts[20];
    float rates[20];
    draw_counts(counts, 20, 9);
    for (size_t i = 0; i < 20; i++) {
        map.axes[i] = map.axes[20 + i] = 1;
        map.responses[i] = i < 10 ? 3e38f : -3e38f;
        map.responses[20 + i] = i % 10 < 5 ? -3e38f : map.responses[i];
        counts[i] = 9;
        map.prompt_mean[i] = 0;
    }
    akin_decode_map_apply(&map, counts, 9, rates);
    for (size_t i = 0; i < 20; i++)
        CU_ASSERT(rates[i] >= LEAST && rates[i] <= MOST);
    CU_ASSERT_EQUAL(rates[7], MOST);
    CU_ASSERT_EQUAL(rates[17], LEAST);
    /* Infinity less infinity is no number. */
    CU_ASSERT_EQUAL(rates[18], LEAST);
    map.carry = 0;
    memset(map.responses, 0, 40 * sizeof(float));
    map.decode_mean[0] = 0;
    map.decode_mean[1] = 1;
    akin_decode_map_apply(&map, counts, 9, rates);
    CU_ASSERT_EQUAL(rates[0], LEAST);
    CU_ASSERT_EQUAL(rates[1], MOST);
    akin_decode_map_cleanup(&map);
}

static const runner_test_t tests[] = {
    {"sums", test_sums},
    {"mean", test_mean},
    {"short prompts", test_short_prompts},
    {"clips", test_clips},
};

RUNNER_MAIN("decode_map", tests)
