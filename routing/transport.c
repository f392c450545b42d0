/* Transport: successive shortest paths on the graph of the sinks. */
#include "routing/transport.h"

#include "routing/move_heap.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define MAX_SINKS 1024u
#define NO_SINK UINT32_MAX

/*
 * price[k] is what one more point in sink k would cost beyond its own cost
 * there: 0 while k has room, otherwise the cheapest chain of moves that ends in
 * a sink with room. Prices never fall, and the prices before a step are a
 * feasible potential for Dijkstra's algorithm after it.
 */
typedef struct solver {
    const float *cost;
    uint32_t n_points;
    uint32_t n_sinks;
    uint32_t capacity;
    uint32_t *sink;
    uint32_t *load;           /* [n_sinks] */
    double *price;            /* [n_sinks] */
    double *distance;         /* [n_sinks] how far a price rises */
    uint32_t *next;           /* [n_sinks] the chain, NO_SINK at its end */
    bool *is_final;           /* [n_sinks] */
    akini_move_heap_t *heaps; /* [n_sinks][n_sinks] from, to */
} solver_t;

static double cost_of(const solver_t *solver, uint32_t point, uint32_t sink)
{
    return (double)solver->cost[(size_t)point * solver->n_sinks + sink];
}

static void destroy_solver(solver_t *solver)
{
    size_t n_heaps = (size_t)solver->n_sinks * solver->n_sinks;
    for (size_t i = 0; solver->heaps != NULL && i < n_heaps; i++)
        free(solver->heaps[i].moves);
    free(solver->heaps);
    free(solver->is_final);
    free(solver->next);
    free(solver->distance);
    free(solver->price);
    free(solver->load);
}

static akin_status_t init_solver(solver_t *solver)
{
    size_t n = solver->n_sinks;
    solver->load = calloc(n, sizeof(*solver->load));
    solver->price = calloc(n, sizeof(*solver->price));
    solver->distance = calloc(n, sizeof(*solver->distance));
    solver->next = calloc(n, sizeof(*solver->next));
    solver->is_final = calloc(n, sizeof(*solver->is_final));
    solver->heaps = calloc(n * n, sizeof(*solver->heaps));
    if (solver->load == NULL || solver->price == NULL ||
        solver->distance == NULL || solver->next == NULL ||
        solver->is_final == NULL || solver->heaps == NULL)
        return AKIN_ERR_NOMEM;
    for (size_t k = 0; k < n; k++)
        solver->next[k] = NO_SINK;
    for (uint32_t i = 0; i < solver->n_points; i++)
        solver->sink[i] = NO_SINK;
    return AKIN_OK;
}

/* The cheapest move from one sink to another, or NULL if the first is empty. */
static const akini_move_t *cheapest_move(solver_t *solver, uint32_t from,
                                         uint32_t to)
{
    akini_move_heap_t *heap =
        &solver->heaps[(size_t)from * solver->n_sinks + to];
    while (heap->n > 0 && solver->sink[heap->moves[0].point] != from)
        akini_move_heap_pop(heap);
    return heap->n > 0 ? &heap->moves[0] : NULL;
}

static akin_status_t put_point(solver_t *solver, uint32_t point, uint32_t sink)
{
    solver->sink[point] = sink;
    for (uint32_t to = 0; to < solver->n_sinks; to++) {
        if (to == sink)
            continue;
        akini_move_t move = {
            cost_of(solver, point, to) - cost_of(solver, point, sink), point};
        if (!akini_move_heap_push(
                &solver->heaps[(size_t)sink * solver->n_sinks + to], move))
            return AKIN_ERR_NOMEM;
    }
    return AKIN_OK;
}

/*
 * Raise the prices to their new values: Dijkstra's algorithm over the moves
 * backwards from the sinks with room, on costs reduced by the old prices.
 */
static void update_prices(solver_t *solver)
{
    uint32_t n = solver->n_sinks;
    for (uint32_t k = 0; k < n; k++) {
        bool has_room = solver->load[k] < solver->capacity;
        solver->distance[k] = has_room ? 0.0 : INFINITY;
        solver->next[k] = NO_SINK;
        solver->is_final[k] = false;
    }
    for (;;) {
        uint32_t nearest = NO_SINK;
        for (uint32_t k = 0; k < n; k++)
            if (!solver->is_final[k] && isfinite(solver->distance[k]) &&
                (nearest == NO_SINK ||
                 solver->distance[k] < solver->distance[nearest]))
                nearest = k;
        if (nearest == NO_SINK)
            break;
        solver->is_final[nearest] = true;
        for (uint32_t k = 0; k < n; k++) {
            if (solver->is_final[k])
                continue;
            const akini_move_t *move = cheapest_move(solver, k, nearest);
            if (move == NULL)
                continue;
            /* Below 0 by rounding alone. */
            double reduced = fmax(
                move->cost + solver->price[nearest] - solver->price[k], 0.0);
            double distance = solver->distance[nearest] + reduced;
            if (distance < solver->distance[k]) {
                solver->distance[k] = distance;
                solver->next[k] = nearest;
            }
        }
    }
    for (uint32_t k = 0; k < n; k++)
        if (isfinite(solver->distance[k]))
            solver->price[k] += solver->distance[k];
}

/* Place one point where it and the moves it causes cost least. */
static akin_status_t place_point(solver_t *solver, uint32_t point)
{
    uint32_t best = 0;
    double least = INFINITY;
    for (uint32_t k = 0; k < solver->n_sinks; k++) {
        double cost = cost_of(solver, point, k) + solver->price[k];
        if (cost < least) {
            least = cost;
            best = k;
        }
    }
    bool has_moved = solver->next[best] != NO_SINK;
    uint32_t to = best;
    for (uint32_t from = best; solver->next[from] != NO_SINK; from = to) {
        to = solver->next[from];
        uint32_t moved = cheapest_move(solver, from, to)->point;
        akin_status_t status = put_point(solver, moved, to);
        if (status != AKIN_OK)
            return status;
    }
    solver->load[to]++;
    akin_status_t status = put_point(solver, point, best);
    if (status == AKIN_OK &&
        (has_moved || solver->load[to] == solver->capacity))
        update_prices(solver);
    return status;
}

static akin_status_t check_input(const float *cost, uint32_t n_points,
                                 uint32_t n_sinks, uint32_t capacity,
                                 akin_error_t *err)
{
    if (n_sinks == 0 || n_sinks > MAX_SINKS)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "assignment: %u sinks, must be 1 to %u", n_sinks,
                              MAX_SINKS);
    if ((uint64_t)n_sinks * capacity < n_points)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "assignment: %u sinks of %u places cannot hold "
                              "%u points",
                              n_sinks, capacity, n_points);
    size_t n = (size_t)n_points * n_sinks;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(cost[i]))
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "assignment: the cost of point %zu in sink "
                                  "%zu is not finite",
                                  i / n_sinks, i % n_sinks);
    return AKIN_OK;
}

akin_status_t akin_transport_solve(const float *cost, uint32_t n_points,
                                   uint32_t n_sinks, uint32_t capacity,
                                   uint32_t *sink, double *total_p,
                                   akin_error_t *err)
{
    akin_status_t status = check_input(cost, n_points, n_sinks, capacity, err);
    if (status != AKIN_OK)
        return status;
    solver_t solver = {
        .cost = cost,
        .n_points = n_points,
        .n_sinks = n_sinks,
        .capacity = capacity,
        .sink = sink,
    };
    status = init_solver(&solver);
    for (uint32_t i = 0; status == AKIN_OK && i < n_points; i++)
        status = place_point(&solver, i);
    if (status == AKIN_OK && total_p != NULL) {
        double total = 0.0;
        for (uint32_t i = 0; i < n_points; i++)
            total += cost_of(&solver, i, sink[i]);
        *total_p = total;
    }
    destroy_solver(&solver);
    if (status != AKIN_OK)
        return akin_error_set(err, status,
                              "assignment: out of memory for %u points and %u "
                              "sinks",
                              n_points, n_sinks);
    return AKIN_OK;
}
