/* Decode search: chooses how a decode map is made by cross-validation. */
#include "routing/decode_search.h"

#include "base/rng.h"
#include "routing/decode_fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MIN_REQUESTS = 10,
    FOLDS = 5,
    RANKS = 4,
    RIDGES = 4,
    CARRIES = 5,
    STREAM_FOLDS = 0x666f6c64 /* of the random numbers */
};

static const uint32_t ranks[RANKS] = {0, 8, 16, 32};
static const double ridges[RIDGES] = {0.1, 0.3, 1.0, 3.0};
static const double carries[CARRIES] = {0.0, 0.25, 0.5, 0.75, 1.0};

typedef double errors_t[CARRIES][RIDGES][RANKS];

/* Add the squared errors of a sample held out, for all ranks. */
static void add_errors(const akini_decode_fold_t *fold, size_t i, double ridge,
                       const akini_decode_mix_t *mix, double *errors)
{
    const double *scores = fold->scores + i * AKINI_DECODE_FOLD_BASE;
    const double *responses = fold->responses + i * AKINI_DECODE_FOLD_BASE;
    double error = fold->own[i];
    uint32_t p = 0;
    for (int r = 0; r < RANKS; r++) {
        for (; p < ranks[r] && p < mix->n_axes; p++) {
            const double *row = mix->rows + (size_t)p * fold->n_base;
            double score = 0.0, crossed = 0.0;
            for (uint32_t q = 0; q < fold->n_base; q++) {
                const double value = fold->values[q], root = sqrt(value);
                score += row[q] / root * scores[q];
                crossed += row[q] * root / (value + ridge) * responses[q];
            }
            error += score * (score * mix->strengths[p] - 2.0 * crossed);
        }
        errors[r] += error;
    }
}

static akin_status_t try_fold(akini_decode_fold_t *fold, uint32_t n_fit,
                              uint64_t seed, errors_t errors)
{
    akini_decode_mix_t mix;
    akin_status_t status = akini_decode_fold_begin(fold, n_fit, seed);
    for (int c = 0; status == AKIN_OK && c < CARRIES; c++) {
        akini_decode_fold_carry(fold, carries[c]);
        for (int g = 0; status == AKIN_OK && g < RIDGES; g++) {
            double ridge = ridges[g] * fold->mean_square;
            status = akini_decode_fold_reduce(fold, ridge, seed, &mix);
            for (size_t i = n_fit; status == AKIN_OK && i < fold->n; i++)
                add_errors(fold, i, ridge, &mix, errors[c][g]);
        }
    }
    return status;
}

/* Samples in an order that the seed draws. */
static void deal(uint32_t *dealt, uint32_t n, uint64_t seed)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (uint32_t)akin_rng_below(seed, STREAM_FOLDS, i, i + 1);
        dealt[i] = dealt[at];
        dealt[at] = i;
    }
}

/* Number the samples of all parts but one, then those of that one; returns how
 * many come first. */
static uint32_t hold_out(akini_decode_fold_t *fold, const uint32_t *dealt,
                         uint32_t part)
{
    uint32_t begin = (uint32_t)((uint64_t)part * fold->n / FOLDS);
    uint32_t end = (uint32_t)((uint64_t)(part + 1) * fold->n / FOLDS);
    uint32_t n_held = end - begin;
    uint32_t n_fit = fold->n - n_held;
    memcpy(fold->order, dealt, begin * sizeof(*dealt));
    memcpy(fold->order + begin, dealt + end, (fold->n - end) * sizeof(*dealt));
    memcpy(fold->order + n_fit, dealt + begin, n_held * sizeof(*dealt));
    return n_fit;
}

static void choose(errors_t errors, akini_decode_choice_t *choice)
{
    const double variance = errors[0][0][0];
    double least = variance;
    for (int r = 0; r < RANKS; r++)
        for (int c = 0; c < CARRIES; c++)
            for (int g = 0; g < RIDGES; g++) {
                if (!(errors[c][g][r] < least))
                    continue;
                least = errors[c][g][r];
                choice->n_axes = ranks[r];
                choice->carry = carries[c];
                choice->ridge = r > 0 ? ridges[g] : 0.0;
            }
    if (variance > 0.0)
        choice->r2 = 1.0 - least / variance;
}

akin_status_t akini_decode_search(const akini_decode_samples_t *samples,
                                  uint64_t seed,
                                  akini_decode_choice_t *choice_p)
{
    const uint32_t n = samples->n;
    errors_t errors = {{{0.0}}};
    *choice_p = (akini_decode_choice_t){.r2 = NAN};
    if (n < MIN_REQUESTS)
        return AKIN_OK;
    akini_decode_fold_t fold;
    akin_status_t status = akini_decode_fold_init(&fold, samples);
    uint32_t *dealt = calloc(n, sizeof(*dealt));
    if (status == AKIN_OK && dealt == NULL)
        status = AKIN_ERR_NOMEM;
    if (status == AKIN_OK)
        deal(dealt, n, seed);
    for (uint32_t part = 0; status == AKIN_OK && part < FOLDS; part++) {
        uint32_t n_fit = hold_out(&fold, dealt, part);
        status = try_fold(&fold, n_fit, seed, errors);
    }
    if (status == AKIN_OK)
        choose(errors, choice_p);
    free(dealt);
    akini_decode_fold_cleanup(&fold);
    return status;
}
