/* Requests in memory against the generator and the trace that they come from,
 * token by token. */
#include "scratch_file.h"
#include "sim_bed.h"

#include "routing/trace_writer.h"

enum { N = 40, PROMPT = 30, OUTPUT = 12 };

static uint32_t id_of(const akin_route_pool_t *pool, size_t row, uint32_t layer,
                      uint32_t i)
{
    const size_t at = (row * pool->n_layers + layer) * pool->top_k + i;
    return pool->id_bytes == 1
               ? pool->ids[at]
               : ((const uint16_t *)(const void *)pool->ids)[at];
}

/* Entry i is the generator's request first + i, of the domain that it says. */
static void test_generated(void)
{
    const akin_route_pool_params_t params = {
        .n_requests = N, .first = 1000, .has_counts = true};
    akin_route_generator_t *g = bed_generator(PROMPT, OUTPUT);
    akin_route_pool_t *pool = bed_pool(PROMPT, OUTPUT, &params);
    const size_t cells = akin_route_pool_cells(pool);
    uint32_t n_of[3] = {0};
    for (uint32_t i = 0; i < N; i++) {
        const akin_route_entry_t *entry = &pool->entries[i];
        double shares[3] = {0.0};
        akin_route_request_t request;
        uint16_t experts[AKIN_ROUTE_MAX_TOP_K];
        uint16_t prompt[128] = {0}, decode[128] = {0};
        n_of[entry->domain]++;
        shares[entry->domain] = 1.0;
        akin_route_request_make(g, 1000 + i, shares, &request);
        CU_ASSERT_EQUAL_FATAL(entry->n_prompt, PROMPT);
        CU_ASSERT_EQUAL_FATAL(entry->n_output, OUTPUT);
        for (uint32_t t = 0; t < PROMPT + OUTPUT - 1; t++)
            for (uint32_t l = 0; l < 2; l++) {
                akin_route_draw(g, &request, NULL, t, l, experts);
                for (uint32_t k = 0; k < 4; k++) {
                    (t < PROMPT ? prompt : decode)[l * 64 + experts[k]]++;
                    if (t >= PROMPT)
                        CU_ASSERT_EQUAL(
                            id_of(pool, entry->row + t - PROMPT, l, k),
                            experts[k]);
                }
            }
        CU_ASSERT_EQUAL(
            memcmp(prompt, pool->prompt_counts + i * cells, sizeof(prompt)), 0);
        CU_ASSERT_EQUAL(
            memcmp(decode, pool->decode_counts + i * cells, sizeof(decode)), 0);
    }
    /* 0.4, 0.3 and 0.3 of them. */
    CU_ASSERT_EQUAL(n_of[0], 16);
    CU_ASSERT_EQUAL(n_of[1], 12);
    CU_ASSERT_EQUAL(n_of[2], 12);
    for (uint32_t d = 0; d < 3; d++)
        for (uint32_t i = pool->first[d]; i < pool->first[d + 1]; i++)
            CU_ASSERT_EQUAL(pool->entries[pool->by_domain[i]].domain, d);
    CU_ASSERT_EQUAL(pool->first[3], N);
    akin_route_pool_destroy(pool);
    akin_route_generator_destroy(g);
}

static void test_threads(void)
{
    akin_route_pool_params_t params = {.n_requests = N, .has_counts = true};
    akin_route_pool_t *one = bed_pool(PROMPT, OUTPUT, &params);
    params.n_threads = 3;
    akin_route_pool_t *three = bed_pool(PROMPT, OUTPUT, &params);
    const size_t cells = akin_route_pool_cells(one);
    CU_ASSERT_EQUAL(memcmp(one->ids, three->ids, N * (OUTPUT - 1) * (size_t)8),
                    0);
    CU_ASSERT_EQUAL(memcmp(one->prompt_counts, three->prompt_counts,
                           N * cells * sizeof(uint16_t)),
                    0);
    CU_ASSERT_EQUAL(memcmp(one->decode_counts, three->decode_counts,
                           N * cells * sizeof(uint16_t)),
                    0);
    akin_route_pool_destroy(one);
    akin_route_pool_destroy(three);
}

/* What a domain shares is longer prompts by as much, and the same experts more
 * in all of them; counts stop where they are told to. */
static void test_shared(void)
{
    akin_route_pool_params_t params = {.n_requests = N, .has_counts = true};
    akin_route_pool_t *own = bed_pool(PROMPT, OUTPUT, &params);
    params.shared_tokens = 20;
    akin_route_pool_t *pool = bed_pool(PROMPT, OUTPUT, &params);
    const size_t cells = akin_route_pool_cells(pool);
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t first =
            pool->by_domain[pool->first[pool->entries[i].domain]];
        uint32_t sums[2] = {0};
        CU_ASSERT_EQUAL(pool->entries[i].n_prompt, 50);
        CU_ASSERT_EQUAL(pool->entries[i].n_counted, 50);
        for (uint32_t c = 0; c < cells; c++) {
            const uint32_t more = (uint32_t)pool->prompt_counts[i * cells + c] -
                                  own->prompt_counts[i * cells + c];
            sums[c / 64] += more;
            CU_ASSERT_EQUAL(more,
                            (uint32_t)pool->prompt_counts[first * cells + c] -
                                own->prompt_counts[first * cells + c]);
        }
        CU_ASSERT_EQUAL(sums[0], 20 * 4);
        CU_ASSERT_EQUAL(sums[1], 20 * 4);
    }
    akin_route_pool_destroy(pool);
    params.counted_tokens = 10;
    pool = bed_pool(PROMPT, OUTPUT, &params);
    uint32_t sum = 0;
    for (uint32_t c = 0; c < 64; c++)
        sum += pool->prompt_counts[c];
    CU_ASSERT_EQUAL(pool->entries[0].n_counted, 10);
    CU_ASSERT_EQUAL(sum, 40);
    akin_route_pool_destroy(pool);
    akin_route_pool_destroy(own);
}

/* Counts that are full stay so, however many tokens are added. */
static void test_full_counts(void)
{
    const akin_route_pool_params_t params = {.n_requests = 3,
                                             .has_counts = true};
    akin_route_pool_t *pool = bed_pool(PROMPT, OUTPUT, &params);
    uint16_t counts[128];
    uint32_t n_chosen = 0;
    memset(counts, 0xff, sizeof(counts));
    for (uint32_t c = 0; c < 64; c++)
        counts[c]--;
    akin_route_pool_count(pool, 0, 0, OUTPUT - 1, counts);
    for (uint32_t c = 0; c < 64; c++) {
        const bool is_chosen = pool->decode_counts[c] > 0;
        n_chosen += is_chosen;
        CU_ASSERT_EQUAL(counts[c], is_chosen ? UINT16_MAX : UINT16_MAX - 1);
        CU_ASSERT_EQUAL(counts[64 + c], UINT16_MAX);
    }
    CU_ASSERT_TRUE(n_chosen >= 4 && n_chosen < 64);
    akin_route_pool_destroy(pool);
}

static void test_refusals(void)
{
    akin_route_generator_t *g = bed_generator(PROMPT, 1000.0);
    akin_route_pool_params_t params = {.n_requests = 2};
    akin_route_pool_t *pool;
    akin_error_t err;
    CU_ASSERT_EQUAL(akin_route_pool_generate(g, &params, &pool, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NULL(pool);
    /* 1,000 x 999 tokens of 8 bytes. */
    params.n_requests = 1000;
    params.max_bytes = 1 << 20;
    CU_ASSERT_EQUAL(akin_route_pool_generate(g, &params, &pool, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "999000 decode tokens need 8 MiB"));
    akin_route_generator_destroy(g);
}

/* Three records of two layers of 300 experts, top-2; one has no decode. */
static akin_trace_t *trace_of(const char *path)
{
    const akin_trace_writer_params_t params = {
        .path = path, .model = "m", .shape = {2, 300, 2, 0}};
    static const akin_trace_record_t records[] = {
        {.id = "a",
         .domain = "x",
         .n_tokens = 5,
         .n_prompt = 2,
         .arrival_s = 7.5},
        {.id = "b",
         .domain = "y",
         .n_tokens = 3,
         .n_prompt = 3,
         .arrival_s = 1.0},
        {.id = "c",
         .domain = "",
         .n_tokens = 4,
         .n_prompt = 1,
         .arrival_s = 0.5},
    };
    akin_trace_writer_t *writer;
    akin_trace_t *trace;
    akin_error_t err;
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_create(&params, &writer, &err),
                          AKIN_OK);
    for (uint32_t r = 0; r < 3; r++) {
        uint16_t routes[5 * 4];
        for (uint32_t i = 0; i < 5 * 4; i++)
            routes[i] = (uint16_t)(60 * r + 10 * i);
        CU_ASSERT_EQUAL_FATAL(
            akin_trace_writer_append(writer, &records[r], routes, &err),
            AKIN_OK);
    }
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_finish(writer, &err), AKIN_OK);
    akin_trace_writer_destroy(writer);
    CU_ASSERT_EQUAL_FATAL(akin_trace_open(path, &trace, &err), AKIN_OK);
    return trace;
}

static void test_trace(void)
{
    akin_trace_t *trace = trace_of(scratch_path("t.json"));
    akin_route_pool_trace_t params = {.has_counts = true};
    akin_route_pool_t *pool;
    akin_error_t err;
    CU_ASSERT_EQUAL_FATAL(akin_route_pool_read(trace, &params, &pool, &err),
                          AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(pool->n_entries, 2);
    CU_ASSERT_EQUAL(pool->id_bytes, 2);
    CU_ASSERT_EQUAL(pool->entries[0].n_prompt, 2);
    CU_ASSERT_EQUAL(pool->entries[0].n_output, 4);
    CU_ASSERT_EQUAL(pool->entries[0].arrival_s, 7.5);
    CU_ASSERT_EQUAL(pool->entries[1].n_prompt, 1);
    CU_ASSERT_EQUAL(pool->entries[1].n_output, 4);
    CU_ASSERT_STRING_EQUAL(pool->domains[pool->entries[0].domain], "x");
    CU_ASSERT_STRING_EQUAL(pool->domains[pool->entries[1].domain], "");
    /* Rows have four ids, 10 apart. */
    CU_ASSERT_EQUAL(id_of(pool, pool->entries[1].row + 1, 0, 0), 200);
    CU_ASSERT_EQUAL(id_of(pool, pool->entries[0].row, 1, 1), 110);
    CU_ASSERT_EQUAL(pool->prompt_counts[10], 1);
    CU_ASSERT_EQUAL(pool->decode_counts[80], 1);
    CU_ASSERT_EQUAL(pool->decode_counts[10], 0);
    akin_route_pool_destroy(pool);
    params.max_bytes = 10;
    CU_ASSERT_EQUAL(akin_route_pool_read(trace, &params, &pool, &err),
                    AKIN_ERR_INVALID);
    akin_trace_close(trace);
}

/* Of a prompt of two rows one is counted. */
static void test_trace_counted(void)
{
    akin_trace_t *trace = trace_of(scratch_path("counted.json"));
    const akin_route_pool_trace_t params = {.has_counts = true,
                                            .counted_tokens = 1};
    akin_route_pool_t *pool;
    akin_error_t err;
    CU_ASSERT_EQUAL_FATAL(akin_route_pool_read(trace, &params, &pool, &err),
                          AKIN_OK);
    uint32_t sum = 0;
    for (uint32_t c = 0; c < akin_route_pool_cells(pool); c++)
        sum += pool->prompt_counts[c];
    CU_ASSERT_EQUAL(sum, 4);
    CU_ASSERT_EQUAL(pool->prompt_counts[10], 1);
    CU_ASSERT_EQUAL(pool->prompt_counts[50], 0);
    CU_ASSERT_EQUAL(pool->entries[0].n_counted, 1);
    CU_ASSERT_EQUAL(pool->entries[0].n_prompt, 2);
    /* What it decodes still begins behind the whole prompt. */
    CU_ASSERT_EQUAL(pool->decode_counts[80], 1);
    CU_ASSERT_EQUAL(pool->decode_counts[40], 0);
    akin_route_pool_destroy(pool);
    akin_trace_close(trace);
}

/* A prompt so long that its count ends before it does, and an output of two
 * tokens that take a byte each. */
static void test_trace_memory(void)
{
    const akin_trace_writer_params_t of = {
        .path = scratch_path("long.json"), .model = "m", .shape = {1, 4, 1, 0}};
    const akin_trace_record_t record = {
        .id = "a", .domain = "x", .n_tokens = 70002, .n_prompt = 70000};
    akin_trace_writer_t *writer;
    akin_trace_t *trace;
    akin_error_t err;
    uint16_t *routes = calloc(record.n_tokens, sizeof(*routes));
    CU_ASSERT_PTR_NOT_NULL_FATAL(routes);
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_create(&of, &writer, &err),
                          AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(
        akin_trace_writer_append(writer, &record, routes, &err), AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_finish(writer, &err), AKIN_OK);
    akin_trace_writer_destroy(writer);
    free(routes);
    CU_ASSERT_EQUAL_FATAL(akin_trace_open(of.path, &trace, &err), AKIN_OK);
    /* Where none are asked for, none are made, which could not hold it. */
    akin_route_pool_trace_t params = {.max_bytes = 10};
    akin_route_pool_t *pool;
    CU_ASSERT_EQUAL_FATAL(akin_route_pool_read(trace, &params, &pool, &err),
                          AKIN_OK);
    CU_ASSERT_EQUAL(pool->entries[0].n_prompt, 70000);
    CU_ASSERT_PTR_NULL(pool->prompt_counts);
    akin_route_pool_destroy(pool);
    /* Two bytes of ids and 16 of counts: the size is the first thing seen. */
    params.has_counts = true;
    CU_ASSERT_EQUAL(akin_route_pool_read(trace, &params, &pool, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "2 decode tokens"));
    params.max_bytes = 18;
    CU_ASSERT_EQUAL_FATAL(akin_route_pool_read(trace, &params, &pool, &err),
                          AKIN_OK);
    CU_ASSERT_EQUAL(pool->prompt_counts[0], 65535);
    CU_ASSERT_EQUAL(pool->decode_counts[0], 2);
    akin_route_pool_destroy(pool);
    akin_trace_close(trace);
}

static const runner_test_t tests[] = {
    {"generated", test_generated},
    {"threads", test_threads},
    {"shared", test_shared},
    {"refusals", test_refusals},
    {"trace", test_trace},
    {"trace_counted", test_trace_counted},
    {"trace_memory", test_trace_memory},
    {"full_counts", test_full_counts},
};

RUNNER_MAIN("route_pool", tests)
