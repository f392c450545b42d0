/* Placement change: gain found where it was planted, few moves, none where
 * nothing is to be had. */
#include "ep/placement_change.h"

#include "ep/placement_load.h"

#include "base/rng.h"
#include "placement_draw.h"
#include "runner.h"

#include <stdlib.h>

#define LAYERS 12u
#define EXPERTS 16u
#define RANKS 4u

static float rates[LAYERS * EXPERTS];

/* All layers even, but for one whose first rank has the four busy experts. */
static void plant(uint32_t layer)
{
    for (uint32_t i = 0; i < LAYERS * EXPERTS; i++)
        rates[i] = 0.1f;
    for (uint32_t e = 0; layer < LAYERS && e < EXPERTS; e++)
        rates[layer * EXPERTS + e] = e < EXPERTS / RANKS ? 0.4f : 0.02f;
}

static void make_linear(akin_placement_t *placement, uint32_t n_replicas)
{
    akin_error_t err = {{0}};
    const akin_placement_params_t params = {
        .kind = AKIN_PLACEMENT_LINEAR,
        .n_layers = LAYERS,
        .n_experts = EXPERTS,
        .n_ranks = RANKS,
        .n_replicas = n_replicas,
    };
    CU_ASSERT_EQUAL_FATAL(akin_placement_make(&params, placement, &err),
                          AKIN_OK);
}

static akin_placement_change_params_t
params_of(const akin_placement_t *placement)
{
    return (akin_placement_change_params_t){
        .placement = placement,
        .rates = rates,
        .batch = 4,
        .steps = 1000,
        .seconds_per_expert = 1e-4,
        .expert_bytes = 1e6,
        .bandwidth_bytes_per_s = 1e9,
    };
}

static void planted_skew(void)
{
    akin_placement_t placement;
    akin_error_t err = {{0}};
    uint64_t holders[EXPERTS];
    akin_placement_change_t change;
    make_linear(&placement, 0);
    plant(7);
    akin_placement_change_params_t params = params_of(&placement);
    CU_ASSERT_EQUAL(
        akin_placement_change_propose(&params, holders, &change, &err),
        AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(change.layer, 7);
    /* One busy expert stays, each other rank takes one and gives one away. */
    CU_ASSERT_EQUAL(change.n_moved, 6);
    CU_ASSERT_EQUAL(akin_placement_moves(akin_placement_layer(&placement, 7),
                                         holders, EXPERTS),
                    6);
    uint64_t ranks = 0;
    for (uint32_t e = 0; e < EXPERTS / RANKS; e++)
        ranks |= holders[e];
    CU_ASSERT_EQUAL(ranks, 15);
    CU_ASSERT_EQUAL(akin_placement_check_layer(&placement, 7, holders, &err),
                    AKIN_OK);
    /* Four busy experts of 1 - 0.6^4 = 0.8704 on one rank before: 3.48 of
     * them. */
    CU_ASSERT(change.load_now >= 4 * 0.8704 - 1e-6);
    CU_ASSERT(change.load_then < change.load_now - 1.0);
    CU_ASSERT_DOUBLE_EQUAL(
        change.gain_s,
        (change.load_now - change.load_then) * 0.1 - 6 * 1e6 / 1e9, 1e-9);

    /* The same gain does not pay for a slow way, nor in few steps. */
    params.bandwidth_bytes_per_s = 1e7;
    CU_ASSERT_EQUAL(
        akin_placement_change_propose(&params, holders, &change, &err),
        AKIN_OK);
    CU_ASSERT_EQUAL(change.layer, AKIN_PLACEMENT_NO_LAYER);
    params = params_of(&placement);
    params.steps = 10;
    CU_ASSERT_EQUAL(
        akin_placement_change_propose(&params, holders, &change, &err),
        AKIN_OK);
    CU_ASSERT_EQUAL(change.layer, AKIN_PLACEMENT_NO_LAYER);
    akin_placement_cleanup(&placement);
}

static void balanced(void)
{
    for (uint32_t n_replicas = 0; n_replicas <= 4; n_replicas += 4) {
        akin_placement_t placement;
        akin_error_t err = {{0}};
        uint64_t holders[EXPERTS];
        akin_placement_change_t change;
        make_linear(&placement, n_replicas);
        plant(LAYERS);
        akin_placement_change_params_t params = params_of(&placement);
        /* Even where moving costs nothing. */
        params.expert_bytes = 0;
        CU_ASSERT_EQUAL(
            akin_placement_change_propose(&params, holders, &change, &err),
            AKIN_OK);
        if (n_replicas == 0)
            CU_ASSERT_EQUAL(change.layer, AKIN_PLACEMENT_NO_LAYER);
        /* What was applied is not proposed again. */
        for (uint32_t i = 0; change.layer != AKIN_PLACEMENT_NO_LAYER; i++) {
            CU_ASSERT_FATAL(i < LAYERS);
            memcpy(placement.holders + (size_t)change.layer * EXPERTS, holders,
                   sizeof(holders));
            CU_ASSERT_EQUAL_FATAL(
                akin_placement_change_propose(&params, holders, &change, &err),
                AKIN_OK);
        }
        akin_placement_cleanup(&placement);
    }
}

/* Against all 24 ways to name four ranks: greedy keeps at least half of what
 * the best one keeps, and the loads of the ranks stay. */
static void few_moves(void)
{
    uint32_t n_best = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint64_t from[EXPERTS], to[EXPERTS], named[EXPERTS];
        CU_ASSERT_FATAL(placement_draw_holders(from, EXPERTS, RANKS, 4, seed));
        CU_ASSERT_FATAL(
            placement_draw_holders(to, EXPERTS, RANKS, 4, seed + 1000));
        uint32_t least = UINT32_MAX;
        for (uint32_t code = 0; code < 256; code++) {
            const uint32_t name[] = {code & 3, code >> 2 & 3, code >> 4 & 3,
                                     code >> 6 & 3};
            uint32_t used = 0;
            for (uint32_t r = 0; r < RANKS; r++)
                used |= 1u << name[r];
            if (used != 15)
                continue;
            for (uint32_t e = 0; e < EXPERTS; e++) {
                named[e] = 0;
                for (uint32_t r = 0; r < RANKS; r++)
                    named[e] |= (to[e] >> r & 1) << name[r];
            }
            const uint32_t n = akin_placement_moves(from, named, EXPERTS);
            least = n < least ? n : least;
        }
        memcpy(named, to, sizeof(named));
        akin_placement_relabel(from, named, EXPERTS, RANKS);
        const uint32_t n = akin_placement_moves(from, named, EXPERTS);
        CU_ASSERT(n >= least);
        CU_ASSERT(2 * (20 - n) >= 20 - least);
        n_best += n == least;
        for (uint32_t e = 0; e < EXPERTS; e++)
            CU_ASSERT_EQUAL(__builtin_popcountll(named[e]),
                            __builtin_popcountll(to[e]));
        /* Its own map under other names moves nothing. */
        for (uint32_t e = 0; e < EXPERTS; e++)
            named[e] = (from[e] << 1 | from[e] >> 3) & 15;
        akin_placement_relabel(from, named, EXPERTS, RANKS);
        CU_ASSERT_EQUAL(memcmp(from, named, sizeof(from)), 0);
    }
    CU_ASSERT(n_best > 100);
}

static void any_kind(void)
{
    akin_placement_t placement;
    akin_error_t err = {{0}};
    uint64_t holders[EXPERTS];
    akin_placement_change_t change;
    make_linear(&placement, 4);
    plant(3);
    const akin_placement_change_params_t params = params_of(&placement);
    for (int kind = AKIN_PLACEMENT_LINEAR; kind <= AKIN_PLACEMENT_ACTIVATION;
         kind++) {
        CU_ASSERT_EQUAL(akin_placement_change_make(&params, 3,
                                                   (akin_placement_kind_t)kind,
                                                   holders, &change, &err),
                        AKIN_OK);
        CU_ASSERT_EQUAL(change.layer, 3);
        CU_ASSERT_EQUAL(
            akin_placement_check_layer(&placement, 3, holders, &err), AKIN_OK);
        CU_ASSERT_EQUAL(change.n_moved == 0, kind == AKIN_PLACEMENT_LINEAR);
        CU_ASSERT_EQUAL(change.gain_s > 0,
                        kind == AKIN_PLACEMENT_ACTIVATION ||
                            kind == AKIN_PLACEMENT_EPLB ||
                            kind == AKIN_PLACEMENT_ROUND_ROBIN);
    }
    rates[3 * EXPERTS] = 1.5f;
    CU_ASSERT_EQUAL(akin_placement_change_make(&params, 3,
                                               AKIN_PLACEMENT_ACTIVATION,
                                               holders, &change, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_EQUAL(change.layer, AKIN_PLACEMENT_NO_LAYER);
    CU_ASSERT_EQUAL(
        akin_placement_check_layer(&placement, LAYERS, holders, &err),
        AKIN_ERR_INVALID);
    akin_placement_cleanup(&placement);
}

static const runner_test_t tests[] = {
    {"a planted skew", planted_skew},
    {"nothing to be had", balanced},
    {"few moves", few_moves},
    {"a layer by any kind", any_kind},
};

RUNNER_MAIN("placement change", tests)
