/* Histogram: percentiles against a plain sort, exact and beyond. */
#include "base/rng.h"
#include "roles/histogram.h"
#include "runner.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* NumPy's default: linear between the two order statistics. */
static double by_sorting(const int64_t *sorted, size_t n, double percent)
{
    double at = percent / 100.0 * (double)(n - 1);
    size_t low = (size_t)floor(at);
    size_t high = low + 1 < n ? low + 1 : low;
    return (double)sorted[low] +
           (at - (double)low) * (double)(sorted[high] - sorted[low]);
}

/* Durations over nine decades, with many repeats among the small ones. */
static int64_t sample(uint64_t seed, uint64_t i)
{
    return (int64_t)pow(10.0, 9.0 * akin_rng_uniform(seed, 0, i));
}

static size_t n_to(const int64_t *sorted, size_t n, double value)
{
    size_t at = 0;
    while (at < n && (double)sorted[at] <= value)
        at++;
    return at;
}

/* Exact below 256; above, never fewer, and none that are 1/128 above. */
static void check_counts(const akin_histogram_t *h, const int64_t *sorted,
                         size_t n)
{
    static const int64_t values[] = {
        -1, 0, 1, 7, 255, 1000, 123456, 1000000, 99999999, INT64_MAX};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const double v = (double)values[i];
        const uint64_t got = akin_histogram_count_to(h, values[i]);
        CU_ASSERT(got >= n_to(sorted, n, v));
        CU_ASSERT(got <= n_to(sorted, n, v < 256 ? v : v * (1 + 1.0 / 128)));
    }
}

static void check(uint64_t seed, size_t n, double error)
{
    static const double percents[] = {0,  0.1, 1,  10,   25,    50, 75,
                                      90, 95,  99, 99.9, 99.99, 100};
    akin_histogram_t *h;
    int64_t *all = malloc(n * sizeof(*all));
    CU_ASSERT_PTR_NOT_NULL_FATAL(all);
    CU_ASSERT_EQUAL_FATAL(akin_histogram_create(&h), AKIN_OK);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        all[i] = sample(seed, i);
        sum += (double)all[i];
        akin_histogram_add(h, all[i]);
        /* Asking in between must not disturb what comes. */
        if (i % 1000 == 7)
            (void)akin_histogram_percentile(h, 50);
    }
    double mean = sum / (double)n;
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += ((double)all[i] - mean) * ((double)all[i] - mean);
    double deviation = sqrt(squares / (double)n);
    qsort(all, n, sizeof(*all), compare);
    CU_ASSERT_EQUAL(akin_histogram_count(h), n);
    check_counts(h, all, n);
    CU_ASSERT_DOUBLE_EQUAL(akin_histogram_mean(h), mean, mean * 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(akin_histogram_std(h), deviation, deviation * 1e-9);
    for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
        double expected = by_sorting(all, n, percents[i]);
        double got = akin_histogram_percentile(h, percents[i]);
        CU_ASSERT_DOUBLE_EQUAL(got, expected, expected * error + 1e-9);
    }
    CU_ASSERT_EQUAL(akin_histogram_percentile(h, 0), (double)all[0]);
    CU_ASSERT_EQUAL(akin_histogram_percentile(h, 100), (double)all[n - 1]);
    CU_ASSERT_EQUAL(akin_histogram_exact(h), error <= 1e-12);
    akin_histogram_destroy(h);
    free(all);
}

static void test_exact(void)
{
    for (size_t n = 1; n < 20; n++)
        check(n, n, 1e-15);
    check(20, AKIN_HISTOGRAM_EXACT - 1, 1e-15);
    check(21, AKIN_HISTOGRAM_EXACT, 1e-15);
}

static void test_bucketed(void)
{
    check(22, AKIN_HISTOGRAM_EXACT + 1, AKIN_HISTOGRAM_ERROR);
    check(23, 200000, AKIN_HISTOGRAM_ERROR);
}

/* numpy.percentile([1, 2, 4, 8], [25, 50, 90]) and std. */
static void test_known(void)
{
    akin_histogram_t *h;
    CU_ASSERT_EQUAL_FATAL(akin_histogram_create(&h), AKIN_OK);
    CU_ASSERT_EQUAL(akin_histogram_percentile(h, 50), 0);
    CU_ASSERT_EQUAL(akin_histogram_mean(h), 0);
    CU_ASSERT_EQUAL(akin_histogram_std(h), 0);
    for (int i = 3; i >= 0; i--)
        akin_histogram_add(h, 1 << i);
    CU_ASSERT_DOUBLE_EQUAL(akin_histogram_percentile(h, 25), 1.75, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(akin_histogram_percentile(h, 50), 3.0, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(akin_histogram_percentile(h, 90), 6.8, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(akin_histogram_std(h), 2.680951323690902, 1e-12);
    akin_histogram_destroy(h);
}

static void test_ends_of_range(void)
{
    akin_histogram_t *h;
    CU_ASSERT_EQUAL_FATAL(akin_histogram_create(&h), AKIN_OK);
    for (int i = 0; i < AKIN_HISTOGRAM_EXACT; i++)
        akin_histogram_add(h, INT64_MAX);
    akin_histogram_add(h, -5);
    CU_ASSERT_EQUAL(akin_histogram_percentile(h, 0), 0);
    CU_ASSERT_DOUBLE_EQUAL(akin_histogram_percentile(h, 50), 0x1p63,
                           0x1p63 * AKIN_HISTOGRAM_ERROR);
    akin_histogram_destroy(h);
    akin_histogram_destroy(NULL);
}

static const runner_test_t tests[] = {
    {"known", test_known},
    {"exact", test_exact},
    {"bucketed", test_bucketed},
    {"ends of the range", test_ends_of_range},
};

RUNNER_MAIN("histogram", tests)
