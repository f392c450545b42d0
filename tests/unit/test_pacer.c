/* Pacer: steps of all ranks, only when one has work and none is in one. */
#include "base/rng.h"
#include "roles/pacer.h"
#include "runner.h"

#include <string.h>

static void together(void)
{
    akin_pacer_t p;
    akin_pacer_init(&p, 3);
    CU_ASSERT_EQUAL(akin_pacer_next(&p), 0); /* nobody has work */
    akin_pacer_ready(&p, 1);
    CU_ASSERT_EQUAL(akin_pacer_next(&p), 1);
    akin_pacer_ready(&p, 0); /* said before it heard of the step */
    CU_ASSERT_EQUAL(akin_pacer_next(&p), 0);
    CU_ASSERT_EQUAL(akin_pacer_done(&p, 0, 1, 0), AKIN_OK);
    CU_ASSERT_EQUAL(akin_pacer_done(&p, 2, 1, 1), AKIN_OK);
    CU_ASSERT_EQUAL(akin_pacer_next(&p), 0); /* rank 1 is in it */
    CU_ASSERT_EQUAL(akin_pacer_done(&p, 1, 1, 0), AKIN_OK);
    CU_ASSERT_EQUAL(akin_pacer_next(&p), 2);
    for (uint32_t r = 0; r < 3; r++)
        CU_ASSERT_EQUAL(akin_pacer_done(&p, r, 2, 0), AKIN_OK);
    CU_ASSERT_EQUAL(akin_pacer_next(&p), 0);
}

/* A rank that says what cannot be is found out. */
static void out_of_order(void)
{
    akin_pacer_t p;
    akin_pacer_init(&p, 2);
    CU_ASSERT_EQUAL(akin_pacer_done(&p, 0, 0, 1), AKIN_ERR_FORMAT);
    akin_pacer_ready(&p, 0);
    CU_ASSERT_EQUAL(akin_pacer_next(&p), 1);
    CU_ASSERT_EQUAL(akin_pacer_done(&p, 0, 2, 1), AKIN_ERR_FORMAT);
    CU_ASSERT_EQUAL(akin_pacer_done(&p, 2, 1, 1), AKIN_ERR_FORMAT);
    CU_ASSERT_EQUAL(akin_pacer_done(&p, 0, 1, 1), AKIN_OK);
    CU_ASSERT_EQUAL(akin_pacer_done(&p, 0, 1, 1), AKIN_ERR_FORMAT);
    akin_pacer_ready(&p, 7);
    CU_ASSERT_EQUAL(akin_pacer_done(&p, 1, 1, 0), AKIN_OK);
    CU_ASSERT_EQUAL(akin_pacer_next(&p), 2);
}

/* The largest worker: a bit per rank, the last one included. */
static void largest(void)
{
    akin_pacer_t p;
    akin_pacer_init(&p, AKIN_PACER_MAX_RANKS);
    akin_pacer_ready(&p, AKIN_PACER_MAX_RANKS - 1);
    CU_ASSERT_EQUAL(akin_pacer_next(&p), 1);
    CU_ASSERT_EQUAL(p.running, UINT64_MAX);
    for (uint32_t r = 0; r < AKIN_PACER_MAX_RANKS; r++) {
        CU_ASSERT_EQUAL(akin_pacer_next(&p), 0);
        CU_ASSERT_EQUAL(akin_pacer_done(&p, r, 1, r == 5), AKIN_OK);
    }
    CU_ASSERT_EQUAL(akin_pacer_next(&p), 2);
}

/* Whatever comes when, rows are computed, all ranks step alike, and no step has
 * no rows but for those that a READY on its way asked for. */
static void random_work(void)
{
    enum { RANKS = 4, TURNS = 20000 };
    akin_pacer_t p;
    akin_pacer_init(&p, RANKS);
    uint32_t rows[RANKS] = {0}, in_step[RANKS] = {0}, told[RANKS] = {0};
    uint64_t given = 0, computed = 0, steps[RANKS] = {0}, empty = 0;
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        const uint32_t r = (uint32_t)akin_rng_below(11, 0, turn, RANKS);
        if (turn < TURNS / 2 && akin_rng_below(11, 1, turn, 8) == 0) {
            rows[r]++;
            given++;
        }
        if (in_step[r]) {
            in_step[r] = 0;
            told[r] = rows[r] > 0;
            CU_ASSERT_EQUAL_FATAL(akin_pacer_done(&p, r, p.number, rows[r] > 0),
                                  AKIN_OK);
        } else if (rows[r] > 0 && !told[r]) {
            told[r] = 1;
            akin_pacer_ready(&p, r);
        }
        if (akin_pacer_next(&p) == 0)
            continue;
        uint32_t n = 0;
        for (uint32_t i = 0; i < RANKS; i++) {
            CU_ASSERT_FATAL(!in_step[i]);
            n += rows[i] > 0;
            computed += rows[i] > 0;
            rows[i] -= rows[i] > 0;
            in_step[i] = 1;
            told[i] = 0;
            steps[i]++;
        }
        empty += n == 0;
    }
    CU_ASSERT(given > 1000);
    CU_ASSERT_EQUAL(computed, given);
    CU_ASSERT_EQUAL(empty, 0);
    for (uint32_t i = 0; i < RANKS; i++)
        CU_ASSERT_EQUAL(steps[i], p.number);
}

static const runner_test_t tests[] = {
    {"together", together},
    {"out of order", out_of_order},
    {"the largest worker", largest},
    {"random work", random_work},
};

RUNNER_MAIN("pacer", tests)
