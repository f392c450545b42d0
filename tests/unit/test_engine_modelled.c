/* The modelled engine: what follows from a sequence follows from its tokens
 * alone, by way of its KV, and steps are told as they are. */
#include "base/clock.h"
#include "engine/engine.h"

#include "draw.h"
#include "local_group.h"
#include "runner.h"

#include <string.h>

#define MODEL AKIN_SOURCE_DIR "/examples/tiny-moe"
#define N_LAYERS 3u
#define N_EXPERTS 70u
#define TOP_K 4u
#define BLOCK_TOKENS 16u
#define N_SLOTS 4u
#define N_TOKENS 40u
#define NAMED AKIN_MODELLED_NAME_TOKENS

/* What the engine asks for and tells. */
typedef struct oracle {
    uint64_t names[N_TOKENS + 1]; /* by position */
    akin_modelled_load_t load;
    double seconds;
} oracle_t;

static uint32_t expert_of(uint64_t name, uint32_t position, uint32_t layer,
                          uint32_t j)
{
    const uint64_t bits = draw_bits(name, position * N_LAYERS + layer);
    return (uint32_t)((bits >> 8) % N_EXPERTS + j * 13) % N_EXPERTS;
}

static void routes(void *arg, uint64_t name, uint32_t position, uint16_t *out)
{
    oracle_t *o = arg;
    o->names[position] = name;
    for (uint32_t l = 0; l < N_LAYERS; l++)
        for (uint32_t j = 0; j < TOP_K; j++)
            *out++ = (uint16_t)expert_of(name, position, l, j);
}

static double seconds(void *arg, const akin_modelled_load_t *load)
{
    oracle_t *o = arg;
    o->load = *load;
    return o->seconds;
}

static akin_modelled_params_t params_of(oracle_t *o)
{
    return (akin_modelled_params_t){.n_layers = N_LAYERS,
                                    .n_experts = N_EXPERTS,
                                    .top_k = TOP_K,
                                    .hidden = 64,
                                    .moe_intermediate = 32,
                                    .kv_width = 8,
                                    .slowdown = 2.0,
                                    .routes = routes,
                                    .seconds = seconds,
                                    .arg = o};
}

typedef struct run {
    oracle_t oracle;
    akin_modelled_params_t params;
    akin_engine_t *engine;
    akin_engine_info_t info;
    akin_kv_layout_t layout;
    akin_kv_view_t view;
    uint32_t tokens[N_TOKENS + 1];
    uint32_t slots[N_SLOTS];
} run_t;

/* A test cannot go on without it; also on threads of their own. */
static void need(int is_well, const char *what)
{
    if (is_well)
        return;
    (void)fprintf(stderr, "test_engine_modelled: %s\n", what);
    exit(2);
}

static void init(run_t *r, akin_ep_group_t *group)
{
    akin_error_t err = {{0}};
    akin_kv_shape_t shape;
    memset(r, 0, sizeof(*r));
    r->params = params_of(&r->oracle);
    const akin_engine_params_t params = {
        .model_dir = MODEL, .group = group, .modelled = &r->params};
    need(akin_engine_load("modelled", &params, &r->engine, &err) == AKIN_OK,
         err.text);
    akin_engine_describe(r->engine, &r->info);
    akin_engine_kv_shape(r->engine, BLOCK_TOKENS, &shape);
    need(akin_kv_layout_init(&shape, &r->layout, &err) == AKIN_OK, err.text);
    const size_t bytes = N_SLOTS * r->layout.stride_bytes;
    r->view = (akin_kv_view_t){
        .layout = &r->layout,
        .base = aligned_alloc(AKIN_KV_SLOT_ALIGN_BYTES, bytes),
        .n_slots = N_SLOTS,
    };
    need(r->view.base != NULL, "out of memory");
    memset(r->view.base, 0x5a, bytes);
    for (uint32_t i = 0; i <= N_TOKENS; i++)
        r->tokens[i] = draw_below(3, i, r->info.model->vocab_size);
    for (uint32_t b = 0; b < N_SLOTS; b++)
        r->slots[b] = N_SLOTS - 1 - b;
}

static void cleanup(run_t *r)
{
    akin_engine_destroy(r->engine);
    free(r->view.base);
}

/* Positions first .. first + n - 1, in spans of so many tokens. */
static void feed(run_t *r, uint32_t first, uint32_t n, uint32_t each,
                 float *logits)
{
    for (uint32_t at = first; at < first + n; at += each) {
        const uint32_t left = first + n - at;
        const akin_engine_span_t span = {
            .tokens = r->tokens + at,
            .n_tokens = left < each ? left : each,
            .position = at,
            .slots = r->slots,
            .logits = logits,
        };
        CU_ASSERT_EQUAL(akin_engine_step(r->engine, &r->view, &span, 1, NULL),
                        AKIN_OK);
    }
}

static float *logits_of(const run_t *r)
{
    float *logits = calloc(r->info.model->vocab_size, sizeof(*logits));
    CU_ASSERT_PTR_NOT_NULL_FATAL(logits);
    return logits;
}

static void cuts_do_not_matter(void)
{
    static const uint32_t cuts[] = {1, 7, 16, 39};
    run_t whole, cut;
    init(&whole, NULL);
    const uint32_t vocab = whole.info.model->vocab_size;
    float *a = logits_of(&whole), *b = logits_of(&whole);
    feed(&whole, 0, N_TOKENS, N_TOKENS, a);
    for (uint32_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
        init(&cut, NULL);
        feed(&cut, 0, N_TOKENS, cuts[i], b);
        CU_ASSERT_EQUAL(memcmp(a, b, vocab * sizeof(*a)), 0);
        CU_ASSERT_EQUAL(memcmp(whole.view.base, cut.view.base,
                               N_SLOTS * whole.layout.stride_bytes),
                        0);
        cleanup(&cut);
    }
    cleanup(&whole);
    free(a);
    free(b);
}

static void names_and_counts(void)
{
    run_t r;
    uint64_t name = AKIN_MODELLED_NO_NAME;
    uint16_t counts[N_LAYERS * N_EXPERTS] = {0},
                               expected[N_LAYERS * N_EXPERTS] = {0};
    init(&r, NULL);
    feed(&r, 0, N_TOKENS, 11, NULL);
    for (uint32_t p = 0; p < N_TOKENS; p++) {
        if (p < NAMED)
            name = akin_modelled_name(name, r.tokens[p]);
        CU_ASSERT_EQUAL(r.oracle.names[p], name);
        for (uint32_t l = 0; l < N_LAYERS; l++)
            for (uint32_t j = 0; j < TOP_K; j++)
                expected[l * N_EXPERTS + expert_of(name, p, l, j)]++;
    }
    for (uint32_t b = 0; b <= (N_TOKENS - 1) / BLOCK_TOKENS; b++)
        akin_kv_sidecar_add(&r.layout, akin_kv_slot(&r.view, r.slots[b]),
                            counts);
    CU_ASSERT_EQUAL(memcmp(counts, expected, sizeof(counts)), 0);
    cleanup(&r);
}

/* One bit in the KV of every token but the first ones: the name of the sequence
 * is not touched, and yet the text is another one. */
static void damage_shows(void)
{
    run_t r;
    init(&r, NULL);
    const uint32_t vocab = r.info.model->vocab_size;
    float *well = logits_of(&r), *ill = logits_of(&r);
    feed(&r, 0, N_TOKENS, N_TOKENS, NULL);
    feed(&r, N_TOKENS, 1, 1, well);
    for (uint32_t p = 0; p < N_TOKENS; p++) {
        uint16_t *values = akin_kv_values(
            &r.layout, akin_kv_slot(&r.view, r.slots[p / BLOCK_TOKENS]),
            N_LAYERS - 1, 0);
        values[p % BLOCK_TOKENS * r.params.kv_width + 5] ^= 0x10;
    }
    feed(&r, N_TOKENS, 1, 1, ill);
    CU_ASSERT_NOT_EQUAL(memcmp(well, ill, vocab * sizeof(*well)), 0);
    cleanup(&r);
    free(well);
    free(ill);
}

static void no_end_is_chosen(void)
{
    run_t r;
    init(&r, NULL);
    const akin_model_config_t *c = r.info.model;
    float *logits = logits_of(&r);
    CU_ASSERT_FATAL(c->n_eos_ids > 0);
    for (uint32_t i = 0; i < 200; i++) {
        float largest = 0.0f;
        r.tokens[0] = i;
        feed(&r, 0, 1, 1, logits);
        for (uint32_t t = 0; t < c->vocab_size; t++)
            largest = logits[t] > largest ? logits[t] : largest;
        CU_ASSERT(largest >= 1.0f && largest <= 9.0f);
        for (uint32_t e = 0; e < c->n_eos_ids; e++)
            CU_ASSERT(logits[c->eos_ids[e]] < 0.0f);
    }
    cleanup(&r);
    free(logits);
}

/* Two ranks, the second of which has two sequences; a third step is empty. */
typedef struct rank_run {
    akin_ep_group_t *group;
    uint32_t rank;
    akin_modelled_load_t load;
    akin_modelled_load_t idle; /* of an empty step */
    uint32_t n_rows;
    uint32_t served[N_LAYERS];
} rank_run_t;

static void *run_rank(void *arg)
{
    rank_run_t *rr = arg;
    run_t r;
    uint16_t served[N_LAYERS];
    akin_engine_report_t report = {.n_distinct = served};
    init(&r, rr->group);
    const uint32_t slots[2][1] = {{0}, {1}};
    const uint32_t tokens[3][1] = {{11}, {22}, {33}};
    akin_engine_span_t spans[2];
    const uint32_t n = rr->rank == 0 ? 1 : 2;
    for (uint32_t i = 0; i < n; i++)
        spans[i] = (akin_engine_span_t){
            .tokens = tokens[rr->rank + i], .n_tokens = 1, .slots = slots[i]};
    need(akin_engine_step(r.engine, &r.view, spans, n, &report) == AKIN_OK,
         "a step");
    rr->n_rows = report.n_rows;
    rr->load = r.oracle.load;
    for (uint32_t l = 0; l < N_LAYERS; l++)
        rr->served[l] = served[l];
    need(akin_engine_step(r.engine, &r.view, NULL, 0, &report) == AKIN_OK,
         "an empty step");
    rr->idle = r.oracle.load;
    cleanup(&r);
    return NULL;
}

static void loads_of_a_group(void)
{
    local_group_t g;
    akin_placement_t placement;
    akin_error_t err = {{0}};
    rank_run_t runs[2];
    uint32_t distinct = 0, busiest = 0;
    const akin_placement_params_t params = {.kind = AKIN_PLACEMENT_LINEAR,
                                            .n_layers = N_LAYERS,
                                            .n_experts = N_EXPERTS,
                                            .n_ranks = 2};
    local_group_need(akin_placement_make(&params, &placement, &err), &err);
    local_group_init(&g, &placement, LOCAL_GROUP_TIMEOUT_NS);
    for (uint32_t r = 0; r < 2; r++)
        runs[r] = (rank_run_t){.group = g.groups[r], .rank = r};
    local_group_each(2, run_rank, runs, sizeof(*runs));
    for (uint32_t l = 0; l < N_LAYERS; l++) {
        uint32_t n[2] = {0};
        unsigned char is_active[N_EXPERTS] = {0};
        for (uint32_t t = 0; t < 3; t++)
            for (uint32_t j = 0; j < TOP_K; j++)
                is_active[expert_of(
                    akin_modelled_name(AKIN_MODELLED_NO_NAME, 11 * (t + 1)), 0,
                    l, j)] = 1;
        for (uint32_t e = 0; e < N_EXPERTS; e++)
            n[e / (N_EXPERTS / 2)] += is_active[e];
        CU_ASSERT_EQUAL(runs[0].served[l], n[0]);
        CU_ASSERT_EQUAL(runs[1].served[l], n[1]);
        distinct += n[0] + n[1];
        busiest += n[0] > n[1] ? n[0] : n[1];
    }
    for (uint32_t r = 0; r < 2; r++) {
        const akin_modelled_load_t *load = &runs[r].load;
        CU_ASSERT_EQUAL(runs[r].n_rows, r + 1);
        CU_ASSERT_EQUAL(runs[r].idle.n_tokens, 0);
        CU_ASSERT_EQUAL(runs[r].idle.distinct, 0);
        CU_ASSERT_EQUAL(load->n_ranks, 2);
        CU_ASSERT_EQUAL(load->n_tokens, 3);
        CU_ASSERT_EQUAL(load->has_prompts, 0);
        CU_ASSERT_EQUAL(load->context_tokens, 0);
        CU_ASSERT_EQUAL(load->distinct, distinct);
        CU_ASSERT_EQUAL(load->busiest, busiest);
    }
    local_group_cleanup(&g);
    akin_placement_cleanup(&placement);
}

/* Two steps of 10 ms, twice as slow. */
static void steps_take_their_time(void)
{
    run_t r;
    init(&r, NULL);
    r.oracle.seconds = 0.01;
    const int64_t begin_ns = akin_clock_now_ns();
    feed(&r, 0, 20, 10, NULL);
    CU_ASSERT(akin_clock_now_ns() - begin_ns >= 40 * AKIN_NS_PER_MS);
    CU_ASSERT_EQUAL(r.oracle.load.n_tokens, 10);
    CU_ASSERT_EQUAL(r.oracle.load.has_prompts, 1);
    CU_ASSERT_EQUAL(r.oracle.load.context_tokens, 10);
    cleanup(&r);
}

static void refusals(void)
{
    akin_error_t err = {{0}};
    akin_engine_t *engine = NULL;
    oracle_t oracle;
    akin_modelled_params_t modelled = params_of(&oracle);
    akin_engine_params_t params = {.model_dir = MODEL};
    CU_ASSERT_EQUAL(akin_engine_load("modelled", &params, &engine, &err),
                    AKIN_ERR_INVALID);
    params.modelled = &modelled;
    modelled.kv_width = 6;
    CU_ASSERT_EQUAL(akin_engine_load("modelled", &params, &engine, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "KV of 6 values"));
    modelled = params_of(&oracle);
    modelled.top_k = N_EXPERTS + 1;
    CU_ASSERT_EQUAL(akin_engine_load("modelled", &params, &engine, &err),
                    AKIN_ERR_INVALID);
    modelled = params_of(&oracle);
    params.model_dir = "/nowhere";
    CU_ASSERT_EQUAL(akin_engine_load("modelled", &params, &engine, &err),
                    AKIN_ERR_NOT_FOUND);
    CU_ASSERT_PTR_NULL(engine);
}

static const runner_test_t tests[] = {
    {"cuts of a prompt do not matter", cuts_do_not_matter},
    {"names and counts", names_and_counts},
    {"damaged KV shows in the text", damage_shows},
    {"no end is chosen", no_end_is_chosen},
    {"loads of a group", loads_of_a_group},
    {"steps take their time", steps_take_their_time},
    {"refusals", refusals},
};

RUNNER_MAIN("engine_modelled", tests)
