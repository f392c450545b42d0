/* Load watch: figures computed by hand, and what must not get lost. */
#include "runner.h"

#include "base/rng.h"
#include "routing/load_watch.h"

#include <jansson.h>
#include <math.h>

enum { LAYERS = 2, EXPERTS = 4 };

static akin_load_watch_t *watch_of(uint32_t n_workers)
{
    akin_load_watch_t *watch;
    CU_ASSERT_EQUAL_FATAL(
        akin_load_watch_create(n_workers, LAYERS, EXPERTS, &watch), AKIN_OK);
    return watch;
}

static void test_bins(void)
{
    akin_load_watch_t *watch = watch_of(2);
    akin_load_watch_set(watch, 0, 0.0, 2);
    akin_load_watch_set(watch, 0, 0.0015, 4);
    akin_load_watch_set(watch, 1, 0.0025, 1);
    akin_load_watch_end(watch, 0.003);
    akin_load_watch_sizes_t sizes = akin_load_watch_sizes(watch);
    CU_ASSERT_EQUAL(sizes.n_bins, 3);
    CU_ASSERT_EQUAL(sizes.n_watched, 2);
    CU_ASSERT_DOUBLE_EQUAL(sizes.bin_s, 0.001, 0.0);
    CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_load(watch, 0, 0), 2.0, 0.0);
    CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_load(watch, 0, 1), 3.0, 0.0);
    CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_load(watch, 0, 2), 4.0, 0.0);
    CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_load(watch, 0, 3), 0.0, 0.0);
    CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_load(watch, 1, 1), 0.0, 0.0);
    CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_load(watch, 1, 2), 0.5, 0.0);
    /* One bin more than there are: pairs of them become one. */
    akin_load_watch_end(watch, 0.1201);
    sizes = akin_load_watch_sizes(watch);
    CU_ASSERT_EQUAL(sizes.n_bins, 61);
    CU_ASSERT_DOUBLE_EQUAL(sizes.bin_s, 0.002, 0.0);
    CU_ASSERT_DOUBLE_EQUAL(sizes.end_s, 0.1201, 0.0);
    CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_load(watch, 0, 0), 2.5, 0.0);
    CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_load(watch, 0, 1), 4.0, 0.0);
    CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_load(watch, 1, 1), 0.75, 0.0);
    CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_load(watch, 0, 60), 4.0, 0.0);
    akin_load_watch_destroy(watch);
}

/* All bins together hold requests x time, however often they were widened. */
static void test_conservation(void)
{
    akin_load_watch_t *watch = watch_of(3);
    double expected[3] = {0.0, 0.0, 0.0}, since[3] = {0.0, 0.0, 0.0};
    uint32_t n[3] = {0, 0, 0};
    double now = 0.0;
    for (uint64_t i = 0; i < 3000; i++) {
        const uint32_t w = (uint32_t)(akin_rng_uniform(7, 1, i) * 3.0);
        now += ldexp(floor(akin_rng_uniform(7, 2, i) * 64.0), -6);
        expected[w] += n[w] * (now - since[w]);
        since[w] = now;
        n[w] = (uint32_t)(akin_rng_uniform(7, 3, i) * 50.0);
        akin_load_watch_set(watch, w, now, n[w]);
    }
    akin_load_watch_end(watch, now);
    const akin_load_watch_sizes_t sizes = akin_load_watch_sizes(watch);
    CU_ASSERT(sizes.n_bins > 60 && sizes.n_bins <= 120);
    for (uint32_t w = 0; w < 3; w++) {
        double sum = 0.0;
        expected[w] += n[w] * (now - since[w]);
        for (uint32_t b = 0; b < sizes.n_bins; b++) {
            const double end = fmin((b + 1) * sizes.bin_s, sizes.end_s);
            sum += akin_load_watch_load(watch, w, b) * (end - b * sizes.bin_s);
        }
        /* Times are rounded to a microsecond, 1000 of each worker. */
        CU_ASSERT_DOUBLE_EQUAL(sum, expected[w], 0.05);
    }
    akin_load_watch_destroy(watch);
}

static void test_difference(void)
{
    static const uint16_t a[LAYERS * EXPERTS] = {3, 1, 0, 0, 5, 0, 0, 0};
    static const uint16_t b[LAYERS * EXPERTS] = {1, 3, 0, 0, 0, 7, 0, 0};
    static const uint16_t c[LAYERS * EXPERTS] = {0, 0, 0, 0, 0, 0, 1, 1};
    akin_load_watch_t *watch = watch_of(4);
    akin_load_watch_add(watch, 1, a);
    akin_load_watch_add(watch, 1, a);
    CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_difference(watch, 0), 0.0, 0.0);
    akin_load_watch_add(watch, 2, b);
    CU_ASSERT_EQUAL(akin_load_watch_choices(watch, 1, 0, 0), 6);
    CU_ASSERT_EQUAL(akin_load_watch_choices(watch, 2, 1, 1), 7);
    /* Halves of one mixture: 1 bit less the entropy of a quarter. */
    CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_difference(watch, 0), 0.1887219,
                           1e-7);
    CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_difference(watch, 1), 1.0, 1e-12);
    /* A third worker has nothing in layer 0, and shares nothing in 1. */
    akin_load_watch_add(watch, 3, c);
    CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_difference(watch, 0), 0.1887219,
                           1e-7);
    CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_difference(watch, 1), log2(3.0),
                           1e-12);
    akin_load_watch_destroy(watch);
}

static void test_json(void)
{
    static const uint16_t a[LAYERS * EXPERTS] = {1, 1, 0, 0, 5, 0, 0, 0};
    static const uint16_t b[LAYERS * EXPERTS] = {1, 1, 0, 0, 0, 7, 0, 0};
    akin_load_watch_t *watch = watch_of(2);
    akin_load_watch_add(watch, 0, a);
    akin_load_watch_add(watch, 1, b);
    akin_load_watch_set(watch, 1, 0.001, 3);
    akin_load_watch_end(watch, 0.004);
    json_t *json = akin_load_watch_json(watch);
    json_t *expected = json_pack(
        "{s:{s:f, s:f, s:i, s:[[f,f,f,f],[f,f,f,f]]},"
        " s:{s:[f,f], s:i, s:[[i,i,i,i],[i,i,i,i]]}}",
        "load", "bin_s", 0.001, "end_s", 0.004, "n_workers", 2, "workers", 0.0,
        0.0, 0.0, 0.0, 0.0, 3.0, 3.0, 3.0, "experts", "difference_bits", 0.0,
        1.0, "layer", 1, "choices", 5, 0, 0, 0, 0, 7, 0, 0);
    CU_ASSERT(expected != NULL && json_equal(json, expected));
    json_decref(json);
    json_decref(expected);
    akin_load_watch_destroy(watch);

    /* Nothing happened, and nobody counts experts. */
    CU_ASSERT_EQUAL_FATAL(akin_load_watch_create(3, 0, EXPERTS, &watch),
                          AKIN_OK);
    akin_load_watch_add(watch, 0, a);
    json = akin_load_watch_json(watch);
    CU_ASSERT(json_is_null(json_object_get(json, "experts")));
    const json_t *workers =
        json_object_get(json_object_get(json, "load"), "workers");
    CU_ASSERT_EQUAL(json_array_size(workers), 3);
    CU_ASSERT_EQUAL(json_array_size(json_array_get(workers, 2)), 0);
    json_decref(json);
    akin_load_watch_destroy(watch);
}

static void test_steps(void)
{
    akin_load_watch_t *watch = watch_of(1);
    json_t *json = akin_load_watch_json(watch);
    CU_ASSERT_PTR_NULL(json_object_get(json, "distinct_experts_by_batch"));
    json_decref(json);
    akin_load_watch_step(watch, 2, 6);
    akin_load_watch_step(watch, 2, 5);
    akin_load_watch_step(watch, 256, 8);
    akin_load_watch_step(watch, 257, 7);
    akin_load_watch_step(watch, 300, 8);
    CU_ASSERT_EQUAL(akin_load_watch_batch(watch, 1).n_steps, 0);
    CU_ASSERT_EQUAL(akin_load_watch_batch(watch, 256).n_steps, 1);
    CU_ASSERT_EQUAL(akin_load_watch_batch(watch, 299).n_steps, 2);
    /* Per step and layer, of two layers. */
    json = akin_load_watch_json(watch);
    json_t *expected =
        json_pack("[{s:f, s:i, s:f}, {s:f, s:i, s:f}, {s:f, s:i, s:f}]",
                  "batch", 2.0, "steps", 2, "distinct_experts", 2.75, "batch",
                  256.0, "steps", 1, "distinct_experts", 4.0, "batch", 278.5,
                  "steps", 2, "distinct_experts", 3.75);
    CU_ASSERT(expected != NULL &&
              json_equal(json_object_get(json, "distinct_experts_by_batch"),
                         expected));
    json_decref(expected);
    json_decref(json);
    akin_load_watch_destroy(watch);
}

static void test_limits(void)
{
    static const uint16_t a[LAYERS * EXPERTS] = {65535};
    akin_load_watch_t *watch = watch_of(100);
    akin_load_watch_set(watch, 63, (double)NAN, 7);
    akin_load_watch_set(watch, 64, 1.0, 7);
    akin_load_watch_set(watch, UINT32_MAX, 2.0, 7);
    akin_load_watch_add(watch, 64, a);
    CU_ASSERT_EQUAL(akin_load_watch_sizes(watch).n_workers, 100);
    CU_ASSERT_EQUAL(akin_load_watch_sizes(watch).n_watched, 64);
    CU_ASSERT_EQUAL(akin_load_watch_sizes(watch).n_bins, 0);
    akin_load_watch_set(watch, 63, 0.002, 9);
    /* A clock that goes back takes nothing away. */
    akin_load_watch_set(watch, 63, 0.001, 1);
    akin_load_watch_end(watch, 0.002);
    CU_ASSERT_EQUAL(akin_load_watch_sizes(watch).n_bins, 2);
    CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_load(watch, 63, 0), 7.0, 0.0);
    CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_load(watch, 63, 1), 7.0, 0.0);
    /* The longest time with the most requests does not overflow. */
    akin_load_watch_set(watch, 0, 0.0, UINT32_MAX);
    akin_load_watch_end(watch, (double)INFINITY);
    const akin_load_watch_sizes_t sizes = akin_load_watch_sizes(watch);
    CU_ASSERT(sizes.n_bins > 60 && sizes.n_bins <= 120);
    CU_ASSERT_DOUBLE_EQUAL(akin_load_watch_load(watch, 0, sizes.n_bins - 1),
                           1048575.0, 0.0);
    akin_load_watch_destroy(watch);
    akin_load_watch_destroy(NULL);
}

static const runner_test_t tests[] = {
    {"bins", test_bins},
    {"conservation", test_conservation},
    {"difference", test_difference},
    {"json", test_json},
    {"steps", test_steps},
    {"limits", test_limits},
};

RUNNER_MAIN("load_watch", tests)
