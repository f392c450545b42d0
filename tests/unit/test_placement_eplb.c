/* Placement by tokens: DeepSeek's published example, global mode, refusals. */
#include "runner.h"

#include "ep/placement_eplb.h"

#include <math.h>
#include <string.h>

static const float weights[] = {
    90, 132, 40,  61, 104, 165, 39,  4,   73,  56, 183, 86,
    20, 107, 104, 64, 19,  197, 187, 157, 172, 86, 16,  27,
};

static akin_placement_eplb_params_t example(void)
{
    return (akin_placement_eplb_params_t){
        .weights = weights,
        .n_layers = 2,
        .n_experts = 12,
        .n_slots = 16,
        .n_groups = 4,
        .n_nodes = 2,
        .n_ranks = 8,
    };
}

static void test_hierarchical(void)
{
    static const uint16_t expected[] = {
        5, 6,  5, 7, 8, 4,  3, 4, 10, 9, 10, 2, 0, 1, 11, 1,
        7, 10, 6, 8, 6, 11, 8, 9, 2,  4, 5,  1, 5, 0, 3,  1,
    };
    const akin_placement_eplb_params_t params = example();
    uint16_t slots[32];
    CU_ASSERT_EQUAL_FATAL(akin_placement_eplb(&params, slots, NULL), AKIN_OK);
    CU_ASSERT_EQUAL(memcmp(slots, expected, sizeof(expected)), 0);
}

/* 9, 6, 3 in 4 slots on 2 ranks: 9 gets the copy, 4.5 each; the order 6, 4.5,
 * 4.5, 3 fills 6 + 3 and 4.5 + 4.5, so that the second rank has one expert
 * twice. */
static void test_global_by_hand(void)
{
    static const float by_hand[] = {3, 9, 6};
    static const uint16_t expected[] = {2, 0, 1, 1};
    akin_placement_eplb_params_t params = {
        .weights = by_hand,
        .n_layers = 1,
        .n_experts = 3,
        .n_slots = 4,
        .n_ranks = 2,
    };
    uint16_t slots[4];
    CU_ASSERT_EQUAL_FATAL(akin_placement_eplb(&params, slots, NULL), AKIN_OK);
    CU_ASSERT_EQUAL(memcmp(slots, expected, sizeof(expected)), 0);
    /* Three groups do not go to two nodes evenly: global as well. */
    params.n_groups = 3;
    params.n_nodes = 2;
    CU_ASSERT_EQUAL_FATAL(akin_placement_eplb(&params, slots, NULL), AKIN_OK);
    CU_ASSERT_EQUAL(memcmp(slots, expected, sizeof(expected)), 0);
}

/* Every expert has a slot, and the copies are those of the rule: no expert
 * would have had more weight per copy than the last one copied had. */
static void test_copies(void)
{
    akin_placement_eplb_params_t params = example();
    params.n_groups = params.n_nodes = 1;
    uint16_t slots[32];
    CU_ASSERT_EQUAL_FATAL(akin_placement_eplb(&params, slots, NULL), AKIN_OK);
    for (uint32_t l = 0; l < 2; l++) {
        uint32_t copies[12] = {0};
        for (uint32_t s = 0; s < 16; s++)
            copies[slots[l * 16 + s]]++;
        float least_copied = INFINITY, largest = 0.0f;
        for (uint32_t e = 0; e < 12; e++) {
            const float weight = weights[l * 12 + e];
            CU_ASSERT_FATAL(copies[e] >= 1);
            largest = fmaxf(largest, weight / (float)copies[e]);
            if (copies[e] > 1)
                least_copied =
                    fminf(least_copied, weight / (float)(copies[e] - 1));
        }
        CU_ASSERT(least_copied >= largest);
    }
}

static void refuse(akin_placement_eplb_params_t params, const char *part)
{
    uint16_t slots[32];
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_placement_eplb(&params, slots, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, part));
}

static void test_refused(void)
{
    akin_placement_eplb_params_t params = example();
    params.n_slots = 8;
    refuse(params, "8 slots cannot hold 12 experts");
    params = example();
    params.n_ranks = 6;
    refuse(params, "6 ranks do not divide 16 slots");
    params = example();
    params.n_nodes = 3;
    refuse(params, "3 nodes do not divide 8 ranks");
    params = example();
    params.n_groups = 5;
    refuse(params, "5 groups do not divide 12 experts");
    params = example();
    params.n_experts = 0;
    refuse(params, "0 experts");
    float wrong[24];
    memcpy(wrong, weights, sizeof(wrong));
    params = example();
    params.weights = wrong;
    wrong[15] = -1.0f;
    refuse(params, "layer 1, expert 3 is -1");
    wrong[15] = NAN;
    refuse(params, "layer 1, expert 3");
}

static const runner_test_t tests[] = {
    {"hierarchical example", test_hierarchical},
    {"global by hand", test_global_by_hand},
    {"copies", test_copies},
    {"refused", test_refused},
};

RUNNER_MAIN("placement_eplb", tests)
