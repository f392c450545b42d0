/* The cpu engine in a group on tiny-moe: ranks with requests of their own give
 * the bits of one engine that runs them all. */
#include "engine/engine.h"

#include "draw.h"
#include "engine_run.h"
#include "local_group.h"
#include "runner.h"

#define MODEL AKIN_SOURCE_DIR "/examples/tiny-moe"
#define N_SEQUENCES 5u
#define N_STEPS 9u
#define MAX_LAYERS 16u
#define MAX_TOP_K 8u
#define MAX_TOKENS 64u
#define MAX_ROWS 48u
#define BLOCK_TOKENS 16u
#define SLOTS_EACH (MAX_TOKENS / BLOCK_TOKENS)

/* A request begins at a step with a prompt, then goes token by token. */
static const struct {
    uint32_t begin;
    uint32_t n_prompt;
} sequences[N_SEQUENCES] = {{0, 17}, {0, 1}, {2, 30}, {3, 5}, {8, 40}};

static uint32_t vocab;

/* What all ranks together leave behind. */
typedef struct outcome {
    float *logits; /* [N_STEPS][N_SEQUENCES][vocab] */
    uint16_t routes[N_SEQUENCES][MAX_TOKENS * MAX_LAYERS * MAX_TOP_K];
    uint32_t n_distinct[N_STEPS][MAX_LAYERS];
} outcome_t;

/* A rank with the requests whose bit is set. */
typedef struct rank_run {
    akin_ep_group_t *group; /* NULL: alone */
    uint32_t requests;
    int n_threads;
    outcome_t *outcome;
    uint32_t n_distinct[N_STEPS][MAX_LAYERS];
    unsigned n_failed;
} rank_run_t;

static uint32_t tokens_of(uint32_t q, uint32_t step, uint32_t *position_p)
{
    if (step < sequences[q].begin)
        return 0;
    *position_p = step == sequences[q].begin
                      ? 0
                      : sequences[q].n_prompt + step - sequences[q].begin - 1;
    return step == sequences[q].begin ? sequences[q].n_prompt : 1;
}

static akin_engine_t *load(const rank_run_t *r)
{
    const akin_engine_params_t params = {.model_dir = MODEL,
                                         .n_threads = r->n_threads,
                                         .max_rows =
                                             r->group != NULL ? MAX_ROWS : 256,
                                         .group = r->group};
    return engine_run_load(&params);
}

static void *run_rank(void *arg)
{
    rank_run_t *r = arg;
    engine_run_t run;
    uint32_t tokens[N_SEQUENCES][MAX_TOKENS];
    uint32_t slots[N_SEQUENCES][SLOTS_EACH];
    akin_engine_t *engine = load(r);
    engine_run_init(&run, engine, BLOCK_TOKENS, N_SEQUENCES * SLOTS_EACH);
    const akin_model_config_t *c = run.info.model;
    const size_t per_token = (size_t)c->n_layers * c->top_k;
    for (uint32_t q = 0; q < N_SEQUENCES; q++) {
        for (uint32_t i = 0; i < MAX_TOKENS; i++)
            tokens[q][i] = draw_below(q + 1, i, c->vocab_size);
        for (uint32_t b = 0; b < SLOTS_EACH; b++)
            slots[q][b] = b * N_SEQUENCES + q;
    }
    for (uint32_t step = 0; step < N_STEPS; step++) {
        akin_engine_span_t spans[N_SEQUENCES];
        uint32_t n = 0, position = 0;
        for (uint32_t q = 0; q < N_SEQUENCES; q++) {
            uint32_t n_tokens = tokens_of(q, step, &position);
            if ((r->requests >> q & 1) == 0 || n_tokens == 0)
                continue;
            spans[n++] = (akin_engine_span_t){
                .tokens = tokens[q] + position,
                .n_tokens = n_tokens,
                .position = position,
                .slots = slots[q],
                .logits = r->outcome->logits +
                          ((size_t)step * N_SEQUENCES + q) * vocab,
                .routes = r->outcome->routes[q] + position * per_token,
            };
        }
        uint16_t n_distinct[MAX_LAYERS];
        akin_engine_report_t report = {.n_distinct = n_distinct};
        r->n_failed +=
            akin_engine_step(engine, &run.view, spans, n, &report) != AKIN_OK;
        for (uint32_t l = 0; l < c->n_layers; l++)
            r->n_distinct[step][l] = n_distinct[l];
    }
    engine_run_cleanup(&run);
    akin_engine_destroy(engine);
    return NULL;
}

static void outcome_init(outcome_t *o)
{
    *o = (outcome_t){
        .logits = calloc((size_t)N_STEPS * N_SEQUENCES * vocab, sizeof(float))};
    if (o->logits == NULL)
        abort();
}

static void make_placement(const akin_model_config_t *c, uint32_t n_ranks,
                           uint32_t n_replicas, akin_placement_kind_t kind,
                           akin_placement_t *placement)
{
    static float rates[4096];
    akin_error_t err = {{0}};
    for (uint32_t i = 0; i < c->n_layers * c->n_experts; i++)
        rates[i] = (float)(0.5 + 0.4 * draw_signed(91, i));
    const akin_placement_params_t params = {.kind = kind,
                                            .n_layers = c->n_layers,
                                            .n_experts = c->n_experts,
                                            .n_ranks = n_ranks,
                                            .n_replicas = n_replicas,
                                            .rates = rates,
                                            .batch = 8};
    local_group_need(akin_placement_make(&params, placement, &err), &err);
}

static void compare(const outcome_t *alone, const akin_placement_t *placement,
                    int n_threads)
{
    /* Requests of each rank by the number of ranks; some ranks have none. */
    static const uint32_t requests[5][4] = {
        {0}, {0x1f}, {0x15, 0x0a}, {0}, {0x01, 0x04, 0x1a, 0}};
    static outcome_t together;
    rank_run_t runs[4];
    local_group_t g;
    outcome_init(&together);
    local_group_init(&g, placement, LOCAL_GROUP_TIMEOUT_NS);
    for (uint32_t r = 0; r < g.n_ranks; r++)
        runs[r] = (rank_run_t){.group = g.groups[r],
                               .requests = requests[g.n_ranks][r],
                               .n_threads = n_threads,
                               .outcome = &together};
    local_group_each(g.n_ranks, run_rank, runs, sizeof(*runs));
    for (uint32_t r = 0; r < g.n_ranks; r++) {
        CU_ASSERT_EQUAL(runs[r].n_failed, 0);
        for (uint32_t s = 0; s < N_STEPS; s++)
            for (uint32_t l = 0; l < placement->n_layers; l++)
                together.n_distinct[s][l] += runs[r].n_distinct[s][l];
    }
    CU_ASSERT_EQUAL(
        memcmp(alone->logits, together.logits,
               (size_t)N_STEPS * N_SEQUENCES * vocab * sizeof(float)),
        0);
    CU_ASSERT_EQUAL(
        memcmp(alone->routes, together.routes, sizeof(alone->routes)), 0);
    CU_ASSERT_EQUAL(memcmp(alone->n_distinct, together.n_distinct,
                           sizeof(alone->n_distinct)),
                    0);
    local_group_cleanup(&g);
    free(together.logits);
}

static akin_model_config_t describe(void)
{
    const rank_run_t alone = {.n_threads = 1};
    akin_engine_info_t info;
    akin_engine_t *engine = load(&alone);
    akin_engine_describe(engine, &info);
    akin_model_config_t c = *info.model;
    akin_engine_destroy(engine);
    CU_ASSERT_FATAL(c.n_layers <= MAX_LAYERS && c.top_k <= MAX_TOP_K &&
                    c.n_layers * c.n_experts <= 4096);
    vocab = c.vocab_size;
    return c;
}

static void same_bits(void)
{
    static const uint32_t ranks[] = {1, 2, 4};
    static const uint32_t replicas[] = {0, 4, 8};
    static outcome_t alone;
    const akin_model_config_t c = describe();
    outcome_init(&alone);
    rank_run_t run = {.requests = 0x1f, .n_threads = 1, .outcome = &alone};
    run_rank(&run);
    CU_ASSERT_EQUAL(run.n_failed, 0);
    memcpy(alone.n_distinct, run.n_distinct, sizeof(alone.n_distinct));
    for (uint32_t i = 0; i < 9; i++) {
        akin_placement_t placement;
        uint32_t n_ranks = ranks[i / 3];
        make_placement(&c, n_ranks, n_ranks > 1 ? replicas[i % 3] : 0,
                       (akin_placement_kind_t)((i + i / 3) % 4), &placement);
        compare(&alone, &placement, 1 + (int)i % 2);
        akin_placement_cleanup(&placement);
    }
    free(alone.logits);
}

/* Too many rows are refused before anything is sent, and do no harm. */
static void range(void)
{
    akin_placement_t placement;
    local_group_t g;
    engine_run_t run;
    const akin_model_config_t c = describe();
    make_placement(&c, 1, 0, AKIN_PLACEMENT_LINEAR, &placement);
    local_group_init(&g, &placement, LOCAL_GROUP_TIMEOUT_NS);
    const rank_run_t rank = {.group = g.groups[0], .n_threads = 1};
    akin_engine_t *engine = load(&rank);
    engine_run_init(&run, engine, BLOCK_TOKENS, SLOTS_EACH);
    uint32_t tokens[MAX_ROWS + 1] = {0}, slots[SLOTS_EACH] = {0, 1, 2, 3};
    akin_engine_span_t span = {
        .tokens = tokens, .n_tokens = MAX_ROWS + 1, .slots = slots};
    akin_ep_group_stats_t stats;
    CU_ASSERT_EQUAL(akin_engine_step(engine, &run.view, &span, 1, NULL),
                    AKIN_ERR_RANGE);
    akin_ep_group_stats(g.groups[0], &stats);
    CU_ASSERT_EQUAL(stats.n_layers, 0);
    span.n_tokens = MAX_ROWS;
    CU_ASSERT_EQUAL(akin_engine_step(engine, &run.view, &span, 1, NULL),
                    AKIN_OK);
    CU_ASSERT_EQUAL(akin_engine_step(engine, &run.view, NULL, 0, NULL),
                    AKIN_OK);
    akin_ep_group_stats(g.groups[0], &stats);
    CU_ASSERT_EQUAL(stats.n_layers, 2 * c.n_layers);
    engine_run_cleanup(&run);
    akin_engine_destroy(engine);
    local_group_cleanup(&g);
    akin_placement_cleanup(&placement);
}

/* A rank that has left ends the step of the others, at once and for good. */
static void lost_rank(void)
{
    akin_placement_t placement;
    local_group_t g;
    engine_run_t run;
    const akin_model_config_t c = describe();
    make_placement(&c, 2, 0, AKIN_PLACEMENT_ROUND_ROBIN, &placement);
    local_group_init(&g, &placement, LOCAL_GROUP_TIMEOUT_NS);
    const rank_run_t rank = {.group = g.groups[0], .n_threads = 2};
    akin_engine_t *engine = load(&rank);
    engine_run_init(&run, engine, BLOCK_TOKENS, SLOTS_EACH);
    akin_ep_exchange_destroy(g.exchanges[1]);
    g.exchanges[1] = NULL;
    const uint32_t token = 7, slot = 0;
    const akin_engine_span_t span = {
        .tokens = &token, .n_tokens = 1, .slots = &slot};
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(akin_engine_step(engine, &run.view, &span, 1, NULL),
                        AKIN_ERR_PEER);
    CU_ASSERT_PTR_NOT_NULL(strstr(akin_ep_group_error(g.groups[0]), "rank 1"));
    engine_run_cleanup(&run);
    akin_engine_destroy(engine);
    local_group_cleanup(&g);
    akin_placement_cleanup(&placement);
}

/* A group for another model. */
static void other_layers(void)
{
    akin_placement_t placement;
    local_group_t g;
    akin_error_t err = {{0}};
    akin_engine_t *engine = NULL;
    akin_model_config_t c = describe();
    c.n_layers++;
    make_placement(&c, 1, 0, AKIN_PLACEMENT_LINEAR, &placement);
    local_group_init(&g, &placement, LOCAL_GROUP_TIMEOUT_NS);
    const akin_engine_params_t params = {
        .model_dir = MODEL, .n_threads = 1, .group = g.groups[0]};
    CU_ASSERT_EQUAL(akin_engine_load("cpu", &params, &engine, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NULL(engine);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "7 layers"));
    local_group_cleanup(&g);
    akin_placement_cleanup(&placement);
}

static const runner_test_t tests[] = {
    {"the bits of one engine", same_bits},
    {"more rows than a pass takes", range},
    {"a rank that has left", lost_rank},
    {"a group for another model", other_layers},
};

RUNNER_MAIN("engine_group", tests)
