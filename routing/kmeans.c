/* K-means: balanced spherical clusters of signatures. */
#include "routing/kmeans.h"

#include "base/clock.h"
#include "base/rng.h"
#include "routing/dot.h"
#include "routing/float_array.h"
#include "routing/kmeans_products.h"
#include "routing/transport.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CLUSTERS 1024u
#define MAX_ROUNDS 50u
#define MOVE_ABSOLUTE 1e-8
#define MOVE_RELATIVE 1e-5
/* A sum this short is what moving points in and out has left of zero. */
#define MIN_SQUARES 1e-24

/* Streams of the start's draws. */
enum { STREAM_FIRST = 1, STREAM_NEXT };

/* What the rounds work on. */
typedef struct rounds {
    const akin_kmeans_params_t *params;
    const float *points;
    float *centroids;
    uint32_t *cluster;  /* [n_points] */
    uint32_t *previous; /* [n_points] of the round before */
    float *cost;        /* [n_points][n_clusters] */
    float *packed;      /* the centroids, for the products */
    double *sums;       /* [n_clusters][dim] of each cluster's points */
    double *distance;   /* [n_points] to the nearest centroid of the start */
    double *products;   /* [n_points] */
    double *norms;      /* [n_points] squared */
    bool has_sums;
} rounds_t;

static double seconds_since(int64_t begin_ns)
{
    return (double)(akin_clock_now_ns() - begin_ns) / (double)AKIN_NS_PER_S;
}

static akin_status_t check_values(const float *values, size_t n,
                                  const char *what, akin_error_t *err)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "k-means: element %zu of the %s is not "
                                  "finite",
                                  i, what);
    return AKIN_OK;
}

static akin_status_t check_input(const akin_kmeans_params_t *params,
                                 const float *points, akin_error_t *err)
{
    if (params->n_clusters == 0 || params->n_clusters > MAX_CLUSTERS)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "k-means: %u clusters, must be 1 to %u",
                              params->n_clusters, MAX_CLUSTERS);
    if (params->n_points < params->n_clusters || params->dim == 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "k-means: %u points of %zu elements are too few "
                              "for %u clusters; give more requests",
                              params->n_points, params->dim,
                              params->n_clusters);
    akin_status_t status =
        check_values(points, params->n_points * params->dim, "signatures", err);
    if (status == AKIN_OK && params->initial != NULL)
        status = check_values(params->initial, params->n_clusters * params->dim,
                              "first centroids", err);
    return status;
}

/* Index drawn in proportion to the weights; uniform if all of them are 0. */
static uint32_t draw_weighted(const double *weights, uint32_t n, uint64_t seed,
                              uint64_t index)
{
    double total = 0.0;
    for (uint32_t i = 0; i < n; i++)
        total += weights[i];
    if (!(total > 0.0))
        return (uint32_t)akin_rng_below(seed, STREAM_NEXT, index, n);
    double left = akin_rng_uniform(seed, STREAM_NEXT, index) * total;
    uint32_t last = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!(weights[i] > 0.0))
            continue;
        last = i;
        if (left < weights[i])
            break;
        left -= weights[i];
    }
    return last;
}

/* K-means++: each further centroid is a point, drawn by its squared distance
 * to the nearest one so far. |a - b|^2 = |a|^2 + |b|^2 - 2 a . b, which is 0
 * for equal points, since equal products have equal sums. */
static void draw_start(rounds_t *r)
{
    const akin_kmeans_params_t *params = r->params;
    size_t dim = params->dim;
    uint32_t n = params->n_points;
    uint32_t chosen =
        (uint32_t)akin_rng_below(params->seed, STREAM_FIRST, 0, n);
    for (uint32_t i = 0; i < n; i++)
        r->norms[i] = akini_dot(r->points + i * dim, r->points + i * dim, dim);
    for (uint32_t k = 0; k < params->n_clusters; k++) {
        if (k > 0)
            chosen = draw_weighted(r->distance, n, params->seed, k);
        const float *centroid = r->points + chosen * dim;
        memcpy(r->centroids + k * dim, centroid, dim * sizeof(*centroid));
        akini_dot_rows(centroid, r->points, dim, NULL, n, dim, r->products);
        for (uint32_t i = 0; i < n; i++) {
            double d = fmax(
                r->norms[i] + r->norms[chosen] - 2.0 * r->products[i], 0.0);
            if (k == 0 || d < r->distance[i])
                r->distance[i] = d;
        }
    }
}

static void add_point(double *sum, const float *point, double sign, size_t dim)
{
    for (size_t j = 0; j < dim; j++)
        sum[j] += sign * (double)point[j];
}

/*
 * Bring the sums up to date. Where few points have changed their cluster they
 * alone are moved; a double keeps 29 bits more than a point has, so that the
 * sums of some rounds differ from fresh ones by less than the centroids show.
 */
static void update_sums(rounds_t *r)
{
    const akin_kmeans_params_t *params = r->params;
    size_t dim = params->dim;
    uint32_t n_changed = 0;
    for (uint32_t i = 0; i < params->n_points; i++)
        n_changed += !r->has_sums || r->cluster[i] != r->previous[i];
    bool is_fresh = n_changed > params->n_points / 3;
    if (is_fresh)
        memset(r->sums, 0, params->n_clusters * dim * sizeof(*r->sums));
    for (uint32_t i = 0; i < params->n_points; i++) {
        const float *point = r->points + i * dim;
        if (!is_fresh && r->cluster[i] == r->previous[i])
            continue;
        if (!is_fresh)
            add_point(r->sums + r->previous[i] * dim, point, -1.0, dim);
        add_point(r->sums + r->cluster[i] * dim, point, 1.0, dim);
    }
    memcpy(r->previous, r->cluster, params->n_points * sizeof(*r->previous));
    r->has_sums = true;
}

/* Move the centroids to the directions of their points' means; true if they
 * have come to rest. */
static bool move_centroids(rounds_t *r)
{
    size_t dim = r->params->dim;
    bool at_rest = true;
    update_sums(r);
    for (uint32_t k = 0; k < r->params->n_clusters; k++) {
        const double *sum = r->sums + k * dim;
        float *centroid = r->centroids + k * dim;
        double squares = 0.0;
        for (size_t j = 0; j < dim; j++)
            squares += sum[j] * sum[j];
        if (!(squares > MIN_SQUARES))
            continue;
        double scale = 1.0 / sqrt(squares);
        size_t n_moved = 0;
        for (size_t j = 0; j < dim; j++) {
            float moved = (float)(sum[j] * scale);
            double old = (double)centroid[j];
            n_moved += fabs((double)moved - old) >
                       MOVE_ABSOLUTE + MOVE_RELATIVE * fabs(old);
            centroid[j] = moved;
        }
        at_rest = at_rest && n_moved == 0;
    }
    return at_rest;
}

static akin_status_t run_round(rounds_t *r, akin_kmeans_result_t *result,
                               akin_error_t *err)
{
    const akin_kmeans_params_t *params = r->params;
    uint32_t k = params->n_clusters;
    uint32_t capacity =
        params->is_plain ? params->n_points : (params->n_points - 1) / k + 1;
    int64_t begin = akin_clock_now_ns();
    akini_kmeans_pack(r->centroids, k, params->dim, r->packed);
    akini_kmeans_costs(r->points, params->n_points, r->packed, k, params->dim,
                       r->cost);
    result->products_s += seconds_since(begin);
    begin = akin_clock_now_ns();
    akin_status_t status = akin_transport_solve(
        r->cost, params->n_points, k, capacity, r->cluster, &result->cost, err);
    result->assign_s += seconds_since(begin);
    if (status != AKIN_OK)
        return status;
    begin = akin_clock_now_ns();
    result->has_converged = move_centroids(r);
    result->move_s += seconds_since(begin);
    result->n_rounds++;
    return AKIN_OK;
}

static void cleanup_rounds(rounds_t *r)
{
    free(r->norms);
    free(r->products);
    free(r->distance);
    free(r->sums);
    free(r->packed);
    free(r->cost);
    free(r->previous);
}

static akin_status_t init_rounds(rounds_t *r)
{
    const akin_kmeans_params_t *params = r->params;
    uint32_t n = params->n_points, k = params->n_clusters;
    r->previous = calloc(n, sizeof(*r->previous));
    r->cost = calloc(n, k * sizeof(*r->cost));
    r->packed =
        akini_float_array_create(1, akini_kmeans_packed_size(k, params->dim));
    r->sums = calloc(k, params->dim * sizeof(*r->sums));
    r->distance = calloc(n, sizeof(*r->distance));
    r->products = calloc(n, sizeof(*r->products));
    r->norms = calloc(n, sizeof(*r->norms));
    if (r->previous == NULL || r->cost == NULL || r->packed == NULL ||
        r->sums == NULL || r->distance == NULL || r->products == NULL ||
        r->norms == NULL)
        return AKIN_ERR_NOMEM;
    return AKIN_OK;
}

akin_status_t akin_kmeans_fit(const akin_kmeans_params_t *params,
                              const float *points, float *centroids,
                              uint32_t *cluster, akin_kmeans_result_t *result_p,
                              akin_error_t *err)
{
    akin_status_t status = check_input(params, points, err);
    if (status != AKIN_OK)
        return status;
    uint32_t max_rounds =
        params->max_rounds > 0 ? params->max_rounds : MAX_ROUNDS;
    rounds_t rounds = {.params = params,
                       .points = points,
                       .centroids = centroids,
                       .cluster = cluster};
    akin_kmeans_result_t result = {0};
    status = init_rounds(&rounds);
    if (status != AKIN_OK) {
        cleanup_rounds(&rounds);
        return akin_error_set(err, status,
                              "k-means: out of memory for %u points, %u "
                              "clusters",
                              params->n_points, params->n_clusters);
    }
    int64_t begin = akin_clock_now_ns();
    if (params->initial != NULL)
        memcpy(centroids, params->initial,
               params->n_clusters * params->dim * sizeof(*centroids));
    else
        draw_start(&rounds);
    result.start_s = seconds_since(begin);
    while (status == AKIN_OK && !result.has_converged &&
           result.n_rounds < max_rounds)
        status = run_round(&rounds, &result, err);
    cleanup_rounds(&rounds);
    if (status == AKIN_OK && result_p != NULL)
        *result_p = result;
    return status;
}
