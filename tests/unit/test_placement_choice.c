/* Placement choice: against a plain reading of its rule, against the optimum,
 * against serving every replica. */
#include "runner.h"

#include "ep/placement.h"
#include "ep/placement_choice.h"
#include "placement_draw.h"

/* The rule by sorting: fewest holders, then index; fewest so far, then rank. */
static uint32_t choose_plainly(const uint64_t *holders, const uint64_t *active,
                               uint32_t n_experts, uint32_t n_ranks,
                               uint8_t *rank_of, uint32_t *loads)
{
    uint32_t largest = 0;
    for (uint32_t r = 0; r < n_ranks; r++)
        loads[r] = 0;
    for (uint32_t e = 0; e < n_experts; e++)
        rank_of[e] = 255;
    for (int n = 1; n <= 64; n++)
        for (uint32_t e = 0; e < n_experts; e++) {
            if ((active[e / 64] >> e % 64 & 1) == 0 ||
                __builtin_popcountll(holders[e]) != n)
                continue;
            uint32_t best = n_ranks;
            for (uint32_t r = 0; r < n_ranks; r++)
                if ((holders[e] >> r & 1) != 0 &&
                    (best == n_ranks || loads[r] < loads[best]))
                    best = r;
            rank_of[e] = (uint8_t)best;
            if (++loads[best] > largest)
                largest = loads[best];
        }
    return largest;
}

/* 1,000 bitmaps on maps with up to four holders: the answer is that of the
 * rule whatever the outputs held before, each expert is served once by a rank
 * that holds it, and no rank serves more than all that it holds. */
static void test_bitmaps(void)
{
    static const uint32_t shapes[][3] = {
        {32, 4, 0},   {32, 4, 8},   {32, 8, 32},    {128, 8, 16},
        {128, 8, 64}, {100, 5, 25}, {128, 64, 128}, {64, 2, 32}};
    uint64_t holders[128], active[2];
    for (uint64_t i = 0; i < 1000; i++) {
        const uint32_t *shape = shapes[i % 8];
        const uint32_t n = shape[0], n_ranks = shape[1];
        CU_ASSERT_FATAL(
            placement_draw_holders(holders, n, n_ranks, shape[2], i / 40));
        float idle[128];
        for (uint32_t e = 0; e < n; e++)
            idle[e] = (float)(i % 11) / 10.0f;
        placement_draw_active(active, idle, n, 7, i);
        uint8_t ranks[2][128];
        uint32_t loads[2][64], all[64] = {0}, sum = 0, largest_of_all = 0;
        memset(ranks[0], (int)i & 255, sizeof(ranks[0]));
        memset(loads[0], (int)i & 255, sizeof(loads[0]));
        const uint32_t largest = akin_placement_choose(
            holders, active, n, n_ranks, ranks[0], loads[0]);
        CU_ASSERT_EQUAL(largest, choose_plainly(holders, active, n, n_ranks,
                                                ranks[1], loads[1]));
        CU_ASSERT_EQUAL_FATAL(memcmp(ranks[0], ranks[1], n), 0);
        CU_ASSERT_EQUAL(memcmp(loads[0], loads[1], n_ranks * sizeof(uint32_t)),
                        0);
        uint32_t n_active = 0;
        for (uint32_t e = 0; e < n; e++) {
            const int is_active = (int)(active[e / 64] >> e % 64 & 1);
            n_active += (uint32_t)is_active;
            CU_ASSERT_EQUAL(ranks[0][e] != AKIN_PLACEMENT_NO_RANK, is_active);
            if (!is_active)
                continue;
            CU_ASSERT((holders[e] >> ranks[0][e] & 1) == 1);
            for (uint32_t r = 0; r < n_ranks; r++)
                all[r] += (uint32_t)(holders[e] >> r & 1);
        }
        for (uint32_t r = 0; r < n_ranks; r++) {
            sum += loads[0][r];
            CU_ASSERT(loads[0][r] <= all[r]);
            largest_of_all = all[r] > largest_of_all ? all[r] : largest_of_all;
        }
        CU_ASSERT_EQUAL(sum, n_active);
        CU_ASSERT(largest <= largest_of_all);
    }
}

/* The least largest load of all ways to serve the experts from e on. */
static uint32_t optimum(const uint64_t *holders, uint32_t e, uint32_t n,
                        uint32_t *loads, uint32_t n_ranks, uint32_t best)
{
    uint32_t largest = 0;
    for (uint32_t r = 0; r < n_ranks; r++)
        largest = loads[r] > largest ? loads[r] : largest;
    if (largest >= best || e == n)
        return largest;
    for (uint32_t r = 0; r < n_ranks; r++)
        if ((holders[e] >> r & 1) != 0) {
            loads[r]++;
            uint32_t found = optimum(holders, e + 1, n, loads, n_ranks, best);
            best = found < best ? found : best;
            loads[r]--;
        }
    return best;
}

/* All experts active on small maps, each rank a holder with the chance 1/4 to
 * 1/2: at most ceil(log2 R) + 1 times the optimum, optimal in most. */
static void test_optimum(void)
{
    enum { N_MAPS = 4000 };
    uint32_t n_optimal = 0, n_one_above = 0;
    for (uint64_t i = 0; i < N_MAPS; i++) {
        const uint32_t n = 4 + (uint32_t)(i % 6), n_ranks = 2 + i / 6 % 4;
        uint64_t holders[10];
        for (uint32_t e = 0; e < n; e++) {
            const uint64_t bits = akin_rng_u64(i, 8, e);
            const uint64_t thin = i % 2 == 0 ? bits : bits & bits >> 32;
            holders[e] = thin & ((UINT64_C(1) << n_ranks) - 1);
            if (holders[e] == 0)
                holders[e] = UINT64_C(1) << bits % n_ranks;
        }
        const uint64_t active = (UINT64_C(1) << n) - 1;
        uint8_t rank_of[10];
        uint32_t loads[5], scratch[5] = {0};
        const uint32_t largest =
            akin_placement_choose(holders, &active, n, n_ranks, rank_of, loads);
        const uint32_t least = optimum(holders, 0, n, scratch, n_ranks, n + 1);
        const uint32_t bound = n_ranks == 2 ? 2 : n_ranks <= 4 ? 3 : 4;
        CU_ASSERT(largest >= least && largest <= bound * least);
        n_optimal += largest == least;
        n_one_above += largest == least + 1;
    }
    printf("optimal in %u, one above in %u of %d ", n_optimal, n_one_above,
           N_MAPS);
    CU_ASSERT(n_optimal * 10 > N_MAPS * 9);
    CU_ASSERT_EQUAL(n_optimal + n_one_above, N_MAPS);
}

/* Experts 0 and 1 with two holders each; 2 with one. The single one goes first,
 * so that 0 avoids its rank, and 1 the rank of 0. */
static void test_by_hand(void)
{
    static const uint64_t holders[] = {3, 6, 1, 7};
    uint64_t active = 7;
    uint8_t rank_of[4];
    uint32_t loads[3];
    CU_ASSERT_EQUAL(
        akin_placement_choose(holders, &active, 4, 3, rank_of, loads), 1);
    CU_ASSERT_EQUAL(rank_of[0], 1);
    CU_ASSERT_EQUAL(rank_of[1], 2);
    CU_ASSERT_EQUAL(rank_of[2], 0);
    CU_ASSERT_EQUAL(rank_of[3], AKIN_PLACEMENT_NO_RANK);
    active = 0;
    CU_ASSERT_EQUAL(
        akin_placement_choose(holders, &active, 4, 3, rank_of, loads), 0);
}

static const runner_test_t tests[] = {
    {"by hand", test_by_hand},
    {"bitmaps", test_bitmaps},
    {"optimum", test_optimum},
};

RUNNER_MAIN("placement_choice", tests)
