/* Tests of the slot map against an array of flags. */
#include "kv/slot_map.h"

#include "base/rng.h"
#include "runner.h"

#include <stdlib.h>

static uint32_t next_plainly(const uint8_t *flags, uint32_t n, uint32_t from)
{
    for (; from < n; from++)
        if (flags[from])
            return from;
    return AKINI_KV_NONE;
}

static int is_run(const uint8_t *flags, uint32_t n, uint32_t first,
                  uint32_t length)
{
    for (uint32_t i = first; i < first + length; i++)
        if (i >= n || !flags[i])
            return 0;
    return 1;
}

static void check_size(uint32_t n, uint32_t percent)
{
    akini_kv_slot_map_t map;
    CU_ASSERT_EQUAL_FATAL(akini_kv_slot_map_init(&map, n), AKIN_OK);
    uint8_t *flags = calloc(n, 1);
    unsigned wrong = 0;
    uint64_t draws = 0;
    for (int step = 0; step < 3000; step++) {
        uint32_t i = (uint32_t)akin_rng_below(n, percent, draws++, n);
        int want = akin_rng_below(n, percent, draws++, 100) < percent;
        if (want != flags[i]) {
            if (want)
                akini_kv_slot_map_add(&map, i);
            else
                akini_kv_slot_map_remove(&map, i);
            flags[i] = (uint8_t)want;
        }
        uint32_t from = (uint32_t)akin_rng_below(n, percent, draws++, n + 1);
        wrong += akini_kv_slot_map_has(&map, i) != flags[i];
        wrong +=
            akini_kv_slot_map_next(&map, from) != next_plainly(flags, n, from);
        uint32_t length = 1 + (uint32_t)akin_rng_below(n, percent, draws++, 6);
        uint32_t run = akini_kv_slot_map_find_run(&map, length, from);
        wrong += run != AKINI_KV_NONE && !is_run(flags, n, run, length);
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += flags[i];
    CU_ASSERT_EQUAL(count, map.n_set);
    CU_ASSERT_EQUAL(wrong, 0);
    free(flags);
    akini_kv_slot_map_cleanup(&map);
}

static void test_against_flags(void)
{
    const uint32_t sizes[] = {1, 63, 64, 65, 4095, 4096, 4097, 300000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        check_size(sizes[i], 5);
        check_size(sizes[i], 60);
    }
}

/* Runs over word borders, and the wrap to the beginning. */
static void test_runs(void)
{
    akini_kv_slot_map_t map;
    CU_ASSERT_EQUAL_FATAL(akini_kv_slot_map_init(&map, 500), AKIN_OK);
    for (uint32_t i = 60; i < 300; i++)
        akini_kv_slot_map_add(&map, i);
    akini_kv_slot_map_add(&map, 400);
    CU_ASSERT_EQUAL(akini_kv_slot_map_find_run(&map, 240, 0), 60);
    CU_ASSERT_EQUAL(akini_kv_slot_map_find_run(&map, 241, 0), AKINI_KV_NONE);
    CU_ASSERT_EQUAL(akini_kv_slot_map_find_run(&map, 200, 100), 100);
    CU_ASSERT_EQUAL(akini_kv_slot_map_find_run(&map, 201, 100), 60);
    CU_ASSERT_EQUAL(akini_kv_slot_map_find_run(&map, 2, 400), 60);
    CU_ASSERT_EQUAL(akini_kv_slot_map_find_run(&map, 1, 300), 400);
    CU_ASSERT_EQUAL(akini_kv_slot_map_find_run(&map, 1, 500), 60);
    akini_kv_slot_map_cleanup(&map);
}

static const runner_test_t tests[] = {
    {"against an array of flags", test_against_flags},
    {"runs", test_runs},
};

RUNNER_MAIN("kv slot map", tests)
