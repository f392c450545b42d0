/* Replacer: an order where it pays, one at a time, and what becomes of it. */
#include "roles/replacer.h"

#include "base/clock.h"
#include "runner.h"

#include <string.h>

#define LAYERS 3u
#define EXPERTS 8u
#define RANKS 2u
#define EVERY 10u
#define STEP_NS (10 * AKIN_NS_PER_MS)

typedef struct bed {
    akin_placement_t maps[2]; /* of two workers */
    akin_replacer_t *r;
    int64_t now;
    akin_replacer_order_t order;
} bed_t;

static void init(bed_t *b, akin_replacer_params_t params)
{
    const akin_placement_params_t linear = {
        .kind = AKIN_PLACEMENT_LINEAR,
        .n_layers = LAYERS,
        .n_experts = EXPERTS,
        .n_ranks = RANKS,
    };
    *b = (bed_t){.now = AKIN_NS_PER_S};
    for (uint32_t w = 0; w < 2; w++)
        CU_ASSERT_EQUAL_FATAL(akin_placement_make(&linear, &b->maps[w], NULL),
                              AKIN_OK);
    params.every = EVERY;
    params.horizon_s = 60;
    params.bandwidth_bytes_per_s = 1e9;
    params.expert_bytes = 1e6;
    params.placements = b->maps;
    params.n_workers = 2;
    CU_ASSERT_EQUAL_FATAL(akin_replacer_create(&params, &b->r), AKIN_OK);
}

static void cleanup(bed_t *b)
{
    akin_replacer_destroy(b->r);
    akin_placement_cleanup(&b->maps[0]);
    akin_placement_cleanup(&b->maps[1]);
}

/* 1,024 tokens of two experts per layer: in layer 1 two of one rank, in the
 * others one of each. */
static void feed(bed_t *b, uint32_t worker)
{
    uint16_t counts[LAYERS * EXPERTS] = {0};
    for (uint32_t l = 0; l < LAYERS; l++)
        counts[l * EXPERTS] = counts[l * EXPERTS + (l == 1 ? 1 : 4)] = 1024;
    akin_replacer_counts(b->r, worker, counts, 1024);
}

/* Steps until there is an order, n at most; gives how many it took. */
static uint32_t make_steps(bed_t *b, uint32_t worker, uint32_t n)
{
    const akin_policy_step_t step = {
        .batch = 4, .distinct = 4, .seconds = 8e-3};
    for (uint32_t i = 1; i <= n; i++) {
        b->now += STEP_NS;
        if (akin_replacer_step(b->r, worker, &step, b->now, &b->order))
            return i;
    }
    return 0;
}

static void applied(void)
{
    bed_t b;
    init(&b, (akin_replacer_params_t){.mode = AKIN_REPLACE_ON});
    feed(&b, 1);
    CU_ASSERT_EQUAL(make_steps(&b, 0, 3 * EVERY), 0); /* it knows nothing */
    CU_ASSERT_EQUAL_FATAL(make_steps(&b, 1, EVERY), EVERY);
    CU_ASSERT_EQUAL(b.order.worker, 1);
    CU_ASSERT_EQUAL(b.order.epoch, 1);
    CU_ASSERT_EQUAL(b.order.change.layer, 1);
    CU_ASSERT_EQUAL(b.order.change.n_moved, 2); /* one for another */
    CU_ASSERT_EQUAL(b.order.holders[0] | b.order.holders[1], 3);
    /* Two experts on one rank, then one on each. 8 ms are four experts: 2 ms
     * each, and a minute of 10 ms is 6,000 steps (but 8 ms before the first);
     * 2 MB take 2 ms. */
    CU_ASSERT_DOUBLE_EQUAL(b.order.change.load_now, 2.0, 1e-5);
    CU_ASSERT_DOUBLE_EQUAL(b.order.change.load_then, 1.0, 1e-5);
    CU_ASSERT_DOUBLE_EQUAL(b.order.change.gain_s, 12.0 * 100 / 98 - 0.002,
                           1e-3);
    CU_ASSERT_EQUAL(b.maps[1].epoch, 0);

    /* One at a time, and no other epoch counts. */
    CU_ASSERT_EQUAL(make_steps(&b, 1, 3 * EVERY), 0);
    CU_ASSERT(!akin_replacer_placed(b.r, 1, 2, AKIN_OK));
    CU_ASSERT(!akin_replacer_placed(b.r, 0, 1, AKIN_OK));
    CU_ASSERT_EQUAL(akin_replacer_stats(b.r).n_applied, 0);
    CU_ASSERT(akin_replacer_placed(b.r, 1, 1, AKIN_OK));
    CU_ASSERT(!akin_replacer_placed(b.r, 1, 1, AKIN_OK));
    CU_ASSERT_EQUAL(b.maps[1].epoch, 1);
    CU_ASSERT_EQUAL(memcmp(akin_placement_layer(&b.maps[1], 1), b.order.holders,
                           EXPERTS * sizeof(uint64_t)),
                    0);
    CU_ASSERT_EQUAL(akin_placement_check(&b.maps[1], NULL), AKIN_OK);
    CU_ASSERT_EQUAL(b.maps[0].epoch, 0);

    /* Nothing is left to be had. */
    CU_ASSERT_EQUAL(make_steps(&b, 1, 3 * EVERY), 0);
    const akin_replacer_stats_t stats = akin_replacer_stats(b.r);
    CU_ASSERT_EQUAL(stats.n_considered, 3 + 1 + 3);
    CU_ASSERT_EQUAL(stats.n_proposed, 1);
    CU_ASSERT_EQUAL(stats.n_applied, 1);
    CU_ASSERT_EQUAL(stats.n_dropped, 0);
    CU_ASSERT_EQUAL(stats.n_moved, 2);
    CU_ASSERT_EQUAL(stats.n_bytes, 2000000);
    CU_ASSERT_DOUBLE_EQUAL(stats.gain_s, 12.24, 0.01);
    cleanup(&b);
}

/* A dropped change leaves the map, and the next one has a later epoch. */
static void dropped(void)
{
    bed_t b;
    init(&b, (akin_replacer_params_t){.mode = AKIN_REPLACE_ON});
    feed(&b, 0);
    CU_ASSERT_EQUAL_FATAL(make_steps(&b, 0, EVERY), EVERY);
    CU_ASSERT(!akin_replacer_placed(b.r, 0, 1, AKIN_ERR_TIMEOUT));
    CU_ASSERT_EQUAL(b.maps[0].epoch, 0);
    CU_ASSERT_EQUAL(b.maps[0].holders[EXPERTS + 1], 1);
    CU_ASSERT_EQUAL(make_steps(&b, 0, EVERY), EVERY);
    CU_ASSERT_EQUAL(b.order.epoch, 2);
    akin_replacer_lost(b.r, 0);
    CU_ASSERT(!akin_replacer_placed(b.r, 0, 2, AKIN_OK));
    CU_ASSERT_EQUAL(make_steps(&b, 0, 3 * EVERY), 0);
    akin_replacer_stats_t stats = akin_replacer_stats(b.r);
    CU_ASSERT_EQUAL(stats.n_applied, 0);
    CU_ASSERT_EQUAL(stats.n_dropped, 2);
    CU_ASSERT_EQUAL(stats.n_moved, 0);
    CU_ASSERT_EQUAL(stats.gain_s, 0.0);
    cleanup(&b);
}

static void dry_run(void)
{
    bed_t b;
    init(&b, (akin_replacer_params_t){.mode = AKIN_REPLACE_DRY_RUN});
    feed(&b, 0);
    /* The same each time, for nothing changes. */
    for (uint32_t i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(make_steps(&b, 0, EVERY), EVERY);
        CU_ASSERT_EQUAL(b.order.change.layer, 1);
    }
    CU_ASSERT(!akin_replacer_placed(b.r, 0, 1, AKIN_OK));
    CU_ASSERT_EQUAL(b.maps[0].epoch, 0);
    CU_ASSERT_EQUAL(akin_replacer_stats(b.r).n_proposed, 2);
    CU_ASSERT_EQUAL(akin_replacer_stats(b.r).n_applied, 0);
    CU_ASSERT_EQUAL(akin_replacer_stats(b.r).n_moved, 4);
    cleanup(&b);
}

/* Damaged counts and too few of them are no ground to move anything. */
static void little_known(void)
{
    bed_t b;
    uint16_t counts[LAYERS * EXPERTS] = {0};
    init(&b, (akin_replacer_params_t){.mode = AKIN_REPLACE_ON});
    counts[EXPERTS] = counts[EXPERTS + 1] = 1023;
    akin_replacer_counts(b.r, 0, counts, 1023);
    CU_ASSERT_EQUAL(make_steps(&b, 0, EVERY), 0);
    counts[EXPERTS] = 2;
    akin_replacer_counts(b.r, 0, counts, 1);
    akin_replacer_counts(b.r, 0, counts, 0);
    CU_ASSERT_EQUAL(make_steps(&b, 0, EVERY), 0);
    counts[EXPERTS] = counts[EXPERTS + 1] = 1;
    akin_replacer_counts(b.r, 0, counts, 1);
    CU_ASSERT_EQUAL(make_steps(&b, 0, EVERY), EVERY);
    cleanup(&b);
}

/* Every layer in turn, whatever it is worth, each map a sound one. */
static void forced(void)
{
    bed_t b;
    uint32_t n_moved = 0;
    init(&b, (akin_replacer_params_t){.mode = AKIN_REPLACE_ON, .is_forced = 1});
    for (uint32_t i = 0; i < 4 * LAYERS; i++) {
        CU_ASSERT_EQUAL_FATAL(make_steps(&b, 1, EVERY), EVERY);
        CU_ASSERT_EQUAL(b.order.change.layer, i % LAYERS);
        CU_ASSERT_EQUAL(b.order.epoch, i + 1);
        n_moved += b.order.change.n_moved;
        CU_ASSERT(akin_replacer_placed(b.r, 1, i + 1, AKIN_OK));
        CU_ASSERT_EQUAL(akin_placement_check(&b.maps[1], NULL), AKIN_OK);
    }
    CU_ASSERT(n_moved > 0);
    CU_ASSERT_EQUAL(akin_replacer_stats(b.r).n_moved, n_moved);
    cleanup(&b);
}

static const runner_test_t tests[] = {
    {"applied", applied},           {"dropped", dropped}, {"dry run", dry_run},
    {"little known", little_known}, {"forced", forced},
};

RUNNER_MAIN("replacer", tests)
