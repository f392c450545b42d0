/* Interval: the mean of repeated runs and how sure it is. */
#include "routing/interval.h"

#include <math.h>

/* Two-sided 95 % quantiles of Student's t for 1 .. 30 degrees of freedom. */
static const double quantiles[] = {
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};

enum { N_QUANTILES = sizeof(quantiles) / sizeof(quantiles[0]) };

#define NORMAL_QUANTILE 1.959964

/* Beyond the table the expansion about the normal quantile in 1 / n_free has
 * all of the table's digits. */
static double quantile(uint32_t n_free)
{
    const double z = NORMAL_QUANTILE, v = (double)n_free;
    if (n_free <= N_QUANTILES)
        return quantiles[n_free - 1];
    return z + (z * z * z + z) / (4.0 * v) +
           (5.0 * pow(z, 5.0) + 16.0 * z * z * z + 3.0 * z) / (96.0 * v * v);
}

akin_interval_t akin_interval_of(const double *values, uint32_t n)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++)
        sum += values[i];
    akin_interval_t interval = {.mean = sum / (double)n, .half_width = NAN};
    if (n < 2)
        return interval;
    double squares = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        double gap = values[i] - interval.mean;
        squares += gap * gap;
    }
    double error = sqrt(squares / (double)(n - 1) / (double)n);
    interval.half_width = quantile(n - 1) * error;
    return interval;
}
