/* Log: levels, the form of a line, one write per line, several threads. */
#include "base/log.h"
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A datagram socket stands for stderr: it keeps the bounds of each write. */
static int kept_stderr;
static int reader;

static void capture(void)
{
    int pair[2];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    kept_stderr = dup(STDERR_FILENO);
    CU_ASSERT_FATAL(dup2(pair[1], STDERR_FILENO) >= 0);
    (void)close(pair[1]);
    reader = pair[0];
    CU_ASSERT_EQUAL_FATAL(fcntl(reader, F_SETFL, O_NONBLOCK), 0);
}

static void release(void)
{
    CU_ASSERT_FATAL(dup2(kept_stderr, STDERR_FILENO) >= 0);
    (void)close(kept_stderr);
    (void)close(reader);
}

/* The next write as a string; "" if there was none. */
static const char *next_write(void)
{
    static char text[8192];
    ssize_t n = recv(reader, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static int matches(const char *pattern, const char *text)
{
    regex_t regex;
    CU_ASSERT_EQUAL_FATAL(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB),
                          0);
    int matched = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return matched;
}

static void configure(const char *spec)
{
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_log_configure(spec, &err), AKIN_OK);
}

static void test_default_is_warn(void)
{
    /* Runs first: nothing has configured the log yet. */
    CU_ASSERT(akin_log_enabled(AKIN_LOG_SUB_KV, AKIN_LOG_WARN));
    CU_ASSERT(!akin_log_enabled(AKIN_LOG_SUB_KV, AKIN_LOG_INFO));
    configure(NULL);
    configure("");
    CU_ASSERT(!akin_log_enabled(AKIN_LOG_SUB_LAUNCH, AKIN_LOG_INFO));
}

static void test_specification(void)
{
    configure("info,kv=trace,net=debug");
    CU_ASSERT(akin_log_enabled(AKIN_LOG_SUB_BASE, AKIN_LOG_INFO));
    CU_ASSERT(!akin_log_enabled(AKIN_LOG_SUB_BASE, AKIN_LOG_DEBUG));
    CU_ASSERT(akin_log_enabled(AKIN_LOG_SUB_KV, AKIN_LOG_TRACE));
    CU_ASSERT(akin_log_enabled(AKIN_LOG_SUB_NET, AKIN_LOG_DEBUG));
    CU_ASSERT(!akin_log_enabled(AKIN_LOG_SUB_NET, AKIN_LOG_TRACE));
    /* Later items win. */
    configure("kv=trace,error");
    CU_ASSERT(!akin_log_enabled(AKIN_LOG_SUB_KV, AKIN_LOG_WARN));
    CU_ASSERT(akin_log_enabled(AKIN_LOG_SUB_KV, AKIN_LOG_ERROR));
}

static void test_bad_specification(void)
{
    static const char *const bad[] = {
        "loud",  "kv=",   "=info", "kv=loud",      "gpu=info",
        "info,", ",info", "INFO",  "kv=info=warn", "info net=debug"};
    configure("info");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        akin_error_t err = {{0}};
        CU_ASSERT_EQUAL(akin_log_configure(bad[i], &err), AKIN_ERR_CONFIG);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "error, warn, info"));
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "routing, roles, launch"));
    }
    akin_error_t err = {{0}};
    CU_ASSERT_EQUAL(akin_log_configure("kv=trace,gpu=info", &err),
                    AKIN_ERR_CONFIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "\"gpu=info\""));
    /* Nothing of a refused specification is kept. */
    CU_ASSERT(!akin_log_enabled(AKIN_LOG_SUB_KV, AKIN_LOG_TRACE));
}

#define TIME "^[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3} "

static void test_line(void)
{
    configure("trace");
    capture();
    AKIN_LOG(KV, WARN, "block %d refused", 7);
    CU_ASSERT(matches(TIME "warn  kv: block 7 refused\n$", next_write()));
    akin_log_identify(3, "decode");
    AKIN_LOG(NET, ERROR, "peer %s lost", "5");
    CU_ASSERT(
        matches(TIME "error rank 3 decode net: peer 5 lost\n$", next_write()));
    akin_log_identify(-1, "a-role-of-twenty-letters");
    AKIN_LOG(BASE, TRACE, "x");
    CU_ASSERT(matches(TIME "trace a-role-of-twent base: x\n$", next_write()));
    akin_log_identify(-1, NULL);
    AKIN_LOG(BASE, INFO, "y");
    CU_ASSERT(matches(TIME "info  base: y\n$", next_write()));
    configure("warn");
    AKIN_LOG(BASE, INFO, "not written");
    CU_ASSERT_STRING_EQUAL(next_write(), "");
    release();
}

static void test_text_cannot_forge_a_line(void)
{
    capture();
    AKIN_LOG(ROLES, ERROR, "id \"%s\"", "a\n12:00:00.000 error\x1b[2J");
    const char *line = next_write();
    CU_ASSERT_PTR_EQUAL(strchr(line, '\n'), line + strlen(line) - 1);
    CU_ASSERT_PTR_NULL(strchr(line, '\x1b'));
    CU_ASSERT_STRING_EQUAL(next_write(), "");
    release();
}

static void test_long_line_is_cut(void)
{
    static char text[10000];
    memset(text, 'z', sizeof(text) - 1);
    capture();
    AKIN_LOG(ROLES, ERROR, "%s", text);
    const char *line = next_write();
    CU_ASSERT_EQUAL(strlen(line), 2047);
    CU_ASSERT_STRING_EQUAL(line + strlen(line) - 5, "z...\n");
    CU_ASSERT_STRING_EQUAL(next_write(), "");
    release();
}

static void test_local_time(void)
{
    CU_ASSERT_EQUAL(setenv("TZ", "XYZ-05:30", 1), 0);
    tzset();
    capture();
    time_t before = time(NULL);
    AKIN_LOG(BASE, ERROR, "now");
    time_t after = time(NULL);
    const char *line = next_write();
    char texts[2][16];
    const time_t times[2] = {before + 19800, after + 19800};
    for (int i = 0; i < 2; i++) {
        struct tm utc;
        (void)gmtime_r(&times[i], &utc);
        (void)strftime(texts[i], sizeof(texts[i]), "%H:%M", &utc);
    }
    CU_ASSERT(strncmp(line, texts[0], 5) == 0 ||
              strncmp(line, texts[1], 5) == 0);
    release();
    (void)unsetenv("TZ");
    tzset();
}

static void test_errno_is_kept(void)
{
    capture();
    errno = ENOSPC;
    AKIN_LOG(BASE, ERROR, "disk");
    CU_ASSERT_EQUAL(errno, ENOSPC);
    release();
}

#define THREADS 4
#define LINES 500

static void *writer(void *argument)
{
    int id = *(const int *)argument;
    for (int i = 0; i < LINES; i++) {
        if (i % 100 == 0)
            akin_log_identify(id, "prefill");
        AKIN_LOG(KV, ERROR, "thread %d line %d end", id, i);
    }
    return NULL;
}

static void test_threads(void)
{
    char path[] = "/tmp/akin_log_XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    (void)close(fd);
    /* Appending, as a launcher's log file is opened. */
    fd = open(path, O_WRONLY | O_APPEND);
    kept_stderr = dup(STDERR_FILENO);
    CU_ASSERT_FATAL(dup2(fd, STDERR_FILENO) >= 0);
    pthread_t threads[THREADS];
    int ids[THREADS];
    for (int i = 0; i < THREADS; i++) {
        ids[i] = i;
        CU_ASSERT_EQUAL_FATAL(
            pthread_create(&threads[i], NULL, writer, &ids[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    (void)dup2(kept_stderr, STDERR_FILENO);
    (void)close(kept_stderr);
    (void)close(fd);
    FILE *file = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    char line[512];
    int next[THREADS] = {0};
    int whole = 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        int rank;
        int id;
        int number;
        int end = 0;
        if (sscanf(line,
                   "%*s error rank %d prefill kv: thread %d line %d end%n",
                   &rank, &id, &number, &end) == 3 &&
            end > 0 && rank >= 0 && rank < THREADS && id >= 0 && id < THREADS &&
            number == next[id]) {
            next[id]++;
            whole++;
        }
    }
    CU_ASSERT_EQUAL(whole, THREADS * LINES);
    (void)fclose(file);
    (void)unlink(path);
    akin_log_identify(-1, NULL);
}

static const runner_test_t tests[] = {
    {"default is warn", test_default_is_warn},
    {"specification", test_specification},
    {"bad specification", test_bad_specification},
    {"line", test_line},
    {"text cannot forge a line", test_text_cannot_forge_a_line},
    {"long line is cut", test_long_line_is_cut},
    {"local time", test_local_time},
    {"errno is kept", test_errno_is_kept},
    {"threads", test_threads},
};
RUNNER_MAIN("log", tests)
