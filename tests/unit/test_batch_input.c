/* Batch input: lines against a plain splitter, limits, pipes and refusals. */
#include "base/rng.h"
#include "roles/batch_input.h"
#include "runner.h"
#include "scratch_file.h"

#include <fcntl.h>

/* What one line should be; text NULL: too long. */
typedef struct expected {
    uint64_t number;
    const char *text;
    size_t bytes;
    int torn;
} expected_t;

static void check_lines(const void *data, size_t bytes, size_t limit,
                        const expected_t *lines, size_t n)
{
    const char *path = scratch_path("in.jsonl");
    scratch_write(path, data, bytes);
    akin_batch_input_t *input;
    akin_error_t err = {{0}};
    akin_batch_line_t line;
    CU_ASSERT_EQUAL_FATAL(akin_batch_input_open(path, limit, &input, &err),
                          AKIN_OK);
    for (size_t i = 0; i < n; i++) {
        CU_ASSERT_EQUAL_FATAL(akin_batch_input_next(input, &line, &err),
                              AKIN_OK);
        CU_ASSERT_EQUAL(line.number, lines[i].number);
        CU_ASSERT_EQUAL(line.bytes, lines[i].bytes);
        CU_ASSERT_EQUAL(line.torn, lines[i].torn);
        CU_ASSERT_EQUAL(line.too_long, lines[i].text == NULL);
        CU_ASSERT_EQUAL_FATAL(line.text == NULL, lines[i].text == NULL);
        if (line.text != NULL && line.bytes == lines[i].bytes)
            CU_ASSERT_EQUAL(memcmp(line.text, lines[i].text, line.bytes), 0);
    }
    CU_ASSERT_EQUAL(akin_batch_input_next(input, &line, &err),
                    AKIN_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(akin_batch_input_next(input, &line, &err),
                    AKIN_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(akin_batch_input_offset(input), bytes);
    CU_ASSERT_EQUAL(akin_batch_input_count(path, 0), n);
    akin_batch_input_close(input);
    scratch_remove(path);
}

#define CHECK_LINES(data, limit, ...)                                          \
    do {                                                                       \
        const expected_t expected[] = {__VA_ARGS__};                           \
        check_lines(data, sizeof(data) - 1, limit, expected,                   \
                    sizeof(expected) / sizeof(expected[0]));                   \
    } while (0)

static void test_lines(void)
{
    CHECK_LINES("one\ntwo\r\n\n  \t\r\nfive\n", 0, {1, "one", 3, 0},
                {2, "two", 3, 0}, {5, "five", 4, 0});
    CHECK_LINES("\xef\xbb\xbf{}\n\xef\xbb\xbf\n", 0, {1, "{}", 2, 0},
                {2, "\xef\xbb\xbf", 3, 0});
    CHECK_LINES("a\0b\n\0\nc", 0, {1, "a\0b", 3, 0}, {2, "\0", 1, 0},
                {3, "c", 1, 1});
    /* Only one CR belongs to the end of line. */
    CHECK_LINES("x\r\r\ny\rz\n", 0, {1, "x\r", 2, 0}, {2, "y\rz", 3, 0});
}

static void test_nothing(void)
{
    check_lines("", 0, 0, NULL, 0);
    check_lines("\n\r\n \n", 5, 0, NULL, 0);
    check_lines(" \t ", 3, 0, NULL, 0);
}

static void test_limit(void)
{
    CHECK_LINES("12345678\r\n123456789\n1234567890123456789012345\nok\n", 8,
                {1, "12345678", 8, 0}, {2, NULL, 9, 0}, {3, NULL, 25, 0},
                {4, "ok", 2, 0});
    CHECK_LINES("\xef\xbb\xbf"
                "12345678\n12345678901234567890",
                8, {1, "12345678", 8, 0}, {2, NULL, 20, 1});
}

/* A line that takes many reads, at the limit and one byte above it. */
static void test_large_lines(void)
{
    const size_t limit = 300 * 1000;
    const size_t bytes = 2 * limit + 1 + 3 + 6;
    char *data = malloc(bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(data);
    memset(data, 'x', bytes);
    data[limit] = '\n';
    data[limit + 1 + limit + 1] = '\n';
    memcpy(data + bytes - 5, "\nend\n", 5);
    data[limit + limit + 3] = 'e';
    const expected_t lines[] = {{1, data, limit, 0},
                                {2, NULL, limit + 1, 0},
                                {3, data + 2 * limit + 3, 2, 0},
                                {4, "end", 3, 0}};
    check_lines(data, bytes, limit, lines, 4);
    free(data);
}

/* Any bytes, any small limit: the same lines as a splitter that has it all in
 * memory. */
static void test_against_splitter(void)
{
    static const char alphabet[] = "\n\n\r a{\0\xef\xbb\xbf";
    for (uint64_t seed = 0; seed < 400; seed++) {
        char data[200];
        size_t n = akin_rng_below(seed, 0, 0, sizeof(data));
        size_t limit = 1 + akin_rng_below(seed, 0, 1, 12);
        for (size_t i = 0; i < n; i++)
            data[i] =
                alphabet[akin_rng_below(seed, 1, i, sizeof(alphabet) - 1)];
        expected_t lines[200];
        size_t n_lines = 0;
        uint64_t number = 0;
        for (size_t at = 0; at < n;) {
            size_t end = at;
            while (end < n && data[end] != '\n')
                end++;
            expected_t e = {++number, data + at, end - at, end == n};
            if (number == 1 && e.bytes >= 3 &&
                memcmp(e.text, "\xef\xbb\xbf", 3) == 0) {
                e.text += 3;
                e.bytes -= 3;
            }
            if (!e.torn && e.bytes > 0 && e.text[e.bytes - 1] == '\r')
                e.bytes--;
            int blank = 1;
            for (size_t i = 0; i < e.bytes; i++)
                blank &= e.text[i] == ' ' || e.text[i] == '\r';
            if (e.bytes > limit) {
                e.text = NULL;
                blank = 0;
            }
            if (!blank)
                lines[n_lines++] = e;
            at = end + 1;
        }
        const char *path = scratch_path("any");
        scratch_write(path, data, n);
        akin_batch_input_t *input;
        akin_batch_line_t line;
        CU_ASSERT_EQUAL_FATAL(akin_batch_input_open(path, limit, &input, NULL),
                              AKIN_OK);
        for (size_t i = 0; i < n_lines; i++) {
            CU_ASSERT_EQUAL_FATAL(akin_batch_input_next(input, &line, NULL),
                                  AKIN_OK);
            CU_ASSERT_EQUAL(line.number, lines[i].number);
            CU_ASSERT_EQUAL(line.too_long, lines[i].text == NULL);
            CU_ASSERT_EQUAL(line.torn, lines[i].torn);
            if (!line.too_long) {
                CU_ASSERT_EQUAL_FATAL(line.bytes, lines[i].bytes);
                CU_ASSERT_EQUAL(memcmp(line.text, lines[i].text, line.bytes),
                                0);
            }
        }
        CU_ASSERT_EQUAL(akin_batch_input_next(input, &line, NULL),
                        AKIN_ERR_NOT_FOUND);
        akin_batch_input_close(input);
        scratch_remove(path);
    }
}

/* A FIFO: nothing yet, half a line, the rest, the end. */
static void test_fifo(void)
{
    const char *path = scratch_path("fifo");
    akin_batch_input_t *input;
    akin_batch_line_t line;
    CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
    CU_ASSERT_EQUAL_FATAL(akin_batch_input_open(path, 0, &input, NULL),
                          AKIN_OK);
    CU_ASSERT_EQUAL(akin_batch_input_next(input, &line, NULL), AKIN_ERR_BUSY);
    int fd = open(path, O_WRONLY);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(akin_batch_input_next(input, &line, NULL), AKIN_ERR_BUSY);
    CU_ASSERT_EQUAL(write(fd, "ha", 2), 2);
    CU_ASSERT_EQUAL(akin_batch_input_next(input, &line, NULL), AKIN_ERR_BUSY);
    CU_ASSERT_EQUAL(write(fd, "lf\nla", 5), 5);
    CU_ASSERT_EQUAL_FATAL(akin_batch_input_next(input, &line, NULL), AKIN_OK);
    CU_ASSERT_EQUAL(line.bytes, 4);
    CU_ASSERT_EQUAL(memcmp(line.text, "half", 4), 0);
    CU_ASSERT_EQUAL(akin_batch_input_next(input, &line, NULL), AKIN_ERR_BUSY);
    CU_ASSERT_EQUAL(write(fd, "st", 2), 2);
    (void)close(fd);
    CU_ASSERT_EQUAL_FATAL(akin_batch_input_next(input, &line, NULL), AKIN_OK);
    CU_ASSERT_EQUAL(line.bytes, 4);
    CU_ASSERT_EQUAL(line.torn, 1);
    CU_ASSERT_EQUAL(akin_batch_input_next(input, &line, NULL),
                    AKIN_ERR_NOT_FOUND);
    akin_batch_input_close(input);
    CU_ASSERT_EQUAL(akin_batch_input_count(path, 0), 0);
    scratch_remove(path);
}

static void test_refusals(void)
{
    akin_batch_input_t *input = (void *)&input;
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_batch_input_open("/nonexistent/x", 0, &input, &err),
                    AKIN_ERR_NOT_FOUND);
    CU_ASSERT_PTR_NULL(input);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/nonexistent/x"));
    CU_ASSERT_EQUAL(akin_batch_input_open("/", 0, &input, &err),
                    AKIN_ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "directory"));
    CU_ASSERT_EQUAL(akin_batch_input_count("/nonexistent/x", 0), 0);
    CU_ASSERT_EQUAL(akin_batch_input_count("/", 0), 0);
    const char *path = scratch_path("five");
    scratch_write(path, "a\nb\n\n", 5);
    CU_ASSERT_EQUAL(akin_batch_input_count(path, 4), 0);
    CU_ASSERT_EQUAL(akin_batch_input_count(path, 5), 2);
    scratch_remove(path);
    akin_batch_input_close(NULL);
}

/* /proc/self/mem fails to be read at offset 0. */
static void test_read_error(void)
{
    akin_batch_input_t *input;
    akin_batch_line_t line;
    akin_error_t err = {{0}};
    if (akin_batch_input_open("/proc/self/mem", 0, &input, &err) != AKIN_OK)
        return;
    CU_ASSERT_EQUAL(akin_batch_input_next(input, &line, &err), AKIN_ERR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/proc/self/mem"));
    CU_ASSERT_EQUAL(akin_batch_input_next(input, &line, &err), AKIN_ERR_IO);
    akin_batch_input_close(input);
}

static const runner_test_t tests[] = {
    {"lines", test_lines},
    {"nothing", test_nothing},
    {"limit", test_limit},
    {"large lines", test_large_lines},
    {"against a splitter", test_against_splitter},
    {"fifo", test_fifo},
    {"refusals", test_refusals},
    {"read error", test_read_error},
};

RUNNER_MAIN("batch input", tests)
