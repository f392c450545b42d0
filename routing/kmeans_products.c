/* K-means products: a block of points against a block of clusters at once. */
#include "routing/kmeans_products.h"

#include "routing/lanes.h"

#include <string.h>

enum {
    /* Points at a time: enough chains of additions to hide their latency, few
     * enough for the registers of every instruction set. */
    POINTS = 6,
    FLUSH = AKINI_FLUSH_CELLS / 4
};

size_t akini_kmeans_packed_size(uint32_t n_clusters, size_t dim)
{
    size_t n_blocks = (n_clusters + AKINI_LANES - 1) / AKINI_LANES;
    return n_blocks * dim * AKINI_LANES;
}

void akini_kmeans_pack(const float *centroids, uint32_t n_clusters, size_t dim,
                       float *packed)
{
    memset(packed, 0,
           akini_kmeans_packed_size(n_clusters, dim) * sizeof(*packed));
    for (uint32_t k = 0; k < n_clusters; k++) {
        float *lane =
            packed + k / AKINI_LANES * dim * AKINI_LANES + k % AKINI_LANES;
        const float *centroid = centroids + k * dim;
        for (size_t d = 0; d < dim; d++)
            lane[d * AKINI_LANES] = centroid[d];
    }
}

/* Products of some points with a block of clusters; inlined with a constant
 * number of points, so that the sums stay in registers. */
AKINI_INLINE void multiply(const float *points, const int n_points,
                           const float *packed, size_t dim,
                           double (*sums)[AKINI_LANES])
{
    akini_wide_t wide[POINTS][2];
    for (int p = 0; p < n_points; p++)
        wide[p][0] = wide[p][1] = (akini_wide_t){0.0};
    for (size_t from = 0; from < dim; from += FLUSH) {
        size_t to = dim - from < FLUSH ? dim : from + FLUSH;
        akini_lanes_t part[POINTS];
        for (int p = 0; p < n_points; p++)
            part[p] = (akini_lanes_t){0.0f};
        for (size_t d = from; d < to; d++) {
            akini_lanes_t c =
                *(const akini_lanes_t *)(packed + d * AKINI_LANES);
            for (int p = 0; p < n_points; p++)
                part[p] += points[(size_t)p * dim + d] * c;
        }
        for (int p = 0; p < n_points; p++)
            akini_lanes_widen(&part[p], wide[p]);
    }
    for (int p = 0; p < n_points; p++)
        memcpy(sums[p], wide[p], sizeof(wide[p]));
}

AKINI_CLONES void akini_kmeans_costs(const float *points, uint32_t n_points,
                                     const float *packed, uint32_t n_clusters,
                                     size_t dim, float *cost)
{
    double sums[POINTS][AKINI_LANES];
    for (uint32_t first = 0; first < n_points; first += POINTS) {
        uint32_t n = n_points - first < POINTS ? n_points - first : POINTS;
        const float *block = points + first * dim;
        for (uint32_t k = 0; k < n_clusters; k += AKINI_LANES) {
            const float *centroids = packed + k * dim;
            if (n == POINTS)
                multiply(block, POINTS, centroids, dim, sums);
            else
                for (uint32_t p = 0; p < n; p++)
                    multiply(block + p * dim, 1, centroids, dim, sums + p);
            uint32_t n_lanes =
                n_clusters - k < AKINI_LANES ? n_clusters - k : AKINI_LANES;
            for (uint32_t p = 0; p < n; p++)
                for (uint32_t lane = 0; lane < n_lanes; lane++)
                    cost[(size_t)(first + p) * n_clusters + k + lane] =
                        (float)(1.0 - sums[p][lane]);
        }
    }
}
