/* Expert step: against plain sums in double, and the same bits for a row
 * whatever rows and threads are around it. */
#include "ep/expert_step.h"

#include "draw.h"
#include "kernel_paths.h"
#include "runner.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#define HIDDEN 70u /* two chunks of rows, the second one short */
#define INTERMEDIATE 75u
#define EXPERTS 7u
#define TOP_K 3u
#define MAX_ROWS 150u
#define MATRIX ((size_t)HIDDEN * INTERMEDIATE)

typedef struct layer {
    unsigned char bytes[EXPERTS][3][MATRIX * 4];
    float values[EXPERTS][3][MATRIX];
    akin_expert_t experts[EXPERTS];
    float x[MAX_ROWS * HIDDEN];
    uint16_t routes[MAX_ROWS * TOP_K];
    float weights[MAX_ROWS * TOP_K];
    float y[MAX_ROWS * HIDDEN]; /* what the rows are added to */
} layer_t;

static layer_t layer;

static void fill(void)
{
    for (uint32_t e = 0; e < EXPERTS; e++) {
        for (uint32_t m = 0; m < 3; m++)
            draw_matrix(layer.bytes[e][m], layer.values[e][m], MATRIX,
                        (akin_dtype_t)((e + m) % AKIN_DTYPE_COUNT), 3 * e + m,
                        0.3);
        layer.experts[e] = (akin_expert_t){
            .gate = {layer.bytes[e][0], (akin_dtype_t)(e % AKIN_DTYPE_COUNT),
                     INTERMEDIATE, HIDDEN},
            .up = {layer.bytes[e][1],
                   (akin_dtype_t)((e + 1) % AKIN_DTYPE_COUNT), INTERMEDIATE,
                   HIDDEN},
            .down = {layer.bytes[e][2],
                     (akin_dtype_t)((e + 2) % AKIN_DTYPE_COUNT), HIDDEN,
                     INTERMEDIATE},
        };
    }
    draw_floats(layer.x, (size_t)MAX_ROWS * HIDDEN, 77, 1.0);
    draw_floats(layer.y, (size_t)MAX_ROWS * HIDDEN, 78, 1.0);
    draw_floats(layer.weights, (size_t)MAX_ROWS * TOP_K, 79, 1.0);
    /* Expert 5 is never chosen; expert 2 by nearly every row. */
    static const uint16_t choices[4][TOP_K] = {
        {2, 0, 6}, {1, 2, 3}, {4, 0, 2}, {6, 3, 1}};
    for (uint32_t row = 0; row < MAX_ROWS; row++)
        memcpy(layer.routes + (size_t)row * TOP_K,
               choices[draw_below(80, row, 4)], sizeof(choices[0]));
}

static double dot(const float *w, const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)w[i] * x[i];
    return sum;
}

static void reference_row(uint32_t row, double out[HIDDEN])
{
    double x[HIDDEN];
    for (size_t i = 0; i < HIDDEN; i++) {
        x[i] = (double)layer.x[(size_t)row * HIDDEN + i];
        out[i] = (double)layer.y[(size_t)row * HIDDEN + i];
    }
    for (size_t j = 0; j < TOP_K; j++) {
        uint16_t e = layer.routes[(size_t)row * TOP_K + j];
        double weight = (double)layer.weights[(size_t)row * TOP_K + j];
        double h[INTERMEDIATE];
        for (size_t o = 0; o < INTERMEDIATE; o++) {
            double gate = dot(layer.values[e][0] + o * HIDDEN, x, HIDDEN);
            double up = dot(layer.values[e][1] + o * HIDDEN, x, HIDDEN);
            h[o] = gate / (1.0 + exp(-gate)) * up;
        }
        for (size_t o = 0; o < HIDDEN; o++)
            out[o] += weight * dot(layer.values[e][2] + o * INTERMEDIATE, h,
                                   INTERMEDIATE);
    }
}

/* Run rows [first, first + n) and give y; n_threads 0: no parallel region. */
static uint32_t run(const akin_kernels_t *kernels, uint32_t max_rows,
                    uint32_t first, uint32_t n, int n_threads, float *y)
{
    const akin_expert_step_params_t params = {
        .kernels = kernels,
        .hidden = HIDDEN,
        .intermediate = INTERMEDIATE,
        .n_experts = EXPERTS,
        .top_k = TOP_K,
        .max_rows = max_rows,
    };
    akin_expert_step_t *step = NULL;
    CU_ASSERT_EQUAL_FATAL(akin_expert_step_create(&params, &step), AKIN_OK);
    memcpy(y, layer.y + (size_t)first * HIDDEN,
           (size_t)n * HIDDEN * sizeof(float));
    const akin_expert_batch_t batch = {
        .experts = layer.experts,
        .x = layer.x + (size_t)first * HIDDEN,
        .routes = layer.routes + (size_t)first * TOP_K,
        .weights = layer.weights + (size_t)first * TOP_K,
        .n_rows = n,
        .y = y,
    };
    uint32_t distinct = 0;
    akin_team_t *team = akin_team_create();
    CU_ASSERT_PTR_NOT_NULL_FATAL(team);
    if (n_threads == 0) {
        distinct = akin_expert_step_run(step, team, 0, &batch);
    } else {
#pragma omp parallel num_threads(n_threads) reduction(max : distinct)
        {
            akin_team_begin(team, (uint32_t)omp_get_num_threads());
            distinct = akin_expert_step_run(
                step, team, (uint32_t)omp_get_thread_num(), &batch);
        }
    }
    akin_team_destroy(team);
    akin_expert_step_destroy(step);
    return distinct;
}

static void sums_of(const akin_kernels_t *kernels)
{
    static float y[MAX_ROWS * HIDDEN];
    unsigned wrong = 0;
    CU_ASSERT_EQUAL(run(kernels, MAX_ROWS, 0, MAX_ROWS, 0, y), 6);
    for (uint32_t row = 0; row < MAX_ROWS; row++) {
        double exact[HIDDEN];
        reference_row(row, exact);
        for (size_t i = 0; i < HIDDEN; i++)
            wrong +=
                !(fabs((double)y[(size_t)row * HIDDEN + i] - exact[i]) < 2e-5);
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void sums(void)
{
    fill();
    kernel_paths_each(sums_of);
}

static void same_bits_of(const akin_kernels_t *kernels)
{
    static float whole[MAX_ROWS * HIDDEN], part[MAX_ROWS * HIDDEN];
    static const uint32_t sizes[] = {1, 2, 3, 7, 17, 64, 65, 129};
    unsigned moved = 0;
    (void)run(kernels, MAX_ROWS, 0, MAX_ROWS, 0, whole);
    for (int threads = 1; threads <= 3; threads++) {
        (void)run(kernels, MAX_ROWS, 0, MAX_ROWS, threads, part);
        moved += memcmp(whole, part, sizeof(whole)) != 0;
    }
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        uint32_t n = sizes[s];
        for (uint32_t first = 0; first + n <= MAX_ROWS; first += n + 5) {
            (void)run(kernels, n, first, n, 0, part);
            moved += memcmp(whole + (size_t)first * HIDDEN, part,
                            (size_t)n * HIDDEN * sizeof(float)) != 0;
        }
    }
    CU_ASSERT_EQUAL(moved, 0);
}

static void same_bits(void)
{
    fill();
    kernel_paths_each(same_bits_of);
}

/* One row touches its k experts; rows that agree touch no more. */
static void distinct(void)
{
    const akin_kernels_t *kernels = akin_kernels_of(AKIN_KERNEL_PORTABLE);
    float y[3 * HIDDEN];
    fill();
    for (uint32_t i = 0; i < 3; i++) {
        static const uint16_t route[TOP_K] = {6, 5, 0};
        memcpy(layer.routes + (size_t)i * TOP_K, route, sizeof(route));
    }
    CU_ASSERT_EQUAL(run(kernels, 3, 0, 1, 0, y), 3);
    CU_ASSERT_EQUAL(run(kernels, 3, 0, 3, 0, y), 3);
    layer.routes[2 * TOP_K] = 1;
    CU_ASSERT_EQUAL(run(kernels, 3, 0, 3, 0, y), 4);
    CU_ASSERT_EQUAL(run(kernels, 3, 0, 3, 2, y), 4);
    akin_expert_step_destroy(NULL);
}

static const runner_test_t tests[] = {
    {"sums of an expert layer", sums},
    {"the same bits in any batch and team", same_bits},
    {"distinct experts", distinct},
};

RUNNER_MAIN("expert_step", tests)
