/* Decode fold: a ridge regression of decode on prompt rates. */
#include "routing/decode_fold.h"

#include "routing/eigen.h"
#include "routing/lanes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BASE = AKINI_DECODE_FOLD_BASE };

/* Memory for both sides of a set of products, from `next` on. */
static double *init_products(akini_decode_products_t *p, size_t n, double *next)
{
    p->rows = next;
    p->columns = next + n;
    return next + 2 * n;
}

akin_status_t akini_decode_fold_init(akini_decode_fold_t *fold,
                                     const akini_decode_samples_t *samples)
{
    const size_t n = samples->n;
    *fold = (akini_decode_fold_t){
        .n = samples->n,
        .xx = {.all = samples->xx,
               .left = samples->trust,
               .right = samples->trust},
        .xy = {.all = samples->xy,
               .left = samples->trust,
               .right = samples->ones},
        .yy = {.all = samples->yy,
               .left = samples->ones,
               .right = samples->ones},
        .order = calloc(n, sizeof(*fold->order)),
        .memory = calloc(2 * n * n + 7 * n + 3 * n * BASE + BASE + BASE * BASE,
                         sizeof(*fold->memory)),
    };
    if (fold->order == NULL || fold->memory == NULL)
        return AKIN_ERR_NOMEM;
    double *next = init_products(&fold->xx, n, fold->memory);
    next = init_products(&fold->xy, n, next);
    fold->own = init_products(&fold->yy, n, next);
    fold->fit_xx = fold->own + n;
    fold->residual = fold->fit_xx + n * n;
    fold->vectors = fold->residual + n * n;
    fold->scores = fold->vectors + n * BASE;
    fold->responses = fold->scores + n * BASE;
    fold->values = fold->responses + n * BASE;
    fold->mutual = fold->values + BASE;
    return AKIN_OK;
}

void akini_decode_fold_cleanup(akini_decode_fold_t *fold)
{
    free(fold->memory);
    free(fold->order);
    memset(fold, 0, sizeof(*fold));
}

static inline double product(const akini_decode_products_t *p, size_t n,
                             size_t i, size_t j)
{
    return p->all[i * n + j] - p->right[j] * p->rows[i] -
           p->left[i] * p->columns[j] + p->left[i] * p->right[j] * p->mean;
}

static void take_means(const akini_decode_fold_t *fold,
                       akini_decode_products_t *p)
{
    const size_t n = fold->n;
    double left = 0.0, right = 0.0;
    memset(p->rows, 0, n * sizeof(*p->rows));
    memset(p->columns, 0, n * sizeof(*p->columns));
    p->mean = 0.0;
    for (uint32_t k = 0; k < fold->n_fit; k++) {
        const size_t at = fold->order[k];
        left += p->left[at];
        right += p->right[at];
        for (size_t i = 0; i < n; i++) {
            p->rows[i] += p->all[i * n + at];
            p->columns[i] += p->all[at * n + i];
        }
    }
    for (size_t i = 0; i < n; i++) {
        p->rows[i] /= right;
        p->columns[i] /= left;
    }
    for (uint32_t k = 0; k < fold->n_fit; k++)
        p->mean += p->rows[fold->order[k]] / left;
}

/* Scores of all samples on the axes of those for fitting. */
static void score(const akini_decode_fold_t *fold)
{
    const size_t n_fit = fold->n_fit;
    memset(fold->scores, 0, (size_t)fold->n * BASE * sizeof(*fold->scores));
    for (size_t i = 0; i < fold->n; i++) {
        double *scores = fold->scores + i * BASE;
        for (uint32_t q = 0; i < n_fit && q < fold->n_base; q++)
            scores[q] = sqrt(fold->values[q]) * fold->vectors[q * n_fit + i];
        for (size_t k = 0; i >= n_fit && k < n_fit; k++) {
            double value =
                product(&fold->xx, fold->n, fold->order[i], fold->order[k]);
            const double *fitted = fold->scores + k * BASE;
            for (uint32_t q = 0; q < fold->n_base; q++)
                scores[q] += value * fitted[q];
        }
        for (uint32_t q = 0; i >= n_fit && q < fold->n_base; q++)
            scores[q] /= fold->values[q];
    }
}

akin_status_t akini_decode_fold_begin(akini_decode_fold_t *fold, uint32_t n_fit,
                                      uint64_t seed)
{
    fold->n_fit = n_fit;
    take_means(fold, &fold->xx);
    take_means(fold, &fold->xy);
    take_means(fold, &fold->yy);
    fold->mean_square = 0.0;
    for (size_t i = 0; i < n_fit; i++) {
        for (size_t k = 0; k < n_fit; k++)
            fold->fit_xx[i * n_fit + k] =
                product(&fold->xx, fold->n, fold->order[i], fold->order[k]);
        fold->mean_square += fold->fit_xx[i * n_fit + i] / (double)n_fit;
    }
    const akini_eigen_params_t eigen = {
        .matrix = fold->fit_xx,
        .stride = n_fit,
        .n = n_fit,
        .n_wanted = BASE,
        .seed = seed,
    };
    akin_status_t status =
        akini_eigen_find(&eigen, fold->values, fold->vectors, &fold->n_base);
    if (status == AKIN_OK)
        score(fold);
    return status;
}

static void take_residual(const akini_decode_fold_t *fold, double carry)
{
    const size_t n = fold->n, n_fit = fold->n_fit;
    for (size_t i = 0; i < n; i++) {
        const size_t a = fold->order[i];
        for (size_t k = 0; k < n_fit; k++) {
            const size_t b = fold->order[k];
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
AKINI_CLONES static void respond(const akini_decode_fold_t *fold)
{
    const size_t n_fit = fold->n_fit;
    memset(fold->mutual, 0, BASE * BASE * sizeof(*fold->mutual));
    for (size_t i = 0; i < fold->n; i++) {
        double sums[BASE] = {0.0};
        for (size_t k = 0; k < n_fit; k++) {
            const double value = fold->residual[i * n_fit + k];
            const double *scores = fold->scores + k * BASE;
            for (int q = 0; q < BASE; q++)
                sums[q] += value * scores[q];
        }
        memcpy(fold->responses + i * BASE, sums, sizeof(sums));
        for (size_t q = 0; i < n_fit && q < BASE; q++) {
            const double score = fold->scores[i * BASE + q];
            double *restrict row = fold->mutual + q * BASE;
            for (int p = 0; p < BASE; p++)
                row[p] += score * sums[p];
        }
    }
}

void akini_decode_fold_carry(akini_decode_fold_t *fold, double carry)
{
    take_residual(fold, carry);
    respond(fold);
}

akin_status_t akini_decode_fold_reduce(const akini_decode_fold_t *fold,
                                       double ridge, uint64_t seed,
                                       akini_decode_mix_t *mix)
{
    const uint32_t n = fold->n_base;
    mix->n_axes = 0;
    if (n == 0)
        return AKIN_OK;
    double *matrix = calloc((size_t)n * n, sizeof(*matrix));
    if (matrix == NULL)
        return AKIN_ERR_NOMEM;
    double weights[BASE];
    for (uint32_t q = 0; q < n; q++)
        weights[q] = sqrt(fold->values[q]) / (fold->values[q] + ridge);
    for (size_t q = 0; q < n; q++)
        for (size_t p = 0; p < n; p++)
            matrix[q * n + p] =
                weights[q] * weights[p] * 0.5 *
                (fold->mutual[q * BASE + p] + fold->mutual[p * BASE + q]);
    const akini_eigen_params_t eigen = {
        .matrix = matrix,
        .stride = n,
        .n = n,
        .n_wanted = AKINI_DECODE_FOLD_AXES,
        .seed = seed,
    };
    akin_status_t status =
        akini_eigen_find(&eigen, mix->strengths, mix->rows, &mix->n_axes);
    free(matrix);
    return status;
}
