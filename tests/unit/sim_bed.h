/* A small model, machine and workload for tests of the simulator. */
#ifndef AKIN_TESTS_UNIT_SIM_BED_H
#define AKIN_TESTS_UNIT_SIM_BED_H

#include "runner.h"

#include "routing/sim.h"

/* Two layers of 64 experts, three domains that differ a lot. */
static const akin_route_workload_t bed_workload = {
    .name = "planted",
    .domains = {{"a", 0.4}, {"b", 0.3}, {"c", 0.3}},
    .n_domains = 3,
    .n_topics = 1,
    .popular = 0.2,
    .domain = 2.5,
    .topic = 0.0,
    .general = 0.05,
    .redrawn = 0.2,
    .near = 0.1,
};

static const akin_model_shape_t bed_shape = {
    .name = "small",
    .n_layers = 2,
    .hidden = 64,
    .n_experts = 64,
    .top_k = 4,
    .moe_intermediate = 64,
    .n_heads = 4,
    .n_kv_heads = 2,
    .head_dim = 16,
    .vocab = 100,
    .expert_bytes = 1000000,
    .resident_bytes = 1000000,
    .resident_weights = 500000,
    .kv_token_bytes = 1000,
    .wire_bytes = 128,
};

static const akin_machine_t bed_machine = {
    .name = "round",
    .memory_bytes_per_s = 1e10,
    .flops_per_s = 1e15,
    .expert_efficiency = 1.0,
    .packed_efficiency = 1.0,
    .resident_efficiency = 1.0,
    .flops_efficiency = 1.0,
    .expert_layer_s = 1e-4,
    .layer_s = 1e-4,
    .step_s = 1e-3,
    .fabric = {1e9, 1e-5},
    .nic = {1e8, 1e-3},
};

static inline akin_route_generator_t *bed_generator(double prompt,
                                                    double output)
{
    const akin_route_generator_params_t params = {
        .n_layers = bed_shape.n_layers,
        .n_experts = bed_shape.n_experts,
        .top_k = bed_shape.top_k,
        .workload = &bed_workload,
        .seed = 7,
        .prompt_tokens = prompt,
        .output_tokens = output,
    };
    akin_route_generator_t *generator;
    akin_error_t err;
    CU_ASSERT_EQUAL_FATAL(
        akin_route_generator_create(&params, &generator, &err), AKIN_OK);
    return generator;
}

/* Lengths are all alike. */
static inline akin_route_pool_t *bed_pool(double prompt, double output,
                                          const akin_route_pool_params_t *of)
{
    akin_route_generator_t *generator = bed_generator(prompt, output);
    akin_route_pool_t *pool;
    akin_error_t err;
    CU_ASSERT_EQUAL_FATAL(akin_route_pool_generate(generator, of, &pool, &err),
                          AKIN_OK);
    akin_route_generator_destroy(generator);
    return pool;
}

static inline akin_sim_params_t bed_params(const akin_route_pool_t *pool)
{
    const akin_sim_params_t params = {
        .pool = pool,
        .cost = {&bed_shape, &bed_machine},
        .policy = "rr",
        .tau = AKIN_POLICY_TAU,
        .pull = AKIN_POLICY_PULL,
        .n_prefill = 1,
        .n_decode = 3,
        .rate = 10.0,
        .n_warmup = 500,
        .n_measured = 2000,
        .seed = 1,
    };
    return params;
}

static inline akin_sim_result_t bed_run(const akin_sim_params_t *params)
{
    akin_sim_result_t result = {.n_arrived = UINT64_MAX};
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_sim_run(params, &result, &err), AKIN_OK);
    CU_ASSERT_EQUAL(result.n_arrived, result.n_ended + result.n_left);
    return result;
}

/* Seconds of a step with one request: 1 ms + 2 (0.1 + 0.1) ms, 1 MB in 0.1 ms,
 * 2 x 4 MB of experts in 0.8 ms, a kB per token of context in 0.1 us. */
static inline double bed_step_s(double context)
{
    return 1.4e-3 + 0.1e-3 + 0.8e-3 + context * 1e-7;
}

/* Of the KV of so many tokens. */
static inline double bed_move_s(double tokens)
{
    return 1e-3 + tokens * 1000.0 / 1e8;
}

static inline double bed_prefill_s(uint64_t tokens, uint64_t context)
{
    const akin_cost_model_t cost = {&bed_shape, &bed_machine};
    const akin_cost_chunk_t chunk = {.tokens = tokens,
                                     .context_tokens = context};
    return akin_cost_model_prefill(&cost, &chunk, NULL);
}

#endif
