/* Interval: the mean of repeated runs and how sure it is. */
#ifndef AKIN_ROUTING_INTERVAL_H
#define AKIN_ROUTING_INTERVAL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_interval {
    double mean;
    double half_width; /* of the 95 % interval; NaN: one value has none */
} akin_interval_t;

/**
 * Mean and 95 % confidence interval of independent values, by Student's t.
 *
 * \param[in] values  [n]
 * \param[in] n       at least 1.
 */
akin_interval_t akin_interval_of(const double *values, uint32_t n);

#ifdef __cplusplus
}
#endif

#endif
