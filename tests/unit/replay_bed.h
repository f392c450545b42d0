/* A bed for tests of replays: a small trace, made of requests that say what
 * they are, and the replay set of it. */
#ifndef AKIN_TESTS_UNIT_REPLAY_BED_H
#define AKIN_TESTS_UNIT_REPLAY_BED_H

#include "scratch_file.h"
#include "trace_rows.h"

#include "routing/replay_set.h"
#include "routing/trace_writer.h"

#include <CUnit/Basic.h>

enum { BED_MAX_TOKENS = 512, BED_MAX_IDS = 64 };

typedef struct replay_bed {
    akin_trace_t *trace;
    akin_replay_set_t *set;
} replay_bed_t;

typedef struct replay_bed_request {
    uint32_t n_prompt;
    uint32_t n_decode;
    uint32_t first;     /* expert of every row and layer; top_k from there on */
    uint64_t key;       /* not 0: rows are drawn instead */
    const char *domain; /* NULL: none */
} replay_bed_request_t;

/* Requests keep their order: their ids are numbers of four digits. */
static inline void replay_bed_init(replay_bed_t *bed,
                                   const akin_trace_shape_t *shape,
                                   const replay_bed_request_t *requests,
                                   uint32_t n)
{
    static uint16_t routes[BED_MAX_TOKENS * BED_MAX_IDS];
    char path[1024];
    akin_error_t err = {{0}};
    akin_trace_writer_t *writer;
    (void)snprintf(path, sizeof(path), "%s", scratch_path("bed.json"));
    const akin_trace_writer_params_t params = {
        .path = path, .model = "bed", .shape = *shape};
    *bed = (replay_bed_t){.trace = NULL};
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_create(&params, &writer, &err),
                          AKIN_OK);
    for (uint32_t i = 0; i < n; i++) {
        const replay_bed_request_t *r = &requests[i];
        char id[16];
        (void)snprintf(id, sizeof(id), "%04u", i);
        const akin_trace_record_t record = {
            .id = id,
            .domain = r->domain,
            .n_tokens = r->n_prompt + r->n_decode,
            .n_prompt = r->n_prompt,
            .arrival_s = -1.0,
        };
        if (record.n_tokens > BED_MAX_TOKENS ||
            shape->n_layers * shape->top_k > BED_MAX_IDS)
            abort();
        if (r->key != 0)
            trace_rows_draw(shape, record.n_tokens, r->key, routes);
        for (uint32_t j = 0;
             r->key == 0 && j < record.n_tokens * shape->n_layers; j++)
            for (uint32_t k = 0; k < shape->top_k; k++)
                routes[j * shape->top_k + k] =
                    (uint16_t)((r->first + k) % shape->n_experts);
        CU_ASSERT_EQUAL_FATAL(
            akin_trace_writer_append(writer, &record, routes, &err), AKIN_OK);
    }
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_finish(writer, &err), AKIN_OK);
    akin_trace_writer_destroy(writer);
    CU_ASSERT_EQUAL_FATAL(akin_trace_open(path, &bed->trace, &err), AKIN_OK);
    scratch_remove(scratch_path("bed.u8"));
    scratch_remove(path);
}

/* With the set of all requests, whose prompts are known. */
static inline void replay_bed_init_set(replay_bed_t *bed,
                                       const akin_trace_shape_t *shape,
                                       const replay_bed_request_t *requests,
                                       uint32_t n)
{
    akin_error_t err = {{0}};
    replay_bed_init(bed, shape, requests, n);
    CU_ASSERT_EQUAL_FATAL(
        akin_replay_set_create(bed->trace, 0, 0, &bed->set, &err), AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(bed->set->n_requests, n);
}

static inline void replay_bed_cleanup(replay_bed_t *bed)
{
    akin_replay_set_destroy(bed->set);
    akin_trace_close(bed->trace);
}

#endif
