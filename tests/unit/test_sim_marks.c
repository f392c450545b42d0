/* Distinct experts of a step against a table of flags. */
#include "runner.h"

#include "base/rng.h"
#include "routing/sim_marks.h"

#include <stdlib.h>
#include <string.h>

enum { N_ROWS = 9, N_LAYERS = 5 };

static uint32_t n_drawn;

static uint32_t draw(uint32_t n)
{
    return (uint32_t)akin_rng_below(3, 1, n_drawn++, n);
}

static void check(uint32_t n_experts, uint32_t top_k)
{
    const akin_route_pool_t pool = {.n_layers = N_LAYERS,
                                    .n_experts = n_experts,
                                    .top_k = top_k,
                                    .id_bytes = n_experts <= 256 ? 1 : 2};
    const size_t n_ids = (size_t)N_LAYERS * top_k;
    uint16_t *ids = calloc(n_ids, sizeof(*ids));
    uint8_t *bytes = calloc(n_ids, 1);
    bool *flags = calloc((size_t)N_LAYERS * n_experts, sizeof(*flags));
    akini_sim_marks_t marks;
    CU_ASSERT_EQUAL_FATAL(akini_sim_marks_init(&marks, &pool), AKIN_OK);
    for (uint32_t r = 0; r < N_ROWS; r++) {
        uint32_t distinct = 0;
        for (size_t i = 0; i < n_ids; i++) {
            ids[i] = (uint16_t)draw(n_experts);
            bytes[i] = (uint8_t)ids[i];
            flags[i / top_k * n_experts + ids[i]] = true;
        }
        akini_sim_marks_add(&marks, &pool,
                            pool.id_bytes == 1 ? bytes : (uint8_t *)ids);
        for (size_t i = 0; i < (size_t)N_LAYERS * n_experts; i++)
            distinct += flags[i];
        CU_ASSERT_EQUAL(akini_sim_marks_count(&marks), distinct);
    }
    for (uint32_t l = 0; l < N_LAYERS; l++) {
        const uint64_t *active = akini_sim_marks_layer(&marks, &pool, l);
        for (uint32_t e = 0; e < n_experts; e++)
            CU_ASSERT_EQUAL(active[e / 64] >> e % 64 & 1,
                            flags[l * n_experts + e]);
    }
    akini_sim_marks_clear(&marks);
    CU_ASSERT_EQUAL(akini_sim_marks_count(&marks), 0);
    akini_sim_marks_cleanup(&marks);
    free(ids);
    free(bytes);
    free(flags);
}

static void test_counts(void)
{
    check(64, 4);
    check(128, 8);
    check(31, 3);
    check(256, 40);
    check(300, 6);
    check(4096, 100);
}

static const runner_test_t tests[] = {{"counts", test_counts}};

RUNNER_MAIN("sim_marks", tests)
