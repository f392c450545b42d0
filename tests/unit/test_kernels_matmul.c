/* Matrix product: against sums in double, and bit by bit against itself. */
#include "math/kernels.h"

#include "draw.h"
#include "guarded.h"
#include "kernel_paths.h"
#include "runner.h"

#include <math.h>
#include <string.h>

#define MAX_ROWS 19u
#define MAX_COLS 200u
#define MAX_N 13u
#define CANARY 12345.0f

/* One product of all rows with all vectors, and its reference. */
typedef struct product {
    const akin_kernels_t *kernels;
    akin_dtype_t dtype;
    size_t cols;
    const unsigned char *w;
    float values[MAX_ROWS * MAX_COLS];
    float x[MAX_N][MAX_COLS];
    float y[MAX_N][MAX_ROWS];
} product_t;

/* Rows [first, first + rows) with vectors [from, from + n). */
static void multiply(const product_t *p, size_t first, size_t rows, size_t from,
                     size_t n, float out[MAX_N][MAX_ROWS + 1])
{
    const float *x[MAX_N];
    float *y[MAX_N];
    for (size_t t = 0; t < n; t++) {
        x[t] = p->x[from + t];
        y[t] = out[t];
        for (size_t r = 0; r <= MAX_ROWS; r++)
            out[t][r] = CANARY;
    }
    p->kernels->matmul[p->dtype](p->w + first * p->cols *
                                            akin_dtype_bytes(p->dtype),
                                 rows, p->cols, x, y, n);
}

/* Elements whose bits differ from those of the whole product, and elements
 * written behind the rows. */
static unsigned differ(const product_t *p, size_t first, size_t rows,
                       size_t from, size_t n)
{
    float out[MAX_N][MAX_ROWS + 1];
    unsigned wrong = 0;
    multiply(p, first, rows, from, n, out);
    for (size_t t = 0; t < n; t++) {
        wrong +=
            memcmp(out[t], &p->y[from + t][first], rows * sizeof(float)) != 0;
        for (size_t r = rows; r <= MAX_ROWS; r++)
            wrong += out[t][r] != CANARY;
    }
    return wrong;
}

/* Every term goes through at most cols / 8 + 1 sums of its lane and four of
 * the tree; each rounding is off by 2^-24 at most. */
static unsigned beyond_bound(const product_t *p)
{
    unsigned wrong = 0;
    for (size_t t = 0; t < MAX_N; t++)
        for (size_t r = 0; r < MAX_ROWS; r++) {
            double sum = 0, size = 0;
            for (size_t i = 0; i < p->cols; i++) {
                double term =
                    (double)p->values[r * p->cols + i] * (double)p->x[t][i];
                sum += term;
                size += fabs(term);
            }
            double bound = size * ((double)p->cols / 8 + 7) * 0x1p-24;
            wrong += !(fabs((double)p->y[t][r] - sum) <= bound);
        }
    return wrong;
}

static void all_shapes(const akin_kernels_t *kernels)
{
    static product_t p;
    guarded_t memory = guarded_create(MAX_ROWS * MAX_COLS * 4 + 8);
    unsigned inexact = 0, batch_variant = 0;
    p.kernels = kernels;
    for (int d = 0; d < AKIN_DTYPE_COUNT; d++) {
        p.dtype = (akin_dtype_t)d;
        for (p.cols = 1; p.cols <= MAX_COLS; p.cols++) {
            /* Ends at the forbidden page, or up to three bytes before. */
            size_t n = MAX_ROWS * p.cols;
            unsigned char *w =
                memory.end - n * akin_dtype_bytes(p.dtype) - p.cols % 4;
            draw_matrix(w, p.values, n, p.dtype, p.cols, 1.0);
            p.w = w;
            for (size_t t = 0; t < MAX_N; t++)
                draw_floats(p.x[t], p.cols, 1000 * p.cols + t, 2.0);
            float out[MAX_N][MAX_ROWS + 1];
            multiply(&p, 0, MAX_ROWS, 0, MAX_N, out);
            for (size_t t = 0; t < MAX_N; t++)
                memcpy(p.y[t], out[t], sizeof(p.y[t]));
            inexact += beyond_bound(&p);
            for (size_t rows = 1; rows <= MAX_ROWS; rows++) {
                size_t vectors = 1 + (rows + p.cols) % MAX_N;
                batch_variant +=
                    differ(&p, MAX_ROWS - rows, rows, MAX_N - vectors, vectors);
            }
            for (size_t vectors = 1; vectors <= MAX_N; vectors++) {
                size_t rows = 1 + (7 * vectors + p.cols) % MAX_ROWS;
                batch_variant += differ(&p, 0, rows, 0, vectors);
            }
        }
    }
    guarded_destroy(&memory);
    CU_ASSERT_EQUAL(inexact, 0);
    CU_ASSERT_EQUAL(batch_variant, 0);
}

static void shapes(void)
{
    kernel_paths_each(all_shapes);
}

/* Small whole numbers are exact in every type and order. */
static void exact_sums(const akin_kernels_t *kernels)
{
    for (int d = 0; d < AKIN_DTYPE_COUNT; d++) {
        unsigned char w[3 * 70 * 4];
        float values[3 * 70], x[70], y[3];
        size_t at = 0;
        for (size_t i = 0; i < 3 * 70; i++) {
            values[i] = (float)(int)draw_below(5, i, 15) - 7.0f;
            uint32_t bits = checkpoint_bits(values[i], (akin_dtype_t)d);
            if (values[i] == 0.0f)
                bits = 0;
            for (size_t b = 0; b < akin_dtype_bytes((akin_dtype_t)d); b++)
                w[at++] = (unsigned char)(bits >> 8 * b);
        }
        for (size_t i = 0; i < 70; i++)
            x[i] = (float)(int)draw_below(6, i, 15) - 7.0f;
        const akin_matrix_t m = {w, (akin_dtype_t)d, 3, 70};
        const float *in = x;
        float *out = y;
        akin_matmul(kernels, &m, 0, 3, &in, &out, 1);
        for (size_t r = 0; r < 3; r++) {
            float sum = 0;
            for (size_t i = 0; i < 70; i++)
                sum += values[r * 70 + i] * x[i];
            CU_ASSERT_EQUAL(y[r], sum);
        }
        akin_matmul(kernels, &m, 2, 1, &in, &out, 1);
        float last = 0;
        for (size_t i = 0; i < 70; i++)
            last += values[2 * 70 + i] * x[i];
        CU_ASSERT_EQUAL(y[0], last);
    }
}

static void whole_numbers(void)
{
    kernel_paths_each(exact_sums);
}

static const runner_test_t tests[] = {
    {"odd shapes: in bound, and the same bits in any batch", shapes},
    {"whole numbers are summed exactly", whole_numbers},
};

RUNNER_MAIN("matmul", tests)
