/* Ctl: clients that ask, and clients that do it no favour: slow, long, broken,
 * gone, or a hundred at a time. */
#include "base/clock.h"
#include "roles/ctl.h"
#include "roles/ctl_socket.h"
#include "runner.h"
#include "scratch_file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/socket.h>
#include <time.h>

#define N_CROWD 100

typedef struct bed {
    akin_ctl_t *ctl;
    char path[600];
    unsigned n_asked;
    char last[64]; /* command */
} bed_t;

/* "echo" gives "text" back; "big" an answer of "bytes" bytes or so. */
static json_t *answer(void *arg, const char *command, json_t *request)
{
    bed_t *b = arg;
    b->n_asked++;
    (void)snprintf(b->last, sizeof(b->last), "%s", command);
    if (strcmp(command, "echo") == 0)
        return json_pack("{s:b, s:O}", "ok", 1, "text",
                         json_object_get(request, "text"));
    if (strcmp(command, "none") == 0)
        return NULL; /* as without memory */
    if (strcmp(command, "big") != 0)
        return akin_ctl_refuse("no command \"%s\"", command);
    size_t n = (size_t)json_integer_value(json_object_get(request, "bytes"));
    char *text = malloc(n + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    memset(text, 'b', n);
    text[n] = '\0';
    json_t *json = json_pack("{s:b, s:s}", "ok", 1, "text", text);
    free(text);
    return json;
}

static void init(bed_t *b)
{
    akin_error_t err = {{0}};
    *b = (bed_t){0};
    (void)snprintf(b->path, sizeof(b->path), "%s", scratch_path("s"));
    CU_ASSERT_EQUAL_FATAL(akin_ctl_open(b->path, answer, b, &b->ctl, &err),
                          AKIN_OK);
    CU_ASSERT_STRING_EQUAL(akin_ctl_path(b->ctl), b->path);
}

static void cleanup(bed_t *b)
{
    akin_ctl_close(b->ctl);
    CU_ASSERT_EQUAL(access(b->path, F_OK), -1);
    scratch_remove(b->path);
}

static void turn(bed_t *b, int n)
{
    const struct timespec pause = {0, 6000000};
    for (int i = 0; i < n; i++) {
        (void)nanosleep(&pause, NULL);
        (void)akin_ctl_turn(b->ctl);
    }
}

static int connect_to(bed_t *b)
{
    int fd;
    akin_error_t err = {{0}};
    akin_status_t status = akin_ctl_socket_connect(b->path, &fd, &err);
    for (int i = 0; i < 100 && status == AKIN_ERR_BUSY; i++) {
        turn(b, 1);
        status = akin_ctl_socket_connect(b->path, &fd, &err);
    }
    CU_ASSERT_EQUAL_FATAL(status, AKIN_OK);
    return fd;
}

static void put(int fd, const char *text)
{
    const size_t n = strlen(text);
    CU_ASSERT_EQUAL(send(fd, text, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* What is there now, as text: nothing "", the end "(end)". */
static const char *take(int fd)
{
    static char text[8192];
    ssize_t n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno == ECONNRESET))
        return "(end)";
    text[n < 0 ? 0 : n] = '\0';
    return text;
}

static void asking(void)
{
    bed_t b;
    init(&b);
    int fd = connect_to(&b);
    put(fd, "{\"command\":\"echo\",\"text\":\"one\"}\n");
    turn(&b, 1);
    CU_ASSERT_STRING_EQUAL(take(fd), "{\"ok\":true,\"text\":\"one\"}\n");
    /* In pieces, with other line ends, then two in one. */
    put(fd, "{\"command\":\"ec");
    turn(&b, 2);
    CU_ASSERT_STRING_EQUAL(take(fd), "");
    put(fd, "ho\",\"text\":2}\r\n");
    turn(&b, 1);
    CU_ASSERT_STRING_EQUAL(take(fd), "{\"ok\":true,\"text\":2}\n");
    put(fd, "{\"command\":\"echo\",\"text\":3}\n{\"command\":\"x\"}\n");
    turn(&b, 1);
    CU_ASSERT_STRING_EQUAL(
        take(fd), "{\"ok\":true,\"text\":3}\n"
                  "{\"ok\":false,\"error\":\"no command \\\"x\\\"\"}\n");
    CU_ASSERT_EQUAL(b.n_asked, 4);
    (void)close(fd);
    /* A client that says all it has to say and closes that side. */
    fd = connect_to(&b);
    put(fd, "{\"command\":\"echo\",\"text\":4}");
    CU_ASSERT_EQUAL(shutdown(fd, SHUT_WR), 0);
    turn(&b, 1);
    CU_ASSERT_STRING_EQUAL(take(fd), "{\"ok\":true,\"text\":4}\n");
    CU_ASSERT_STRING_EQUAL(take(fd), "(end)");
    (void)close(fd);
    cleanup(&b);
}

/* Turns that follow each other at once do nothing. */
static void idle(void)
{
    bed_t b;
    init(&b);
    turn(&b, 1);
    int fd = connect_to(&b);
    put(fd, "{\"command\":\"echo\",\"text\":1}\n");
    const int64_t begin = akin_clock_now_ns();
    unsigned n = akin_ctl_turn(b.ctl);
    if (akin_clock_now_ns() - begin < AKIN_NS_PER_MS)
        CU_ASSERT_EQUAL(n, 0);
    turn(&b, 1);
    CU_ASSERT_EQUAL(b.n_asked, 1);
    (void)close(fd);
    cleanup(&b);
}

static void garbage(void)
{
    static const char *const lines[] = {
        "\n",         "hello\n",        "{}\n",
        "[]\n",       "17\n",           "{\"command\":7}\n",
        "\xff\xfe\n", "{\"command\"\n", "{\"command\":\"a\",\"command\":1}\n",
        "null\n",     "\"status\"\n",   "{\"command\":\"\\u0000\"}\n"};
    bed_t b;
    init(&b);
    int fd = connect_to(&b);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        put(fd, lines[i]);
        turn(&b, 1);
        const char *text = take(fd);
        json_t *json = json_loads(text, 0, NULL);
        CU_ASSERT_PTR_NOT_NULL(json);
        CU_ASSERT(json_is_false(json_object_get(json, "ok")));
        CU_ASSERT_PTR_NOT_NULL(strstr(
            json_string_value(json_object_get(json, "error")), "a request"));
        json_decref(json);
    }
    CU_ASSERT_EQUAL(b.n_asked, 0);
    /* It is still heard. */
    put(fd, "{\"command\":\"echo\",\"text\":1}\n");
    turn(&b, 1);
    CU_ASSERT_STRING_EQUAL(take(fd), "{\"ok\":true,\"text\":1}\n");
    (void)close(fd);
    /* A NUL is no end, and brackets without end exhaust nothing. */
    fd = connect_to(&b);
    CU_ASSERT_EQUAL(send(fd, "{}\0{}\n", 6, 0), 6);
    turn(&b, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(take(fd), "\"ok\":false"));
    char deep[AKIN_CTL_LINE_BYTES + 1];
    memset(deep, '[', sizeof(deep) - 2);
    memcpy(deep + sizeof(deep) - 2, "\n", 2);
    put(fd, deep);
    turn(&b, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(take(fd), "\"ok\":false"));
    (void)close(fd);
    /* Without memory for an answer the client goes, and no other. */
    fd = connect_to(&b);
    put(fd, "{\"command\":\"none\"}\n");
    turn(&b, 1);
    CU_ASSERT_STRING_EQUAL(take(fd), "(end)");
    (void)close(fd);
    cleanup(&b);
}

/* A line of exactly the longest size is one; a longer one ends the talk. */
static void long_lines(void)
{
    bed_t b;
    init(&b);
    char line[2 * AKIN_CTL_LINE_BYTES];
    memset(line, ' ', sizeof(line));
    static const char request[] = "{\"command\":\"echo\",\"text\":1}";
    memcpy(line, request, sizeof(request) - 1);
    line[AKIN_CTL_LINE_BYTES - 1] = '\n';
    int fd = connect_to(&b);
    CU_ASSERT_EQUAL(send(fd, line, AKIN_CTL_LINE_BYTES, 0),
                    AKIN_CTL_LINE_BYTES);
    turn(&b, 1);
    CU_ASSERT_STRING_EQUAL(take(fd), "{\"ok\":true,\"text\":1}\n");
    line[AKIN_CTL_LINE_BYTES - 1] = ' ';
    line[AKIN_CTL_LINE_BYTES] = '\n';
    CU_ASSERT_EQUAL(send(fd, line, AKIN_CTL_LINE_BYTES + 1, 0),
                    AKIN_CTL_LINE_BYTES + 1);
    turn(&b, 1);
    CU_ASSERT_STRING_EQUAL(
        take(fd),
        "{\"ok\":false,\"error\":\"a request has at most 4096 bytes\"}\n");
    CU_ASSERT_STRING_EQUAL(take(fd), "(end)");
    (void)close(fd);
    CU_ASSERT_EQUAL(b.n_asked, 1);
    /* Megabytes without an end, as fast as they are taken. */
    fd = connect_to(&b);
    int why = 0;
    for (int i = 0; i < 1000 && (why == 0 || why == EAGAIN); i++) {
        why = send(fd, line + 64, sizeof(line) - 64, MSG_NOSIGNAL) < 0 ? errno
                                                                       : 0;
        if (why != 0)
            turn(&b, 1);
    }
    CU_ASSERT(why == EPIPE || why == ECONNRESET);
    (void)close(fd);
    cleanup(&b);
}

/* An answer that is larger than the socket's buffer is taken bit by bit, while
 * others are served; no second request of that client is looked at. */
static void slow_reader(void)
{
    bed_t b;
    init(&b);
    int slow = connect_to(&b), other = connect_to(&b);
    put(slow, "{\"command\":\"big\",\"bytes\":2000000}\n"
              "{\"command\":\"echo\",\"text\":\"last\"}\n");
    turn(&b, 2);
    put(other, "{\"command\":\"echo\",\"text\":1}\n");
    turn(&b, 1);
    CU_ASSERT_STRING_EQUAL(take(other), "{\"ok\":true,\"text\":1}\n");
    CU_ASSERT_EQUAL(b.n_asked, 2);
    size_t n = 0;
    const char *text = "";
    for (int i = 0; i < 10000 && strstr(text, "last") == NULL; i++) {
        text = take(slow);
        n += strlen(text);
        if (text[0] == '\0')
            turn(&b, 1);
    }
    CU_ASSERT_EQUAL(n, 2000000 + strlen("{\"ok\":true,\"text\":\"\"}\n") +
                           strlen("{\"ok\":true,\"text\":\"last\"}\n"));
    CU_ASSERT_EQUAL(b.n_asked, 3);
    /* One that is larger than any answer may be. */
    put(other, "{\"command\":\"big\",\"bytes\":4194304}\n");
    turn(&b, 1);
    CU_ASSERT_STRING_EQUAL(take(other),
                           "{\"ok\":false,\"error\":\"the answer has 4194325 "
                           "bytes, more than one may have\"}\n");
    /* One that goes in the middle of its answer. */
    put(slow, "{\"command\":\"big\",\"bytes\":2000000}\n");
    turn(&b, 1);
    (void)close(slow);
    turn(&b, 2);
    put(other, "{\"command\":\"echo\",\"text\":5}\n");
    turn(&b, 1);
    CU_ASSERT_STRING_EQUAL(take(other), "{\"ok\":true,\"text\":5}\n");
    (void)close(other);
    cleanup(&b);
}

/* A hundred that connect and go, some in the middle of a word; then a hundred
 * that stay: 16 have a place, all others are told so. */
static void crowd(void)
{
    bed_t b;
    int fds[N_CROWD], n_full = 0, n_answered = 0;
    init(&b);
    for (int i = 0; i < N_CROWD; i++) {
        int fd = connect_to(&b);
        if (i % 3 == 1)
            put(fd, "{\"comm");
        if (i % 3 == 2)
            put(fd, "{\"command\":\"echo\",\"text\":1}\n");
        (void)close(fd);
    }
    turn(&b, 3);
    for (int i = 0; i < N_CROWD; i++) {
        fds[i] = connect_to(&b);
        if (i % 10 == 9)
            turn(&b, 1);
    }
    turn(&b, 2);
    for (int i = 0; i < N_CROWD; i++)
        (void)send(fds[i], "{\"command\":\"echo\",\"text\":1}\n", 28,
                   MSG_NOSIGNAL);
    turn(&b, 2);
    for (int i = 0; i < N_CROWD; i++) {
        const char *text = take(fds[i]);
        n_full += strstr(text, "too many are connected") != NULL;
        n_answered += strstr(text, "\"ok\":true") != NULL;
    }
    CU_ASSERT_EQUAL(n_answered, AKIN_CTL_MAX_CLIENTS);
    CU_ASSERT_EQUAL(n_full, N_CROWD - AKIN_CTL_MAX_CLIENTS);
    /* Once they have gone there is room. */
    for (int i = 0; i < N_CROWD; i++)
        (void)close(fds[i]);
    turn(&b, 2);
    int fd = connect_to(&b);
    put(fd, "{\"command\":\"echo\",\"text\":1}\n");
    turn(&b, 1);
    CU_ASSERT_STRING_EQUAL(take(fd), "{\"ok\":true,\"text\":1}\n");
    (void)close(fd);
    cleanup(&b);
}

/* 16 that say next to nothing, one byte now and then, are given up; so is one
 * that does not take its answer. Those that wait for a place get one. */
static void slow_writers(void)
{
    bed_t b;
    int fds[AKIN_CTL_MAX_CLIENTS];
    init(&b);
    for (int i = 0; i < AKIN_CTL_MAX_CLIENTS; i++)
        fds[i] = connect_to(&b);
    turn(&b, 1);
    put(fds[0], "{\"command\":\"big\",\"bytes\":2000000}\n");
    const struct timespec pause = {0, 100000000};
    const int64_t begin = akin_clock_now_ns();
    int n_ended = 0;
    while (n_ended < AKIN_CTL_MAX_CLIENTS - 1 &&
           akin_clock_now_ns() - begin < 30 * AKIN_NS_PER_S) {
        (void)nanosleep(&pause, NULL);
        (void)akin_ctl_turn(b.ctl);
        n_ended = 0;
        for (int i = 1; i < AKIN_CTL_MAX_CLIENTS; i++)
            n_ended += send(fds[i], "{", 1, MSG_NOSIGNAL) < 0;
    }
    CU_ASSERT_EQUAL(n_ended, AKIN_CTL_MAX_CLIENTS - 1);
    CU_ASSERT(akin_clock_now_ns() - begin >= 4 * AKIN_NS_PER_S);
    turn(&b, 20);
    int fd = connect_to(&b);
    put(fd, "{\"command\":\"echo\",\"text\":1}\n");
    turn(&b, 1);
    CU_ASSERT_STRING_EQUAL(take(fd), "{\"ok\":true,\"text\":1}\n");
    /* What was sent of the big answer ends short of its end. */
    size_t n = 0;
    const char *text = take(fds[0]);
    for (; text[0] == '{' || text[0] == 'b'; text = take(fds[0]))
        n += strlen(text);
    CU_ASSERT_STRING_EQUAL(text, "(end)");
    CU_ASSERT(n > 0 && n < 2000000);
    for (int i = 0; i < AKIN_CTL_MAX_CLIENTS; i++)
        (void)close(fds[i]);
    (void)close(fd);
    cleanup(&b);
}

/* A socket that is another's by now stays when this one closes. */
static void replaced(void)
{
    bed_t b, next;
    akin_error_t err = {{0}};
    init(&b);
    next = (bed_t){0};
    CU_ASSERT_EQUAL(unlink(b.path), 0);
    CU_ASSERT_EQUAL_FATAL(akin_ctl_open(b.path, answer, &next, &next.ctl, &err),
                          AKIN_OK);
    akin_ctl_close(b.ctl);
    CU_ASSERT_EQUAL(access(b.path, F_OK), 0);
    akin_ctl_close(next.ctl);
    CU_ASSERT_EQUAL(access(b.path, F_OK), -1);
    scratch_remove(b.path);
    akin_ctl_close(NULL);
    CU_ASSERT_EQUAL(akin_ctl_open("/nonexistent/s", answer, &b, &b.ctl, &err),
                    AKIN_ERR_NOT_FOUND);
    CU_ASSERT_PTR_NULL(b.ctl);
}

/* A text that is cut within a character is still a text. */
static void refusing(void)
{
    char text[600];
    for (size_t pad = 0; pad < 3; pad++) {
        memset(text, 'a', pad);
        for (size_t i = pad; i + 2 < sizeof(text); i += 2)
            memcpy(text + i, "\xc3\xa4", 3);
        json_t *json = akin_ctl_refuse("%s", text);
        const json_t *error = json_object_get(json, "error");
        CU_ASSERT(json_string_length(error) >= 510);
        CU_ASSERT(json_is_false(json_object_get(json, "ok")));
        json_decref(json);
    }
}

static const runner_test_t tests[] = {
    {"asking", asking},
    {"idle", idle},
    {"garbage", garbage},
    {"long_lines", long_lines},
    {"slow_reader", slow_reader},
    {"crowd", crowd},
    {"slow_writers", slow_writers},
    {"replaced", replaced},
    {"refusing", refusing},
};

RUNNER_MAIN("ctl", tests)
