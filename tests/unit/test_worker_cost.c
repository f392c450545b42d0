/* Worker cost: what ranks share, what the busiest has, what they exchange. */
#include "routing/worker_cost.h"

#include "sim_bed.h"

static const akin_cost_model_t model = {&bed_shape, &bed_machine};

/* Two ranks, 10 requests with 500 tokens together, 40 + 44 experts of which the
 * busier ranks have 25 + 25. */
static void step_of_two_ranks(void)
{
    akin_worker_step_t step = {.n_ranks = 2,
                               .batch = 10,
                               .context_tokens = 500,
                               .distinct = 84,
                               .busiest = 50};
    const double fixed = 1e-3 + 2 * 1e-4;
    const double resident = 1e6 / 2 / 1e10;
    const double attention = 500 * 1000.0 / 2 / 1e10;
    const double experts = 2 * 1e-4 + 50 * 1e6 / 1e10;
    const double exchange = 2 * 2 * 1e-5 + 2.0 * 2 * 10 * 128 * (1.0 / 2) / 1e9;
    CU_ASSERT_DOUBLE_EQUAL(akin_worker_cost_step(&model, &step),
                           fixed + resident + attention + experts + exchange,
                           1e-9);
    /* Alone a rank has everything, and nobody to send to. */
    step.n_ranks = 1;
    step.busiest = 84;
    CU_ASSERT_DOUBLE_EQUAL(akin_worker_cost_step(&model, &step),
                           fixed + 2 * resident + 2 * attention + 2 * 1e-4 +
                               84 * 1e6 / 1e10,
                           1e-9);
    step.batch = 0;
    CU_ASSERT_EQUAL(akin_worker_cost_step(&model, &step), 0.0);
}

static void prefill_of_four_ranks(void)
{
    const akin_cost_chunk_t chunk = {
        .tokens = 300, .context_tokens = 100, .tensor_ranks = 4};
    akin_cost_parts_t parts;
    const double alone = akin_cost_model_prefill(&model, &chunk, &parts);
    const double exchange =
        2 * 2 * 1e-5 + 2.0 * 2 * 300 * 128 * (3.0 / 4) / 1e9;
    CU_ASSERT_DOUBLE_EQUAL(akin_worker_cost_prefill(&model, 4, 300, 100),
                           alone - parts.expert_s * 3 / 4 + exchange, 1e-9);
    const akin_cost_chunk_t same = {.tokens = 300, .context_tokens = 100};
    CU_ASSERT_EQUAL(akin_worker_cost_prefill(&model, 1, 300, 100),
                    akin_cost_model_prefill(&model, &same, NULL));
}

static const runner_test_t tests[] = {
    {"a step of two ranks", step_of_two_ranks},
    {"a prefill of four ranks", prefill_of_four_ranks},
};

RUNNER_MAIN("worker_cost", tests)
