/* Histogram: count, mean, deviation and percentiles of durations in bounded
 * memory. */
#ifndef AKIN_ROLES_HISTOGRAM_H
#define AKIN_ROLES_HISTOGRAM_H

#include "base/status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AKIN_HISTOGRAM_EXACT 16384 /* samples that are kept one by one */
#define AKIN_HISTOGRAM_ERROR (1.0 / 256.0) /* relative, beyond them */

/**
 * Up to 16384 samples percentiles are exact (linear interpolation between
 * order statistics, as NumPy does by default). Beyond, samples fall into
 * buckets of which each octave has 128, and a percentile is off by at most
 * 1/256 of its value. Mean and deviation are always exact. 256 KiB each at
 * most.
 */
typedef struct akin_histogram akin_histogram_t;

/**
 * \param[out] histogram_p  owned by the caller.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t
akin_histogram_create(akin_histogram_t **histogram_p) AKIN_MUST_CHECK;

/** Free; NULL is allowed. */
void akin_histogram_destroy(akin_histogram_t *histogram);

/** Add a sample; a negative one counts as 0. Allocates nothing. */
void akin_histogram_add(akin_histogram_t *histogram, int64_t value);

/** Samples added. */
uint64_t akin_histogram_count(const akin_histogram_t *histogram);

/** Samples at or below a value, by the buckets: some that are above it by less
 * than 1/128 of it count as well. Never less than before. */
uint64_t akin_histogram_count_to(const akin_histogram_t *histogram,
                                 int64_t value);

/** Mean; 0 without samples. */
double akin_histogram_mean(const akin_histogram_t *histogram);

/** Standard deviation of the population (divisor n), as NumPy's std(). */
double akin_histogram_std(const akin_histogram_t *histogram);

/**
 * Percentile.
 *
 * \param[in] percent  0 .. 100; 0 and 100 are exactly minimum and maximum.
 * \return 0 without samples.
 */
double akin_histogram_percentile(akin_histogram_t *histogram, double percent);

/** Whether percentiles are exact. */
int akin_histogram_exact(const akin_histogram_t *histogram);

#ifdef __cplusplus
}
#endif

#endif
