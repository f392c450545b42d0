/* Traces written: read back, refused records, full disks. */
#include "runner.h"
#include "trace_requests.h"

#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>

static void test_round_trip(void)
{
    const char *path = trace_path();
    akin_trace_writer_t *writer = begin(path, 0);
    /* More than are synced at once. */
    for (uint32_t i = 0; i < 90; i++)
        append(writer, i);
    CU_ASSERT_EQUAL(akin_trace_writer_count(writer), 90);
    finish(writer);
    check_trace(path, 90);
    CU_ASSERT_EQUAL(access(scratch_path("t.json.part"), F_OK), -1);
    CU_ASSERT_EQUAL(access(scratch_path("t.json.tmp"), F_OK), -1);
    remove_all();
}

/* A byte cannot name 512 experts; the two bytes come low first. */
static void test_wide_ids(void)
{
    const char *path = trace_path();
    static const uint16_t routes[] = {511, 256, 255, 0};
    const akin_trace_record_t record = {
        .id = "w", .n_tokens = 2, .n_prompt = 1, .arrival_s = -1.0};
    const akin_trace_writer_params_t params = {
        .path = path,
        .shape = {.n_layers = 1, .n_experts = 512, .top_k = 2},
        .prompt_stands_in = 1,
    };
    akin_trace_writer_t *writer;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_create(&params, &writer, &err),
                          AKIN_OK);
    CU_ASSERT_EQUAL(akin_trace_writer_append(writer, &record, routes, &err),
                    AKIN_OK);
    finish(writer);
    static const uint8_t expected[] = {0xff, 1, 0, 1, 0xff, 0, 0, 0};
    size_t bytes = 0;
    char *data = scratch_read(scratch_path("t.u16"), &bytes);
    CU_ASSERT_EQUAL_FATAL(bytes, sizeof(expected));
    CU_ASSERT_EQUAL(memcmp(data, expected, bytes), 0);
    free(data);
    akin_trace_t *trace;
    uint16_t read[4];
    CU_ASSERT_EQUAL_FATAL(akin_trace_open(path, &trace, &err), AKIN_OK);
    CU_ASSERT_EQUAL(akin_trace_shape(trace)->id_bytes, 2);
    CU_ASSERT(akin_trace_prompt_stands_in(trace));
    akin_trace_routes(trace, 0, 0, 2, read);
    CU_ASSERT_EQUAL(memcmp(read, routes, sizeof(read)), 0);
    akin_trace_close(trace);
    remove_all();
}

/* Blank the digits after every "offset": the rest must not depend on the
 * order of the requests. */
static void blank_offsets(char *text)
{
    for (char *at = text; (at = strstr(at, "\"offset\": ")) != NULL;) {
        at += strlen("\"offset\": ");
        size_t digits = strspn(at, "0123456789");
        memmove(at, at + digits, strlen(at + digits) + 1);
    }
}

static void test_order(void)
{
    char *texts[2];
    for (uint32_t turned = 0; turned < 2; turned++) {
        akin_trace_writer_t *writer = begin(trace_path(), 0);
        for (uint32_t i = 0; i < 20; i++)
            append(writer, turned ? 19 - i : i);
        finish(writer);
        size_t bytes;
        texts[turned] = scratch_read(trace_path(), &bytes);
        remove_all();
    }
    CU_ASSERT_STRING_NOT_EQUAL(texts[0], texts[1]);
    blank_offsets(texts[0]);
    blank_offsets(texts[1]);
    CU_ASSERT_STRING_EQUAL(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
}

static void test_bad_appends(void)
{
    request_t good = {0};
    make_request(0, &good);
    char long_id[4098];
    memset(long_id, 'x', sizeof(long_id) - 1);
    long_id[sizeof(long_id) - 1] = '\0';
    static const struct {
        const char *id;
        const char *domain;
        uint32_t n_tokens;
        uint32_t n_prompt;
        int row; /* where an id is changed; -1: none is */
        uint16_t to;
        akin_status_t status;
        const char *text;
    } bad[] = {
        {"", NULL, 3, 0, -1, 0, AKIN_ERR_INVALID, "the id is empty"},
        {"\xc3", NULL, 3, 0, -1, 0, AKIN_ERR_INVALID, "UTF-8"},
        {"a", "\xc3", 3, 0, -1, 0, AKIN_ERR_INVALID, "UTF-8"},
        {NULL, NULL, 3, 0, -1, 0, AKIN_ERR_INVALID, "longer than 4096"},
        {"97-r", NULL, 3, 0, -1, 0, AKIN_ERR_EXISTS, "record \"97-r\": the id"},
        {"a", NULL, 0, 0, -1, 0, AKIN_ERR_INVALID, "0 rows"},
        {"a", NULL, 3, 4, -1, 0, AKIN_ERR_INVALID, "3 rows, 4 of the prompt"},
        {"a", NULL, 3, 0, 2, 16, AKIN_ERR_INVALID,
         "row 2, layer 0: expert 16, the model has 16"},
        {"a", NULL, 3, 0, 1, 0xffff, AKIN_ERR_INVALID, "row 1, layer 0"},
    };
    akin_trace_writer_t *writer = begin(trace_path(), 0);
    append(writer, 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        request_t r = good;
        akin_error_t err = {{0}};
        r.record.id = bad[i].id != NULL ? bad[i].id : long_id;
        r.record.domain = bad[i].domain;
        r.record.n_tokens = bad[i].n_tokens;
        r.record.n_prompt = bad[i].n_prompt;
        if (bad[i].row >= 0)
            r.routes[bad[i].row * IDS + 1] = bad[i].to;
        CU_ASSERT_EQUAL(
            akin_trace_writer_append(writer, &r.record, r.routes, &err),
            bad[i].status);
        if (strstr(err.text, bad[i].text) == NULL ||
            strstr(err.text, "t.json: record") == NULL) {
            printf("\n  \"%s\" is not in \"%s\"\n", bad[i].text, err.text);
            CU_FAIL("message");
        }
    }
    request_t twice = good;
    akin_error_t err = {{0}};
    twice.record.id = "a";
    twice.routes[5] = twice.routes[4];
    CU_ASSERT_EQUAL(
        akin_trace_writer_append(writer, &twice.record, twice.routes, &err),
        AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "row 0, layer 1: expert"));
    /* Nothing of all that was written. */
    for (uint32_t i = 1; i < 3; i++)
        append(writer, i);
    finish(writer);
    check_trace(trace_path(), 3);
    remove_all();
}

static void test_nothing_to_finish(void)
{
    akin_error_t err = {{0}};
    akin_trace_writer_t *writer = begin(trace_path(), 0);
    CU_ASSERT_EQUAL(akin_trace_writer_finish(writer, &err), AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "no record"));
    CU_ASSERT_EQUAL(access(trace_path(), F_OK), -1);
    akin_trace_writer_destroy(writer);
    akin_trace_writer_destroy(NULL);
    remove_all();
}

/* A limit on the size of files stands for a full disk. At each limit what was
 * appended before stays, and when there is room again the rest follows. */
static void test_full_disk(void)
{
    struct rlimit before, limit;
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, SIG_IGN);
    for (rlim_t bytes = 160; bytes < 900; bytes += 37) {
        const char *path = trace_path();
        akin_error_t err = {{0}};
        request_t r = {0};
        uint32_t n = 0;
        akin_trace_writer_t *writer = begin(path, 0);
        limit = before;
        limit.rlim_cur = bytes;
        CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
        akin_status_t status = AKIN_OK;
        for (; n < 20; n++) {
            make_request(n, &r);
            status =
                akin_trace_writer_append(writer, &r.record, r.routes, &err);
            if (status != AKIN_OK)
                break;
        }
        CU_ASSERT_EQUAL_FATAL(status, AKIN_ERR_FULL);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot write"));
        CU_ASSERT_EQUAL(akin_trace_writer_count(writer), n);
        if (bytes % 2 != 0) {
            /* As if the process had ended there. */
            akin_trace_writer_destroy(writer);
            CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &before), 0);
            writer = begin(path, 1);
        }
        CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &before), 0);
        CU_ASSERT_EQUAL(akin_trace_writer_count(writer), n);
        for (; n < 20; n++)
            append(writer, n);
        /* No room for the index: it can be tried again. */
        limit.rlim_cur = 1000;
        CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
        CU_ASSERT_EQUAL(akin_trace_writer_finish(writer, &err), AKIN_ERR_FULL);
        CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &before), 0);
        CU_ASSERT_EQUAL(access(scratch_path("t.json.tmp"), F_OK), -1);
        finish(writer);
        check_trace(path, 20);
        remove_all();
    }
}

static const runner_test_t tests[] = {
    {"round trip", test_round_trip},
    {"wide ids", test_wide_ids},
    {"order", test_order},
    {"bad appends", test_bad_appends},
    {"nothing to finish", test_nothing_to_finish},
    {"full disk", test_full_disk},
};

RUNNER_MAIN("trace writer", tests)
