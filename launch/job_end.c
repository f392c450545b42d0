/* Job end: one datagram over a socket that the kernel has named. */
#include "launch/job_end.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The socket's name without the NUL byte that it begins with. */
#define VARIABLE "AKIN_JOB_END"

typedef struct word {
    char magic[8];
    int code;
} word_t;

static const char magic[8] = "akin end";

akin_status_t akin_job_end_listen(akin_job_end_t *end_p)
{
    const int on = 1;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t bytes = sizeof(address);
    char name[sizeof(address.sun_path) + 1] = "";
    const size_t start = offsetof(struct sockaddr_un, sun_path) + 1;
    end_p->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (end_p->fd < 0)
        return akin_status_from_errno(errno);
    /* An address without a path: the kernel finds a name that is free. */
    if (setsockopt(end_p->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0 ||
        bind(end_p->fd, (const struct sockaddr *)&address,
             sizeof(address.sun_family)) != 0 ||
        getsockname(end_p->fd, (struct sockaddr *)&address, &bytes) != 0 ||
        bytes <= start)
        return akin_status_from_errno(errno);
    memcpy(name, address.sun_path + 1, bytes - start);
    return setenv(VARIABLE, name, 1) == 0 ? AKIN_OK : AKIN_ERR_NOMEM;
}

/* Whether the message comes from a process of this user. */
static int is_own(struct msghdr *message)
{
    struct cmsghdr *head = CMSG_FIRSTHDR(message);
    struct ucred sender;
    if (head == NULL || head->cmsg_level != SOL_SOCKET ||
        head->cmsg_type != SCM_CREDENTIALS ||
        head->cmsg_len != CMSG_LEN(sizeof(sender)))
        return 0;
    memcpy(&sender, CMSG_DATA(head), sizeof(sender));
    return sender.uid == geteuid();
}

int akin_job_end_is_told(const akin_job_end_t *end, int *code_p)
{
    word_t word;
    struct iovec part = {.iov_base = &word, .iov_len = sizeof(word)};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    if (end->fd < 0 || recvmsg(end->fd, &message, 0) != (ssize_t)sizeof(word) ||
        memcmp(word.magic, magic, sizeof(magic)) != 0 || !is_own(&message))
        return 0;
    *code_p = word.code;
    return 1;
}

void akin_job_end_close(akin_job_end_t *end)
{
    if (end->fd >= 0)
        (void)close(end->fd);
    end->fd = -1;
    (void)unsetenv(VARIABLE);
}

void akin_job_end_tell(int code)
{
    const char *name = getenv(VARIABLE);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    word_t word = {.code = code};
    if (name == NULL || strlen(name) > sizeof(address.sun_path) - 1)
        return;
    memcpy(word.magic, magic, sizeof(magic));
    memcpy(address.sun_path + 1, name, strlen(name));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    /* A launcher that is gone needs no word. */
    (void)sendto(
        fd, &word, sizeof(word), 0, (const struct sockaddr *)&address,
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)));
    (void)close(fd);
}
