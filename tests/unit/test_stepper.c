/* Stepper: jobs handed to the engine thread and back, on an engine that says
 * what it was asked. */
#include "roles/stepper.h"

#include "runner.h"

#include <math.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#define VOCAB 8u
#define LAYERS 2u
#define EXPERTS 4u
#define TOP_K 2u
#define ROWS 4u

typedef struct fake_engine {
    akin_engine_t base;
    akin_model_config_t model;
    sem_t may_step; /* a step waits for it */
    akin_status_t status;
    uint32_t n_steps;
} fake_engine_t;

static void describe(const akin_engine_t *engine, akin_engine_info_t *info_p)
{
    const fake_engine_t *e = (const fake_engine_t *)engine;
    const akin_kernels_t *kernels;
    if (akin_kernels_find("portable", &kernels, NULL) != AKIN_OK)
        abort();
    *info_p = (akin_engine_info_t){
        .name = "fake", .kernels = kernels, .n_threads = 1, .model = &e->model};
}

/* The next token is the last one plus one; a row's experts are 0 and 1 in layer
 * 0, and 0 and (token mod 3) + 1 in layer 1. */
static akin_status_t step(akin_engine_t *engine, const akin_kv_view_t *view,
                          const akin_engine_span_t *spans, uint32_t n_spans,
                          akin_engine_report_t *report)
{
    fake_engine_t *e = (fake_engine_t *)engine;
    (void)view;
    while (sem_wait(&e->may_step) != 0)
        continue;
    e->n_steps++;
    if (e->status != AKIN_OK)
        return e->status;
    report->n_rows = 0;
    for (uint32_t i = 0; i < n_spans; i++) {
        const uint32_t last = spans[i].tokens[spans[i].n_tokens - 1];
        report->n_rows += spans[i].n_tokens;
        for (uint32_t v = 0; spans[i].logits != NULL && v < VOCAB; v++)
            spans[i].logits[v] = v == (last + 1) % VOCAB ? 2.0f : 0.0f;
        for (uint32_t t = 0; spans[i].routes != NULL && t < spans[i].n_tokens;
             t++) {
            const uint16_t routes[] = {0, 1, 0,
                                       (uint16_t)(spans[i].tokens[t] % 3 + 1)};
            memcpy(spans[i].routes + (size_t)t * LAYERS * TOP_K, routes,
                   sizeof(routes));
        }
    }
    report->n_distinct[0] = 2;
    report->n_distinct[1] = 3;
    return AKIN_OK;
}

static const akin_engine_ops_t ops = {
    .name = "fake", .describe = describe, .step = step};

typedef struct bed {
    fake_engine_t engine;
    akin_kv_layout_t layout;
    akin_kv_view_t view;
    sem_t awake;
    akin_stepper_t *stepper;
} bed_t;

static void wake(void *arg)
{
    bed_t *b = arg;
    (void)sem_post(&b->awake);
}

static void bed_init_routes(bed_t *b, uint32_t max_tokens, int count_routes,
                            int keep_routes)
{
    const akin_kv_shape_t shape = {.n_layers = LAYERS,
                                   .n_kv_heads = 1,
                                   .head_dim = 32,
                                   .n_experts = EXPERTS,
                                   .top_k = TOP_K,
                                   .block_tokens = 16};
    memset(b, 0, sizeof(*b));
    CU_ASSERT_EQUAL_FATAL(akin_kv_layout_init(&shape, &b->layout, NULL),
                          AKIN_OK);
    b->view = (akin_kv_view_t){.layout = &b->layout, .n_slots = 4};
    b->engine.base.ops = &ops;
    b->engine.model = (akin_model_config_t){.n_layers = LAYERS,
                                            .n_experts = EXPERTS,
                                            .top_k = TOP_K,
                                            .vocab_size = VOCAB,
                                            .max_positions = 64};
    CU_ASSERT_EQUAL_FATAL(sem_init(&b->engine.may_step, 0, 0), 0);
    CU_ASSERT_EQUAL_FATAL(sem_init(&b->awake, 0, 0), 0);
    const akin_stepper_params_t params = {.engine = &b->engine.base,
                                          .view = &b->view,
                                          .max_rows = ROWS,
                                          .max_tokens = max_tokens,
                                          .count_routes = count_routes,
                                          .keep_routes = keep_routes,
                                          .wake = wake,
                                          .arg = b};
    CU_ASSERT_EQUAL_FATAL(akin_stepper_create(&params, &b->stepper), AKIN_OK);
}

static void bed_init(bed_t *b, int count_routes)
{
    bed_init_routes(b, 0, count_routes, 0);
}

static void bed_cleanup(bed_t *b)
{
    akin_stepper_destroy(b->stepper);
    (void)sem_destroy(&b->engine.may_step);
    (void)sem_destroy(&b->awake);
}

static const uint32_t slots[] = {2};
static const akin_message_sampling_t greedy = {
    .max_tokens = 9, .want_logprobs = 1, .n_top = 2};

static akin_stepper_row_t row_of(const uint32_t *tokens, uint32_t n,
                                 const akin_message_sampling_t *how)
{
    return (akin_stepper_row_t){.tokens = tokens,
                                .n_tokens = n,
                                .slots = slots,
                                .how = how,
                                .history = tokens};
}

/* Hand the job over, let it run, wait for the call. */
static akin_stepper_job_t *run(bed_t *b)
{
    akin_stepper_submit(b->stepper);
    (void)sem_post(&b->engine.may_step);
    while (sem_wait(&b->awake) != 0)
        continue;
    return akin_stepper_finished(b->stepper);
}

static void tokens_and_logprobs(void)
{
    static const uint32_t prompt[] = {1, 2, 5}, other[] = {7};
    bed_t b;
    bed_init(&b, 0);
    akin_stepper_job_t *job = akin_stepper_job(b.stepper);
    CU_ASSERT_PTR_NOT_NULL_FATAL(job);
    CU_ASSERT_PTR_NULL(akin_stepper_finished(b.stepper));
    job->n_rows = 3;
    job->rows[0] = row_of(prompt, 3, &greedy);
    job->rows[1] = row_of(other, 1, NULL); /* a chunk of a longer prompt */
    job->rows[2] = row_of(other, 1, &greedy);
    job->rows[1].token = 77;
    CU_ASSERT_PTR_EQUAL_FATAL(run(&b), job);
    CU_ASSERT_EQUAL(job->status, AKIN_OK);
    CU_ASSERT_EQUAL(job->n_tokens, 5);
    CU_ASSERT_EQUAL(job->served[0], 2);
    CU_ASSERT_EQUAL(job->served[1], 3);
    CU_ASSERT_EQUAL(job->rows[0].token, 6);
    CU_ASSERT_EQUAL(job->rows[1].token, 77);
    CU_ASSERT_EQUAL(job->rows[2].token, 0);
    /* log(e^2 / (e^2 + 7)) and log(1 / (e^2 + 7)); ties go to the lowest id. */
    const double total = log(exp(2.0) + 7.0);
    const akin_token_logprob_t *l = &job->rows[0].logprob;
    CU_ASSERT_DOUBLE_EQUAL((double)l->logprob, 2.0 - total, 1e-6);
    CU_ASSERT_EQUAL_FATAL(l->n_top, 2);
    CU_ASSERT_EQUAL(l->top[0].id, 6);
    CU_ASSERT_EQUAL(l->top[1].id, 0);
    CU_ASSERT_DOUBLE_EQUAL((double)l->top[1].logprob, -total, 1e-6);
    CU_ASSERT_PTR_NULL(akin_stepper_finished(b.stepper));
    CU_ASSERT_PTR_EQUAL(akin_stepper_job(b.stepper), job);
    bed_cleanup(&b);
}

/* While the engine has the job nobody else does. */
static void busy(void)
{
    static const uint32_t tokens[] = {3};
    bed_t b;
    bed_init(&b, 0);
    akin_stepper_job_t *job = akin_stepper_job(b.stepper);
    job->n_rows = 1;
    job->rows[0] = row_of(tokens, 1, &greedy);
    akin_stepper_submit(b.stepper);
    CU_ASSERT_PTR_NULL(akin_stepper_job(b.stepper));
    CU_ASSERT_PTR_NULL(akin_stepper_finished(b.stepper));
    (void)sem_post(&b.engine.may_step);
    while (sem_wait(&b.awake) != 0)
        continue;
    CU_ASSERT_PTR_NULL(akin_stepper_job(b.stepper));
    CU_ASSERT_PTR_EQUAL(akin_stepper_finished(b.stepper), job);
    /* A failed step is told, and the next one runs. */
    b.engine.status = AKIN_ERR_RANGE;
    CU_ASSERT_PTR_EQUAL_FATAL(run(&b), job);
    CU_ASSERT_EQUAL(job->status, AKIN_ERR_RANGE);
    b.engine.status = AKIN_OK;
    CU_ASSERT_PTR_EQUAL_FATAL(run(&b), job);
    CU_ASSERT_EQUAL(job->status, AKIN_OK);
    CU_ASSERT_EQUAL(b.engine.n_steps, 3);
    bed_cleanup(&b);
}

/* Destroy waits for the step that is running, and no other begins. */
static void destroyed_while_busy(void)
{
    static const uint32_t tokens[] = {3};
    bed_t b;
    bed_init(&b, 0);
    akin_stepper_job_t *job = akin_stepper_job(b.stepper);
    job->n_rows = 1;
    job->rows[0] = row_of(tokens, 1, &greedy);
    akin_stepper_submit(b.stepper);
    (void)sem_post(&b.engine.may_step);
    akin_stepper_destroy(b.stepper);
    b.stepper = NULL;
    CU_ASSERT(b.engine.n_steps <= 1);
    bed_cleanup(&b);
}

/* Every row counts top_k experts in every layer, and 16 bits never wrap. */
static void expert_counts(void)
{
    static const uint32_t tokens[] = {0, 1, 2, 4};
    bed_t b;
    uint32_t n;
    bed_init(&b, 1);
    akin_stepper_job_t *job = akin_stepper_job(b.stepper);
    job->n_rows = ROWS;
    for (uint32_t i = 0; i < ROWS; i++)
        job->rows[i] = row_of(tokens + i, 1, NULL);
    CU_ASSERT_PTR_EQUAL_FATAL(run(&b), job);
    const uint16_t *counts = akin_stepper_counts(b.stepper, &n);
    static const uint16_t wanted[] = {4, 4, 0, 0, 4, 1, 2, 1};
    CU_ASSERT_EQUAL(n, ROWS);
    CU_ASSERT_EQUAL(memcmp(counts, wanted, sizeof(wanted)), 0);
    akin_stepper_clear_counts(b.stepper);
    counts = akin_stepper_counts(b.stepper, &n);
    CU_ASSERT_EQUAL(n, 0);
    CU_ASSERT_EQUAL(counts[0], 0);
    for (uint32_t i = 0; i < 16384; i++)
        CU_ASSERT_PTR_EQUAL_FATAL(run(&b), job);
    /* 65532 rows fit, 65536 do not: the last job stands alone. */
    counts = akin_stepper_counts(b.stepper, &n);
    CU_ASSERT_EQUAL(n, ROWS);
    CU_ASSERT_EQUAL(counts[0], ROWS);
    bed_cleanup(&b);
}

/* Every row gets the experts of its own tokens, however many each has, and
 * counting them is another matter. */
static void kept_routes(void)
{
    static const uint32_t tokens[] = {0, 1, 2, 4, 5, 6};
    static const uint16_t layer_1[] = {1, 2, 3, 2, 3, 1};
    for (int count = 0; count < 2; count++) {
        bed_t b;
        bed_init_routes(&b, 6, count, 1);
        akin_stepper_job_t *job = akin_stepper_job(b.stepper);
        job->n_rows = 3;
        job->rows[0] = row_of(tokens, 3, &greedy);
        job->rows[1] = row_of(tokens + 3, 1, NULL);
        job->rows[2] = row_of(tokens + 4, 2, &greedy);
        CU_ASSERT_PTR_EQUAL_FATAL(run(&b), job);
        for (uint32_t i = 0; i < 3; i++) {
            const uint16_t *routes = job->rows[i].routes;
            CU_ASSERT_PTR_NOT_NULL_FATAL(routes);
            for (uint32_t t = 0; t < job->rows[i].n_tokens; t++) {
                const size_t at = (size_t)(job->rows[i].tokens - tokens) + t;
                const uint16_t wanted[] = {0, 1, 0, layer_1[at]};
                CU_ASSERT_EQUAL(memcmp(routes + (size_t)t * LAYERS * TOP_K,
                                       wanted, sizeof(wanted)),
                                0);
            }
        }
        if (count) {
            static const uint16_t wanted[] = {6, 6, 0, 0, 6, 2, 2, 2};
            uint32_t n;
            const uint16_t *counts = akin_stepper_counts(b.stepper, &n);
            CU_ASSERT_EQUAL(n, 6);
            CU_ASSERT_EQUAL(memcmp(counts, wanted, sizeof(wanted)), 0);
        }
        bed_cleanup(&b);
    }
    /* Unasked, there are none. */
    bed_t b;
    bed_init(&b, 1);
    akin_stepper_job_t *job = akin_stepper_job(b.stepper);
    job->n_rows = 1;
    job->rows[0] = row_of(tokens, 1, &greedy);
    CU_ASSERT_PTR_EQUAL_FATAL(run(&b), job);
    CU_ASSERT_PTR_NULL(job->rows[0].routes);
    bed_cleanup(&b);
}

static const runner_test_t tests[] = {
    {"tokens and logprobs", tokens_and_logprobs},
    {"busy", busy},
    {"destroyed while busy", destroyed_while_busy},
    {"expert counts", expert_counts},
    {"kept routes", kept_routes},
};

RUNNER_MAIN("stepper", tests)
