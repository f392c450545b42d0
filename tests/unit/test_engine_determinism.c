/* The cpu engine's determinism contract on tiny-moe: the bits of a request do
 * not depend on batch, chunks, blocks, slots, passes or threads. */
#include "engine/engine.h"

#include "draw.h"
#include "engine_run.h"
#include "kernel_paths.h"
#include "runner.h"

#define MODEL AKIN_SOURCE_DIR "/examples/tiny-moe"
#define N_PROMPT 157u
#define N_DECODE 6u
#define N_TOKENS (N_PROMPT + N_DECODE)
#define WINDOW 64u /* tokens: the largest block */
#define N_WINDOWS ((N_TOKENS - 1) / WINDOW + 1)
#define MAX_OTHERS 17u
#define OTHER_TOKENS 70u
#define ALL N_PROMPT

/* A sanitizer makes the arithmetic ten times slower: then fewer scenarios. */
#ifdef __SANITIZE_ADDRESS__
#define STRIDE 4u
#else
#define STRIDE 1u
#endif

/* All that a request leaves behind, independent of where it lay. */
typedef struct trace {
    float *logits;    /* [N_DECODE + 1][vocab] */
    uint16_t *kv;     /* [N_TOKENS][layer][head][2][dim] */
    uint16_t *routes; /* [N_TOKENS][layer][top_k] */
    uint16_t *counts; /* [N_WINDOWS][layer][expert] */
    size_t n_logits, n_kv, n_routes, n_counts;
} trace_t;

/* How a request is run. */
typedef struct scenario {
    uint32_t block_tokens;
    uint32_t chunk;
    uint32_t n_others;
    int shuffled;
} scenario_t;

static void trace_init(trace_t *t, const akin_model_config_t *c)
{
    t->n_logits = (size_t)(N_DECODE + 1) * c->vocab_size;
    t->n_kv = (size_t)N_TOKENS * c->n_layers * c->n_kv_heads * 2 * c->head_dim;
    t->n_routes = (size_t)N_TOKENS * c->n_layers * c->top_k;
    t->n_counts = (size_t)N_WINDOWS * c->n_layers * c->n_experts;
    t->logits = calloc(t->n_logits, sizeof(*t->logits));
    t->kv = calloc(t->n_kv, sizeof(*t->kv));
    t->routes = calloc(t->n_routes, sizeof(*t->routes));
    t->counts = calloc(t->n_counts, sizeof(*t->counts));
    if (!t->logits || !t->kv || !t->routes || !t->counts)
        abort();
}

static void trace_cleanup(trace_t *t)
{
    free(t->logits);
    free(t->kv);
    free(t->routes);
    free(t->counts);
}

/* What differs in bits, as a word for the message; NULL: nothing. */
static const char *difference(const trace_t *a, const trace_t *b)
{
    if (memcmp(a->kv, b->kv, a->n_kv * sizeof(*a->kv)) != 0)
        return "keys and values";
    if (memcmp(a->routes, b->routes, a->n_routes * sizeof(*a->routes)) != 0)
        return "routes";
    if (memcmp(a->counts, b->counts, a->n_counts * sizeof(*a->counts)) != 0)
        return "sidecars";
    if (memcmp(a->logits, b->logits, a->n_logits * sizeof(*a->logits)) != 0)
        return "logits";
    return NULL;
}

/* Keys, values and sidecars out of the request's slots. */
static void collect(const engine_run_t *run, const uint32_t *slots, trace_t *t)
{
    const akin_model_config_t *c = run->info.model;
    const uint32_t block_tokens = run->layout.shape.block_tokens;
    uint16_t *kv = t->kv;
    for (uint32_t p = 0; p < N_TOKENS; p++)
        for (uint32_t l = 0; l < c->n_layers; l++)
            for (uint32_t h = 0; h < 2 * c->n_kv_heads; h++) {
                memcpy(kv, engine_run_kv(run, slots, p, l, h / 2, (int)(h % 2)),
                       c->head_dim * sizeof(*kv));
                kv += c->head_dim;
            }
    const uint32_t per_window = WINDOW / block_tokens;
    for (uint32_t w = 0; w < N_WINDOWS; w++) {
        uint32_t n = N_TOKENS - w * WINDOW;
        engine_run_counts(run, slots + (size_t)w * per_window,
                          n < WINDOW ? n : WINDOW,
                          t->counts + (size_t)w * c->n_layers * c->n_experts);
    }
}

/* A sequence that takes its tokens chunk by chunk, then one by one. */
typedef struct sequence {
    uint32_t tokens[N_TOKENS];
    uint32_t slots[N_TOKENS / 8 + 1];
    uint32_t n_prompt, n_tokens, chunk;
    uint32_t at;
} sequence_t;

static void sequence_init(sequence_t *s, uint64_t seed, uint32_t vocab)
{
    s->at = 0;
    for (uint32_t i = 0; i < N_TOKENS; i++)
        s->tokens[i] = draw_below(seed, i, vocab);
}

/* The next span. */
static void sequence_next(sequence_t *s, akin_engine_span_t *span)
{
    uint32_t n = 1;
    if (s->at < s->n_prompt) {
        n = s->n_prompt - s->at;
        n = n < s->chunk ? n : s->chunk;
    }
    *span = (akin_engine_span_t){
        .tokens = s->tokens + s->at,
        .n_tokens = n,
        .position = s->at,
        .slots = s->slots,
    };
    s->at += n;
}

/* Hand out slots in order or shuffled, block after block of all sequences. */
static uint32_t assign_slots(sequence_t *s, uint32_t n_sequences,
                             const scenario_t *how)
{
    const uint32_t per_sequence = (N_TOKENS - 1) / how->block_tokens + 1;
    const uint32_t n = n_sequences * per_sequence;
    uint32_t order[(MAX_OTHERS + 1) * (N_TOKENS / 8 + 1)];
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t i = n; how->shuffled && i > 1; i--) {
        uint32_t j = draw_below(how->block_tokens + how->chunk, i, i);
        uint32_t swapped = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swapped;
    }
    for (uint32_t q = 0; q < n_sequences; q++)
        for (uint32_t b = 0; b < per_sequence; b++)
            s[q].slots[b] = order[b * n_sequences + q];
    return n;
}

/* Run the request, always sequence 0, among the others; it moves through the
 * places of the batch from step to step. */
static void run_scenario(akin_engine_t *engine, const scenario_t *how,
                         trace_t *trace)
{
    static sequence_t s[MAX_OTHERS + 1];
    akin_engine_info_t info;
    akin_engine_describe(engine, &info);
    const akin_model_config_t *c = info.model;
    const size_t per_token = (size_t)c->n_layers * c->top_k;
    float *ignored = malloc(c->vocab_size * sizeof(*ignored));
    CU_ASSERT_PTR_NOT_NULL_FATAL(ignored);
    for (uint32_t q = 0; q <= how->n_others; q++) {
        sequence_init(&s[q], q == 0 ? 42 : 100 + q, c->vocab_size);
        s[q].n_prompt = q == 0 ? N_PROMPT : 1 + (37 * q) % 60;
        s[q].n_tokens = q == 0 ? N_TOKENS : OTHER_TOKENS;
        s[q].chunk = q == 0 ? how->chunk : 1 + (5 * q) % 23;
    }
    engine_run_t run;
    engine_run_init(&run, engine, how->block_tokens,
                    assign_slots(s, how->n_others + 1, how));
    for (uint32_t step = 0; s[0].at < N_TOKENS; step++) {
        akin_engine_span_t spans[MAX_OTHERS + 1];
        uint32_t n = 0;
        for (uint32_t i = 0; i <= how->n_others; i++) {
            uint32_t q = (i + step) % (how->n_others + 1);
            if (s[q].at == s[q].n_tokens)
                continue;
            akin_engine_span_t *span = &spans[n++];
            uint32_t first = s[q].at;
            sequence_next(&s[q], span);
            if (q == 0) {
                span->routes = trace->routes + first * per_token;
                if (s[0].at >= N_PROMPT)
                    span->logits = trace->logits +
                                   (size_t)(s[0].at - N_PROMPT) * c->vocab_size;
            } else if (q % 3 == 0) {
                span->logits = ignored;
            }
        }
        engine_run_step(&run, spans, n);
    }
    collect(&run, s[0].slots, trace);
    engine_run_cleanup(&run);
    free(ignored);
}

/* Run a scenario and compare it with the request run alone at once. */
static void compare(akin_engine_t *engine, const scenario_t *how,
                    const trace_t *alone)
{
    akin_engine_info_t info;
    trace_t trace;
    akin_engine_describe(engine, &info);
    trace_init(&trace, info.model);
    run_scenario(engine, how, &trace);
    const char *what = difference(alone, &trace);
    if (what != NULL)
        (void)printf("\n    %s, %d threads, blocks of %u, chunks of %u, %u "
                     "others: %s differ ",
                     info.kernels->name, info.n_threads, how->block_tokens,
                     how->chunk, how->n_others, what);
    CU_ASSERT_PTR_NULL(what);
    trace_cleanup(&trace);
}

static akin_engine_t *load(const akin_kernels_t *kernels, int n_threads,
                           uint32_t max_rows)
{
    const akin_engine_params_t params = {
        .model_dir = MODEL,
        .kernel = kernels->name,
        .n_threads = n_threads,
        .max_rows = max_rows,
    };
    return engine_run_load(&params);
}

static void run_alone(const akin_kernels_t *kernels, trace_t *alone)
{
    static const scenario_t at_once = {16, ALL, 0, 0};
    akin_engine_t *engine = load(kernels, 1, 256);
    akin_engine_info_t info;
    akin_engine_describe(engine, &info);
    trace_init(alone, info.model);
    run_scenario(engine, &at_once, alone);
    akin_engine_destroy(engine);
}

static const uint32_t chunks[] = {1, 7, 64, ALL};
static const uint32_t blocks[] = {8, 16, 32, 64};

/* Every chunk size with every block size; passes of 5 rows and of 256. The
 * slower paths take every third. */
static void alone_on(const akin_kernels_t *kernels)
{
    trace_t alone;
    const uint32_t step =
        (kernels == akin_kernels_of(akin_kernels_best()) ? 2 : 6) * STRIDE;
    run_alone(kernels, &alone);
    for (uint32_t rows = 0; rows < 2; rows++) {
        akin_engine_t *engine = load(kernels, 1, rows == 0 ? 5 : 256);
        for (uint32_t i = rows; i < 16; i += step) {
            const scenario_t how = {blocks[i / 4], chunks[(i + i / 4) % 4], 0,
                                    (int)(i / 4 % 2)};
            compare(engine, &how, &alone);
        }
        akin_engine_destroy(engine);
    }
    trace_cleanup(&alone);
}

static void alone(void)
{
    kernel_paths_each(alone_on);
}

/* With 1 to 17 others, which start at once and decode beside the request. */
static void in_batches(void)
{
    const akin_kernels_t *kernels = akin_kernels_of(akin_kernels_best());
    trace_t alone;
    run_alone(kernels, &alone);
    akin_engine_t *small = load(kernels, 1, 5), *large = load(kernels, 1, 256);
    for (uint32_t others = 1; others <= MAX_OTHERS; others += STRIDE) {
        const scenario_t how = {blocks[others % 4], chunks[others * 3 / 4 % 4],
                                others, (int)(others % 2)};
        compare(others % 3 == 0 ? small : large, &how, &alone);
    }
    akin_engine_destroy(small);
    akin_engine_destroy(large);
    trace_cleanup(&alone);
}

/* The other paths see fewer batches. */
static void batch_on(const akin_kernels_t *kernels)
{
    static const scenario_t how[] = {{8, 64, 5, 1}, {32, 7, 3, 0}};
    trace_t alone;
    run_alone(kernels, &alone);
    akin_engine_t *engine = load(kernels, 1, 256);
    compare(engine, &how[0], &alone);
    compare(engine, &how[1], &alone);
    akin_engine_destroy(engine);
    trace_cleanup(&alone);
}

static void in_batches_of_each_path(void)
{
    kernel_paths_each(batch_on);
}

static void threads_on(const akin_kernels_t *kernels)
{
    static const scenario_t how[] = {{16, ALL, 0, 0}, {64, 64, 7, 1}};
    trace_t alone;
    run_alone(kernels, &alone);
    akin_engine_t *engine = load(kernels, 2, 256);
    compare(engine, &how[0], &alone);
    if (kernels == akin_kernels_of(akin_kernels_best()))
        compare(engine, &how[1], &alone);
    akin_engine_destroy(engine);
    trace_cleanup(&alone);
}

static void with_two_threads(void)
{
    kernel_paths_each(threads_on);
}

/* What must be refused, and that nothing is written then. */
static void out_of_range(void)
{
    const akin_kernels_t *kernels = akin_kernels_of(akin_kernels_best());
    engine_run_t run;
    engine_run_init(&run, load(kernels, 1, 0), 16, 2);
    const akin_model_config_t *c = run.info.model;
    const size_t bytes = 2 * run.layout.stride_bytes;
    uint32_t tokens[40] = {0}, slots[70] = {0, 1};
    const akin_engine_span_t good = {
        .tokens = tokens, .n_tokens = 4, .slots = slots};
    akin_engine_span_t spans[2] = {good, good};
    CU_ASSERT_EQUAL(akin_engine_step(run.engine, &run.view, spans, 0, NULL),
                    AKIN_OK);
#define REFUSED()                                                              \
    CU_ASSERT_EQUAL(akin_engine_step(run.engine, &run.view, spans, 2, NULL),   \
                    AKIN_ERR_RANGE)
    tokens[3] = c->vocab_size;
    REFUSED();
    tokens[3] = UINT32_MAX;
    REFUSED();
    tokens[3] = 0;
    spans[1].n_tokens = 0;
    REFUSED();
    spans[1] = good;
    spans[1].position = c->max_positions - 3;
    REFUSED();
    spans[1].position = UINT32_MAX;
    REFUSED();
    spans[1].position = 14;
    slots[1] = 2;
    REFUSED();
    /* An earlier block is read, so it counts too. */
    spans[1].position = 16;
    slots[1] = 1;
    slots[0] = UINT32_MAX;
    REFUSED();
    unsigned written = 0;
    for (size_t i = 0; i < bytes; i++)
        written += run.view.base[i] != 0x7f;
    CU_ASSERT_EQUAL(written, 0);
    akin_engine_destroy(run.engine);
    engine_run_cleanup(&run);
}

static void refused_to_load(void)
{
    akin_engine_t *engine = NULL;
    akin_error_t err = {{0}};
    akin_engine_params_t params = {.model_dir = MODEL};
    CU_ASSERT_EQUAL(akin_engine_load("gpu", &params, &engine, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NULL(engine);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "gpu"));
    params.kernel = "sse9";
    CU_ASSERT_EQUAL(akin_engine_load("cpu", &params, &engine, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "sse9"));
    params = (akin_engine_params_t){.model_dir = MODEL "/none"};
    CU_ASSERT_EQUAL(akin_engine_load("cpu", &params, &engine, &err),
                    AKIN_ERR_NOT_FOUND);
    CU_ASSERT_PTR_NULL(engine);
    akin_engine_destroy(NULL);
}

static const runner_test_t tests[] = {
    {"alone: chunks, blocks, passes, slots", alone},
    {"among 1 to 17 others", in_batches},
    {"among others, every path", in_batches_of_each_path},
    {"two threads", with_two_threads},
    {"spans out of range", out_of_range},
    {"engines that cannot be loaded", refused_to_load},
};

RUNNER_MAIN("engine determinism", tests)
