/* K-means: balanced spherical clusters of signatures. */
#include "routing/kmeans.h"

#include "base/rng.h"
#include "routing/dot.h"
#include "routing/transport.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CLUSTERS 1024u
#define MAX_ROUNDS 50u
#define MOVE_ABSOLUTE 1e-8
#define MOVE_RELATIVE 1e-5

/* Streams of the start's draws. */
enum { STREAM_FIRST = 1, STREAM_NEXT };

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

static double squared_distance(const float *a, const float *b, size_t dim)
{
    double sum = 0.0;
    for (size_t i = 0; i < dim; i++) {
        double gap = (double)a[i] - (double)b[i];
        sum += gap * gap;
    }
    return sum;
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
 * to the nearest one so far. */
static void draw_start(const akin_kmeans_params_t *params, const float *points,
                       double *distance, float *centroids)
{
    size_t dim = params->dim;
    uint32_t chosen = (uint32_t)akin_rng_below(params->seed, STREAM_FIRST, 0,
                                               params->n_points);
    for (uint32_t k = 0; k < params->n_clusters; k++) {
        if (k > 0)
            chosen = draw_weighted(distance, params->n_points, params->seed, k);
        memcpy(centroids + k * dim, points + chosen * dim,
               dim * sizeof(*centroids));
        for (uint32_t i = 0; i < params->n_points; i++) {
            double d =
                squared_distance(points + i * dim, centroids + k * dim, dim);
            if (k == 0 || d < distance[i])
                distance[i] = d;
        }
    }
}

/* Move the centroids to the directions of their points' means; true if they
 * have come to rest. */
static bool move_centroids(const akin_kmeans_params_t *params,
                           const float *points, const uint32_t *cluster,
                           double *sums, float *centroids)
{
    size_t dim = params->dim;
    memset(sums, 0, params->n_clusters * dim * sizeof(*sums));
    for (uint32_t i = 0; i < params->n_points; i++) {
        const float *point = points + i * dim;
        double *sum = sums + cluster[i] * dim;
        for (size_t j = 0; j < dim; j++)
            sum[j] += (double)point[j];
    }
    bool at_rest = true;
    for (uint32_t k = 0; k < params->n_clusters; k++) {
        const double *sum = sums + k * dim;
        float *centroid = centroids + k * dim;
        double squares = 0.0;
        for (size_t j = 0; j < dim; j++)
            squares += sum[j] * sum[j];
        if (!(squares > 0.0))
            continue;
        double scale = 1.0 / sqrt(squares);
        for (size_t j = 0; j < dim; j++) {
            float moved = (float)(sum[j] * scale);
            double old = (double)centroid[j];
            if (fabs((double)moved - old) >
                MOVE_ABSOLUTE + MOVE_RELATIVE * fabs(old))
                at_rest = false;
            centroid[j] = moved;
        }
    }
    return at_rest;
}

static akin_status_t assign(const akin_kmeans_params_t *params,
                            const float *points, const float *centroids,
                            float *cost, uint32_t *cluster, double *total_p,
                            akin_error_t *err)
{
    uint32_t k = params->n_clusters;
    for (uint32_t i = 0; i < params->n_points; i++)
        for (uint32_t c = 0; c < k; c++)
            cost[(size_t)i * k + c] =
                (float)(1.0 - akini_dot(points + i * params->dim,
                                        centroids + c * params->dim,
                                        params->dim));
    uint32_t capacity = (params->n_points - 1) / k + 1;
    return akin_transport_solve(cost, params->n_points, k, capacity, cluster,
                                total_p, err);
}

akin_status_t akin_kmeans_fit(const akin_kmeans_params_t *params,
                              const float *points, float *centroids,
                              uint32_t *cluster, akin_kmeans_result_t *result_p,
                              akin_error_t *err)
{
    akin_status_t status = check_input(params, points, err);
    if (status != AKIN_OK)
        return status;
    size_t n_elements = params->n_clusters * params->dim;
    uint32_t max_rounds =
        params->max_rounds > 0 ? params->max_rounds : MAX_ROUNDS;
    float *cost = calloc(params->n_points, params->n_clusters * sizeof(*cost));
    double *distance = calloc(params->n_points, sizeof(*distance));
    double *sums = calloc(n_elements, sizeof(*sums));
    if (cost == NULL || distance == NULL || sums == NULL) {
        status = akin_error_set(err, AKIN_ERR_NOMEM,
                                "k-means: out of memory for %u points, %u "
                                "clusters",
                                params->n_points, params->n_clusters);
        goto out;
    }
    if (params->initial != NULL)
        memcpy(centroids, params->initial, n_elements * sizeof(*centroids));
    else
        draw_start(params, points, distance, centroids);

    akin_kmeans_result_t result = {0};
    while (!result.has_converged && result.n_rounds < max_rounds) {
        status =
            assign(params, points, centroids, cost, cluster, &result.cost, err);
        if (status != AKIN_OK)
            goto out;
        result.has_converged =
            move_centroids(params, points, cluster, sums, centroids);
        result.n_rounds++;
    }
    if (result_p != NULL)
        *result_p = result;
out:
    free(sums);
    free(distance);
    free(cost);
    return status;
}
