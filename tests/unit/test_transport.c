/* Transport against all assignments, and against its own optimality proof. */
#include "runner.h"

#include "base/rng.h"
#include "routing/transport.h"

#include <math.h>
#include <string.h>

enum { MAX_POINTS = 600, MAX_SINKS = 12 };

/* Costs on a grid of `levels` values make many assignments equally cheap. */
static void draw_costs(float *cost, size_t n, uint64_t seed, uint64_t levels)
{
    for (size_t i = 0; i < n; i++)
        cost[i] = (float)((double)akin_rng_below(seed, 0, i, levels) /
                              (double)levels -
                          0.3);
}

static double cheapest_of_all(const float *cost, uint32_t n, uint32_t k,
                              uint32_t capacity)
{
    double least = INFINITY;
    uint32_t n_all = 1;
    for (uint32_t i = 0; i < n; i++)
        n_all *= k;
    for (uint32_t code = 0; code < n_all; code++) {
        uint32_t load[MAX_SINKS] = {0};
        double total = 0.0;
        int fits = 1;
        uint32_t rest = code;
        for (uint32_t i = 0; i < n; i++, rest /= k) {
            fits &= ++load[rest % k] <= capacity;
            total += (double)cost[i * k + rest % k];
        }
        if (fits)
            least = fmin(least, total);
    }
    return least;
}

static void test_against_all(void)
{
    static const uint32_t shapes[][3] = {{1, 1, 1}, {4, 2, 2}, {6, 3, 2},
                                         {7, 3, 3}, {5, 4, 2}, {6, 4, 6},
                                         {4, 4, 1}, {7, 3, 4}};
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
        for (uint64_t seed = 0; seed < 40; seed++) {
            uint32_t n = shapes[s][0], k = shapes[s][1], cap = shapes[s][2];
            float cost[7 * 4];
            uint32_t sink[7], load[MAX_SINKS] = {0};
            double total = 0.0, sum = 0.0;
            draw_costs(cost, n * k, seed, seed % 2 == 0 ? 5 : 1000000);
            CU_ASSERT_EQUAL_FATAL(
                akin_transport_solve(cost, n, k, cap, sink, &total, NULL),
                AKIN_OK);
            for (uint32_t i = 0; i < n; i++) {
                CU_ASSERT_FATAL(sink[i] < k);
                CU_ASSERT(++load[sink[i]] <= cap);
                sum += (double)cost[i * k + sink[i]];
            }
            CU_ASSERT_DOUBLE_EQUAL(total, sum, 1e-12);
            CU_ASSERT_DOUBLE_EQUAL(total, cheapest_of_all(cost, n, k, cap),
                                   1e-9);
        }
}

/*
 * An assignment is cheapest if and only if no cycle of moves and no chain of
 * moves into a sink with room gains anything (Floyd and Warshall's distances).
 */
static double best_gain(const float *cost, const uint32_t *sink, uint32_t n,
                        uint32_t k, uint32_t capacity)
{
    static double d[MAX_SINKS][MAX_SINKS];
    uint32_t load[MAX_SINKS] = {0};
    for (uint32_t a = 0; a < k; a++)
        for (uint32_t b = 0; b < k; b++)
            d[a][b] = INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t a = sink[i];
        load[a]++;
        for (uint32_t b = 0; b < k; b++)
            if (b != a)
                d[a][b] = fmin(d[a][b], (double)cost[i * k + b] -
                                            (double)cost[i * k + a]);
    }
    for (uint32_t m = 0; m < k; m++)
        for (uint32_t a = 0; a < k; a++)
            for (uint32_t b = 0; b < k; b++)
                d[a][b] = fmin(d[a][b], d[a][m] + d[m][b]);
    double gain = 0.0;
    for (uint32_t a = 0; a < k; a++)
        for (uint32_t b = 0; b < k; b++)
            if (a == b || load[b] < capacity)
                gain = fmax(gain, -d[a][b]);
    return gain;
}

static void test_optimality(void)
{
    static float cost[MAX_POINTS * MAX_SINKS];
    static uint32_t sink[MAX_POINTS];
    for (uint64_t seed = 0; seed < 30; seed++) {
        uint32_t n = 1 + (uint32_t)akin_rng_below(seed, 1, 0, MAX_POINTS);
        uint32_t k = 1 + (uint32_t)akin_rng_below(seed, 1, 1, MAX_SINKS);
        uint32_t cap = (n + k - 1) / k + (uint32_t)(seed % 3);
        uint32_t load[MAX_SINKS] = {0};
        draw_costs(cost, (size_t)n * k, seed, seed % 4 == 0 ? 7 : 1u << 20);
        CU_ASSERT_EQUAL_FATAL(
            akin_transport_solve(cost, n, k, cap, sink, NULL, NULL), AKIN_OK);
        for (uint32_t i = 0; i < n; i++) {
            CU_ASSERT_FATAL(sink[i] < k);
            CU_ASSERT(++load[sink[i]] <= cap);
        }
        CU_ASSERT(best_gain(cost, sink, n, k, cap) < 1e-9);
    }
}

/*
 * The same problem as a dense one, a column for each place of each sink: the
 * Hungarian algorithm with potentials, a shortest augmenting path per point.
 */
static double dense_optimum(const float *cost, uint32_t n, uint32_t k,
                            uint32_t capacity)
{
    enum { MAX_COLUMNS = 260 };
    static double v[MAX_COLUMNS + 1], least[MAX_COLUMNS + 1],
        u[MAX_COLUMNS + 1];
    uint32_t point_of[MAX_COLUMNS + 1] = {0}, way[MAX_COLUMNS + 1] = {0};
    uint32_t m = k * capacity;
    CU_ASSERT_FATAL(n <= m && m <= MAX_COLUMNS);
    memset(u, 0, sizeof(u));
    memset(v, 0, sizeof(v));
    for (uint32_t i = 1; i <= n; i++) {
        uint8_t used[MAX_COLUMNS + 1] = {0};
        uint32_t column = 0;
        point_of[0] = i;
        for (uint32_t j = 0; j <= m; j++)
            least[j] = INFINITY;
        do {
            uint32_t point = point_of[column], next = 0;
            double step = INFINITY;
            used[column] = 1;
            for (uint32_t j = 1; j <= m; j++) {
                if (used[j])
                    continue;
                double reduced =
                    (double)cost[(point - 1) * k + (j - 1) / capacity] -
                    u[point] - v[j];
                if (reduced < least[j]) {
                    least[j] = reduced;
                    way[j] = column;
                }
                if (least[j] < step) {
                    step = least[j];
                    next = j;
                }
            }
            for (uint32_t j = 0; j <= m; j++) {
                if (used[j]) {
                    u[point_of[j]] += step;
                    v[j] -= step;
                } else {
                    least[j] -= step;
                }
            }
            column = next;
        } while (point_of[column] != 0);
        for (; column != 0; column = way[column])
            point_of[column] = point_of[way[column]];
    }
    double total = 0.0;
    for (uint32_t j = 1; j <= m; j++)
        if (point_of[j] != 0)
            total += (double)cost[(point_of[j] - 1) * k + (j - 1) / capacity];
    return total;
}

static void test_against_dense(void)
{
    enum { POINTS = 200 };
    static const uint32_t sinks[] = {1, 3, 7, 8, 12};
    static float cost[POINTS * MAX_SINKS];
    static uint32_t sink[POINTS];
    for (size_t s = 0; s < sizeof(sinks) / sizeof(sinks[0]); s++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            uint32_t k = sinks[s];
            uint32_t cap = (POINTS + k - 1) / k + (uint32_t)(seed % 2);
            double total;
            draw_costs(cost, (size_t)POINTS * k, seed,
                       seed % 4 == 3 ? 9 : 1u << 20);
            /* Most points would like the same sink. */
            for (uint32_t i = 0; seed % 4 == 2 && i < POINTS; i++)
                cost[i * k] -= 0.5f;
            CU_ASSERT_EQUAL_FATAL(
                akin_transport_solve(cost, POINTS, k, cap, sink, &total, NULL),
                AKIN_OK);
            CU_ASSERT_DOUBLE_EQUAL(total, dense_optimum(cost, POINTS, k, cap),
                                   1e-9);
        }
}

/* The first points fill the sink that the last ones need: they must move on,
 * along a chain over three sinks. */
static void test_chain(void)
{
    const float cost[4 * 4] = {
        0, 1, 9, 9, /* moves from 0 to 1 */
        9, 0, 1, 9, /* moves from 1 to 2 */
        9, 9, 0, 1, /* moves from 2 to 3 */
        0, 9, 9, 9,
    };
    uint32_t sink[4];
    double total = 0.0;
    CU_ASSERT_EQUAL(akin_transport_solve(cost, 4, 4, 1, sink, &total, NULL),
                    AKIN_OK);
    CU_ASSERT_EQUAL(total, 3.0);
    const uint32_t expected[4] = {1, 2, 3, 0};
    CU_ASSERT_EQUAL(memcmp(sink, expected, sizeof(sink)), 0);
}

static void test_refuses(void)
{
    float cost[6] = {0, 0, 0, 0, 0, 0};
    uint32_t sink[3];
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_transport_solve(cost, 3, 0, 9, sink, NULL, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_EQUAL(akin_transport_solve(cost, 3, 1025, 9, sink, NULL, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_EQUAL(akin_transport_solve(cost, 3, 2, 1, sink, NULL, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot hold 3 points"));
    cost[5] = NAN;
    CU_ASSERT_EQUAL(akin_transport_solve(cost, 3, 2, 2, sink, NULL, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "point 2 in sink 1"));
    CU_ASSERT_EQUAL(akin_transport_solve(cost, 0, 2, 0, sink, NULL, &err),
                    AKIN_OK);
}

static const runner_test_t tests[] = {
    {"against all assignments", test_against_all},
    {"optimality", test_optimality},
    {"against dense", test_against_dense},
    {"chain", test_chain},
    {"refuses", test_refuses},
};

RUNNER_MAIN("transport", tests)
