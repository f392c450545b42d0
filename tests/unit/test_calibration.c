/* Calibration: counts out of traces that are small enough to count by hand. */
#include "runner.h"
#include "scratch_file.h"

#include "routing/calibration.h"

#include <string.h>

/* Two layers of four experts, two of them per row. Record a has two rows of
 * prompt and three of decode; b one and one; c no row of decode; the prompt of
 * d is unknown. */
#define ROWS_A                                                                 \
    "\0\1\2\3"                                                                 \
    "\0\2\2\3"                                                                 \
    "\0\1\0\1"                                                                 \
    "\0\3\1\0"                                                                 \
    "\1\0\2\0"
#define ROWS_B                                                                 \
    "\3\2\1\0"                                                                 \
    "\2\3\0\1"
#define ROWS_C                                                                 \
    "\0\1\0\1"                                                                 \
    "\0\1\0\1"
#define ROWS_D                                                                 \
    "\0\1\2\3"                                                                 \
    "\2\3\0\1"                                                                 \
    "\1\2\1\2"

static const char rows[] = ROWS_A ROWS_B ROWS_C ROWS_D;

static const char index_text[] =
    "{\"format\": \"akin-trace-1\", \"model\": \"tiny\", \"layers\": 2,"
    " \"experts\": 4, \"top_k\": 2, \"id_bytes\": 1, \"data\": \"t.u8\","
    " \"records\": ["
    "{\"id\": \"a\", \"offset\": 0, \"n_tokens\": 5, \"n_prompt\": 2,"
    " \"domain\": \"law\"},"
    "{\"id\": \"b\", \"offset\": 20, \"n_tokens\": 2, \"n_prompt\": 1,"
    " \"domain\": \"code\"},"
    "{\"id\": \"c\", \"offset\": 28, \"n_tokens\": 2, \"n_prompt\": 2,"
    " \"domain\": \"none\"},"
    "{\"id\": \"d\", \"offset\": 36, \"n_tokens\": 3, \"n_prompt\": 0}]}";

static akin_trace_t *open_trace(void)
{
    akin_trace_t *trace = NULL;
    akin_error_t err = {{0}};
    scratch_write(scratch_path("t.json"), index_text, sizeof(index_text) - 1);
    scratch_write(scratch_path("t.u8"), rows, sizeof(rows) - 1);
    akin_status_t status =
        akin_trace_open(scratch_path("t.json"), &trace, &err);
    if (status != AKIN_OK)
        printf("%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(status, AKIN_OK);
    scratch_remove(scratch_path("t.u8"));
    scratch_remove(scratch_path("t.json"));
    return trace;
}

static void test_counts(void)
{
    akin_trace_t *trace = open_trace();
    akin_calibration_t *c = NULL;
    const akin_calibration_params_t params = {.prompt_tokens = 1};
    CU_ASSERT_EQUAL_FATAL(akin_calibration_create(trace, &params, &c, NULL),
                          AKIN_OK);
    /* What it holds outlives the trace. */
    akin_trace_close(trace);
    CU_ASSERT_STRING_EQUAL(c->model, "tiny");
    CU_ASSERT_EQUAL(c->n_layers, 2);
    CU_ASSERT_EQUAL(c->n_experts, 4);
    CU_ASSERT_EQUAL(c->top_k, 2);
    CU_ASSERT_EQUAL_FATAL(c->n_requests, 3);
    CU_ASSERT_EQUAL(c->n_short, 1);
    const uint16_t prefill[3][8] = {{2, 1, 1, 0, 0, 0, 2, 2},
                                    {0, 0, 1, 1, 1, 1, 0, 0},
                                    {1, 1, 0, 0, 0, 0, 1, 1}};
    const uint16_t decode[3][8] = {{3, 2, 0, 1, 3, 2, 1, 0},
                                   {0, 0, 1, 1, 1, 1, 0, 0},
                                   {0, 1, 2, 1, 1, 2, 1, 0}};
    CU_ASSERT_EQUAL(memcmp(c->prefill, prefill, sizeof(prefill)), 0);
    CU_ASSERT_EQUAL(memcmp(c->decode, decode, sizeof(decode)), 0);
    static const char *const ids[3] = {"a", "b", "d"};
    const uint32_t records[3] = {0, 1, 3}, n_prompt[3] = {2, 1, 1},
                   n_decode[3] = {3, 1, 2},
                   domain[3] = {0, 1, AKIN_CALIBRATION_NO_DOMAIN};
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_STRING_EQUAL(c->ids[i], ids[i]);
        CU_ASSERT_EQUAL(c->records[i], records[i]);
        CU_ASSERT_EQUAL(c->n_prompt[i], n_prompt[i]);
        CU_ASSERT_EQUAL(c->n_decode[i], n_decode[i]);
        CU_ASSERT_EQUAL(c->domain[i], domain[i]);
    }
    /* A record that was left out brings no domain. */
    CU_ASSERT_EQUAL_FATAL(c->n_domains, 2);
    CU_ASSERT_STRING_EQUAL(c->domains[0], "law");
    CU_ASSERT_STRING_EQUAL(c->domains[1], "code");
    akin_calibration_destroy(c);
}

/* Some records in an order of the caller's, of three rows or more. */
static void test_chosen(void)
{
    akin_trace_t *trace = open_trace();
    akin_calibration_t *c = NULL;
    const uint32_t records[] = {3, 1, 0};
    const akin_calibration_params_t params = {
        .records = records,
        .n_records = 3,
        .prompt_tokens = 2,
        .min_tokens = 3,
    };
    CU_ASSERT_EQUAL_FATAL(akin_calibration_create(trace, &params, &c, NULL),
                          AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(c->n_requests, 2);
    CU_ASSERT_EQUAL(c->n_short, 1);
    CU_ASSERT_EQUAL(c->records[0], 3);
    CU_ASSERT_EQUAL(c->n_prompt[0], 2);
    CU_ASSERT_EQUAL(c->n_decode[0], 1);
    CU_ASSERT_EQUAL(c->records[1], 0);
    CU_ASSERT_EQUAL(c->n_prompt[1], 2);
    CU_ASSERT_STRING_EQUAL(c->domains[c->domain[1]], "law");
    akin_calibration_destroy(c);
    akin_trace_close(trace);
}

/* Of the two rows of a's prompt, and of the three after it, the first. */
static void test_first_tokens(void)
{
    akin_trace_t *trace = open_trace();
    akin_calibration_t *c = NULL;
    const uint32_t record = 0;
    akin_calibration_params_t params = {
        .records = &record, .n_records = 1, .max_tokens = 1};
    CU_ASSERT_EQUAL_FATAL(akin_calibration_create(trace, &params, &c, NULL),
                          AKIN_OK);
    const uint16_t prefill[8] = {1, 1, 0, 0, 0, 0, 1, 1};
    const uint16_t decode[8] = {1, 1, 0, 0, 1, 1, 0, 0};
    CU_ASSERT_EQUAL(memcmp(c->prefill, prefill, sizeof(prefill)), 0);
    CU_ASSERT_EQUAL(memcmp(c->decode, decode, sizeof(decode)), 0);
    CU_ASSERT_EQUAL(c->n_prompt[0], 1);
    CU_ASSERT_EQUAL(c->n_decode[0], 1);
    akin_calibration_destroy(c);
    /* Lengths alone. */
    params.max_tokens = 0;
    params.no_counts = true;
    CU_ASSERT_EQUAL_FATAL(akin_calibration_create(trace, &params, &c, NULL),
                          AKIN_OK);
    CU_ASSERT_PTR_NULL(c->prefill);
    CU_ASSERT_PTR_NULL(c->decode);
    CU_ASSERT_EQUAL(c->n_prompt[0], 2);
    CU_ASSERT_EQUAL(c->n_decode[0], 3);
    akin_calibration_destroy(c);
    akin_trace_close(trace);
}

static void test_refuses(void)
{
    akin_trace_t *trace = open_trace();
    static const uint32_t twice[] = {1, 0, 1}, beyond[] = {0, 4}, none[] = {0},
                          no_decode[] = {2};
    const struct {
        akin_calibration_params_t params;
        const char *message;
    } rows_of_test[] = {
        {{.records = NULL}, "\"d\" are its prompt's; say how many"},
        {{.records = twice, .n_records = 3, .prompt_tokens = 1},
         "record 1 is named twice"},
        {{.records = beyond, .n_records = 2, .prompt_tokens = 1},
         "record 4 is named, the trace has 4"},
        {{.records = none, .prompt_tokens = 1}, "no records are named"},
        {{.records = no_decode, .n_records = 1, .prompt_tokens = 1},
         "all 1 have fewer"},
        {{.prompt_tokens = 1, .min_tokens = 6}, "all 4 have fewer than 6"},
    };
    for (size_t i = 0; i < sizeof(rows_of_test) / sizeof(rows_of_test[0]);
         i++) {
        akin_calibration_t *c = NULL;
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL(
            akin_calibration_create(trace, &rows_of_test[i].params, &c, &err),
            AKIN_ERR_INVALID);
        CU_ASSERT_PTR_NULL(c);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, rows_of_test[i].message));
    }
    akin_trace_close(trace);
}

/* 65,536 decode tokens on one expert pass what a count holds; one token less
 * does not. */
static void test_too_long(void)
{
    enum { ROWS = 65537 };
    static char data[2 * ROWS];
    static const char text[] =
        "{\"format\": \"akin-trace-1\", \"model\": \"\", \"layers\": 1,"
        " \"experts\": 2, \"top_k\": 1, \"id_bytes\": 1, \"data\": \"l.u8\","
        " \"records\": [{\"id\": \"long\", \"offset\": 0,"
        " \"n_tokens\": 65537, \"n_prompt\": 1},"
        " {\"id\": \"less\", \"offset\": 65537,"
        " \"n_tokens\": 65537, \"n_prompt\": 2}]}";
    akin_trace_t *trace = NULL;
    scratch_write(scratch_path("l.json"), text, sizeof(text) - 1);
    scratch_write(scratch_path("l.u8"), data, sizeof(data));
    akin_error_t err = {{0}};
    if (akin_trace_open(scratch_path("l.json"), &trace, &err) != AKIN_OK)
        CU_FAIL_FATAL("the trace was refused");
    scratch_remove(scratch_path("l.u8"));
    scratch_remove(scratch_path("l.json"));
    akin_calibration_t *c = NULL;
    uint32_t record = 0;
    const akin_calibration_params_t params = {.records = &record,
                                              .n_records = 1};
    CU_ASSERT_EQUAL(akin_calibration_create(trace, &params, &c, &err),
                    AKIN_ERR_RANGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "\"long\""));
    record = 1;
    CU_ASSERT_EQUAL_FATAL(akin_calibration_create(trace, &params, &c, &err),
                          AKIN_OK);
    CU_ASSERT_EQUAL(c->decode[0], 65535);
    CU_ASSERT_PTR_NULL(c->model);
    akin_calibration_destroy(c);
    akin_trace_close(trace);
}

static const runner_test_t tests[] = {
    {"counts", test_counts},
    {"chosen", test_chosen},
    {"first_tokens", test_first_tokens},
    {"refuses", test_refuses},
    {"too long", test_too_long},
};

RUNNER_MAIN("calibration", tests)
