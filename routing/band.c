/* Band: the workers whose centroids lie near a signature, and the least loaded
 * of them. */
#include "routing/band.h"

#include <math.h>

double akin_band_floor(const float *scores, const uint8_t *eligible,
                       uint32_t n_workers, double tau)
{
    double floor_score = -INFINITY;
    for (uint32_t w = 0; w < n_workers; w++)
        if (eligible[w] != 0)
            floor_score = fmax(floor_score, (double)scores[w]);
    return floor_score - tau;
}

uint32_t akin_band_choose(const float *scores, const uint32_t *in_flight,
                          const uint8_t *eligible, uint32_t n_workers,
                          double tau)
{
    double floor_score = akin_band_floor(scores, eligible, n_workers, tau);
    uint32_t best = AKIN_ROUTING_NO_WORKER;
    for (uint32_t w = 0; w < n_workers; w++) {
        if (eligible[w] == 0 || (double)scores[w] < floor_score)
            continue;
        if (best == AKIN_ROUTING_NO_WORKER || in_flight[w] < in_flight[best])
            best = w;
    }
    return best;
}
