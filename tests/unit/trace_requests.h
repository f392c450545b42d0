/* Requests for tests of the trace writer: what request i is, and a trace of
 * the first n of them made and checked. */
#ifndef AKIN_TESTS_UNIT_TRACE_REQUESTS_H
#define AKIN_TESTS_UNIT_TRACE_REQUESTS_H

#include "scratch_file.h"
#include "trace_rows.h"

#include "routing/trace_writer.h"

#include <CUnit/Basic.h>

enum {
    LAYERS = 3,
    EXPERTS = 16,
    TOP_K = 4,
    IDS = LAYERS * TOP_K,
    MAX_ROWS = 9
};

/* Unlike the buffers of scratch_path() this one stays. */
static inline const char *trace_path(void)
{
    static char path[1024];
    (void)snprintf(path, sizeof(path), "%s", scratch_path("t.json"));
    return path;
}

static inline akin_trace_writer_params_t params_of(const char *path)
{
    return (akin_trace_writer_params_t){
        .path = path,
        .model = "tiny \"moe\"",
        .shape = {.n_layers = LAYERS, .n_experts = EXPERTS, .top_k = TOP_K},
    };
}

/* Request i, a function of its number: 3 to 8 rows, of which i % 3 are of the
 * prompt. Its id sorts otherwise than its number does. */
typedef struct request {
    char id[16];
    akin_trace_record_t record;
    uint16_t routes[MAX_ROWS * IDS];
} request_t;

static inline void make_request(uint32_t i, request_t *r)
{
    const akin_trace_shape_t shape = {LAYERS, EXPERTS, TOP_K, 1};
    (void)snprintf(r->id, sizeof(r->id), "%u-r", 97u * (i + 1) % 101);
    r->record = (akin_trace_record_t){
        .id = r->id,
        .domain = i % 2 != 0 ? "law" : NULL,
        .n_tokens = 3 + i % 6,
        .n_prompt = i % 3,
        .arrival_s = i % 4 != 0 ? 0.1 * i : -1.0,
    };
    trace_rows_draw(&shape, r->record.n_tokens, i, r->routes);
}

static inline void append(akin_trace_writer_t *writer, uint32_t i)
{
    request_t r = {0};
    akin_error_t err = {{0}};
    make_request(i, &r);
    CU_ASSERT_EQUAL_FATAL(
        akin_trace_writer_append(writer, &r.record, r.routes, &err), AKIN_OK);
}

static inline akin_trace_writer_t *begin(const char *path, int resume)
{
    akin_trace_writer_params_t params = params_of(path);
    akin_trace_writer_t *writer;
    akin_error_t err = {{0}};
    params.resume = resume;
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_create(&params, &writer, &err),
                          AKIN_OK);
    return writer;
}

static inline void finish(akin_trace_writer_t *writer)
{
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_trace_writer_finish(writer, &err), AKIN_OK);
    akin_trace_writer_destroy(writer);
}

static inline void remove_all(void)
{
    static const char *const names[] = {"t.json.part", "t.json.tmp", "t.u8",
                                        "t.u16", "t.json"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        scratch_remove(scratch_path(names[i]));
}

/* The trace must hold the requests 0 to n - 1, whatever their order. */
static inline void check_trace(const char *path, uint32_t n)
{
    akin_trace_t *trace;
    akin_error_t err = {{0}};
    uint32_t n_records;
    CU_ASSERT_EQUAL_FATAL(akin_trace_open(path, &trace, &err), AKIN_OK);
    const akin_trace_record_t *records = akin_trace_records(trace, &n_records);
    CU_ASSERT_EQUAL_FATAL(n_records, n);
    CU_ASSERT_STRING_EQUAL(akin_trace_model(trace), "tiny \"moe\"");
    for (uint32_t i = 0; i + 1 < n; i++)
        CU_ASSERT(strcmp(records[i].id, records[i + 1].id) < 0);
    for (uint32_t i = 0; i < n; i++) {
        request_t r = {0};
        uint16_t routes[MAX_ROWS * IDS];
        uint32_t at = 0;
        make_request(i, &r);
        while (at < n && strcmp(records[at].id, r.id) != 0)
            at++;
        CU_ASSERT_FATAL(at < n);
        CU_ASSERT_EQUAL_FATAL(records[at].n_tokens, r.record.n_tokens);
        CU_ASSERT_EQUAL(records[at].n_prompt, r.record.n_prompt);
        CU_ASSERT_EQUAL(records[at].arrival_s, r.record.arrival_s);
        CU_ASSERT_STRING_EQUAL(records[at].domain, i % 2 != 0 ? "law" : "");
        akin_trace_routes(trace, at, 0, r.record.n_tokens, routes);
        CU_ASSERT_EQUAL(memcmp(routes, r.routes,
                               r.record.n_tokens * IDS * sizeof(uint16_t)),
                        0);
    }
    akin_trace_close(trace);
}

#endif
