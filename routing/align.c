/* Align: gives new centroids to the workers whose old ones they resemble. */
#include "routing/align.h"

#include "routing/dot.h"
#include "routing/transport.h"

#include <stdlib.h>

akin_status_t akin_align_centroids(const float *current, const float *fitted,
                                   uint32_t k, size_t dim, uint32_t *worker_of,
                                   akin_error_t *err)
{
    size_t n = k;
    float *cost = calloc(n * n + 1, sizeof(*cost));
    if (cost == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM,
                              "alignment: out of memory for %u centroids", k);
    for (size_t i = 0; i < n; i++)
        for (size_t w = 0; w < n; w++)
            cost[i * n + w] =
                (float)-akini_dot(current + w * dim, fitted + i * dim, dim);
    akin_status_t status =
        akin_transport_solve(cost, k, k, 1, worker_of, NULL, err);
    free(cost);
    if (status == AKIN_ERR_INVALID)
        return akin_error_prefix(err, status, "alignment of centroids: ");
    return status;
}
