/* Batch output: order, resume from every cut, full disks, locks, pipes. */
#include "base/clock.h"
#include "roles/batch_format.h"
#include "roles/batch_output.h"
#include "runner.h"
#include "scratch_file.h"

#include <fcntl.h>
#include <sys/resource.h>

static akin_batch_output_t *
open_output(const akin_batch_output_params_t *params)
{
    akin_batch_output_t *output;
    akin_error_t err = {{0}};
    akin_status_t status =
        akin_batch_output_open(params, NULL, NULL, &output, &err);
    if (status != AKIN_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(status, AKIN_OK);
    return output;
}

static void put(akin_batch_output_t *output, uint64_t sequence,
                const char *line)
{
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(
        akin_batch_output_put(output, sequence, line, strlen(line), 0, &err),
        AKIN_OK);
}

static void check_file(const char *path, const char *expected)
{
    size_t bytes = 0;
    char *data = scratch_read(path, &bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(data);
    CU_ASSERT_STRING_EQUAL(data, expected);
    free(data);
}

static void test_completion_order(void)
{
    const char *path = scratch_path("out");
    const akin_batch_output_params_t params = {.path = path};
    akin_batch_output_t *output = open_output(&params);
    put(output, 2, "c\n");
    put(output, 0, "a\n");
    CU_ASSERT_EQUAL(akin_batch_output_room(output, 1000000), UINT32_MAX);
    CU_ASSERT_EQUAL(akin_batch_output_close(output, NULL), AKIN_OK);
    check_file(path, "c\na\n");
    scratch_remove(path);
    CU_ASSERT_EQUAL(akin_batch_output_close(NULL, NULL), AKIN_OK);
}

static void test_ordered(void)
{
    const char *path = scratch_path("out");
    const akin_batch_output_params_t params = {
        .path = path, .ordered = 1, .max_held_lines = 4, .max_held_bytes = 100};
    akin_batch_output_t *output = open_output(&params);
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_batch_output_room(output, 0), 4);
    CU_ASSERT_EQUAL(akin_batch_output_room(output, 3), 1);
    CU_ASSERT_EQUAL(akin_batch_output_room(output, 4), 0);
    put(output, 1, "one\n");
    put(output, 3, "three\n");
    CU_ASSERT_EQUAL(akin_batch_output_held(output), 2);
    /* Twice, and too far ahead. */
    CU_ASSERT_EQUAL(akin_batch_output_put(output, 3, "x\n", 2, 0, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_EQUAL(akin_batch_output_put(output, 4, "x\n", 2, 0, &err),
                    AKIN_ERR_INVALID);
    put(output, 0, "zero\n");
    CU_ASSERT_EQUAL(akin_batch_output_held(output), 1);
    CU_ASSERT_EQUAL(akin_batch_output_put(output, 1, "x\n", 2, 0, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_EQUAL(akin_batch_output_room(output, 4), 2);
    put(output, 2, "two\n");
    CU_ASSERT_EQUAL(akin_batch_output_held(output), 0);
    /* Held bytes stop the reader, too. */
    char line[101];
    memset(line, 'x', sizeof(line));
    line[99] = '\n';
    line[100] = '\0';
    put(output, 5, line);
    CU_ASSERT_EQUAL(akin_batch_output_room(output, 6), 0);
    CU_ASSERT_EQUAL(akin_batch_output_close(output, &err), AKIN_OK);
    /* What waited for line 4 would have left a gap. */
    check_file(path, "zero\none\ntwo\nthree\n");
    scratch_remove(path);
}

static void test_refusals(void)
{
    const char *path = scratch_path("out");
    akin_batch_output_params_t params = {.path = path};
    akin_batch_output_t *output = open_output(&params);
    akin_batch_output_t *second = (void *)&second;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_batch_output_put(output, 0, "", 0, 0, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_EQUAL(akin_batch_output_put(output, 0, "x", 1, 0, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_EQUAL(akin_batch_output_put(output, 0, "x\ny\n", 4, 0, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_EQUAL(akin_batch_output_open(&params, NULL, NULL, &second, &err),
                    AKIN_ERR_BUSY);
    CU_ASSERT_PTR_NULL(second);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
    put(output, 0, "x\n");
    CU_ASSERT_EQUAL(akin_batch_output_close(output, &err), AKIN_OK);
    CU_ASSERT_EQUAL(akin_batch_output_open(&params, NULL, NULL, &second, &err),
                    AKIN_ERR_EXISTS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--resume"));
    check_file(path, "x\n");
    scratch_remove(path);

    akin_id_set_t *done;
    CU_ASSERT_EQUAL_FATAL(akin_id_set_create(&done), AKIN_OK);
    params.path = "/";
    CU_ASSERT_EQUAL(akin_batch_output_open(&params, done, NULL, &second, &err),
                    AKIN_ERR_INVALID);
    params.path = "/nonexistent/out";
    CU_ASSERT_EQUAL(akin_batch_output_open(&params, done, NULL, &second, &err),
                    AKIN_ERR_NOT_FOUND);
    params.resume = 1;
    params.path = "-";
    CU_ASSERT_EQUAL(akin_batch_output_open(&params, done, NULL, &second, &err),
                    AKIN_ERR_INVALID);
    params.path = "/dev/null";
    CU_ASSERT_EQUAL(akin_batch_output_open(&params, done, NULL, &second, &err),
                    AKIN_ERR_INVALID);
    akin_id_set_destroy(done);
}

/* Three lines as the formatter makes them: an answer, an error with and one
 * without a custom_id. Returns the file's text; ends[i] is where line i
 * ends. */
static char *make_lines(size_t ends[3])
{
    static char ids[2][8] = {"first", "second"};
    static uint32_t tokens[] = {5, 6};
    akin_batch_format_t *format;
    const akin_batch_format_params_t params = {.model = "m"};
    CU_ASSERT_EQUAL_FATAL(akin_batch_format_create(&params, &format), AKIN_OK);
    const akin_request_t request = {
        .custom_id = ids[0], .prompt = tokens, .n_prompt = 2};
    const akin_result_t result = {.tokens = tokens,
                                  .n_tokens = 2,
                                  .text = "\xe2\x82\xac",
                                  .text_bytes = 3};
    char *text = calloc(1, 4096);
    const char *line;
    size_t bytes;
    size_t n = 0;
    for (int i = 0; i < 3; i++) {
        akin_request_error_t error;
        memset(&error, 0, sizeof(error));
        error.line = 77;
        error.has_id = i == 1;
        (void)snprintf(error.custom_id, sizeof(error.custom_id), "%s", ids[1]);
        (void)akin_request_error_set(&error, i == 1 ? 503 : 400, NULL, NULL,
                                     "no");
        akin_status_t status =
            i == 0 ? akin_batch_format_result(format, &request, &result, &line,
                                              &bytes)
                   : akin_batch_format_error(format, &error, &line, &bytes);
        CU_ASSERT_EQUAL_FATAL(status, AKIN_OK);
        memcpy(text + n, line, bytes);
        n += bytes;
        ends[i] = n;
    }
    akin_batch_format_destroy(format);
    return text;
}

static void test_resume_every_cut(void)
{
    size_t ends[3];
    char *text = make_lines(ends);
    const char *path = scratch_path("out");
    for (size_t cut = 0; cut <= ends[2]; cut++) {
        akin_id_set_t *done;
        akin_batch_resume_t found;
        akin_batch_output_t *output;
        akin_error_t err = {{0}};
        const akin_batch_output_params_t params = {.path = path, .resume = 1};
        scratch_write(path, text, cut);
        CU_ASSERT_EQUAL_FATAL(akin_id_set_create(&done), AKIN_OK);
        akin_status_t status =
            akin_batch_output_open(&params, done, &found, &output, &err);
        if (status != AKIN_OK)
            (void)fprintf(stderr, "cut %zu: %s\n", cut, err.text);
        CU_ASSERT_EQUAL_FATAL(status, AKIN_OK);
        uint64_t whole = 0;
        size_t kept = 0;
        for (int i = 0; i < 3; i++)
            if (ends[i] <= cut) {
                whole++;
                kept = ends[i];
            }
        CU_ASSERT_EQUAL(found.n_lines, whole);
        CU_ASSERT_EQUAL(found.n_ok, whole >= 1);
        CU_ASSERT_EQUAL(found.n_server, whole >= 2);
        CU_ASSERT_EQUAL(found.n_failed, whole >= 2 ? whole - 1 : 0);
        CU_ASSERT_EQUAL(found.torn_bytes, cut - kept);
        CU_ASSERT_EQUAL(akin_id_set_has(done, "first"), whole >= 1);
        CU_ASSERT_EQUAL(akin_id_set_has(done, "second"), whole >= 2);
        CU_ASSERT_EQUAL(akin_id_set_has_line(done, 77), whole >= 3);
        CU_ASSERT_EQUAL(akin_id_set_size(done), whole);
        /* Going on gives the file of a run without the cut. */
        for (size_t i = whole; i < 3; i++) {
            size_t begin = i == 0 ? 0 : ends[i - 1];
            CU_ASSERT_EQUAL(akin_batch_output_put(output, 0, text + begin,
                                                  ends[i] - begin, 0, &err),
                            AKIN_OK);
        }
        CU_ASSERT(akin_batch_output_written(output) <= 3 - whole);
        CU_ASSERT_EQUAL(akin_batch_output_close(output, &err), AKIN_OK);
        check_file(path, text);
        akin_id_set_destroy(done);
    }
    scratch_remove(path);
    free(text);
}

static void check_bad_resume(const char *data, size_t bytes, const char *says)
{
    const char *path = scratch_path("out");
    akin_id_set_t *done;
    akin_batch_output_t *output;
    akin_error_t err = {{0}};
    const akin_batch_output_params_t params = {.path = path, .resume = 1};
    scratch_write(path, data, bytes);
    CU_ASSERT_EQUAL_FATAL(akin_id_set_create(&done), AKIN_OK);
    CU_ASSERT_EQUAL(akin_batch_output_open(&params, done, NULL, &output, &err),
                    AKIN_ERR_FORMAT);
    CU_ASSERT_PTR_NULL(output);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, says));
    if (strstr(err.text, says) == NULL)
        (void)fprintf(stderr, "%s\n", err.text);
    size_t now = 0;
    char *kept = scratch_read(path, &now);
    CU_ASSERT_EQUAL(now, bytes);
    CU_ASSERT_EQUAL(memcmp(kept, data, bytes), 0);
    free(kept);
    akin_id_set_destroy(done);
    scratch_remove(path);
}

#define BAD_RESUME(data, says) check_bad_resume(data, sizeof(data) - 1, says)
#define ANSWER(id)                                                             \
    "{\"id\":\"x\",\"custom_id\":\"" id                                        \
    "\",\"response\":{\"status_code\":200},\"error\":null}\n"

static void test_bad_resume(void)
{
    BAD_RESUME(ANSWER("a") "{\"id\n" ANSWER("b"), ":2: not valid JSON");
    BAD_RESUME(ANSWER("a") "\n" ANSWER("a"), ":3: a second answer");
    /* The input, given as output by mistake. */
    BAD_RESUME("{\"custom_id\":\"a\",\"method\":\"POST\",\"url\":\"u\","
               "\"body\":{}}\n",
               ":1: no line of batch output (response)");
    BAD_RESUME("{\"id\":\"x\",\"response\":{\"status_code\":200}}\n",
               "(custom_id)");
    BAD_RESUME("[]\n", "(custom_id)");
    BAD_RESUME(ANSWER("a") "some notes", ":2: the file ends with");
    BAD_RESUME("precious data without an end of line", ":1: the file ends");
}

/* Files of others, and what a crashed file system may leave. */
static void test_good_resume(void)
{
    static const char openai[] =
        "{\"id\": \"a\", \"custom_id\": \"a\", \"response\": null, \"error\": "
        "{\"code\": \"batch_expired\", \"message\": \"\"}}\n";
    char data[sizeof(openai) + 99];
    memset(data, 0, sizeof(data));
    memcpy(data, openai, sizeof(openai));
    const char *path = scratch_path("out");
    akin_id_set_t *done;
    akin_batch_output_t *output;
    akin_batch_resume_t found;
    akin_error_t err = {{0}};
    const akin_batch_output_params_t params = {.path = path, .resume = 1};
    scratch_write(path, data, sizeof(data));
    CU_ASSERT_EQUAL_FATAL(akin_id_set_create(&done), AKIN_OK);
    CU_ASSERT_EQUAL_FATAL(
        akin_batch_output_open(&params, done, &found, &output, &err), AKIN_OK);
    CU_ASSERT_EQUAL(found.n_failed, 1);
    CU_ASSERT_EQUAL(found.torn_bytes, 100);
    CU_ASSERT_EQUAL(akin_batch_output_close(output, &err), AKIN_OK);
    check_file(path, openai);
    akin_id_set_destroy(done);
    scratch_remove(path);
}

/* Put until it fails, at most for some seconds; returns the status. */
static akin_status_t put_until_failure(akin_batch_output_t *output,
                                       akin_error_t *err)
{
    int64_t deadline = akin_clock_now_ns() + 20 * AKIN_NS_PER_S;
    akin_status_t status = AKIN_OK;
    while (status == AKIN_OK && akin_clock_now_ns() < deadline) {
        status =
            akin_batch_output_put(output, 0, "0123456789abcde\n", 16, 0, err);
        (void)usleep(1000);
    }
    return status;
}

static void test_device_full(void)
{
    const akin_batch_output_params_t params = {.path = "/dev/full"};
    akin_batch_output_t *output = open_output(&params);
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(put_until_failure(output, &err), AKIN_ERR_FULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/dev/full"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "No space left"));
    /* It stays that way. */
    akin_error_t again = {{0}};
    CU_ASSERT_EQUAL(akin_batch_output_tick(output, 0, &again), AKIN_ERR_FULL);
    CU_ASSERT_STRING_EQUAL(again.text, err.text);
    CU_ASSERT_EQUAL(akin_batch_output_close(output, &again), AKIN_ERR_FULL);
}

/* A file size limit cuts a line in the middle: the file must end with the line
 * before. */
static void test_file_limit(void)
{
    const char *path = scratch_path("out");
    const akin_batch_output_params_t params = {.path = path};
    struct rlimit before;
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {.rlim_cur = 100, .rlim_max = before.rlim_max};
    akin_batch_output_t *output = open_output(&params);
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &small), 0);
    akin_status_t status = put_until_failure(output, &err);
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_FSIZE, &before), 0);
    CU_ASSERT_EQUAL(status, AKIN_ERR_FULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "after 6 lines"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "--resume"));
    CU_ASSERT_EQUAL(akin_batch_output_written(output), 6);
    CU_ASSERT_EQUAL(akin_batch_output_close(output, &err), AKIN_ERR_FULL);
    size_t bytes = 0;
    char *data = scratch_read(path, &bytes);
    CU_ASSERT_EQUAL(bytes, 96);
    free(data);
    scratch_remove(path);
}

/* A reader of a FIFO that takes its time, then one that goes away. */
static void test_fifo(void)
{
    const char *path = scratch_path("fifo");
    CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
    akin_batch_output_params_t params = {.path = path,
                                         .max_held_bytes = 1 << 20};
    akin_batch_output_t *output;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_batch_output_open(&params, NULL, NULL, &output, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "nobody reads"));
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    CU_ASSERT_FATAL(fd >= 0);
    output = open_output(&params);
    /* More than a pipe holds: put() must not wait for the reader. */
    static char line[1 << 18];
    memset(line, 'x', sizeof(line));
    line[sizeof(line) - 1] = '\n';
    for (int i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(
            akin_batch_output_put(output, 0, line, sizeof(line), 0, &err),
            AKIN_OK);
    CU_ASSERT_EQUAL(akin_batch_output_room(output, 0), 0);
    size_t got = 0;
    int64_t deadline = akin_clock_now_ns() + 20 * AKIN_NS_PER_S;
    static char buffer[1 << 16];
    while (got < 4 * sizeof(line) && akin_clock_now_ns() < deadline) {
        ssize_t n = read(fd, buffer, sizeof(buffer));
        if (n > 0)
            got += (size_t)n;
        else
            (void)usleep(1000);
    }
    CU_ASSERT_EQUAL(got, 4 * sizeof(line));
    while (akin_batch_output_room(output, 0) == 0 &&
           akin_clock_now_ns() < deadline)
        (void)usleep(1000);
    CU_ASSERT_EQUAL(akin_batch_output_room(output, 0), UINT32_MAX);
    (void)close(fd);
    CU_ASSERT_EQUAL(put_until_failure(output, &err), AKIN_ERR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "Broken pipe"));
    CU_ASSERT_EQUAL(akin_batch_output_close(output, &err), AKIN_ERR_IO);
    scratch_remove(path);
}

/* Syncs are asked for by count and by the caller's clock; either way the lines
 * are there without a close. */
static void test_sync(void)
{
    const char *path = scratch_path("out");
    const akin_batch_output_params_t params = {
        .path = path, .sync_lines = 2, .sync_ns = 10};
    akin_batch_output_t *output = open_output(&params);
    akin_error_t err = {{0}};
    for (int64_t now = 0; now < 100; now += 7)
        CU_ASSERT_EQUAL(akin_batch_output_put(output, 0, "x\n", 2, now, &err),
                        AKIN_OK);
    CU_ASSERT_EQUAL(akin_batch_output_tick(output, 1000, &err), AKIN_OK);
    int64_t deadline = akin_clock_now_ns() + 20 * AKIN_NS_PER_S;
    while (akin_batch_output_written(output) < 15 &&
           akin_clock_now_ns() < deadline)
        (void)usleep(1000);
    CU_ASSERT_EQUAL(akin_batch_output_written(output), 15);
    size_t bytes = 0;
    char *data = scratch_read(path, &bytes);
    CU_ASSERT_EQUAL(bytes, 30);
    free(data);
    CU_ASSERT_EQUAL(akin_batch_output_close(output, &err), AKIN_OK);
    scratch_remove(path);
}

static const runner_test_t tests[] = {
    {"completion order", test_completion_order},
    {"ordered", test_ordered},
    {"refusals", test_refusals},
    {"resume from every cut", test_resume_every_cut},
    {"bad resume", test_bad_resume},
    {"good resume", test_good_resume},
    {"device full", test_device_full},
    {"file limit", test_file_limit},
    {"fifo", test_fifo},
    {"sync", test_sync},
};

RUNNER_MAIN("batch output", tests)
