/* Progress: the text, and how often it is shown. */
#include "base/clock.h"
#include "roles/progress.h"
#include "runner.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check_text(const akin_progress_counts_t *counts, double rate,
                       double left_s, const char *expected)
{
    char text[200];
    size_t n = akin_progress_text(counts, rate, left_s, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, expected);
    CU_ASSERT_EQUAL(n, strlen(expected));
}

static void test_text(void)
{
    akin_progress_counts_t c = {.total = 1000,
                                .done = 120,
                                .failed = 3,
                                .running = 8,
                                .waiting = 24,
                                .tokens = 5};
    check_text(&c, 412.4, 129.2,
               "120/1000 (12%), 3 failed, 8 running, 24 waiting, 412 tok/s, "
               "2:10 left");
    c = (akin_progress_counts_t){.done = 7};
    check_text(&c, 1.25, -1, "7 done, 1.2 tok/s");
    c = (akin_progress_counts_t){.total = 100000, .done = 99999};
    check_text(&c, -1, 36000 + 60 + 1, "99999/100000 (99%), 10:01:01 left");
    c.done = 100000;
    check_text(&c, -1, 0, "100000/100000 (100%), 0:00 left");
    /* Cut, never beyond. */
    char small[8];
    memset(small, 'z', sizeof(small));
    CU_ASSERT_EQUAL(akin_progress_text(&c, 1, 1, small, 7), 6);
    CU_ASSERT_STRING_EQUAL(small, "100000");
    CU_ASSERT_EQUAL(small[7], 'z');
    CU_ASSERT_EQUAL(akin_progress_text(&c, 1, 1, small, 0), 0);
}

/* What was written to a descriptor so far; NUL-terminated. */
static size_t drain(int fd, char *text, size_t bytes)
{
    size_t n = 0;
    ssize_t got;
    while (n + 1 < bytes && (got = read(fd, text + n, bytes - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    return n;
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, what)) != NULL; p++)
        n++;
    return n;
}

static void test_plain(void)
{
    int fds[2];
    char text[4096];
    akin_progress_t *progress;
    akin_progress_counts_t c = {.total = 100, .done = 50};
    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_NONBLOCK), 0);
    CU_ASSERT_EQUAL_FATAL(akin_progress_create(fds[1], &c, 1000, &progress),
                          AKIN_OK);
    /* Twelve seconds in steps of 10 ms: two lines. 50 were there at the start,
     * so that 10 of 100 in 10 s leave 40 s. */
    for (int i = 1; i <= 1200; i++) {
        c.done = 50 + (uint64_t)i / 100;
        c.tokens = (uint64_t)i;
        akin_progress_update(progress, &c, 1000 + i * (AKIN_NS_PER_S / 100));
    }
    (void)drain(fds[0], text, sizeof(text));
    CU_ASSERT_EQUAL(count(text, "\n"), 2);
    CU_ASSERT_EQUAL(count(text, "akin: "), 2);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(text, "akin: 60/100 (60%), 100 tok/s, 0:40 left\n"));
    CU_ASSERT_PTR_NULL(strchr(text, '\r'));
    /* The end shows the rate of the whole run: 1200 in 24 s. */
    akin_progress_finish(progress, &c, 1000 + 24 * AKIN_NS_PER_S);
    (void)drain(fds[0], text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "akin: 62/100 (62%), 50 tok/s\n");
    akin_progress_finish(NULL, &c, 0);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void test_terminal(void)
{
    char text[65536];
    akin_progress_t *progress;
    akin_progress_counts_t c = {.total = 10};
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        (void)fprintf(stderr, "no pseudo terminal here ");
        return;
    }
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    CU_ASSERT_FATAL(terminal >= 0);
    (void)setenv("TERM", "xterm", 1);
    CU_ASSERT_EQUAL_FATAL(akin_progress_create(terminal, &c, 0, &progress),
                          AKIN_OK);
    for (int i = 1; i <= 1000; i++) {
        c.done = (uint64_t)i / 200;
        akin_progress_update(progress, &c, i * (AKIN_NS_PER_S / 1000));
    }
    (void)drain(master, text, sizeof(text));
    CU_ASSERT_EQUAL(count(text, "\r"), 10);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "5/10 (50%)"));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(text, "[####################....................]"));
    akin_progress_finish(progress, &c, 2 * AKIN_NS_PER_S);
    (void)drain(master, text, sizeof(text));
    CU_ASSERT_EQUAL(count(text, "\n"), 1);
    (void)close(terminal);
    (void)close(master);
}

static const runner_test_t tests[] = {
    {"text", test_text},
    {"plain", test_plain},
    {"terminal", test_terminal},
};

RUNNER_MAIN("progress", tests)
