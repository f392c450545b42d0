/* K-means products: all points with all centroids, the larger part of a round.
 */
#ifndef AKIN_ROUTING_KMEANS_PRODUCTS_H
#define AKIN_ROUTING_KMEANS_PRODUCTS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Floats that hold the packed centroids. */
size_t akini_kmeans_packed_size(uint32_t n_clusters, size_t dim);

/**
 * Put a cluster in every lane: one element of all centroids of a block follow
 * each other, the last block filled up with zeros.
 *
 * \param[in]  centroids  [n_clusters][dim]
 * \param[out] packed     [akini_kmeans_packed_size(n_clusters, dim)]
 */
void akini_kmeans_pack(const float *centroids, uint32_t n_clusters, size_t dim,
                       float *packed);

/**
 * cost[i][k] = 1 - x_i . c_k, each product summed in the order of its elements
 * in float, going to a double every AKINI_FLUSH_CELLS / 4 of them. The build
 * forbids fused multiply-add: the result is the same to the bit whatever
 * instruction set serves the call.
 *
 * \param[in]  points  [n_points][dim]
 * \param[in]  packed  of akini_kmeans_pack().
 * \param[out] cost    [n_points][n_clusters]
 */
void akini_kmeans_costs(const float *points, uint32_t n_points,
                        const float *packed, uint32_t n_clusters, size_t dim,
                        float *cost);

#ifdef __cplusplus
}
#endif

#endif
