/* Passes over the workers against loops that look at one after another. */
#include "runner.h"

#include "base/rng.h"
#include "routing/policy_scan.h"

enum { MOST = 1100 };

static uint32_t loads[MOST];
static uint8_t eligible[MOST];

/* Some may not be chosen; loads are few, so that many are alike. */
static void draw(uint32_t n, uint32_t part_of_8)
{
    for (uint32_t w = 0; w < n; w++) {
        loads[w] = (uint32_t)akin_rng_below(n, 1, w, 4);
        eligible[w] = akin_rng_below(n, 2, w, 8) < part_of_8
                          ? (uint8_t)(1 + akin_rng_below(n, 3, w, 255))
                          : 0;
    }
}

static void check(uint32_t n)
{
    uint32_t least = UINT32_MAX, n_least = 0, n_any = 0, found;
    for (uint32_t w = 0; w < n; w++)
        if (eligible[w] != 0 && loads[w] < least)
            least = loads[w];
    for (uint32_t w = 0; w < n; w++) {
        if (eligible[w] == 0)
            continue;
        CU_ASSERT_EQUAL(akini_scan_nth(eligible, n, n_any), w);
        n_any++;
        if (loads[w] != least)
            continue;
        CU_ASSERT_EQUAL(akini_scan_nth_at(loads, eligible, n, least, n_least),
                        w);
        n_least++;
    }
    CU_ASSERT_EQUAL(akini_scan_least(loads, eligible, n, &found), least);
    CU_ASSERT_EQUAL(found, n_least);
    CU_ASSERT_EQUAL(akini_scan_count(eligible, n), n_any);
    CU_ASSERT_EQUAL(akini_scan_nth(eligible, n, n_any), n);
    CU_ASSERT_EQUAL(akini_scan_nth_at(loads, eligible, n, least, n_least), n);
}

static void test_sizes(void)
{
    static const uint32_t sizes[] = {1, 2, 15, 64, 255, 256, 257, 512, MOST};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (uint32_t part = 0; part <= 8; part += 4) {
            draw(sizes[i], part);
            check(sizes[i]);
        }
}

static const runner_test_t tests[] = {{"sizes", test_sizes}};

RUNNER_MAIN("policy_scan", tests)
