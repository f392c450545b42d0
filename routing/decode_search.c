/* Decode search: chooses how a decode map is made by cross-validation. */
#include "routing/decode_search.h"

#include "base/rng.h"
#include "routing/decode_map.h"
#include "routing/eigen.h"
#include "routing/lanes.h"

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

enum { MOST_AXES = 32 };

/*
 * Products of two sets of samples whose means over the requests for fitting
 * are taken off. A sample loses its weight times the mean, which is the sum of
 * the samples over the sum of their weights.
 */
typedef struct products {
    const double *all;   /* [n][n] left_i . right_j */
    const double *left;  /* [n] weights */
    const double *right; /* [n] weights */
    double *rows;        /* [n] left_i . mean of the right */
    double *columns;     /* [n] mean of the left . right_j */
    double mean;         /* of the left . of the right */
} products_t;

/* A part held out. Requests are numbered so that those for fitting come
 * first. */
typedef struct fold {
    const akini_decode_samples_t *samples;
    uint32_t n;
    uint32_t n_fit;
    uint32_t n_axes;
    uint32_t *order; /* [n] number -> sample */
    products_t xx, xy, yy;
    double *fit_xx;    /* [n_fit][n] */
    double *residual;  /* [n][n_fit] products of y - carry * x */
    double *own;       /* [n] the same of each with itself */
    double *values;    /* [MOST_AXES] eigenvalues */
    double *vectors;   /* [MOST_AXES][n_fit] */
    double *scores;    /* [n][MOST_AXES] of x on the axes */
    double *responses; /* [n][MOST_AXES] y - carry * x . responses unscaled */
    double *mutual;    /* [MOST_AXES][MOST_AXES] responses . responses */
    double *memory;    /* what the pointers above lead to */
} fold_t;

typedef double errors_t[CARRIES][RIDGES][RANKS];

static inline double product(const products_t *p, size_t n, size_t i, size_t j)
{
    return p->all[i * n + j] - p->right[j] * p->rows[i] -
           p->left[i] * p->columns[j] + p->left[i] * p->right[j] * p->mean;
}

static void take_means(const fold_t *fold, products_t *p)
{
    const size_t n = fold->n;
    double left = 0.0, right = 0.0;
    memset(p->rows, 0, n * sizeof(*p->rows));
    memset(p->columns, 0, n * sizeof(*p->columns));
    p->mean = 0.0;
    for (uint32_t k = 0; k < fold->n_fit; k++) {
        left += p->left[fold->order[k]];
        right += p->right[fold->order[k]];
    }
    for (size_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < fold->n_fit; k++) {
            p->rows[i] += p->all[i * n + fold->order[k]];
            p->columns[i] += p->all[fold->order[k] * n + i];
        }
        p->rows[i] /= right;
        p->columns[i] /= left;
    }
    for (uint32_t k = 0; k < fold->n_fit; k++)
        p->mean += p->rows[fold->order[k]] / left;
}

/* Scores of all requests on the axes of those for fitting. */
static void score(const fold_t *fold)
{
    const size_t n_fit = fold->n_fit;
    for (size_t i = 0; i < fold->n; i++)
        for (uint32_t q = 0; q < fold->n_axes; q++) {
            const double *vector = fold->vectors + q * n_fit;
            double sum = 0.0;
            if (i < n_fit)
                sum = fold->values[q] * vector[i];
            else
                for (size_t k = 0; k < n_fit; k++)
                    sum += product(&fold->xx, fold->n, fold->order[i],
                                   fold->order[k]) *
                           vector[k];
            fold->scores[i * MOST_AXES + q] = sum / sqrt(fold->values[q]);
        }
}

static akin_status_t find_axes(fold_t *fold, uint64_t seed)
{
    const size_t n_fit = fold->n_fit;
    for (size_t i = 0; i < n_fit; i++)
        for (size_t k = 0; k < n_fit; k++)
            fold->fit_xx[i * n_fit + k] =
                product(&fold->xx, fold->n, fold->order[i], fold->order[k]);
    const akini_eigen_params_t eigen = {
        .matrix = fold->fit_xx,
        .stride = n_fit,
        .n = fold->n_fit,
        .n_wanted = MOST_AXES,
        .seed = seed,
    };
    akin_status_t status =
        akini_eigen_find(&eigen, fold->values, fold->vectors, &fold->n_axes);
    if (status == AKIN_OK)
        score(fold);
    return status;
}

/* Products of what is left of y when carry * x is taken off. */
static void take_residual(const fold_t *fold, double carry)
{
    const size_t n = fold->n, n_fit = fold->n_fit;
    for (size_t i = 0; i < n; i++) {
        size_t a = fold->order[i];
        for (size_t k = 0; k < n_fit; k++) {
            size_t b = fold->order[k];
            fold->residual[i * n_fit + k] =
                product(&fold->yy, n, a, b) -
                carry * (product(&fold->xy, n, a, b) +
                         product(&fold->xy, n, b, a)) +
                carry * carry * product(&fold->xx, n, a, b);
        }
        fold->own[i] = product(&fold->yy, n, a, a) -
                       2.0 * carry * product(&fold->xy, n, a, a) +
                       carry * carry * product(&fold->xx, n, a, a);
    }
}

/* responses = residual x scores; mutual = scores' x responses */
AKINI_CLONES static void respond(const fold_t *fold)
{
    const size_t n_fit = fold->n_fit;
    memset(fold->mutual, 0, MOST_AXES * MOST_AXES * sizeof(*fold->mutual));
    for (size_t i = 0; i < fold->n; i++) {
        double sums[MOST_AXES] = {0.0};
        for (size_t k = 0; k < n_fit; k++) {
            double value = fold->residual[i * n_fit + k];
            const double *scores = fold->scores + k * MOST_AXES;
            for (int q = 0; q < MOST_AXES; q++)
                sums[q] += value * scores[q];
        }
        memcpy(fold->responses + i * MOST_AXES, sums, sizeof(sums));
        for (int q = 0; i < n_fit && q < MOST_AXES; q++)
            for (int p = 0; p < MOST_AXES; p++)
                fold->mutual[q * MOST_AXES + p] +=
                    fold->scores[i * MOST_AXES + (size_t)q] * sums[p];
    }
}

/* Add the squared errors of a request held out, for all ranks. */
static void add_errors(const fold_t *fold, size_t i, double ridge,
                       double *errors)
{
    const double *scores = fold->scores + i * MOST_AXES;
    const double *responses = fold->responses + i * MOST_AXES;
    double weights[MOST_AXES] = {0.0};
    double error = fold->own[i];
    uint32_t q = 0;
    for (int r = 0; r < RANKS; r++) {
        for (; q < ranks[r] && q < fold->n_axes; q++) {
            double crossed = 0.0;
            weights[q] = scores[q] / (fold->values[q] + ridge);
            for (uint32_t p = 0; p < q; p++)
                crossed += weights[p] * (fold->mutual[q * MOST_AXES + p] +
                                         fold->mutual[p * MOST_AXES + q]);
            error += weights[q] *
                     (crossed + weights[q] * fold->mutual[q * MOST_AXES + q] -
                      2.0 * responses[q]);
        }
        errors[r] += error;
    }
}

static akin_status_t try_fold(fold_t *fold, uint64_t seed, errors_t errors)
{
    take_means(fold, &fold->xx);
    take_means(fold, &fold->xy);
    take_means(fold, &fold->yy);
    memset(fold->scores, 0,
           (size_t)fold->n * MOST_AXES * sizeof(*fold->scores));
    akin_status_t status = find_axes(fold, seed);
    if (status != AKIN_OK)
        return status;
    double mean_square = 0.0;
    for (size_t i = 0; i < fold->n_fit; i++)
        mean_square += fold->fit_xx[i * fold->n_fit + i] / (double)fold->n_fit;
    for (int c = 0; c < CARRIES; c++) {
        take_residual(fold, carries[c]);
        respond(fold);
        for (int g = 0; g < RIDGES; g++)
            for (size_t i = fold->n_fit; i < fold->n; i++)
                add_errors(fold, i, ridges[g] * mean_square, errors[c][g]);
    }
    return AKIN_OK;
}

static akin_status_t init_fold(fold_t *fold,
                               const akini_decode_samples_t *samples)
{
    const size_t n = samples->n;
    *fold = (fold_t){.samples = samples, .n = samples->n};
    fold->order = calloc(n, sizeof(*fold->order));
    fold->memory = calloc(2 * n * n + 7 * n + 3 * n * MOST_AXES + MOST_AXES +
                              MOST_AXES * MOST_AXES,
                          sizeof(*fold->memory));
    if (fold->order == NULL || fold->memory == NULL)
        return AKIN_ERR_NOMEM;
    fold->xx = (products_t){samples->xx, samples->trust, samples->trust,
                            NULL,        NULL,           0.0};
    fold->xy = (products_t){samples->xy, samples->trust, samples->ones,
                            NULL,        NULL,           0.0};
    fold->yy = (products_t){samples->yy, samples->ones, samples->ones,
                            NULL,        NULL,          0.0};
    double *next = fold->memory;
    products_t *const sets[] = {&fold->xx, &fold->xy, &fold->yy};
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        sets[i]->rows = next;
        sets[i]->columns = next + n;
        next += 2 * n;
    }
    fold->own = next;
    fold->fit_xx = fold->own + n;
    fold->residual = fold->fit_xx + n * n;
    fold->vectors = fold->residual + n * n;
    fold->scores = fold->vectors + n * MOST_AXES;
    fold->responses = fold->scores + n * MOST_AXES;
    fold->values = fold->responses + n * MOST_AXES;
    fold->mutual = fold->values + MOST_AXES;
    return AKIN_OK;
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

/* Number the samples of all parts but one, then those of that one. */
static void hold_out(fold_t *fold, const uint32_t *dealt, uint32_t part)
{
    uint32_t begin = (uint32_t)((uint64_t)part * fold->n / FOLDS);
    uint32_t end = (uint32_t)((uint64_t)(part + 1) * fold->n / FOLDS);
    uint32_t n_held = end - begin;
    fold->n_fit = fold->n - n_held;
    memcpy(fold->order, dealt, begin * sizeof(*dealt));
    memcpy(fold->order + begin, dealt + end, (fold->n - end) * sizeof(*dealt));
    memcpy(fold->order + fold->n_fit, dealt + begin, n_held * sizeof(*dealt));
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
    fold_t fold;
    akin_status_t status = init_fold(&fold, samples);
    uint32_t *dealt = calloc(n, sizeof(*dealt));
    if (status == AKIN_OK && dealt == NULL)
        status = AKIN_ERR_NOMEM;
    if (status == AKIN_OK)
        deal(dealt, n, seed);
    for (uint32_t part = 0; status == AKIN_OK && part < FOLDS; part++) {
        hold_out(&fold, dealt, part);
        status = try_fold(&fold, seed, errors);
    }
    if (status == AKIN_OK)
        choose(errors, choice_p);
    free(dealt);
    free(fold.memory);
    free(fold.order);
    return status;
}
