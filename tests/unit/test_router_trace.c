/* Router trace: what becomes of the routes that workers tell, true ones and
 * others. */
#include "router_bed.h"

#include "routing/trace.h"

#define N_PROMPT 20u /* two blocks */
#define N_OUTPUT 4u
#define N_ROWS (N_PROMPT + N_OUTPUT - 1)

/* The experts of a row, different ones in a layer: a rule of the test's own. */
static uint16_t expert(const bed_t *b, uint32_t row, uint32_t l, uint32_t j)
{
    return (uint16_t)((row * 7 + l * 5 + j * 3 + row * row) %
                      b->model.n_experts);
}

static size_t row_size(const bed_t *b)
{
    return (size_t)b->model.n_layers * b->model.top_k;
}

/* [n][n_layers][top_k], to be freed */
static uint16_t *rows_of(const bed_t *b, uint32_t first, uint32_t n)
{
    uint16_t *rows = calloc(n * row_size(b) + 1, sizeof(*rows));
    CU_ASSERT_PTR_NOT_NULL_FATAL(rows);
    size_t at = 0;
    for (uint32_t row = first; row < first + n; row++)
        for (uint32_t l = 0; l < b->model.n_layers; l++)
            for (uint32_t j = 0; j < b->model.top_k; j++)
                rows[at++] = expert(b, row, l, j);
    return rows;
}

/* A worker tells rows; n_routes 0: as many as the rows have. */
static void tell_rows(bed_t *b, uint32_t from, uint64_t id, uint32_t first,
                      uint32_t n, uint16_t *rows, size_t n_routes)
{
    const akin_message_routes_t m = {
        .id = id,
        .first = first,
        .n_tokens = n,
        .routes = rows,
        .n_routes = n_routes > 0 ? n_routes : n * row_size(b)};
    akin_message_pack_routes(&b->packer, &m);
    bed_say(b, from, AKIN_MESSAGE_ROUTES);
}

static void tell(bed_t *b, uint32_t from, uint64_t id, uint32_t first,
                 uint32_t n)
{
    uint16_t *rows = rows_of(b, first, n);
    tell_rows(b, from, id, first, n, rows, 0);
    free(rows);
}

/* The prompt is done; its counts are those of its rows, but for `surplus` in
 * one cell. */
static void tell_prefilled(bed_t *b, uint32_t from, uint64_t id,
                           uint32_t n_prompt, uint16_t surplus)
{
    akin_kv_descriptor_t blocks[BED_SLOTS] = {{0}};
    const size_t n = (size_t)b->model.n_layers * b->model.n_experts;
    uint16_t *counts = calloc(n, sizeof(*counts));
    CU_ASSERT_PTR_NOT_NULL_FATAL(counts);
    for (uint32_t row = 0; row < n_prompt; row++)
        for (uint32_t l = 0; l < b->model.n_layers; l++)
            for (uint32_t j = 0; j < b->model.top_k; j++)
                counts[l * b->model.n_experts + expert(b, row, l, j)]++;
    counts[3] = (uint16_t)(counts[3] + surplus);
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

static char trace_path[1024];
static akin_router_calibration_t calibration = {.trace_path = trace_path,
                                                .n_tokens = N_OUTPUT};

static void remove_trace(void)
{
    static const char *const names[] = {"t.json", "t.json.part", "t.u8"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        (void)remove(scratch_path(names[i]));
}

static void init(bed_t *b, int resume)
{
    (void)snprintf(trace_path, sizeof(trace_path), "%s",
                   scratch_path("t.json"));
    if (!resume)
        remove_trace();
    bed_init_for(b, &calibration, resume);
}

static void init_one(bed_t *b)
{
    FILE *file = fopen(scratch_path("in"), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    bed_write_request(file, "one", N_PROMPT, 300);
    CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
    init(b, 0);
}

static void cleanup(bed_t *b)
{
    remove_trace();
    bed_cleanup(b);
}

static akini_flight_t *the_flight(const bed_t *b)
{
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->r->by_id);
    return b->r->by_id;
}

/* From the queue to its decode worker, as its workers ought to. */
static akini_flight_t *bring_to_decode(bed_t *b)
{
    bed_turn(b);
    akini_flight_t *f = the_flight(b);
    tell(b, 1 + f->prefill, f->id, 0, 16);
    tell(b, 1 + f->prefill, f->id, 16, N_PROMPT - 16);
    tell_prefilled(b, 1 + f->prefill, f->id, N_PROMPT, 0);
    CU_ASSERT_EQUAL_FATAL(f->state, AKINI_FLIGHT_ROUTED);
    akini_router_dispatch(b->r, b->now);
    bed_transferred(b, 3 + f->decode, f->id, AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(f->state, AKINI_FLIGHT_DECODE);
    return f;
}

static void tell_tokens(bed_t *b, const akini_flight_t *f)
{
    const uint32_t from = 3 + f->decode;
    const uint64_t id = f->id;
    for (uint32_t i = 1; i < N_OUTPUT; i++)
        bed_token(b, from, id);
}

/* The run ends; a trace with this one record, which is as told, remains. */
static void expect_record(bed_t *b, const char *id)
{
    akin_error_t err = {{0}};
    CU_ASSERT_PTR_NULL(b->r->by_id);
    CU_ASSERT_EQUAL(b->r->counts.failed, 0);
    CU_ASSERT_EQUAL_FATAL(b->r->sink->ops->end(b->r->sink, 1, &err), AKIN_OK);
    akin_trace_t *trace;
    CU_ASSERT_EQUAL_FATAL(akin_trace_open(trace_path, &trace, &err), AKIN_OK);
    uint32_t n;
    const akin_trace_record_t *record = akin_trace_records(trace, &n);
    CU_ASSERT_EQUAL_FATAL(n, 1);
    CU_ASSERT_STRING_EQUAL(record->id, id);
    CU_ASSERT_EQUAL(record->n_prompt, N_PROMPT);
    CU_ASSERT_EQUAL_FATAL(record->n_tokens, N_ROWS);
    CU_ASSERT(record->arrival_s < 0.0);
    uint16_t *wanted = rows_of(b, 0, N_ROWS), *got = rows_of(b, 0, N_ROWS);
    memset(got, 0xff, N_ROWS * row_size(b) * sizeof(*got));
    akin_trace_routes(trace, 0, 0, N_ROWS, got);
    CU_ASSERT_EQUAL(memcmp(got, wanted, N_ROWS * row_size(b) * sizeof(*got)),
                    0);
    free(wanted);
    free(got);
    akin_trace_close(trace);
}

static void life(void)
{
    bed_t b;
    init_one(&b);
    akini_flight_t *f = bring_to_decode(&b);
    /* One row less than there are tokens: the last one has no successor. */
    tell(&b, 3 + f->decode, f->id, N_PROMPT, N_OUTPUT - 1);
    tell_tokens(&b, f);
    expect_record(&b, "one");
    cleanup(&b);
}

/* A request that begins again is recorded once, from its first row on. */
static void restarted(void)
{
    bed_t b;
    init_one(&b);
    akini_flight_t *f = bring_to_decode(&b);
    const uint64_t old = f->id;
    const uint32_t lost = 3 + f->decode;
    tell(&b, lost, old, N_PROMPT, 2);
    akin_router_on_peer_lost(b.r, lost, AKIN_ERR_PEER);
    CU_ASSERT_EQUAL(f->n_routed, 0);
    tell(&b, lost, old, N_PROMPT + 2, 1); /* nobody's any more */
    f = bring_to_decode(&b);
    CU_ASSERT_NOT_EQUAL(3 + f->decode, lost);
    tell(&b, 3 + f->decode, f->id, N_PROMPT, N_OUTPUT - 1);
    tell_tokens(&b, f);
    expect_record(&b, "one");
    cleanup(&b);
}

/* Rows that come from somebody who has not got the request change nothing. */
static void from_others(void)
{
    bed_t b;
    init_one(&b);
    bed_turn(&b);
    akini_flight_t *f = the_flight(&b);
    tell(&b, 2 - f->prefill, f->id, 0, 3);
    tell(&b, 3, f->id, 0, 3);
    tell(&b, 1 + f->prefill, f->id + 9, 0, 3);
    CU_ASSERT_EQUAL(f->n_routed, 0);
    CU_ASSERT_EQUAL(b.r->counts.failed, 0);
    tell(&b, 1 + f->prefill, f->id, 0, 3);
    CU_ASSERT_EQUAL(f->n_routed, 3);
    akin_packer_u8(&b.packer, 1);
    bed_say(&b, 2, AKIN_MESSAGE_ROUTES);
    CU_ASSERT(b.net.is_dropped[2]);
    cleanup(&b);
    /* Who records nothing has no use for them. */
    bed_init_one(&b, N_PROMPT, 3);
    f = bed_bring_to(&b, AKINI_FLIGHT_PREFILL);
    tell(&b, 1 + f->prefill, f->id, 0, 3);
    CU_ASSERT_EQUAL(f->n_routed, 0);
    CU_ASSERT_PTR_NULL(f->routes);
    bed_cleanup(&b);
}

/* The request has failed, and its run has no trace. */
static void expect_failure(bed_t *b)
{
    akin_error_t err = {{0}};
    CU_ASSERT_PTR_NULL(b->r->by_id);
    CU_ASSERT_EQUAL(b->r->counts.failed, 1);
    CU_ASSERT_EQUAL(b->r->failure, AKIN_OK);
    CU_ASSERT(bed_books_are_empty(b));
    CU_ASSERT_NOT_EQUAL(b->r->sink->ops->end(b->r->sink, 1, &err), AKIN_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, trace_path));
    CU_ASSERT_NOT_EQUAL(access(trace_path, F_OK), 0);
    cleanup(b);
}

static void wrong_rows(void)
{
    enum { HOLE, AGAIN, BEYOND, SHORT, UNKNOWN_EXPERT, N_WRONGS };
    for (int wrong = 0; wrong < N_WRONGS; wrong++) {
        bed_t b;
        init_one(&b);
        bed_turn(&b);
        const akini_flight_t *f = the_flight(&b);
        const uint32_t from = 1 + f->prefill;
        const uint64_t id = f->id;
        uint16_t *rows = rows_of(&b, 0, N_PROMPT);
        tell(&b, from, id, 0, 4);
        CU_ASSERT_EQUAL(b.r->counts.failed, 0);
        if (wrong == HOLE)
            tell(&b, from, id, 5, 1);
        else if (wrong == AGAIN)
            tell(&b, from, id, 3, 1);
        else if (wrong == BEYOND)
            tell(&b, from, id, 4, N_PROMPT - 3);
        else if (wrong == SHORT)
            tell_rows(&b, from, id, 4, 2, rows, 2 * row_size(&b) - 2);
        else
            rows[5] = (uint16_t)b.model.n_experts;
        if (wrong == UNKNOWN_EXPERT)
            tell_rows(&b, from, id, 4, 2, rows, 0);
        free(rows);
        expect_failure(&b);
    }
}

/* What does not add up is not recorded. */
static void not_conserved(void)
{
    bed_t b;
    /* The counts are not those of the rows. */
    init_one(&b);
    bed_turn(&b);
    const akini_flight_t *f = the_flight(&b);
    tell(&b, 1 + f->prefill, f->id, 0, N_PROMPT);
    tell_prefilled(&b, 1 + f->prefill, f->id, N_PROMPT, 1);
    expect_failure(&b);
    /* A row of the prompt is missing. */
    init_one(&b);
    bed_turn(&b);
    f = the_flight(&b);
    tell(&b, 1 + f->prefill, f->id, 0, N_PROMPT - 1);
    tell_prefilled(&b, 1 + f->prefill, f->id, N_PROMPT, 0);
    expect_failure(&b);
    /* A row of the answer is missing. */
    init_one(&b);
    f = bring_to_decode(&b);
    tell(&b, 3 + f->decode, f->id, N_PROMPT, N_OUTPUT - 2);
    tell_tokens(&b, f);
    expect_failure(&b);
    /* A layer of a row names an expert twice. */
    init_one(&b);
    f = bring_to_decode(&b);
    uint16_t *rows = rows_of(&b, N_PROMPT, N_OUTPUT - 1);
    rows[1] = rows[0];
    tell_rows(&b, 3 + f->decode, f->id, N_PROMPT, N_OUTPUT - 1, rows, 0);
    free(rows);
    tell_tokens(&b, f);
    expect_failure(&b);
}

/* Whatever the lines ask for, all requests are greedy ones of one length,
 * unless the context ends before. */
static void overridden(void)
{
    FILE *file = fopen(scratch_path("in"), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    (void)fputs("{\"custom_id\":\"wild\",\"method\":\"POST\",\"url\":"
                "\"/v1/completions\",\"body\":{\"prompt\":[1,2],\"temperature\""
                ":2,\"top_p\":0.5,\"repetition_penalty\":3,\"max_tokens\":900,"
                "\"logprobs\":2,\"stop\":[\"a\",\"b\"],\"seed\":5,\"metadata\":"
                "{\"domain\":\"zoo\"}}}\n",
                file);
    CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
    bed_t b;
    init(&b, 0);
    bed_turn(&b);
    const akin_request_t *q = the_flight(&b)->request;
    CU_ASSERT_EQUAL(q->max_tokens, N_OUTPUT);
    CU_ASSERT_EQUAL(q->sampling.temperature, 0.0f);
    CU_ASSERT_EQUAL(q->sampling.repetition_penalty, 1.0f);
    CU_ASSERT_EQUAL(q->ignore_eos, 1);
    CU_ASSERT_EQUAL(q->n_stops, 0);
    CU_ASSERT_EQUAL(q->want_logprobs, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(q->domain);
    CU_ASSERT_STRING_EQUAL(q->domain, "zoo");
    cleanup(&b);
}

/* What an earlier run recorded is not computed again; the rest is. */
static void resumed(void)
{
    bed_t b;
    init_one(&b);
    akini_flight_t *f = bring_to_decode(&b);
    tell(&b, 3 + f->decode, f->id, N_PROMPT, N_OUTPUT - 1);
    tell_tokens(&b, f);
    CU_ASSERT_EQUAL_FATAL(b.r->sink->ops->end(b.r->sink, 0, NULL), AKIN_OK);
    bed_cleanup(&b);
    FILE *file = fopen(scratch_path("in"), "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    bed_write_request(file, "one", N_PROMPT, 3);
    bed_write_request(file, "two", N_PROMPT, 3);
    CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
    init(&b, 1);
    CU_ASSERT_EQUAL(b.r->counts.done, 1);
    CU_ASSERT_EQUAL(b.r->counts.total, 2);
    f = bring_to_decode(&b);
    CU_ASSERT_EQUAL(HASH_COUNT(b.r->by_id), 1);
    CU_ASSERT_STRING_EQUAL(f->request->custom_id, "two");
    tell(&b, 3 + f->decode, f->id, N_PROMPT, N_OUTPUT - 1);
    tell_tokens(&b, f);
    CU_ASSERT_EQUAL(b.r->counts.done, 2);
    CU_ASSERT_EQUAL_FATAL(b.r->sink->ops->end(b.r->sink, 1, NULL), AKIN_OK);
    akin_trace_t *trace;
    uint32_t n;
    CU_ASSERT_EQUAL_FATAL(akin_trace_open(trace_path, &trace, NULL), AKIN_OK);
    (void)akin_trace_records(trace, &n);
    CU_ASSERT_EQUAL(n, 2);
    akin_trace_close(trace);
    cleanup(&b);
}

static const runner_test_t tests[] = {
    {"a request's rows", life},
    {"restarted", restarted},
    {"rows from others", from_others},
    {"wrong rows", wrong_rows},
    {"not conserved", not_conserved},
    {"overridden", overridden},
    {"resumed", resumed},
};

RUNNER_MAIN("router trace", tests)
