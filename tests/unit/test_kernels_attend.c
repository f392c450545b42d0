/* Attention: against a softmax in double, and the same bits for every block
 * size and query group. */
#include "math/kernels.h"

#include "draw.h"
#include "kernel_paths.h"
#include "runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_KEYS 200u
#define MAX_DIM 144u
#define MAX_QUERIES 17u

/* Keys and values of a sequence; numbers that bf16 holds exactly. */
typedef struct sequence {
    uint32_t dim;
    uint32_t n_keys;
    float scale;
    float queries[MAX_QUERIES * MAX_DIM];
    float keys[MAX_KEYS * MAX_DIM];
    float values[MAX_KEYS * MAX_DIM];
} sequence_t;

static void fill(sequence_t *s, uint32_t dim, uint32_t n_keys, double size)
{
    unsigned char ignored[MAX_KEYS * MAX_DIM * 2];
    size_t n = (size_t)n_keys * dim;
    s->dim = dim;
    s->n_keys = n_keys;
    s->scale = 1.0f / sqrtf((float)dim);
    draw_floats(s->queries, (size_t)MAX_QUERIES * dim, dim + n_keys, size);
    draw_matrix(ignored, s->keys, n, AKIN_DTYPE_BF16, 3 * n_keys + dim, 2.0);
    draw_matrix(ignored, s->values, n, AKIN_DTYPE_BF16, 5 * n_keys + dim, 1.0);
}

/* Attention with the keys in blocks that lie scattered, in reverse order; what
 * a block holds beyond the last key is not a number. */
static void attend(const akin_kernels_t *kernels, const sequence_t *s,
                   uint32_t block_tokens, uint32_t first, uint32_t n_queries,
                   float *out)
{
    const uint32_t n_blocks = (s->n_keys - 1) / block_tokens + 1;
    const size_t block = (size_t)block_tokens * s->dim;
    const uint16_t *keys[MAX_KEYS / 8 + 1], *values[MAX_KEYS / 8 + 1];
    uint16_t *storage = malloc(2 * n_blocks * block * sizeof(*storage));
    CU_ASSERT_PTR_NOT_NULL_FATAL(storage);
    for (size_t i = 0; i < 2 * n_blocks * block; i++)
        storage[i] = 0x7fc0;
    for (uint32_t b = 0; b < n_blocks; b++) {
        uint16_t *k = storage + 2 * (n_blocks - 1 - b) * block;
        keys[b] = k;
        values[b] = k + block;
        for (size_t i = 0; i < block; i++) {
            size_t at = b * block + i;
            if (at >= (size_t)s->n_keys * s->dim)
                break;
            k[i] = (uint16_t)checkpoint_bits(s->keys[at], AKIN_DTYPE_BF16);
            k[block + i] =
                (uint16_t)checkpoint_bits(s->values[at], AKIN_DTYPE_BF16);
        }
    }
    const akin_attention_t attention = {
        .queries = s->queries + (size_t)first * s->dim,
        .out = out,
        .n_queries = n_queries,
        .head_dim = s->dim,
        .n_keys = s->n_keys,
        .block_tokens = block_tokens,
        .keys = keys,
        .values = values,
        .scale = s->scale,
    };
    kernels->attend(&attention);
    free(storage);
}

static void reference(const sequence_t *s, uint32_t query, double *out)
{
    double scores[MAX_KEYS], max = -(double)INFINITY, sum = 0;
    for (uint32_t j = 0; j < s->n_keys; j++) {
        scores[j] = 0;
        for (uint32_t i = 0; i < s->dim; i++)
            scores[j] += (double)s->queries[(size_t)query * s->dim + i] *
                         (double)s->keys[(size_t)j * s->dim + i];
        scores[j] *= (double)s->scale;
        max = fmax(max, scores[j]);
    }
    for (uint32_t i = 0; i < s->dim; i++)
        out[i] = 0;
    for (uint32_t j = 0; j < s->n_keys; j++) {
        double p = exp(scores[j] - max);
        sum += p;
        for (uint32_t i = 0; i < s->dim; i++)
            out[i] += p * (double)s->values[(size_t)j * s->dim + i];
    }
    for (uint32_t i = 0; i < s->dim; i++)
        out[i] /= sum;
}

static void check(const akin_kernels_t *kernels, const sequence_t *s,
                  double tolerance)
{
    static float whole[MAX_QUERIES * MAX_DIM], other[MAX_QUERIES * MAX_DIM];
    const size_t all = (size_t)MAX_QUERIES * s->dim;
    unsigned wrong = 0, moved = 0;
    attend(kernels, s, 16, 0, MAX_QUERIES, whole);
    for (uint32_t q = 0; q < MAX_QUERIES; q++) {
        double exact[MAX_DIM];
        reference(s, q, exact);
        for (uint32_t i = 0; i < s->dim; i++)
            wrong += !(fabs((double)whole[(size_t)q * s->dim + i] - exact[i]) <=
                       tolerance);
    }
    for (uint32_t block_tokens = 8; block_tokens <= 64; block_tokens *= 2) {
        attend(kernels, s, block_tokens, 0, MAX_QUERIES, other);
        moved += memcmp(whole, other, all * sizeof(float)) != 0;
    }
    for (uint32_t n = 1; n <= 9; n++) {
        uint32_t first = MAX_QUERIES - n;
        attend(kernels, s, 32, first, n, other);
        moved += memcmp(whole + (size_t)first * s->dim, other,
                        (size_t)n * s->dim * sizeof(float)) != 0;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(moved, 0);
}

static void all_lengths(const akin_kernels_t *kernels)
{
    static const uint32_t dims[] = {2, 12, 32, 36, 128, 144};
    static const uint32_t lengths[] = {1, 2, 63, 64, 65, 127, 129, 200};
    static sequence_t s;
    for (size_t d = 0; d < sizeof(dims) / sizeof(dims[0]); d++)
        for (size_t n = 0; n < sizeof(lengths) / sizeof(lengths[0]); n++) {
            fill(&s, dims[d], lengths[n], 2.0);
            check(kernels, &s, 3e-6);
        }
}

static void lengths(void)
{
    kernel_paths_each(all_lengths);
}

/* Scores in the hundreds: one key takes all, and nothing overflows. The error
 * of a score is relative, so it weighs more here. */
static void all_large(const akin_kernels_t *kernels)
{
    static sequence_t s;
    fill(&s, 32, 200, 200.0);
    check(kernels, &s, 2e-4);
}

static void large_scores(void)
{
    kernel_paths_each(all_large);
}

/* Equal keys: the mean of the values, whole numbers, exactly. */
static void all_equal(const akin_kernels_t *kernels)
{
    static sequence_t s;
    fill(&s, 32, 128, 2.0);
    for (size_t i = 0; i < 128 * 32; i++) {
        s.keys[i] = 0.5f;
        s.values[i] = (float)(i / 32 % 4);
    }
    float out[32];
    attend(kernels, &s, 8, 0, 1, out);
    for (size_t i = 0; i < 32; i++)
        CU_ASSERT_EQUAL(out[i], 1.5f);
}

static void equal_keys(void)
{
    kernel_paths_each(all_equal);
}

static const runner_test_t tests[] = {
    {"lengths, dimensions, blocks, groups", lengths},
    {"large scores", large_scores},
    {"equal keys", equal_keys},
};

RUNNER_MAIN("attend", tests)
