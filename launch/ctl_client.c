/* Ctl client: finding the socket, one request and its answer. */
#include "launch/ctl_client.h"

#include "base/clock.h"
#include "roles/ctl.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A router looks at its socket some five times a second. */
#define WAIT_NS (10 * AKIN_NS_PER_S)

/* Between two attempts to reach a socket at which too many wait. */
#define RETRY_NS (50 * AKIN_NS_PER_MS)

#define MAX_LISTED 20u

akin_status_t akin_ctl_client_find(akin_ctl_path_t *path_p, akin_error_t *err)
{
    akin_ctl_path_t *paths;
    size_t n;
    akin_status_t status = akin_ctl_socket_list(&paths, &n, err);
    if (status != AKIN_OK)
        return status;
    if (n == 1) {
        *path_p = paths[0];
    } else if (n == 0) {
        status = akin_error_set(
            err, AKIN_ERR_NOT_FOUND,
            "no job of yours runs on this host that could be asked: call akin "
            "ctl on the host of the job's rank 0, or name the socket of "
            "router.socket with -S");
    } else {
        for (size_t i = 0; i < n && i < MAX_LISTED; i++)
            (void)fprintf(stderr, "%s\n", paths[i].text);
        status = akin_error_set(err, AKIN_ERR_EXISTS,
                                "%zu jobs of yours run on this host: choose "
                                "one of these sockets with -S",
                                n);
    }
    free(paths);
    return status;
}

/* Waits for the socket, or until the deadline. */
static akin_status_t wait_for(int fd, short events, int64_t deadline_ns,
                              akin_error_t *err)
{
    struct pollfd watched = {.fd = fd, .events = events};
    for (;;) {
        const int64_t left_ns = deadline_ns - akin_clock_now_ns();
        if (left_ns <= 0)
            return akin_error_set(err, AKIN_ERR_TIMEOUT,
                                  "the router does not answer");
        int n = poll(&watched, 1, (int)(left_ns / AKIN_NS_PER_MS) + 1);
        if (n > 0)
            return AKIN_OK;
        if (n < 0 && errno != EINTR)
            return akin_error_set(err, AKIN_ERR_IO, "poll: %s",
                                  strerror(errno));
    }
}

static akin_status_t connect_to(const char *path, int64_t deadline_ns,
                                int *fd_p, akin_error_t *err)
{
    const struct timespec pause = {.tv_nsec = RETRY_NS};
    for (;;) {
        akin_status_t status = akin_ctl_socket_connect(path, fd_p, err);
        if (status != AKIN_ERR_BUSY || akin_clock_now_ns() >= deadline_ns)
            return status;
        (void)nanosleep(&pause, NULL);
    }
}

static akin_status_t fail(const char *what, akin_error_t *err)
{
    if (errno == EPIPE || errno == ECONNRESET)
        return akin_error_set(err, AKIN_ERR_PEER,
                              "the job ended before it answered");
    return akin_error_set(err, AKIN_ERR_IO, "cannot %s: %s", what,
                          strerror(errno));
}

static akin_status_t send_line(int fd, const char *text, int64_t deadline_ns,
                               akin_error_t *err)
{
    const size_t bytes = strlen(text);
    for (size_t at = 0; at < bytes;) {
        ssize_t n = send(fd, text + at, bytes - at, MSG_NOSIGNAL);
        if (n >= 0) {
            at += (size_t)n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            akin_status_t status = wait_for(fd, POLLOUT, deadline_ns, err);
            if (status != AKIN_OK)
                return status;
        } else if (errno != EINTR) {
            return fail("ask the router", err);
        }
    }
    return AKIN_OK;
}

/* One line, into a buffer that grows; without its end. */
static akin_status_t receive_line(int fd, int64_t deadline_ns, char **text_p,
                                  akin_error_t *err)
{
    size_t room = 65536, at = 0;
    *text_p = malloc(room);
    while (*text_p != NULL) {
        ssize_t n = recv(fd, *text_p + at, room - at, 0);
        if (n > 0) {
            char *end = memchr(*text_p + at, '\n', (size_t)n);
            at += (size_t)n;
            if (end != NULL) {
                *end = '\0';
                return AKIN_OK;
            }
            if (at < room)
                continue;
            if (room >= AKIN_CTL_ANSWER_BYTES)
                return akin_error_set(err, AKIN_ERR_FORMAT,
                                      "the router's answer has no end");
            room *= 2;
            char *more = realloc(*text_p, room);
            if (more == NULL)
                break;
            *text_p = more;
        } else if (n == 0) {
            errno = EPIPE;
            return fail("hear the router", err);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            akin_status_t status = wait_for(fd, POLLIN, deadline_ns, err);
            if (status != AKIN_OK)
                return status;
        } else if (errno != EINTR) {
            return fail("hear the router", err);
        }
    }
    return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
}

static akin_status_t read_answer(const char *text, json_t **answer_p,
                                 akin_error_t *err)
{
    json_t *answer = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_true(json_object_get(answer, "ok"))) {
        *answer_p = answer;
        return AKIN_OK;
    }
    const char *error = json_string_value(json_object_get(answer, "error"));
    akin_status_t status =
        error != NULL ? akin_error_set(err, AKIN_ERR_REFUSED, "%s", error)
                      : akin_error_set(err, AKIN_ERR_FORMAT,
                                       "the answer is none of a router");
    json_decref(answer);
    return status;
}

akin_status_t akin_ctl_client_ask(const char *path, const json_t *request,
                                  json_t **answer_p, akin_error_t *err)
{
    const int64_t deadline_ns = akin_clock_now_ns() + WAIT_NS;
    char *question = NULL, *text = NULL;
    int fd;
    *answer_p = NULL;
    akin_status_t status = connect_to(path, deadline_ns, &fd, err);
    if (status != AKIN_OK)
        return status;
    char *line = json_dumps(request, JSON_COMPACT);
    if (line == NULL || asprintf(&question, "%s\n", line) < 0) {
        question = NULL;
        status = akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    }
    free(line);
    if (status == AKIN_OK)
        status = send_line(fd, question, deadline_ns, err);
    /* A router that turns its clients away answers without having heard. */
    if (status == AKIN_OK || status == AKIN_ERR_PEER)
        status = receive_line(fd, deadline_ns, &text, err);
    if (status == AKIN_OK)
        status = read_answer(text, answer_p, err);
    else
        (void)akin_error_prefix(err, status, "%s: ", path);
    free(text);
    free(question);
    (void)close(fd);
    return status;
}
