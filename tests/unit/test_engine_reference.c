/* The cpu engine on random checkpoints of odd sizes against a forward pass in
 * scalar double: logits, stored keys and values, routes, sidecars. */
#include "engine/engine.h"

#include "draw.h"
#include "engine_run.h"
#include "kernel_paths.h"
#include "reference.h"
#include "runner.h"

#define N_TOKENS 90u /* more than a tile of attention */
#define N_PREFILL 71u
#define BLOCK_TOKENS 8u
#define N_SLOTS 14u
#define TOLERANCE 1e-5 /* of the largest logit */

/* One model, written once and run on every path. */
static struct {
    checkpoint_params_t params;
    reference_t reference;
    char dir[CHECKPOINT_PATH_BYTES];
} model;

static akin_dtype_t mixed(const char *name, void *arg)
{
    uint32_t sum = 0;
    (void)arg;
    for (const char *c = name; *c != '\0'; c++)
        sum = sum * 31 + (unsigned char)*c;
    return (akin_dtype_t)(sum % AKIN_DTYPE_COUNT);
}

static float widen(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof(y));
    return y;
}

/* Gather [n][n_layers][kv_heads * dim] from the slots. */
static void gather(const engine_run_t *run, const uint32_t *slots, int value,
                   float *out)
{
    const akin_model_config_t *c = run->info.model;
    for (uint32_t t = 0; t < N_TOKENS; t++)
        for (uint32_t l = 0; l < c->n_layers; l++)
            for (uint32_t h = 0; h < c->n_kv_heads; h++) {
                const uint16_t *x = engine_run_kv(run, slots, t, l, h, value);
                for (uint32_t i = 0; i < c->head_dim; i++)
                    *out++ = widen(x[i]);
            }
}

/* Every sidecar holds the counts of its tokens' routes and nothing else. */
static unsigned wrong_sidecars(const engine_run_t *run, const uint32_t *slots,
                               const uint16_t *routes)
{
    const akin_model_config_t *c = run->info.model;
    const uint32_t per_token = c->n_layers * c->top_k;
    unsigned wrong = 0;
    for (uint32_t b = 0; b * BLOCK_TOKENS < N_TOKENS; b++) {
        const uint8_t *sidecar =
            akin_kv_sidecar(&run->layout, akin_kv_slot(&run->view, slots[b]));
        for (uint32_t l = 0; l < c->n_layers; l++)
            for (uint32_t e = 0; e < c->n_experts; e++) {
                uint32_t count = 0;
                for (uint32_t t = b * BLOCK_TOKENS;
                     t < (b + 1) * BLOCK_TOKENS && t < N_TOKENS; t++)
                    for (uint32_t j = 0; j < c->top_k; j++)
                        count += routes[(size_t)t * per_token +
                                        (size_t)l * c->top_k + j] == e;
                wrong += sidecar[l * c->n_experts + e] != count;
            }
    }
    return wrong;
}

/* A chunk of 71 tokens, then single ones. */
static void run_engine(engine_run_t *run, const uint32_t *tokens,
                       const uint32_t *slots, float *logits, uint16_t *routes)
{
    const akin_model_config_t *c = run->info.model;
    const size_t per_token = (size_t)c->n_layers * c->top_k;
    for (uint32_t t = 0; t < N_TOKENS;) {
        uint32_t n = t == 0 ? N_PREFILL : 1;
        const akin_engine_span_t span = {
            .tokens = tokens + t,
            .n_tokens = n,
            .position = t,
            .slots = slots,
            .logits = logits + (size_t)(t + n - 1) * c->vocab_size,
            .routes = routes + t * per_token,
        };
        engine_run_step(run, &span, 1);
        t += n;
    }
}

static void compare(const akin_kernels_t *kernels)
{
    const checkpoint_params_t *p = &model.reference.p;
    const size_t width = (size_t)p->n_layers * p->n_kv_heads * p->head_dim;
    const size_t n_routes = (size_t)p->n_layers * p->top_k;
    uint32_t tokens[N_TOKENS], slots[N_SLOTS];
    float *keys = calloc(N_TOKENS * width, sizeof(*keys));
    float *values = calloc(N_TOKENS * width, sizeof(*values));
    float *logits = calloc((size_t)N_TOKENS * p->vocab_size, sizeof(*logits));
    uint16_t *routes = calloc(N_TOKENS * n_routes, sizeof(*routes));
    reference_result_t result = {
        .logits = reference_alloc((size_t)N_TOKENS * p->vocab_size)};
    CU_ASSERT_FATAL(keys && values && logits && routes);
    for (uint32_t t = 0; t < N_TOKENS; t++)
        tokens[t] = draw_below(model.params.seed, t, p->vocab_size);
    for (uint32_t b = 0; b < N_SLOTS; b++)
        slots[b] = (5 * b + 3) % N_SLOTS;

    const akin_engine_params_t params = {
        .model_dir = model.dir, .kernel = kernels->name, .n_threads = 1};
    engine_run_t run;
    engine_run_init(&run, engine_run_load(&params), BLOCK_TOKENS, N_SLOTS);
    run_engine(&run, tokens, slots, logits, routes);
    gather(&run, slots, 0, keys);
    gather(&run, slots, 1, values);
    CU_ASSERT_EQUAL(wrong_sidecars(&run, slots, routes), 0);
    akin_engine_destroy(run.engine);
    engine_run_cleanup(&run);

    const reference_observed_t seen = {keys, values, routes};
    reference_run(&model.reference, tokens, N_TOKENS, &seen, &result);
    CU_ASSERT_EQUAL(result.wrong_kv, 0);
    CU_ASSERT_EQUAL(result.wrong_routes, 0);
    CU_ASSERT(result.clear_routes > N_TOKENS * p->n_layers * 9 / 10);
    double size = 0, worst = 0;
    for (size_t i = (size_t)(N_PREFILL - 1) * p->vocab_size;
         i < (size_t)N_TOKENS * p->vocab_size; i++) {
        size = fmax(size, fabs(result.logits[i]));
        worst = fmax(worst, fabs((double)logits[i] - result.logits[i]));
    }
    (void)printf("\n    %s: worst logit off by %.1e of %.2f ", kernels->name,
                 worst, size);
    CU_ASSERT(size > 1.0);
    CU_ASSERT(worst <= TOLERANCE * size);
    free(keys);
    free(values);
    free(logits);
    free(routes);
    free(result.logits);
}

static void run_model(checkpoint_params_t params)
{
    params.vocab_size = 97;
    params.hidden_size = 36;
    params.n_layers = 3;
    params.n_heads = 6;
    params.n_kv_heads = 2;
    params.head_dim = 12;
    params.n_experts = 10;
    params.top_k = 3;
    params.moe_intermediate_size = 20;
    params.dtype_of = mixed;
    model.params = params;
    CU_ASSERT_EQUAL_FATAL(checkpoint_make_dir(model.dir), 0);
    CU_ASSERT_EQUAL_FATAL(checkpoint_write(model.dir, &params), 0);
    reference_init(&model.reference, &params);
    kernel_paths_each(compare);
    reference_cleanup(&model.reference);
    checkpoint_remove(model.dir);
}

static void untied(void)
{
    run_model((checkpoint_params_t){.n_shards = 3, .seed = 1});
}

/* Three bytes of padding put every tensor at an odd address. */
static void not_renormalised(void)
{
    run_model((checkpoint_params_t){
        .n_shards = 3, .keep_topk_sum = 1, .pad_bytes = 3, .seed = 2});
}

static void tied(void)
{
    run_model((checkpoint_params_t){
        .tied = 1, .rms_norm_eps = 0.01, .rope_theta = 500.0, .seed = 3});
}

/* A stored lm_head is not the head of a tied model. */
static void tied_with_stale_head(void)
{
    run_model((checkpoint_params_t){
        .tied = 1, .stale_head = 1, .n_shards = 3, .seed = 4});
}

static const runner_test_t tests[] = {
    {"untied head, three shards", untied},
    {"weights that keep the softmax's sum", not_renormalised},
    {"tied head", tied},
    {"tied head beside a stored one", tied_with_stale_head},
};

RUNNER_MAIN("engine reference", tests)
