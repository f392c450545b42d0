/* Traces read: both layouts, rows and counts, and everything refused. */
#include "runner.h"
#include "scratch_file.h"

#include "routing/trace.h"

#include <stdint.h>
#include <string.h>

/* The index's text and the data beside it, opened and removed again. */
static akin_status_t open_as(const char *name, const char *index,
                             const char *data_name, const void *data,
                             size_t bytes, akin_trace_t **trace_p,
                             akin_error_t *err)
{
    const char *path = scratch_path(name);
    const char *data_path = scratch_path(data_name);
    scratch_write(path, index, strlen(index));
    if (data != NULL)
        scratch_write(data_path, data, bytes);
    akin_status_t status = akin_trace_open(path, trace_p, err);
    scratch_remove(data_path);
    scratch_remove(path);
    return status;
}

/* Two layers of four experts, top 2. */
#define HEAD                                                                   \
    "{\"format\": \"akin-trace-1\", \"model\": \"m\", \"layers\": 2, "         \
    "\"experts\": 4, \"top_k\": 2, \"id_bytes\": 1, \"data\": \"t.u8\", "

static const uint8_t rows[] = {
    0, 1, 2, 3,             /* a */
    3, 0, 1, 2, 0, 1, 2, 0, /* b */
};

static void test_own_format(void)
{
    akin_trace_t *trace;
    akin_error_t err = {{0}};
    const char *index =
        HEAD "\"prompt_stands_in\": true, \"records\": ["
             "{\"id\": \"b\", \"offset\": 4, \"n_tokens\": 2, \"n_prompt\": 1, "
             "\"domain\": \"law\", \"arrival_s\": 0.25}, "
             "{\"id\": \"a\", \"offset\": 0, \"n_tokens\": 1, \"n_prompt\": 0, "
             "\"later\": [1]}]}";
    CU_ASSERT_EQUAL_FATAL(
        open_as("t.json", index, "t.u8", rows, sizeof(rows), &trace, &err),
        AKIN_OK);
    const akin_trace_shape_t *shape = akin_trace_shape(trace);
    CU_ASSERT_EQUAL(shape->n_layers, 2);
    CU_ASSERT_EQUAL(shape->n_experts, 4);
    CU_ASSERT_EQUAL(shape->top_k, 2);
    CU_ASSERT_EQUAL(shape->id_bytes, 1);
    CU_ASSERT_STRING_EQUAL(akin_trace_model(trace), "m");
    CU_ASSERT(akin_trace_prompt_stands_in(trace));
    uint32_t n;
    const akin_trace_record_t *records = akin_trace_records(trace, &n);
    CU_ASSERT_EQUAL_FATAL(n, 2);
    CU_ASSERT_STRING_EQUAL(records[0].id, "b");
    CU_ASSERT_STRING_EQUAL(records[0].domain, "law");
    CU_ASSERT_EQUAL(records[0].n_tokens, 2);
    CU_ASSERT_EQUAL(records[0].n_prompt, 1);
    CU_ASSERT_EQUAL(records[0].arrival_s, 0.25);
    CU_ASSERT_STRING_EQUAL(records[1].id, "a");
    CU_ASSERT_STRING_EQUAL(records[1].domain, "");
    CU_ASSERT(records[1].arrival_s < 0.0);

    static const uint16_t last[] = {0, 1, 2, 0};
    uint16_t routes[4] = {9, 9, 9, 9};
    akin_trace_routes(trace, 0, 1, 1, routes);
    CU_ASSERT_EQUAL(memcmp(routes, last, sizeof(last)), 0);

    /* Row 3012 and row 0120 of b: layer 0 has 0 twice, layer 1 has 2 twice. */
    static const uint16_t expected[] = {2, 1, 0, 1, 1, 1, 2, 65535};
    uint16_t counts[8] = {0, 0, 0, 0, 0, 0, 0, 65535};
    akin_trace_count(trace, 0, 0, 2, counts);
    CU_ASSERT_EQUAL(memcmp(counts, expected, sizeof(expected)), 0);
    /* Cell (1, 3) would pass the end with row 0123 of a. */
    akin_trace_count(trace, 1, 0, 1, counts);
    CU_ASSERT_EQUAL(counts[7], 65535);
    CU_ASSERT_EQUAL(counts[6], 3);
    akin_trace_close(trace);
}

/* Ids are numbers, labels and the number of layers have other names, and
 * prompt_tokens says nothing about the rows. */
static void test_published_layouts(void)
{
    akin_trace_t *trace;
    akin_error_t err = {{0}};
    uint32_t n;
    const char *routes =
        "{\"model\": \"m\", \"layers\": 2, \"experts\": 4, \"top_k\": 2, "
        "\"layout\": \"...\", \"records\": [{\"id\": 0, \"category\": \"law\", "
        "\"prompt_tokens\": 2, \"first_pos\": 2, \"n_tokens\": 2, \"offset\": "
        "4}, {\"id\": 17, \"n_tokens\": 1, \"offset\": 0}]}";
    CU_ASSERT_EQUAL_FATAL(
        open_as("x.json", routes, "x.u8", rows, sizeof(rows), &trace, &err),
        AKIN_OK);
    const akin_trace_record_t *records = akin_trace_records(trace, &n);
    CU_ASSERT_EQUAL_FATAL(n, 2);
    CU_ASSERT_STRING_EQUAL(records[0].id, "0");
    CU_ASSERT_STRING_EQUAL(records[0].domain, "law");
    CU_ASSERT_EQUAL(records[0].n_prompt, 0);
    CU_ASSERT_STRING_EQUAL(records[1].id, "17");
    CU_ASSERT_STRING_EQUAL(records[1].domain, "");
    CU_ASSERT(records[1].arrival_s < 0.0);
    CU_ASSERT(!akin_trace_prompt_stands_in(trace));
    akin_trace_close(trace);

    const char *moe =
        "{\"moe_layers\": 2, \"first_layer\": 1, \"experts\": 4, \"top_k\": 2, "
        "\"records\": [{\"id\": -1, \"domain\": \"intent\", \"category\": 7, "
        "\"n_tokens\": 3, \"offset\": 0}]}";
    CU_ASSERT_EQUAL_FATAL(
        open_as("x.json", moe, "x.u8", rows, sizeof(rows), &trace, &err),
        AKIN_OK);
    records = akin_trace_records(trace, &n);
    CU_ASSERT_EQUAL(akin_trace_shape(trace)->n_layers, 2);
    CU_ASSERT_STRING_EQUAL(records[0].id, "-1");
    CU_ASSERT_STRING_EQUAL(records[0].domain, "intent");
    CU_ASSERT_STRING_EQUAL(akin_trace_model(trace), "");
    akin_trace_close(trace);
}

/* 300 experts need two bytes; expert 299 is 0x012b, low byte first. */
static void test_wide_ids(void)
{
    static const uint8_t wide[] = {0x2b, 0x01, 0x00, 0x00, 0x02, 0x01};
    akin_trace_t *trace;
    akin_error_t err = {{0}};
    const char *index =
        "{\"format\": \"akin-trace-1\", \"layers\": 1, \"experts\": 300, "
        "\"top_k\": 3, \"id_bytes\": 2, \"data\": \"t.u16\", \"records\": "
        "[{\"id\": \"w\", \"offset\": 0, \"n_tokens\": 1, \"n_prompt\": 1}]}";
    CU_ASSERT_EQUAL_FATAL(
        open_as("t.json", index, "t.u16", wide, sizeof(wide), &trace, &err),
        AKIN_OK);
    uint16_t routes[3];
    static uint16_t counts[300];
    akin_trace_routes(trace, 0, 0, 1, routes);
    akin_trace_count(trace, 0, 0, 1, counts);
    CU_ASSERT_EQUAL(routes[0], 299);
    CU_ASSERT_EQUAL(routes[1], 0);
    CU_ASSERT_EQUAL(routes[2], 258);
    uint32_t sum = 0;
    for (int e = 0; e < 300; e++)
        sum += counts[e];
    CU_ASSERT_EQUAL(sum, 3);
    CU_ASSERT_EQUAL(counts[299] + counts[0] + counts[258], 3);
    akin_trace_close(trace);
}

static void refuse(const char *index, const void *data, size_t bytes,
                   const char *text)
{
    akin_trace_t *trace;
    akin_error_t err = {{0}};
    akin_status_t status =
        open_as("t.json", index, "t.u8", data, bytes, &trace, &err);
    CU_ASSERT_EQUAL(status, AKIN_ERR_FORMAT);
    CU_ASSERT_PTR_NULL(trace);
    if (strstr(err.text, text) == NULL || strstr(err.text, "/t.") == NULL) {
        printf("\n  \"%s\" and the file are not in \"%s\"\n", text, err.text);
        CU_FAIL("message");
    }
}

static void test_bad_heads(void)
{
    static const struct {
        const char *index;
        const char *text;
    } bad[] = {
        {"", "empty"},
        {"{", "t.json:1: "},
        {"[1]", "not an object"},
        {"{\"a\": 1, \"a\": 2}", "duplicate"},
        {"{}", "no list \"records\""},
        {"{\"records\": 7}", "no list \"records\""},
        {"{\"records\": []}", "no \"layers\""},
        {"{\"format\": \"akin-trace-2\", \"records\": []}",
         "\"format\" is not \"akin-trace-1\""},
        {"{\"format\": 1}", "\"format\" is not"},
        {HEAD "\"x\": 1}", "one record or more"},
        {HEAD "\"records\": []}", "one record or more"},
        {HEAD "\"records\": [7]}", "records[0]: not an object"},
        {HEAD "\"prompt_stands_in\": 1, \"records\": [7]}", "stands_in"},
        {"{\"token_scores\": {\"1\": {\"0\": 0.01}}, \"gate_scores\": {}}",
         "sums per expert over all tokens"},
        {"{\"0\": {\"0\": {\"activation_tokens\": 1622}, \"total_tokens\": 9}}",
         "sums per expert over all tokens"},
        {"{\"layers\": 2, \"moe_layers\": 2, \"records\": []}",
         "both \"layers\" and \"moe_layers\""},
        {"{\"layers\": 2, \"experts\": 4, \"top_k\": 5, \"records\": []}",
         "top_k is 5 of 4"},
        {"{\"layers\": 0, \"experts\": 4, \"top_k\": 2, \"records\": []}",
         "0 layers"},
        {"{\"layers\": 2.0, \"experts\": 4, \"top_k\": 2, \"records\": []}",
         "\"layers\" is not a whole number"},
        {"{\"layers\": -1, \"experts\": 4, \"top_k\": 2, \"records\": []}",
         "\"layers\" is not a whole number"},
        {"{\"layers\": 4294967296, \"experts\": 4, \"records\": []}",
         "\"layers\" is not a whole number"},
        {"{\"layers\": 4294967295, \"experts\": 4, \"top_k\": 2, "
         "\"records\": []}",
         "4294967295 layers of 4 experts"},
        {"{\"layers\": 1, \"experts\": 65537, \"top_k\": 2, \"records\": []}",
         "65537 experts"},
        {"{\"layers\": 1, \"experts\": 257, \"top_k\": 2, \"records\": []}",
         "one byte cannot name 257"},
        {"{\"model\": 7, \"layers\": 1, \"records\": []}",
         "\"model\" is not a text"},
        {"{\"format\": \"akin-trace-1\", \"layers\": 1, \"experts\": 2, "
         "\"top_k\": 1, \"id_bytes\": 3, \"data\": \"t.u8\", \"records\": []}",
         "id_bytes is 3"},
        {"{\"format\": \"akin-trace-1\", \"layers\": 1, \"experts\": 2, "
         "\"top_k\": 1, \"id_bytes\": 1, \"records\": []}",
         "no \"data\""},
        {"{\"format\": \"akin-trace-1\", \"layers\": 1, \"experts\": 2, "
         "\"top_k\": 1, \"id_bytes\": 1, \"data\": \"../t.u8\"}",
         "not the name of a file beside"},
        {"{\"format\": \"akin-trace-1\", \"layers\": 1, \"experts\": 2, "
         "\"top_k\": 1, \"id_bytes\": 1, \"data\": \"..\"}",
         "not the name of a file beside"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        refuse(bad[i].index, rows, sizeof(rows), bad[i].text);
}

#define RECORD(fields) HEAD "\"records\": [{" fields "}]}"
#define PLACE "\"offset\": 0, \"n_tokens\": 3, \"n_prompt\": 0"

static void test_bad_records(void)
{
    static const struct {
        const char *index;
        const char *text;
    } bad[] = {
        {RECORD("\"offset\": 0"), "records[0]: no \"id\""},
        {RECORD("\"id\": 7, " PLACE), "\"id\" is not a text"},
        {RECORD("\"id\": \"\", " PLACE), "\"id\" is empty"},
        {RECORD("\"id\": \"a\", \"domain\": 1, " PLACE), "\"domain\" is not"},
        {RECORD("\"id\": \"a\", \"offset\": -1"), "\"offset\" is not"},
        {RECORD("\"id\": \"a\", \"offset\": 0.0"), "\"offset\" is not"},
        {RECORD("\"id\": \"a\", \"offset\": 9223372036854775808"),
         "too big integer"},
        {RECORD("\"id\": \"a\", \"offset\": 0"), "no \"n_tokens\""},
        {RECORD("\"id\": \"a\", \"offset\": 0, \"n_tokens\": 0"),
         "\"n_tokens\" is 0"},
        {RECORD("\"id\": \"a\", \"offset\": 0, \"n_tokens\": 3"),
         "no \"n_prompt\""},
        {RECORD("\"id\": \"a\", \"offset\": 0, \"n_tokens\": 3, \"n_prompt\": "
                "4"),
         "\"n_prompt\" is 4 of 3 rows"},
        {RECORD("\"id\": \"a\", \"arrival_s\": -0.5, " PLACE), "arrival_s"},
        {RECORD("\"id\": \"a\", \"arrival_s\": null, " PLACE), "arrival_s"},
        {RECORD("\"id\": \"a\", \"arrival_s\": 1e999, " PLACE), "t.json:1: "},
        {RECORD("\"id\": \"a\", " PLACE "}, {\"id\": \"a\", " PLACE),
         "two records have the id \"a\""},
        {RECORD("\"id\": \"a\", " PLACE "}, {\"id\": \"b\", \"offset\": 11, "
                "\"n_tokens\": 1, \"n_prompt\": 0"),
         "\"a\" and \"b\" overlap"},
        /* A length whose bytes pass 2^32, an offset near 2^63. */
        {RECORD("\"id\": \"a\", \"offset\": 0, \"n_tokens\": 4294967295, "
                "\"n_prompt\": 0"),
         "t.u8: record \"a\": 17179869180 bytes of rows"},
        {RECORD("\"id\": \"a\", \"offset\": 9223372036854775807, "
                "\"n_tokens\": 1, \"n_prompt\": 0"),
         "from byte 9223372036854775807 on, the file ends at 12"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        refuse(bad[i].index, rows, sizeof(rows), bad[i].text);
}

static void test_bad_data(void)
{
    const char *index = RECORD("\"id\": \"a\", " PLACE);
    uint8_t data[sizeof(rows)];
    refuse(index, rows, sizeof(rows) - 1, "cut short");
    refuse(index, rows, 0, "the file ends at 0");
    memcpy(data, rows, sizeof(rows));
    data[10] = 4;
    refuse(index, data, sizeof(data),
           "record \"a\": row 2, layer 1: expert 4, the model has 4");
    data[10] = 0;
    refuse(index, data, sizeof(data),
           "record \"a\": row 2, layer 1: expert 0 twice");

    akin_trace_t *trace;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(open_as("t.json", index, "t.u8", NULL, 0, &trace, &err),
                    AKIN_ERR_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "t.u8: cannot open"));
    /* A published set's data file is found by the index's name alone. */
    CU_ASSERT_EQUAL(open_as("t.txt",
                            "{\"layers\": 2, \"experts\": 4, \"top_k\": 2, "
                            "\"records\": [{\"id\": 1, \"n_tokens\": 3, "
                            "\"offset\": 0}]}",
                            "t.u8", rows, sizeof(rows), &trace, &err),
                    AKIN_ERR_FORMAT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "does not end in .json"));
}

static void test_bad_files(void)
{
    akin_trace_t *trace;
    akin_error_t err = {{0}};
    const char *fifo = scratch_path("fifo.json");
    CU_ASSERT_EQUAL(akin_trace_open(scratch_path("none.json"), &trace, &err),
                    AKIN_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(akin_trace_open("/dev/zero", &trace, &err), AKIN_ERR_IO);
    CU_ASSERT_EQUAL(akin_trace_open("/", &trace, &err), AKIN_ERR_IO);
    CU_ASSERT_EQUAL_FATAL(mkfifo(fifo, (mode_t)0600), 0);
    CU_ASSERT_EQUAL(akin_trace_open(fifo, &trace, &err), AKIN_ERR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not a regular file"));
    CU_ASSERT_PTR_NULL(trace);
    akin_trace_close(NULL);
    scratch_remove(fifo);
}

static const runner_test_t tests[] = {
    {"own format", test_own_format},
    {"published layouts", test_published_layouts},
    {"wide ids", test_wide_ids},
    {"bad heads", test_bad_heads},
    {"bad records", test_bad_records},
    {"bad data", test_bad_data},
    {"bad files", test_bad_files},
};

RUNNER_MAIN("trace", tests)
