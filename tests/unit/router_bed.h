/* Router bed: a router between workers that a test plays, over a net that
 * notes what was sent. */
#ifndef AKIN_TESTS_UNIT_ROUTER_BED_H
#define AKIN_TESTS_UNIT_ROUTER_BED_H

#include "base/clock.h"
#include "roles/router_sink.h"

#include "router_net.h"
#include "runner.h"
#include "scratch_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BED_WORKERS 4u /* two prefill, two decode */
#define BED_SLOTS 8u
#define BED_BLOCK 16u

typedef struct bed {
    akin_job_t job;
    akin_router_batch_t batch;
    akin_model_config_t model;
    akin_tokenizer_t *tokenizer;
    akin_kv_layout_t layout;
    akin_net_t net;
    akin_router_t *r;
    akin_packer_t packer;
    int64_t now;
    uint64_t n_steps;
    char input[1024], output[1024];
} bed_t;

/** A line of the input: a prompt of n tokens, and how many are to follow. */
static inline void bed_write_request(FILE *file, const char *id,
                                     uint32_t n_prompt, uint32_t max_tokens)
{
    (void)fprintf(file,
                  "{\"custom_id\":\"%s\",\"method\":\"POST\",\"url\":"
                  "\"/v1/completions\",\"body\":{\"max_tokens\":%u,"
                  "\"ignore_eos\":true,\"prompt\":[7",
                  id, max_tokens);
    for (uint32_t i = 1; i < n_prompt; i++)
        (void)fprintf(file, ",%u", i);
    (void)fputs("]}}\n", file);
}

static inline void bed_create_summary(bed_t *b)
{
    akin_summary_worker_t workers[BED_WORKERS];
    for (uint32_t i = 0; i < BED_WORKERS; i++)
        workers[i] = (akin_summary_worker_t){
            .name = "worker",
            .role = i < 2 ? "prefill" : "decode",
            .rank = 1 + i * b->job.ep,
        };
    const akin_summary_params_t params = {
        .model = "tiny-moe",
        .policy = "jsq",
        .engine = "cpu",
        .kernel = "portable",
        .ep = b->job.ep,
        .workers = workers,
        .n_workers = BED_WORKERS,
        .start_ns = b->now,
    };
    CU_ASSERT_EQUAL_FATAL(akin_summary_create(&params, &b->r->summary),
                          AKIN_OK);
}

static const char bed_model[] = AKIN_SOURCE_DIR "/examples/tiny-moe";

/** A job with workers of so many ranks; it recovers from nothing. */
static inline akin_job_t bed_job(uint32_t ep)
{
    return (akin_job_t){.model_path = bed_model,
                        .model_name = "",
                        .engine = "cpu",
                        .n_prefill = 2,
                        .n_decode = 2,
                        .ep = ep,
                        .prefill_ep = ep,
                        .block_tokens = BED_BLOCK,
                        .lease_ns = 30 * AKIN_NS_PER_S,
                        .max_batch = 4,
                        .max_in_flight = 64,
                        .prefill_policy = "least-loaded",
                        .decode_policy = "jsq",
                        .exchange = "ucx",
                        .n_retries = 8,
                        .recovery_timeout_ns = 120 * AKIN_NS_PER_S,
                        .start_timeout_ns = 60 * AKIN_NS_PER_S,
                        .recovery = AKIN_RECOVERY_SHRINK,
                        .transfer_timeout_ns = 10 * AKIN_NS_PER_S,
                        .request_timeout_ns = 600 * AKIN_NS_PER_S};
}

/** A router of a job over the input file "in", which the test has written; of a
 * calibration, if one is given; ranks have these identities, or none. */
static inline void bed_init_job(bed_t *b, const akin_job_t *job,
                                const akin_message_identity_t *identities,
                                const akin_router_calibration_t *calibration,
                                int resume)
{
    akin_error_t err = {{0}};
    *b = (bed_t){.job = *job, .now = akin_clock_now_ns()};
    b->job.record_routes = calibration != NULL;
    (void)snprintf(b->input, sizeof(b->input), "%s", scratch_path("in"));
    (void)snprintf(b->output, sizeof(b->output), "%s", scratch_path("out"));
    b->batch.input_path = b->input;
    b->batch.output_path = b->output;
    b->batch.resume = resume;
    (void)remove(b->output);
    CU_ASSERT_EQUAL_FATAL(akin_model_config_read(bed_model, &b->model, &err),
                          AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(akin_tokenizer_load(AKIN_SOURCE_DIR
                                              "/examples/tiny-moe/"
                                              "tokenizer.json",
                                              &b->tokenizer, &err),
                          AKIN_OK);
    const akin_kv_shape_t shape = {.n_layers = b->model.n_layers,
                                   .n_kv_heads = b->model.n_kv_heads,
                                   .head_dim = b->model.head_dim,
                                   .n_experts = b->model.n_experts,
                                   .top_k = b->model.top_k,
                                   .block_tokens = BED_BLOCK};
    CU_ASSERT_EQUAL_FATAL(akin_kv_layout_init(&shape, &b->layout, &err),
                          AKIN_OK);
    const akin_router_params_t params = {.job = &b->job,
                                         .batch = &b->batch,
                                         .calibration = calibration,
                                         .model = &b->model,
                                         .tokenizer = b->tokenizer,
                                         .identities = identities,
                                         .layout = &b->layout,
                                         .n_slots = BED_SLOTS,
                                         .kernel = "portable"};
    CU_ASSERT_EQUAL_FATAL(akin_router_create(&params, &b->r, &err), AKIN_OK);
    b->r->net = &b->net;
    bed_create_summary(b);
}

static inline void bed_init_ranks(bed_t *b, uint32_t ep,
                                  const akin_router_calibration_t *calibration,
                                  int resume)
{
    const akin_job_t job = bed_job(ep);
    bed_init_job(b, &job, NULL, calibration, resume);
}

static inline void
bed_init_for(bed_t *b, const akin_router_calibration_t *calibration, int resume)
{
    bed_init_ranks(b, 1, calibration, resume);
}

static inline void bed_init(bed_t *b)
{
    bed_init_for(b, NULL, 0);
}

/** A router with one request inside. */
static inline void bed_init_one(bed_t *b, uint32_t n_prompt,
                                uint32_t max_tokens)
{
    FILE *file = fopen(scratch_path("in"), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    bed_write_request(file, "one", n_prompt, max_tokens);
    CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
    bed_init(b);
}

/** Forget what was sent. */
static inline void bed_clear(bed_t *b)
{
    for (uint32_t i = 0; i < b->net.n_sent; i++)
        free(b->net.sent[i].payload);
    b->net.n_sent = 0;
}

static inline void bed_cleanup(bed_t *b)
{
    akin_router_destroy(b->r);
    bed_clear(b);
    akin_tokenizer_destroy(b->tokenizer);
    akin_packer_cleanup(&b->packer);
    scratch_remove(b->batch.output_path);
    scratch_remove(b->batch.input_path);
}

/** Whether nothing of any request is left in the books of the workers. */
static inline int bed_books_are_empty(const bed_t *b)
{
    for (uint32_t i = 0; i < b->r->n_prefill; i++) {
        const akini_rank_t *p = &b->r->prefill[i], *d = &b->r->decode[i];
        if (p->n_flights + p->load + d->n_flights + d->n_reserved != 0)
            return 0;
    }
    return 1;
}

/** Messages of a type to a rank about an id. */
static inline uint32_t bed_n_sent(const bed_t *b, uint32_t rank, uint16_t type,
                                  uint64_t id)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->net.n_sent; i++)
        n += b->net.sent[i].rank == rank && b->net.sent[i].type == type &&
             b->net.sent[i].id == id;
    return n;
}

static inline void bed_turn(bed_t *b)
{
    akini_router_read(b->r, b->now);
    akini_router_dispatch(b->r, b->now);
}

static inline void bed_say(bed_t *b, uint32_t from, uint16_t type)
{
    akin_router_on_message(b->r, from, type, b->packer.data, b->packer.bytes);
    akin_packer_reset(&b->packer);
}

/** The prefill worker has computed the prompt. */
static inline void bed_prefilled(bed_t *b, uint32_t from, uint64_t id,
                                 uint32_t n_prompt)
{
    akin_kv_descriptor_t blocks[BED_SLOTS] = {{0}};
    const size_t n = (size_t)b->model.n_layers * b->model.n_experts;
    uint16_t *counts = calloc(n, sizeof(*counts));
    CU_ASSERT_PTR_NOT_NULL_FATAL(counts);
    const akin_message_prefilled_t m = {.id = id,
                                        .token = 11,
                                        .blocks = blocks,
                                        .n_blocks =
                                            (n_prompt - 1) / BED_BLOCK + 1,
                                        .counts = counts,
                                        .n_counts = n};
    akin_message_pack_prefilled(&b->packer, &m);
    bed_say(b, from, AKIN_MESSAGE_PREFILLED);
    free(counts);
}

static inline void bed_transferred(bed_t *b, uint32_t from, uint64_t id,
                                   akin_status_t status)
{
    const akin_message_transferred_t m = {.id = id, .status = status};
    akin_message_pack_transferred(&b->packer, &m);
    bed_say(b, from, AKIN_MESSAGE_TRANSFERRED);
}

static inline void bed_token(bed_t *b, uint32_t from, uint64_t id)
{
    akin_message_token_t token = {.id = id, .token = 12};
    uint16_t served[] = {4, 4, 4, 4, 4, 4};
    const akin_message_tokens_t m = {.step = {.ns = 1000,
                                              .number = ++b->n_steps,
                                              .n_rows = 1,
                                              .served = served,
                                              .n_served = 6},
                                     .tokens = &token,
                                     .n_tokens = 1};
    akin_message_pack_tokens(&b->packer, &m);
    bed_say(b, from, AKIN_MESSAGE_TOKENS);
}

/** Bring the only request to a state. */
static inline akini_flight_t *bed_bring_to(bed_t *b, akini_flight_state_t state)
{
    if (state == AKINI_FLIGHT_QUEUED)
        akini_router_read(b->r, b->now);
    else
        bed_turn(b);
    akini_flight_t *f = b->r->by_id;
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    if (state >= AKINI_FLIGHT_ROUTED)
        bed_prefilled(b, b->r->prefill[f->prefill].rank, f->id, f->n_start);
    if (state >= AKINI_FLIGHT_TRANSFER)
        akini_router_dispatch(b->r, b->now);
    if (state >= AKINI_FLIGHT_DECODE)
        bed_transferred(b, b->r->decode[f->decode].rank, f->id, AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(f->state, state);
    return f;
}

#endif
