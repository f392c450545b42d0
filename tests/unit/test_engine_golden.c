/* The cpu engine on tiny-moe against figures of an independent PyTorch
 * implementation: ids, greedy tokens, logits and expert counts. */
#include "engine/engine.h"

#include "engine/sampler.h"
#include "engine/tokenizer.h"
#include "engine_run.h"
#include "kernel_paths.h"
#include "runner.h"

#include <jansson.h>
#include <math.h>

#define MODEL AKIN_SOURCE_DIR "/examples/tiny-moe"
#define GOLDEN AKIN_FIXTURES "/engine/golden.json"
#define N_CASES 16u
#define MAX_TOKENS 128u
#define TOP 10u

/* Below this lead of the best logit float sums may decide otherwise. */
#define CLEAR_MARGIN 0.01
#define LOGIT_TOLERANCE 0.02
/* Below this gap of gate probabilities they may take another expert. */
#define CLEAR_GATE 1e-4

static json_t *golden;
static akin_tokenizer_t *tokenizer;

static void close_golden(void)
{
    json_decref(golden);
    akin_tokenizer_destroy(tokenizer);
}

static void open_golden(void)
{
    json_error_t where;
    akin_error_t err = {{0}};
    if (golden != NULL)
        return;
    if (atexit(close_golden) != 0)
        exit(2);
    golden = json_load_file(GOLDEN, 0, &where);
    if (golden == NULL) {
        (void)fprintf(stderr, "%s:%d: %s\n", GOLDEN, where.line, where.text);
        exit(2);
    }
    engine_run_need(
        akin_tokenizer_load(MODEL "/tokenizer.json", &tokenizer, &err), &err);
}

static const json_t *get_case(size_t i)
{
    return json_array_get(json_object_get(golden, "cases"), i);
}

static uint32_t ids_of(const json_t *array, uint32_t *ids)
{
    uint32_t n = (uint32_t)json_array_size(array);
    if (n > MAX_TOKENS)
        exit(2);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (uint32_t)json_integer_value(json_array_get(array, i));
    return n;
}

static double number(const json_t *value)
{
    return json_number_value(value);
}

static void prompt_ids(void)
{
    open_golden();
    CU_ASSERT_EQUAL_FATAL(json_array_size(json_object_get(golden, "cases")),
                          N_CASES);
    for (size_t i = 0; i < N_CASES; i++) {
        const json_t *prompt = json_object_get(get_case(i), "prompt");
        uint32_t expected[MAX_TOKENS], *ids = NULL;
        uint32_t n =
            ids_of(json_object_get(get_case(i), "prompt_tokens"), expected);
        size_t n_ids = 0;
        akin_error_t err = {{0}};
        akin_status_t status = akin_tokenizer_encode(
            tokenizer, json_string_value(prompt), json_string_length(prompt),
            &ids, &n_ids, &err);
        CU_ASSERT_EQUAL(status, AKIN_OK);
        CU_ASSERT_EQUAL(n_ids, n);
        CU_ASSERT(n_ids == n && memcmp(ids, expected, n * sizeof(*ids)) == 0);
        free(ids);
    }
}

static void generated_text(void)
{
    open_golden();
    char *text = malloc((MAX_TOKENS + 1) * akin_decoder_room(tokenizer));
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    for (size_t i = 0; i < N_CASES; i++) {
        const json_t *expected = json_object_get(get_case(i), "text");
        uint32_t tokens[MAX_TOKENS];
        uint32_t n = ids_of(json_object_get(get_case(i), "tokens"), tokens);
        akin_decoder_t decoder = {0};
        size_t bytes = 0;
        for (uint32_t t = 0; t < n; t++)
            bytes += akin_decoder_push(&decoder, tokenizer, tokens[t], 0,
                                       text + bytes);
        bytes += akin_decoder_finish(&decoder, text + bytes);
        CU_ASSERT_EQUAL(bytes, json_string_length(expected));
        CU_ASSERT(bytes == json_string_length(expected) &&
                  memcmp(text, json_string_value(expected), bytes) == 0);
    }
    free(text);
}

/* Worst things seen over all cases of a path. */
typedef struct seen {
    unsigned wrong_tokens;
    unsigned clear_steps;
    unsigned wrong_counts;
    unsigned clear_counts;
    uint32_t most_flips; /* experts that differ where the gap is not clear */
    double worst_logit;
} seen_t;

static void check_step(const json_t *step, uint32_t token, const float *logits,
                       uint32_t vocab, seen_t *seen)
{
    const json_t *ids = json_object_get(step, "ids");
    const json_t *values = json_object_get(step, "logits");
    akin_candidate_t best;
    akin_sampler_top(logits, vocab, 1, &best);
    if (number(json_object_get(step, "margin")) >= CLEAR_MARGIN) {
        seen->clear_steps++;
        seen->wrong_tokens += best.id != token;
    }
    for (size_t j = 0; j < TOP; j++) {
        json_int_t id = json_integer_value(json_array_get(ids, j));
        double error =
            fabs((double)logits[id] - number(json_array_get(values, j)));
        seen->worst_logit =
            error > seen->worst_logit ? error : seen->worst_logit;
    }
}

static void check_counts(const json_t *c, const uint16_t *counts,
                         const akin_model_config_t *model, seen_t *seen)
{
    uint32_t distance = 0;
    for (size_t l = 0; l < model->n_layers; l++) {
        const json_t *row = json_array_get(json_object_get(c, "counts"), l);
        for (size_t e = 0; e < model->n_experts; e++) {
            json_int_t expected = json_integer_value(json_array_get(row, e));
            json_int_t got = counts[l * model->n_experts + e];
            distance += (uint32_t)llabs(expected - got);
        }
    }
    if (number(json_object_get(c, "min_gate_margin")) >= CLEAR_GATE) {
        seen->clear_counts++;
        seen->wrong_counts += distance > 0;
    }
    seen->most_flips =
        distance / 2 > seen->most_flips ? distance / 2 : seen->most_flips;
}

/* The golden tokens are fed back, so that each step has the same history. */
static void run_case(akin_engine_t *engine, const json_t *c, seen_t *seen)
{
    const uint32_t block_tokens = 16;
    uint32_t ids[2 * MAX_TOKENS], slots[2 * MAX_TOKENS / 16];
    uint32_t n = ids_of(json_object_get(c, "prompt_tokens"), ids);
    uint32_t n_tokens = ids_of(json_object_get(c, "tokens"), ids + n);
    const json_t *steps = json_object_get(c, "steps");
    engine_run_t run;
    engine_run_init(&run, engine, block_tokens, 2 * MAX_TOKENS / 16);
    const akin_model_config_t *model = run.info.model;
    float *logits = malloc(model->vocab_size * sizeof(*logits));
    uint16_t *counts =
        malloc(model->n_layers * model->n_experts * sizeof(*counts));
    CU_ASSERT_FATAL(logits != NULL && counts != NULL);
    CU_ASSERT_EQUAL_FATAL(json_array_size(steps), n_tokens);
    for (uint32_t b = 0; b < run.view.n_slots; b++)
        slots[b] = run.view.n_slots - 1 - b;
    for (uint32_t t = 0; t < n_tokens; t++) {
        uint32_t position = t == 0 ? 0 : n + t - 1;
        const akin_engine_span_t span = {
            .tokens = ids + position,
            .n_tokens = t == 0 ? n : 1,
            .position = position,
            .slots = slots,
            .logits = logits,
        };
        engine_run_step(&run, &span, 1);
        if (t == 0) {
            engine_run_counts(&run, slots, n, counts);
            check_counts(c, counts, model, seen);
        }
        check_step(json_array_get(steps, t), ids[n + t], logits,
                   model->vocab_size, seen);
    }
    free(counts);
    free(logits);
    engine_run_cleanup(&run);
}

static void all_cases(const akin_kernels_t *kernels)
{
    seen_t seen = {0};
    const akin_engine_params_t params = {
        .model_dir = MODEL,
        .kernel = kernels->name,
        .n_threads = 1,
    };
    akin_engine_t *engine = engine_run_load(&params);
    for (size_t i = 0; i < N_CASES; i++)
        run_case(engine, get_case(i), &seen);
    akin_engine_destroy(engine);
    (void)printf("\n    %s: worst logit off by %.4f; %u experts flipped ",
                 kernels->name, seen.worst_logit, seen.most_flips);
    CU_ASSERT_EQUAL(seen.wrong_tokens, 0);
    CU_ASSERT_EQUAL(seen.clear_steps, 378);
    CU_ASSERT_EQUAL(seen.wrong_counts, 0);
    CU_ASSERT_EQUAL(seen.clear_counts, 4);
    CU_ASSERT(seen.most_flips <= 2);
    CU_ASSERT(seen.worst_logit <= LOGIT_TOLERANCE);
}

static void cases(void)
{
    open_golden();
    kernel_paths_each(all_cases);
}

static const runner_test_t tests[] = {
    {"prompts to ids", prompt_ids},
    {"tokens to text", generated_text},
    {"tokens, logits and counts", cases},
};

RUNNER_MAIN("engine golden", tests)
