/* Ctl: clients, their lines and their answers. */
#include "roles/ctl.h"

#include "base/clock.h"
#include "roles/ctl_socket.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Calls of akin_ctl_turn() that come closer do nothing. */
#define TURN_NS (5 * AKIN_NS_PER_MS)

/* Connections that are taken in a turn, those that find no place included. */
#define MAX_ACCEPTED 64

/* Requests of one client that are answered in a turn. */
#define MAX_ANSWERED 4u

typedef struct client {
    int fd; /* -1: a free place */
    int is_ending;
    int64_t deadline_ns; /* of its request, or of its taking the answer */
    size_t n_in;
    size_t n_out, n_sent;
    char *out; /* [n_out] answer under way; NULL: none */
    char in[AKIN_CTL_LINE_BYTES];
} client_t;

struct akin_ctl {
    int fd;
    akin_ctl_answer_fn_t answer;
    void *arg;
    int64_t turned_ns;
    dev_t device; /* which the socket's path led to */
    ino_t inode;
    akin_ctl_path_t path;
    client_t clients[AKIN_CTL_MAX_CLIENTS];
};

json_t *akin_ctl_refuse(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    /* A text that was cut within a character is no JSON. */
    for (size_t n = strlen(text); n > 0; text[--n] = '\0') {
        json_t *json = json_pack("{s:b, s:s}", "ok", 0, "error", text);
        if (json != NULL)
            return json;
    }
    return NULL;
}

akin_status_t akin_ctl_open(const char *path, akin_ctl_answer_fn_t answer,
                            void *arg, akin_ctl_t **ctl_p, akin_error_t *err)
{
    struct stat st;
    *ctl_p = NULL;
    akin_ctl_t *ctl = calloc(1, sizeof(*ctl));
    if (ctl == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    ctl->answer = answer;
    ctl->arg = arg;
    for (int i = 0; i < AKIN_CTL_MAX_CLIENTS; i++)
        ctl->clients[i].fd = -1;
    akin_status_t status = AKIN_OK;
    const int is_auto = strcmp(path, "auto") == 0;
    if (is_auto)
        status = akin_ctl_socket_auto(&ctl->path, err);
    if (status == AKIN_OK)
        status = akin_ctl_socket_listen(is_auto ? ctl->path.text : path,
                                        &ctl->fd, err);
    if (status != AKIN_OK) {
        free(ctl);
        return status;
    }
    if (!is_auto)
        memcpy(ctl->path.text, path, strlen(path) + 1);
    if (lstat(ctl->path.text, &st) == 0) {
        ctl->device = st.st_dev;
        ctl->inode = st.st_ino;
    }
    *ctl_p = ctl;
    return AKIN_OK;
}

const char *akin_ctl_path(const akin_ctl_t *ctl)
{
    return ctl->path.text;
}

static void leave(client_t *c)
{
    (void)close(c->fd);
    free(c->out);
    c->fd = -1;
    c->out = NULL;
}

void akin_ctl_close(akin_ctl_t *ctl)
{
    struct stat st;
    if (ctl == NULL)
        return;
    for (int i = 0; i < AKIN_CTL_MAX_CLIENTS; i++)
        if (ctl->clients[i].fd >= 0)
            leave(&ctl->clients[i]);
    /* The path may lead to another job's socket by now. */
    if (lstat(ctl->path.text, &st) == 0 && st.st_dev == ctl->device &&
        st.st_ino == ctl->inode)
        (void)unlink(ctl->path.text);
    (void)close(ctl->fd);
    free(ctl);
}

/* Takes over the answer. Without memory for it the client goes. */
static void put_answer(client_t *c, json_t *answer)
{
    char *text = answer == NULL ? NULL : json_dumps(answer, JSON_COMPACT);
    json_decref(answer);
    size_t n = text == NULL ? 0 : strlen(text);
    if (n >= AKIN_CTL_ANSWER_BYTES) {
        free(text);
        answer = akin_ctl_refuse("the answer has %zu bytes, more than one may "
                                 "have",
                                 n);
        text = answer == NULL ? NULL : json_dumps(answer, JSON_COMPACT);
        json_decref(answer);
        n = text == NULL ? 0 : strlen(text);
    }
    c->is_ending |= text == NULL;
    if (text == NULL)
        return;
    text[n] = '\n'; /* in the place of the NUL */
    c->out = text;
    c->n_out = n + 1;
    c->n_sent = 0;
}

/* A connection that found no place. */
static void turn_away(int fd)
{
    static const char text[] =
        "{\"ok\":false,\"error\":\"too many are connected already: try "
        "again\"}\n";
    (void)send(fd, text, sizeof(text) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)close(fd);
}

static void accept_clients(akin_ctl_t *ctl, int64_t now_ns)
{
    for (int n = 0; n < MAX_ACCEPTED; n++) {
        int fd = accept4(ctl->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        client_t *c = ctl->clients;
        while (c < ctl->clients + AKIN_CTL_MAX_CLIENTS && c->fd >= 0)
            c++;
        if (c == ctl->clients + AKIN_CTL_MAX_CLIENTS) {
            turn_away(fd);
            continue;
        }
        c->fd = fd;
        c->is_ending = 0;
        c->n_in = 0;
        c->deadline_ns = now_ns + AKIN_CTL_CLIENT_S * AKIN_NS_PER_S;
    }
}

static json_t *answer_line(const akin_ctl_t *ctl, const char *line, size_t n)
{
    json_error_t error;
    json_t *request = json_loadb(line, n, JSON_REJECT_DUPLICATES, &error);
    if (request == NULL)
        return akin_ctl_refuse("a request is a JSON object: %s (byte %d)",
                               error.text, error.position);
    const char *command =
        json_string_value(json_object_get(request, "command"));
    json_t *answer =
        command == NULL
            ? akin_ctl_refuse("a request has a \"command\", which is a text")
            : ctl->answer(ctl->arg, command, request);
    json_decref(request);
    return answer;
}

/* Writes what is left of an answer; says whether all of it is gone. */
static int flush(client_t *c)
{
    while (c->n_sent < c->n_out) {
        ssize_t n = send(c->fd, c->out + c->n_sent, c->n_out - c->n_sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (n < 0) {
            leave(c);
            return 0;
        }
        c->n_sent += (size_t)n;
    }
    free(c->out);
    c->out = NULL;
    return 1;
}

/* Answers the first complete line, if there is one; a last one may lack its
 * end. */
static int answer_first(const akin_ctl_t *ctl, client_t *c, int64_t now_ns)
{
    const char *end = memchr(c->in, '\n', c->n_in);
    size_t n = end != NULL ? (size_t)(end - c->in) : c->n_in;
    if (end == NULL && (!c->is_ending || c->n_in == 0)) {
        if (c->n_in < sizeof(c->in))
            return 0;
        c->is_ending = 1;
        c->n_in = 0;
        put_answer(c, akin_ctl_refuse("a request has at most %d bytes",
                                      AKIN_CTL_LINE_BYTES));
        return 1;
    }
    put_answer(c, answer_line(ctl, c->in, n));
    n += end != NULL;
    c->n_in -= n;
    memmove(c->in, c->in + n, c->n_in);
    c->deadline_ns = now_ns + AKIN_CTL_CLIENT_S * AKIN_NS_PER_S;
    return 1;
}

/* Says whether there is something to look at. */
static int receive(client_t *c)
{
    ssize_t n;
    do
        n = recv(c->fd, c->in + c->n_in, sizeof(c->in) - c->n_in, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    /* Nothing more comes; what came may still be a request. */
    if (n <= 0)
        c->is_ending = 1;
    else
        c->n_in += (size_t)n;
    return 1;
}

/* Gives the number of requests answered. */
static unsigned serve(const akin_ctl_t *ctl, client_t *c, int64_t now_ns)
{
    unsigned n = 0;
    while (c->fd >= 0) {
        if (c->out != NULL && !flush(c))
            return n;
        if (n == MAX_ANSWERED)
            return n;
        if (answer_first(ctl, c, now_ns))
            n++;
        else if (c->is_ending)
            leave(c);
        else if (!receive(c))
            return n;
    }
    return n;
}

unsigned akin_ctl_turn(akin_ctl_t *ctl)
{
    const int64_t now = akin_clock_now_ns();
    unsigned n = 0;
    if (now - ctl->turned_ns < TURN_NS)
        return 0;
    ctl->turned_ns = now;
    accept_clients(ctl, now);
    for (int i = 0; i < AKIN_CTL_MAX_CLIENTS; i++) {
        client_t *c = &ctl->clients[i];
        if (c->fd < 0)
            continue;
        n += serve(ctl, c, now);
        if (c->fd >= 0 && c->deadline_ns <= now)
            leave(c);
    }
    return n;
}
