/* Histogram: exact samples first, buckets of constant relative width later. */
#include "roles/histogram.h"

#include <math.h>
#include <stdlib.h>

/* Values below 2 * SUB have a bucket each; above, an octave has SUB buckets
 * of equal width, so that the middle of a bucket is off by at most
 * 1 / (2 * SUB) of the value. */
#define SUB_BITS 7
#define SUB (1U << SUB_BITS)
#define N_BUCKETS ((64U - SUB_BITS) * SUB)

struct akin_histogram {
    uint64_t n;
    double mean; /* running, after Welford */
    double m2;   /* sum of squared deviations from it */
    int64_t min;
    int64_t max;
    int sorted;
    int64_t exact[AKIN_HISTOGRAM_EXACT];
    uint64_t buckets[N_BUCKETS];
};

akin_status_t akin_histogram_create(akin_histogram_t **histogram_p)
{
    *histogram_p = calloc(1, sizeof(**histogram_p));
    return *histogram_p == NULL ? AKIN_ERR_NOMEM : AKIN_OK;
}

void akin_histogram_destroy(akin_histogram_t *histogram)
{
    free(histogram);
}

static unsigned bucket_of(int64_t value)
{
    uint64_t v = (uint64_t)value;
    if (v < 2 * SUB)
        return (unsigned)v;
    unsigned shift = 63U - (unsigned)__builtin_clzll(v) - SUB_BITS;
    return shift * SUB + (unsigned)(v >> shift);
}

static double middle_of(unsigned bucket)
{
    if (bucket < 2 * SUB)
        return bucket;
    unsigned shift = bucket / SUB - 1;
    double low = ldexp((double)(bucket - shift * SUB), (int)shift);
    return low + (ldexp(1.0, (int)shift) - 1.0) / 2.0;
}

void akin_histogram_add(akin_histogram_t *histogram, int64_t value)
{
    if (value < 0)
        value = 0;
    if (histogram->n < AKIN_HISTOGRAM_EXACT)
        histogram->exact[histogram->n] = value;
    histogram->sorted = 0;
    histogram->buckets[bucket_of(value)]++;
    if (histogram->n == 0 || value < histogram->min)
        histogram->min = value;
    if (histogram->n == 0 || value > histogram->max)
        histogram->max = value;
    histogram->n++;
    double delta = (double)value - histogram->mean;
    histogram->mean += delta / (double)histogram->n;
    histogram->m2 += delta * ((double)value - histogram->mean);
}

uint64_t akin_histogram_count(const akin_histogram_t *histogram)
{
    return histogram->n;
}

uint64_t akin_histogram_count_to(const akin_histogram_t *histogram,
                                 int64_t value)
{
    uint64_t n = 0;
    if (value < 0)
        return 0;
    for (unsigned i = 0; i <= bucket_of(value); i++)
        n += histogram->buckets[i];
    return n;
}

double akin_histogram_mean(const akin_histogram_t *histogram)
{
    return histogram->mean;
}

double akin_histogram_std(const akin_histogram_t *histogram)
{
    return histogram->n == 0 ? 0 : sqrt(histogram->m2 / (double)histogram->n);
}

int akin_histogram_exact(const akin_histogram_t *histogram)
{
    return histogram->n <= AKIN_HISTOGRAM_EXACT;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Order statistic `rank`, from 0, by the buckets. */
static double from_buckets(const akin_histogram_t *histogram, uint64_t rank)
{
    uint64_t below = 0;
    unsigned i = 0;
    while (i + 1 < N_BUCKETS && below + histogram->buckets[i] <= rank)
        below += histogram->buckets[i++];
    /* The ends are known exactly, and nothing lies beyond them. */
    return fmin(fmax(middle_of(i), (double)histogram->min),
                (double)histogram->max);
}

double akin_histogram_percentile(akin_histogram_t *histogram, double percent)
{
    if (histogram->n == 0)
        return 0;
    percent = fmin(fmax(percent, 0), 100);
    double at = percent / 100.0 * (double)(histogram->n - 1);
    uint64_t low = (uint64_t)at;
    if (low >= histogram->n - 1)
        return (double)histogram->max;
    if (low == 0 && at <= 0)
        return (double)histogram->min;
    double part = at - (double)low;
    double a;
    double b;
    if (akin_histogram_exact(histogram)) {
        if (!histogram->sorted)
            qsort(histogram->exact, histogram->n, sizeof(histogram->exact[0]),
                  compare);
        histogram->sorted = 1;
        a = (double)histogram->exact[low];
        b = (double)histogram->exact[low + 1];
    } else {
        a = from_buckets(histogram, low);
        b = part > 0 ? from_buckets(histogram, low + 1) : a;
    }
    return a + (b - a) * part;
}
