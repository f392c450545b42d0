/* Traces written: read back, resumed from every cut, refused, full disks. */
#include "runner.h"
#include "scratch_file.h"
#include "trace_rows.h"

#include "base/log.h"
#include "routing/trace_writer.h"

#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>

enum {
    LAYERS = 3,
    EXPERTS = 16,
    TOP_K = 4,
    IDS = LAYERS * TOP_K,
    MAX_ROWS = 9
};

/* Unlike the buffers of scratch_path() this one stays. */
static const char *trace_path(void)
{
    static char path[1024];
    (void)snprintf(path, sizeof(path), "%s", scratch_path("t.json"));
    return path;
}

static akin_trace_writer_params_t params_of(const char *path)
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

static void make_request(uint32_t i, request_t *r)
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

static void append(akin_trace_writer_t *writer, uint32_t i)
{
    request_t r;
    akin_error_t err = {{0}};
    make_request(i, &r);
    CU_ASSERT_EQUAL_FATAL(
        akin_trace_writer_append(writer, &r.record, r.routes, &err), AKIN_OK);
}

static akin_trace_writer_t *begin(const char *path, int resume)
{
    akin_trace_writer_params_t params = params_of(path);
    akin_trace_writer_t *writer;
    akin_error_t err = {{0}};
    params.resume = resume;
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_create(&params, &writer, &err),
                          AKIN_OK);
    return writer;
}

static void finish(akin_trace_writer_t *writer)
{
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_trace_writer_finish(writer, &err), AKIN_OK);
    akin_trace_writer_destroy(writer);
}

static void remove_all(void)
{
    static const char *const names[] = {"t.json.part", "t.json.tmp", "t.u8",
                                        "t.u16", "t.json"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        scratch_remove(scratch_path(names[i]));
}

/* The trace must hold the requests 0 to n - 1, whatever their order. */
static void check_trace(const char *path, uint32_t n)
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
        request_t r;
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

typedef struct image {
    char *journal;
    char *data;
    size_t journal_bytes;
    size_t data_bytes;
} image_t;

/* What four requests leave when the process is killed. */
static image_t killed_image(void)
{
    image_t image;
    /* The warnings about what is left out are many here. */
    CU_ASSERT_EQUAL(akin_log_configure("error", NULL), AKIN_OK);
    akin_trace_writer_t *writer = begin(trace_path(), 0);
    for (uint32_t i = 0; i < 4; i++)
        append(writer, i);
    akin_trace_writer_destroy(writer);
    image.journal =
        scratch_read(scratch_path("t.json.part"), &image.journal_bytes);
    image.data = scratch_read(scratch_path("t.u8"), &image.data_bytes);
    remove_all();
    return image;
}

/* Rows of the requests 0 to n - 1. */
static size_t rows_until(uint32_t n)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += 3 + i % 6;
    return sum;
}

/* Resume from these files: `left` requests must have survived, no byte of the
 * others, and the trace must come out as if nothing had happened. */
static void resume_from(const char *journal, size_t journal_bytes,
                        const char *data, size_t data_bytes, uint32_t left)
{
    const char *path = trace_path();
    struct stat st;
    scratch_write(scratch_path("t.json.part"), journal, journal_bytes);
    if (data != NULL)
        scratch_write(scratch_path("t.u8"), data, data_bytes);
    akin_trace_writer_t *writer = begin(path, 1);
    CU_ASSERT_EQUAL_FATAL(akin_trace_writer_count(writer), left);
    CU_ASSERT_EQUAL_FATAL(stat(scratch_path("t.u8"), &st), 0);
    CU_ASSERT_EQUAL((size_t)st.st_size, rows_until(left) * IDS);
    for (uint32_t i = 0; i < 5; i++) {
        request_t r;
        make_request(i, &r);
        CU_ASSERT_EQUAL(akin_trace_writer_has(writer, r.id) != 0, i < left);
        if (i >= left)
            append(writer, i);
    }
    finish(writer);
    check_trace(path, 5);
    remove_all();
}

static void test_resume_after_every_cut(void)
{
    image_t image = killed_image();
    for (size_t cut = 0; cut <= image.journal_bytes; cut++) {
        uint32_t lines = 0;
        for (size_t i = 0; i < cut; i++)
            lines += image.journal[i] == '\n';
        /* Before its first line is whole a journal has no data beside it. */
        resume_from(image.journal, cut, lines > 0 ? image.data : NULL,
                    image.data_bytes, lines > 0 ? lines - 1 : 0);
    }
    /* The rows of the third and fourth request are gone, or not all there. */
    for (size_t cut = rows_until(2) * IDS; cut < rows_until(3) * IDS; cut += 7)
        resume_from(image.journal, image.journal_bytes, image.data, cut, 2);
    resume_from(image.journal, image.journal_bytes, NULL, 0, 0);
    free(image.journal);
    free(image.data);
}

/* After a crash of the machine a file may have its length but not its
 * content: the checksum finds rows that are whole, valid and wrong. */
static void test_resume_damaged(void)
{
    image_t image = killed_image();
    char *row = image.data + rows_until(1) * IDS;
    for (int i = 0; i < TOP_K / 2; i++) {
        char first = row[i];
        row[i] = row[TOP_K - 1 - i];
        row[TOP_K - 1 - i] = first;
    }
    resume_from(image.journal, image.journal_bytes, image.data,
                image.data_bytes, 1);
    memset(image.journal + image.journal_bytes - 20, 0, 20);
    image.journal[image.journal_bytes - 1] = '\n';
    memset(row, 0, IDS);
    resume_from(image.journal, image.journal_bytes, image.data,
                image.data_bytes, 1);
    free(image.journal);
    free(image.data);
}

static void refuse_create(const akin_trace_writer_params_t *params,
                          akin_status_t status, const char *text)
{
    akin_trace_writer_t *writer;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_trace_writer_create(params, &writer, &err), status);
    CU_ASSERT_PTR_NULL(writer);
    if (strstr(err.text, text) == NULL) {
        printf("\n  \"%s\" is not in \"%s\"\n", text, err.text);
        CU_FAIL("message");
    }
}

static void test_bad_creates(void)
{
    const char *path = trace_path();
    akin_trace_writer_params_t params = params_of(path);
    params.shape.top_k = 17;
    refuse_create(&params, AKIN_ERR_INVALID, "top_k is 17 of 16");
    params = params_of(path);
    params.shape.n_layers = 0;
    refuse_create(&params, AKIN_ERR_INVALID, "0 layers");
    params = params_of(path);
    params.model = "\xff";
    refuse_create(&params, AKIN_ERR_INVALID, "UTF-8");
    params = params_of("/nonexistent/t.json");
    refuse_create(&params, AKIN_ERR_NOT_FOUND, "/nonexistent/t.json.part");

    /* Nothing that is there is written over. */
    params = params_of(path);
    scratch_write(path, "x", 1);
    refuse_create(&params, AKIN_ERR_EXISTS, "t.json: exists already");
    params.resume = 1;
    refuse_create(&params, AKIN_ERR_EXISTS, "t.json: exists already");
    remove_all();
    params.path = trace_path();
    scratch_write(scratch_path("t.u8"), "x", 1);
    refuse_create(&params, AKIN_ERR_EXISTS, "t.u8: exists already");
    CU_ASSERT_EQUAL(access(scratch_path("t.json.part"), F_OK), -1);
    remove_all();
    for (int line = 0; line < 2; line++) {
        size_t bytes;
        params.path = trace_path();
        scratch_write(scratch_path("t.json.part"), "my own notes\n",
                      line ? 13 : 5);
        refuse_create(&params, AKIN_ERR_FORMAT, "not the journal of a trace");
        char *text = scratch_read(scratch_path("t.json.part"), &bytes);
        CU_ASSERT_EQUAL(bytes, line ? 13 : 5);
        free(text);
        remove_all();
    }
}

static void test_foreign_journals(void)
{
    const char *path = trace_path();
    akin_trace_writer_t *writer = begin(path, 0);
    append(writer, 0);
    akin_trace_writer_params_t params = params_of(path);
    refuse_create(&params, AKIN_ERR_EXISTS, "--resume");
    params.resume = 1;
    refuse_create(&params, AKIN_ERR_BUSY, "another process");
    akin_trace_writer_destroy(writer);
    params.model = "other";
    refuse_create(&params, AKIN_ERR_FORMAT,
                  "of the model \"tiny \"moe\"\" was begun there, not of "
                  "\"other\"");
    params = params_of(path);
    params.resume = 1;
    params.shape.top_k = 2;
    refuse_create(&params, AKIN_ERR_FORMAT,
                  "3 layers, 16 experts, top_k 4, id_bytes 1 was begun there, "
                  "this one has 3, 16, 2 and 1");
    params = params_of(path);
    params.resume = 1;
    params.prompt_stands_in = 1;
    refuse_create(&params, AKIN_ERR_FORMAT, "prompts that were recorded");
    remove_all();
}

static void test_bad_appends(void)
{
    request_t good;
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
        request_t r;
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
    {"resume after every cut", test_resume_after_every_cut},
    {"resume of damaged files", test_resume_damaged},
    {"bad creates", test_bad_creates},
    {"foreign journals", test_foreign_journals},
    {"bad appends", test_bad_appends},
    {"nothing to finish", test_nothing_to_finish},
    {"full disk", test_full_disk},
};

RUNNER_MAIN("trace writer", tests)
