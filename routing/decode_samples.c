/* Decode samples: the requests of a calibration as rates about their means. */
#include "routing/decode_samples.h"

#include "routing/decode_map.h"
#include "routing/dot.h"
#include "routing/float_array.h"

#include <stdlib.h>
#include <string.h>

/* Rows that stay in a cache near to the core while all others pass by. */
enum { TILE = 24 };

static uint32_t count_usable(const akin_calibration_t *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_requests; i++)
        n += c->n_prompt[i] > 0 && c->n_decode[i] > 0;
    return n;
}

/* Requests that are taken, spread over all that are usable. */
static void choose(const akin_calibration_t *c, uint32_t n_usable, uint32_t n,
                   uint32_t *taken)
{
    uint32_t n_taken = 0, seen = 0;
    for (uint32_t i = 0; i < c->n_requests && n_taken < n; i++) {
        if (c->n_prompt[i] == 0 || c->n_decode[i] == 0)
            continue;
        if (seen++ == (uint64_t)n_taken * n_usable / n)
            taken[n_taken++] = i;
    }
}

static void to_rates(const uint16_t *counts, uint32_t n_tokens, float *rates,
                     size_t cells)
{
    for (size_t j = 0; j < cells; j++)
        rates[j] = (float)((double)counts[j] / (double)n_tokens);
}

/* Take the weighted mean off all rows and scale them by their weights. */
static void centre(float *rows, const double *weights, uint32_t n, size_t cells,
                   double *sums, float *mean)
{
    double total = 0.0;
    memset(sums, 0, cells * sizeof(*sums));
    for (uint32_t i = 0; i < n; i++) {
        const float *row = rows + i * cells;
        total += weights[i];
        for (size_t j = 0; j < cells; j++)
            sums[j] += weights[i] * (double)row[j];
    }
    for (size_t j = 0; j < cells; j++)
        mean[j] = (float)(sums[j] / total);
    for (uint32_t i = 0; i < n; i++) {
        float *row = rows + i * cells;
        float weight = (float)weights[i];
        for (size_t j = 0; j < cells; j++)
            row[j] = weight * (row[j] - mean[j]);
    }
}

/* products[i][j] = a_i . b_j; half of them where both sides are the same. */
static void multiply(const float *a, const float *b, uint32_t n, size_t cells,
                     double *products)
{
    for (uint32_t first = 0; first < n; first += TILE) {
        for (uint32_t i = a == b ? first : 0; i < n; i++) {
            uint32_t end = a == b ? i + 1 : n;
            uint32_t n_rows = end - first < TILE ? end - first : TILE;
            akini_dot_rows(a + i * cells, b + first * cells, cells, NULL,
                           n_rows, cells, products + (size_t)i * n + first);
        }
    }
    for (size_t i = 0; a == b && i < n; i++)
        for (size_t j = 0; j < i; j++)
            products[j * n + i] = products[i * n + j];
}

static akin_status_t allocate(akini_decode_samples_t *s)
{
    size_t n = s->n;
    s->prompt_mean = calloc(s->cells, sizeof(*s->prompt_mean));
    s->decode_mean = calloc(s->cells, sizeof(*s->decode_mean));
    s->x = akini_float_array_create(n, s->cells);
    s->y = akini_float_array_create(n, s->cells);
    s->trust = calloc(n, sizeof(*s->trust));
    s->ones = calloc(n, sizeof(*s->ones));
    s->xx = calloc(n, n * sizeof(*s->xx));
    s->xy = calloc(n, n * sizeof(*s->xy));
    s->yy = calloc(n, n * sizeof(*s->yy));
    return s->prompt_mean == NULL || s->decode_mean == NULL || s->x == NULL ||
                   s->y == NULL || s->trust == NULL || s->ones == NULL ||
                   s->xx == NULL || s->xy == NULL || s->yy == NULL
               ? AKIN_ERR_NOMEM
               : AKIN_OK;
}

akin_status_t akini_decode_samples_init(akini_decode_samples_t *samples,
                                        const akin_calibration_t *calibration)
{
    const akin_calibration_t *c = calibration;
    uint32_t n_usable = count_usable(c);
    memset(samples, 0, sizeof(*samples));
    samples->cells = (size_t)c->n_layers * c->n_experts;
    samples->n = n_usable < AKINI_DECODE_SAMPLES_MAX ? n_usable
                                                     : AKINI_DECODE_SAMPLES_MAX;
    const uint32_t n = samples->n;
    const size_t cells = samples->cells;
    if (n == 0)
        return AKIN_OK;
    uint32_t *taken = calloc(n, sizeof(*taken));
    double *sums = calloc(cells, sizeof(*sums));
    if (taken == NULL || sums == NULL || allocate(samples) != AKIN_OK) {
        free(sums);
        free(taken);
        akini_decode_samples_cleanup(samples);
        return AKIN_ERR_NOMEM;
    }
    choose(c, n_usable, n, taken);
    double n_tokens = 0.0;
    for (uint32_t i = 0; i < n; i++)
        n_tokens += (double)c->n_prompt[taken[i]];
    samples->prompt_tokens = (float)(n_tokens / (double)n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t r = taken[i];
        to_rates(c->prefill + r * cells, c->n_prompt[r], samples->x + i * cells,
                 cells);
        to_rates(c->decode + r * cells, c->n_decode[r], samples->y + i * cells,
                 cells);
        samples->ones[i] = 1.0;
        samples->trust[i] = (double)akin_decode_map_trust(
            (float)c->n_prompt[r], samples->prompt_tokens);
    }
    centre(samples->x, samples->trust, n, cells, sums, samples->prompt_mean);
    centre(samples->y, samples->ones, n, cells, sums, samples->decode_mean);
    multiply(samples->x, samples->x, n, cells, samples->xx);
    multiply(samples->x, samples->y, n, cells, samples->xy);
    multiply(samples->y, samples->y, n, cells, samples->yy);
    free(sums);
    free(taken);
    return AKIN_OK;
}

void akini_decode_samples_cleanup(akini_decode_samples_t *samples)
{
    free(samples->yy);
    free(samples->xy);
    free(samples->xx);
    free(samples->ones);
    free(samples->trust);
    free(samples->y);
    free(samples->x);
    free(samples->decode_mean);
    free(samples->prompt_mean);
    memset(samples, 0, sizeof(*samples));
}
