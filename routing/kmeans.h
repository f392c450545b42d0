/* K-means: balanced spherical clusters of signatures. */
#ifndef AKIN_ROUTING_KMEANS_H
#define AKIN_ROUTING_KMEANS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_kmeans_params {
    uint32_t n_points;
    uint32_t n_clusters; /* 1 to 1024, at most n_points */
    size_t dim;
    uint32_t max_rounds;  /* 0: 50 */
    uint64_t seed;        /* of the start, when none is given */
    const float *initial; /* [n_clusters][dim] start, borrowed; NULL: drawn */
    bool is_plain;        /* clusters of any size, to compare with */
} akin_kmeans_params_t;

/** How a fit went. */
typedef struct akin_kmeans_result {
    uint32_t n_rounds;
    double cost; /* of the last assignment: sum of 1 - x . c */
    bool has_converged;
    /* Parts of the time; the rest of it is spent on checks. */
    double start_s;    /* drawing the first centroids */
    double products_s; /* points x centroids, over all rounds */
    double assign_s;   /* transportation problems */
    double move_s;     /* new centroids */
} akin_kmeans_result_t;

/**
 * Balanced spherical k-means (ALGORITHMS.md 3). A round assigns the points at
 * least sum of 1 - x . c with at most ceil(n_points / n_clusters) per cluster,
 * or as many as there are if it is plain, then moves each centroid to the mean
 * of its points, scaled to length 1; a cluster without a direction keeps its
 * centroid. It ends when every element moved by at most 1e-8 + 1e-5 |old|.
 * Without a start it begins by k-means++.
 *
 * \param[in]  params
 * \param[in]  points     [n_points][dim] unit or zero vectors, finite.
 * \param[out] centroids  [n_clusters][dim]
 * \param[out] cluster    [n_points] the last assignment.
 * \param[out] result_p   NULL is allowed.
 * \param[out] err        says what is wrong.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: a size out of range, a number that is not finite.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_kmeans_fit(const akin_kmeans_params_t *params,
                              const float *points, float *centroids,
                              uint32_t *cluster, akin_kmeans_result_t *result_p,
                              akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
