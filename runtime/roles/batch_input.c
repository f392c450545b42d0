/* Batch input: buffered reading of lines with a limit. */
#include "roles/batch_input.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)64 << 10)
#define COUNT_CHUNK_BYTES ((size_t)1 << 20)
#define COUNT_MAX_BYTES (UINT64_C(1) << 30)

/* What a line may have beside its text: a byte order mark, CR and LF. */
#define EXTRA_BYTES ((size_t)5)
static const char bom[3] = {'\xef', '\xbb', '\xbf'};

struct akin_batch_input {
    int fd;
    int owns_fd;
    int regular; /* a read never waits */
    int at_end;
    int dropping; /* inside a line that is too long */
    size_t max_line_bytes;
    size_t dropped_bytes; /* of that line */
    uint64_t number;      /* lines taken so far */
    uint64_t offset;      /* bytes taken so far */
    char *buffer;
    size_t capacity;
    size_t begin;   /* bytes [begin, end) are not taken yet */
    size_t scanned; /* bytes [begin, scanned) hold no end of line */
    size_t end;
    akin_status_t failed; /* of an earlier read */
    char name[PATH_MAX];
};

static int is_blank(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
            return 0;
    return 1;
}

akin_status_t akin_batch_input_open(const char *path, size_t max_line_bytes,
                                    akin_batch_input_t **input_p,
                                    akin_error_t *err)
{
    *input_p = NULL;
    const int is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "standard input" : path;
    if (strlen(name) >= PATH_MAX)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "the path of the input is too long");
    if (max_line_bytes == 0)
        max_line_bytes = AKIN_BATCH_LINE_BYTES;
    if (max_line_bytes > SIZE_MAX / 4)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: the limit of a line is too large", name);

    /* Without O_NONBLOCK a FIFO that nobody writes to would hold us here; with
     * it, poll() reports the end only after a writer has come and gone. */
    int fd =
        is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return akin_error_set(err, akin_status_from_errno(errno),
                              "%s: cannot open the input: %s", name,
                              strerror(errno));
    struct stat st;
    akin_status_t status;
    if (fstat(fd, &st) != 0) {
        status =
            akin_error_set(err, AKIN_ERR_IO, "%s: %s", name, strerror(errno));
        goto err_close;
    }
    if (S_ISDIR(st.st_mode)) {
        status = akin_error_set(err, AKIN_ERR_INVALID,
                                "%s: is a directory; name a JSONL file, or "
                                "\"-\" for standard input",
                                name);
        goto err_close;
    }
    akin_batch_input_t *input = calloc(1, sizeof(*input));
    if (input == NULL) {
        status = akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory", name);
        goto err_close;
    }
    input->capacity = max_line_bytes + EXTRA_BYTES < CHUNK_BYTES
                          ? max_line_bytes + EXTRA_BYTES
                          : CHUNK_BYTES;
    input->buffer = malloc(input->capacity);
    if (input->buffer == NULL) {
        status = akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory", name);
        free(input);
        goto err_close;
    }
    input->fd = fd;
    input->owns_fd = !is_stdin;
    input->regular = S_ISREG(st.st_mode);
    input->max_line_bytes = max_line_bytes;
    memcpy(input->name, name, strlen(name) + 1);
    *input_p = input;
    return AKIN_OK;

err_close:
    if (!is_stdin)
        (void)close(fd);
    return status;
}

void akin_batch_input_close(akin_batch_input_t *input)
{
    if (input == NULL)
        return;
    if (input->owns_fd)
        (void)close(input->fd);
    free(input->buffer);
    free(input);
}

/* Make room behind `end`: move what is left to the front, then grow. */
static akin_status_t make_room(akin_batch_input_t *input)
{
    if (input->end < input->capacity)
        return AKIN_OK;
    if (input->begin > 0) {
        memmove(input->buffer, input->buffer + input->begin,
                input->end - input->begin);
        input->scanned -= input->begin;
        input->end -= input->begin;
        input->begin = 0;
        return AKIN_OK;
    }
    size_t most = input->max_line_bytes + EXTRA_BYTES;
    size_t larger = input->capacity < most / 2 ? input->capacity * 2 : most;
    char *buffer = realloc(input->buffer, larger);
    if (buffer == NULL)
        return AKIN_ERR_NOMEM;
    input->buffer = buffer;
    input->capacity = larger;
    return AKIN_OK;
}

/* Read once. OK: bytes came or the end was reached. */
static akin_status_t fill(akin_batch_input_t *input, akin_error_t *err)
{
    if (make_room(input) != AKIN_OK)
        return akin_error_set(err, AKIN_ERR_NOMEM,
                              "%s: out of memory at line %llu", input->name,
                              (unsigned long long)input->number + 1);
    for (;;) {
        if (!input->regular) {
            struct pollfd p = {.fd = input->fd, .events = POLLIN};
            int ready = poll(&p, 1, 0);
            if (ready == 0)
                return AKIN_ERR_BUSY;
            if (ready < 0 && errno == EINTR)
                continue;
        }
        ssize_t n = read(input->fd, input->buffer + input->end,
                         input->capacity - input->end);
        if (n > 0) {
            input->end += (size_t)n;
            return AKIN_OK;
        }
        if (n == 0) {
            input->at_end = 1;
            return AKIN_OK;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return AKIN_ERR_BUSY;
        if (errno != EINTR) {
            input->failed = AKIN_ERR_IO;
            return akin_error_set(
                err, AKIN_ERR_IO, "%s: reading failed after line %llu: %s",
                input->name, (unsigned long long)input->number,
                strerror(errno));
        }
    }
}

/* Take `bytes` from the front and make a line of them; `torn` if no end of
 * line follows. Returns 0 for a blank line. */
static int take_line(akin_batch_input_t *input, size_t bytes, int torn,
                     akin_batch_line_t *line_p)
{
    const char *text = input->buffer + input->begin;
    size_t whole = bytes + (torn ? 0 : 1);
    input->begin += whole;
    input->scanned = input->begin;
    input->offset += whole;
    input->number++;

    size_t dropped = input->dropped_bytes;
    int was_dropping = input->dropping;
    input->dropping = 0;
    input->dropped_bytes = 0;
    if (!was_dropping && input->number == 1 && bytes >= sizeof(bom) &&
        memcmp(text, bom, sizeof(bom)) == 0) {
        text += sizeof(bom);
        bytes -= sizeof(bom);
    }
    if (!torn && bytes > 0 && text[bytes - 1] == '\r')
        bytes--;
    *line_p = (akin_batch_line_t){.number = input->number, .torn = torn};
    if (was_dropping || bytes > input->max_line_bytes) {
        line_p->too_long = 1;
        line_p->bytes = dropped + bytes;
        return 1;
    }
    line_p->text = text;
    line_p->bytes = bytes;
    return !is_blank(text, bytes);
}

/* The buffer holds as much as a line may have, and no end of line. */
static void drop(akin_batch_input_t *input)
{
    input->dropping = 1;
    input->dropped_bytes += input->end - input->begin;
    input->offset += input->end - input->begin;
    input->begin = input->scanned = input->end = 0;
}

akin_status_t akin_batch_input_next(akin_batch_input_t *input,
                                    akin_batch_line_t *line_p,
                                    akin_error_t *err)
{
    if (input->failed != AKIN_OK)
        return akin_error_set(err, input->failed,
                              "%s: reading failed after line %llu", input->name,
                              (unsigned long long)input->number);
    for (;;) {
        const char *newline = NULL;
        if (input->end > input->scanned)
            newline = memchr(input->buffer + input->scanned, '\n',
                             input->end - input->scanned);
        if (newline != NULL) {
            size_t bytes = (size_t)(newline - (input->buffer + input->begin));
            if (take_line(input, bytes, 0, line_p))
                return AKIN_OK;
            continue;
        }
        input->scanned = input->end;
        if (input->at_end) {
            size_t bytes = input->end - input->begin;
            if (bytes == 0 && !input->dropping)
                return AKIN_ERR_NOT_FOUND;
            if (take_line(input, bytes, 1, line_p))
                return AKIN_OK;
            continue;
        }
        if (input->dropping ||
            input->end - input->begin == input->max_line_bytes + EXTRA_BYTES)
            drop(input);
        akin_status_t status = fill(input, err);
        if (status != AKIN_OK)
            return status;
    }
}

int akin_batch_input_fd(const akin_batch_input_t *input)
{
    return input->fd;
}

uint64_t akin_batch_input_offset(const akin_batch_input_t *input)
{
    return input->offset;
}

/* Lines with something in them that begin or go on in a chunk. */
static uint64_t count_chunk(const char *text, size_t bytes, int *in_line_p)
{
    uint64_t n = 0;
    const char *p = text;
    const char *end = text + bytes;
    while (p < end) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline != NULL ? newline : end;
        if (!*in_line_p && !is_blank(p, (size_t)(stop - p))) {
            n++;
            *in_line_p = 1;
        }
        if (newline == NULL)
            break;
        *in_line_p = 0;
        p = newline + 1;
    }
    return n;
}

uint64_t akin_batch_input_count(const char *path, uint64_t max_bytes)
{
    if (strcmp(path, "-") == 0)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return 0;
    uint64_t n = 0;
    char *chunk = NULL;
    struct stat st;
    if (max_bytes == 0)
        max_bytes = COUNT_MAX_BYTES;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
        (uint64_t)st.st_size > max_bytes)
        goto out;
    chunk = malloc(COUNT_CHUNK_BYTES);
    if (chunk == NULL)
        goto out;
    int in_line = 0;
    uint64_t left = max_bytes;
    for (;;) {
        ssize_t got = read(fd, chunk, COUNT_CHUNK_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 || (uint64_t)got > left)
            n = 0;
        if (got <= 0 || (uint64_t)got > left)
            break;
        left -= (uint64_t)got;
        n += count_chunk(chunk, (size_t)got, &in_line);
    }
out:
    free(chunk);
    (void)close(fd);
    return n;
}
