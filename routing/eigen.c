/* Eigen: the largest eigenvalues of a symmetric matrix, with their vectors. */
#include "routing/eigen.h"

#include "base/rng.h"
#include "routing/lanes.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SPARE = 16,      /* vectors beside the wanted ones, which settle first */
    ROUNDS = 10,     /* of the iteration */
    SWEEPS = 30,     /* of Jacobi's rotations; a dozen do */
    ROWS = 8,        /* of the matrix at a time */
    WIDE_LANES = 8,  /* doubles of a akini_wide_t */
    STREAM_START = 1 /* of the random numbers */
};

/* Eigenvalues below this part of the largest are rounding of the floats that
 * the matrix was made from. */
#define MIN_PART 1e-6
/* What is left of a vector that lay among those before it. */
#define MIN_LEFT 1e-9

/* An iteration. Vectors lie across: element i of all of them in a row. */
typedef struct iteration {
    const akini_eigen_params_t *params;
    uint32_t width;   /* vectors */
    size_t across;    /* the same in whole lanes, those at the end zero */
    double *vectors;  /* [n][across] */
    double *images;   /* [n][across] the matrix times them */
    double *sums;     /* [width] */
    double *ritz;     /* [width][width] the matrix seen by the vectors */
    double *rotation; /* [width][width] */
    uint32_t *order;  /* [width] of the values, falling */
} iteration_t;

/* Some rows of the images, WIDE_LANES of vectors at a time; inlined with
 * a constant number of rows, so that the sums stay in registers. */
AKINI_INLINE void multiply_rows(const iteration_t *it, size_t first,
                                const int n_rows, size_t lane)
{
    const size_t n = it->params->n;
    const double *rows = it->params->matrix + first * it->params->stride;
    akini_wide_t sums[ROWS];
    for (int r = 0; r < n_rows; r++)
        sums[r] = (akini_wide_t){0.0};
    for (size_t j = 0; j < n; j++) {
        akini_wide_t vector;
        memcpy(&vector, it->vectors + j * it->across + lane, sizeof(vector));
        for (int r = 0; r < n_rows; r++)
            sums[r] += rows[(size_t)r * it->params->stride + j] * vector;
    }
    for (int r = 0; r < n_rows; r++)
        memcpy(it->images + (first + (size_t)r) * it->across + lane, &sums[r],
               sizeof(sums[r]));
}

/* images = matrix x vectors */
AKINI_CLONES static void multiply(const iteration_t *it)
{
    const size_t n = it->params->n;
    for (size_t lane = 0; lane < it->across; lane += WIDE_LANES) {
        size_t i = 0;
        for (; n - i >= ROWS; i += ROWS)
            multiply_rows(it, i, ROWS, lane);
        for (; i < n; i++)
            multiply_rows(it, i, 1, lane);
    }
}

/* sums[k] = the products of vector `which` with the vectors before it. */
AKINI_CLONES static void project(const iteration_t *it, size_t which)
{
    const size_t n = it->params->n;
    double *restrict sums = it->sums;
    memset(sums, 0, it->width * sizeof(*sums));
    for (size_t i = 0; i < n; i++) {
        const double *row = it->vectors + i * it->across;
        for (size_t k = 0; k < which; k++)
            sums[k] += row[which] * row[k];
    }
}

/* Take sums[k] times vector k off vector `which`, for all k before it. */
AKINI_CLONES static void subtract(const iteration_t *it, size_t which)
{
    const size_t n = it->params->n, whole = which - which % WIDE_LANES;
    for (size_t i = 0; i < n; i++) {
        double *row = it->vectors + i * it->across;
        akini_wide_t wide = {0.0}, a, b;
        for (size_t k = 0; k < whole; k += WIDE_LANES) {
            memcpy(&a, it->sums + k, sizeof(a));
            memcpy(&b, row + k, sizeof(b));
            wide += a * b;
        }
        double sum = 0.0;
        for (int lane = 0; lane < WIDE_LANES; lane++)
            sum += wide[lane];
        for (size_t k = whole; k < which; k++)
            sum += it->sums[k] * row[k];
        row[which] -= sum;
    }
}

static double length(const iteration_t *it, size_t which)
{
    double squares = 0.0;
    for (size_t i = 0; i < it->params->n; i++) {
        double value = it->vectors[i * it->across + which];
        squares += value * value;
    }
    return sqrt(squares);
}

static void scale(const iteration_t *it, size_t which, double factor)
{
    for (size_t i = 0; i < it->params->n; i++)
        it->vectors[i * it->across + which] *= factor;
}

/* Make the vectors of length 1 and at right angles, in their order; one that
 * lies among those before it becomes zero. */
static void orthonormalise(const iteration_t *it)
{
    for (size_t k = 0; k < it->width; k++) {
        double before = length(it, k);
        if (!(before > DBL_MIN)) {
            scale(it, k, 0.0);
            continue;
        }
        scale(it, k, 1.0 / before);
        /* The second pass takes away what rounding left of the first. */
        for (int pass = 0; pass < 2; pass++) {
            project(it, k);
            subtract(it, k);
        }
        double left = length(it, k);
        scale(it, k, left > MIN_LEFT ? 1.0 / left : 0.0);
    }
}

static void start(const iteration_t *it)
{
    const size_t width = it->width;
    for (size_t i = 0; i < it->params->n; i++)
        for (size_t k = 0; k < width; k++)
            it->vectors[i * it->across + k] =
                akin_rng_uniform(it->params->seed, STREAM_START,
                                 i * width + k) -
                0.5;
    orthonormalise(it);
}

/* ritz = vectors' x images */
AKINI_CLONES static void cross(const iteration_t *it)
{
    const size_t n = it->params->n, width = it->width;
    memset(it->ritz, 0, width * width * sizeof(*it->ritz));
    for (size_t i = 0; i < n; i++) {
        const double *vector = it->vectors + i * it->across;
        const double *image = it->images + i * it->across;
        for (size_t a = 0; a < width; a++) {
            const double value = vector[a];
            double *restrict row = it->ritz + a * width;
            for (size_t b = 0; b < width; b++)
                row[b] += value * image[b];
        }
    }
}

/* ritz = vectors' x matrix x vectors */
static void reduce(const iteration_t *it)
{
    const size_t width = it->width;
    multiply(it);
    cross(it);
    for (size_t a = 0; a < width; a++) {
        for (size_t b = 0; b < a; b++) {
            double both =
                0.5 * (it->ritz[a * width + b] + it->ritz[b * width + a]);
            it->ritz[a * width + b] = both;
            it->ritz[b * width + a] = both;
        }
    }
}

static void rotate_columns(double *m, size_t width, size_t p, size_t q,
                           double cosine, double sine)
{
    for (size_t i = 0; i < width; i++) {
        double *row = m + i * width;
        double a = row[p], b = row[q];
        row[p] = cosine * a - sine * b;
        row[q] = sine * a + cosine * b;
    }
}

static void rotate_rows(double *m, size_t width, size_t p, size_t q,
                        double cosine, double sine)
{
    double *row_p = m + p * width, *row_q = m + q * width;
    for (size_t i = 0; i < width; i++) {
        double a = row_p[i], b = row_q[i];
        row_p[i] = cosine * a - sine * b;
        row_q[i] = sine * a + cosine * b;
    }
}

/* Rotate until only the diagonal is left (Jacobi, row by row). */
static void diagonalise(const iteration_t *it)
{
    const size_t width = it->width;
    double *m = it->ritz;
    memset(it->rotation, 0, width * width * sizeof(*it->rotation));
    for (size_t k = 0; k < width; k++)
        it->rotation[k * width + k] = 1.0;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        uint32_t n_rotated = 0;
        for (size_t p = 0; p + 1 < width; p++) {
            for (size_t q = p + 1; q < width; q++) {
                double off = m[p * width + q];
                double a = m[p * width + p], b = m[q * width + q];
                if (!(fabs(off) > DBL_EPSILON * sqrt(fabs(a) * fabs(b))) ||
                    !(fabs(off) > DBL_MIN))
                    continue;
                double theta = (b - a) / (2.0 * off);
                double tangent =
                    copysign(1.0, theta) / (fabs(theta) + hypot(theta, 1.0));
                double cosine = 1.0 / sqrt(1.0 + tangent * tangent);
                double sine = tangent * cosine;
                rotate_columns(m, width, p, q, cosine, sine);
                rotate_rows(m, width, p, q, cosine, sine);
                rotate_columns(it->rotation, width, p, q, cosine, sine);
                n_rotated++;
            }
        }
        if (n_rotated == 0)
            break;
    }
}

/* Order of the values, falling; the lower index on a tie. */
static void sort(const iteration_t *it)
{
    for (uint32_t i = 0; i < it->width; i++) {
        double value = it->ritz[(size_t)i * it->width + i];
        uint32_t at = i;
        for (; at > 0; at--) {
            uint32_t other = it->order[at - 1];
            if (it->ritz[(size_t)other * it->width + other] >= value)
                break;
            it->order[at] = other;
        }
        it->order[at] = i;
    }
}

static uint32_t collect(const iteration_t *it, double *values, double *vectors)
{
    const akini_eigen_params_t *params = it->params;
    const size_t n = params->n, width = it->width;
    double largest = it->ritz[(size_t)it->order[0] * width + it->order[0]];
    uint32_t found = 0;
    for (; found < params->n_wanted && found < width; found++) {
        size_t k = it->order[found];
        double value = it->ritz[k * width + k];
        if (!(value > DBL_MIN) || !(value > MIN_PART * largest))
            break;
        values[found] = value;
        for (size_t i = 0; i < n; i++) {
            double sum = 0.0;
            for (size_t j = 0; j < width; j++)
                sum += it->vectors[i * it->across + j] *
                       it->rotation[j * width + k];
            vectors[found * n + i] = sum;
        }
    }
    return found;
}

akin_status_t akini_eigen_find(const akini_eigen_params_t *params,
                               double *values, double *vectors,
                               uint32_t *n_found_p)
{
    uint32_t width = params->n_wanted + SPARE;
    if (width > params->n)
        width = params->n;
    size_t across = (size_t)(width + WIDE_LANES - 1) / WIDE_LANES * WIDE_LANES;
    size_t n = params->n * across, square = (size_t)width * width;
    iteration_t it = {.params = params, .width = width, .across = across};
    double *block = calloc(2 * n + 2 * square + width, sizeof(*block));
    it.order = calloc(width, sizeof(*it.order));
    *n_found_p = 0;
    if (block == NULL || it.order == NULL) {
        free(it.order);
        free(block);
        return AKIN_ERR_NOMEM;
    }
    it.vectors = block;
    it.images = it.vectors + n;
    it.ritz = it.images + n;
    it.rotation = it.ritz + square;
    it.sums = it.rotation + square;
    start(&it);
    for (int round = 0; round < ROUNDS; round++) {
        multiply(&it);
        memcpy(it.vectors, it.images, n * sizeof(*it.vectors));
        orthonormalise(&it);
    }
    reduce(&it);
    diagonalise(&it);
    sort(&it);
    *n_found_p = collect(&it, values, vectors);
    free(it.order);
    free(block);
    return AKIN_OK;
}
