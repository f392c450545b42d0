/* Trace file: mapping, writing at a place, names beside an index. */
#include "routing/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

akin_status_t akini_trace_file_fail(const char *path, const char *what,
                                    int code, akin_error_t *err)
{
    /* A limit on the size of files is a disk that is full for this process. */
    akin_status_t status =
        code == EFBIG ? AKIN_ERR_FULL : akin_status_from_errno(code);
    if (status == AKIN_ERR_INVALID)
        status = AKIN_ERR_IO;
    return akin_error_set(err, status, "%s: cannot %s: %s", path, what,
                          strerror(code));
}

akin_status_t akini_trace_file_map(const char *path, uint64_t max_bytes,
                                   void **map_p, size_t *bytes_p,
                                   akin_error_t *err)
{
    struct stat st;
    *map_p = NULL;
    *bytes_p = 0;
    /* Without a writer a FIFO would hold the open up for ever. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return akini_trace_file_fail(path, "open", errno, err);
    akin_status_t status = AKIN_OK;
    if (fstat(fd, &st) != 0)
        status = akini_trace_file_fail(path, "read", errno, err);
    else if (!S_ISREG(st.st_mode))
        status = akin_error_set(err, AKIN_ERR_IO,
                                "%s: cannot read: not a regular file", path);
    else if ((uint64_t)st.st_size > max_bytes)
        status = akin_error_set(err, AKIN_ERR_FORMAT,
                                "%s: %llu bytes, at most %llu can be read",
                                path, (unsigned long long)st.st_size,
                                (unsigned long long)max_bytes);
    if (status == AKIN_OK && st.st_size > 0) {
        void *map =
            mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED) {
            status = akini_trace_file_fail(path, "map", errno, err);
        } else {
            *map_p = map;
            *bytes_p = (size_t)st.st_size;
        }
    }
    (void)close(fd);
    return status;
}

void akini_trace_file_unmap(void *map, size_t bytes)
{
    if (map != NULL)
        (void)munmap(map, bytes);
}

akin_status_t akini_trace_file_write(int fd, const char *path, const void *data,
                                     size_t bytes, uint64_t offset,
                                     akin_error_t *err)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t n = pwrite(fd, at, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return akini_trace_file_fail(path, "write", n < 0 ? errno : ENOSPC,
                                         err);
        at += n;
        bytes -= (size_t)n;
        offset += (uint64_t)n;
    }
    return AKIN_OK;
}

void akini_trace_file_sync_directory(const char *path)
{
    char *copy = strdup(path);
    if (copy == NULL)
        return;
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
    free(copy);
}

const char *akini_trace_file_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* The first bytes of a path and a text. */
static char *join(const char *path, size_t keep, const char *end)
{
    const size_t length = strlen(end);
    char *joined = malloc(keep + length + 1);
    if (joined == NULL)
        return NULL;
    memcpy(joined, path, keep);
    memcpy(joined + keep, end, length + 1);
    return joined;
}

char *akini_trace_file_beside(const char *path, const char *name)
{
    return join(path, (size_t)(akini_trace_file_base(path) - path), name);
}

int akini_trace_file_is_json(const char *path)
{
    const size_t length = strlen(path);
    return length > 5 && strcmp(path + length - 5, ".json") == 0;
}

char *akini_trace_file_renamed(const char *path, const char *end)
{
    return join(path, strlen(path) - (akini_trace_file_is_json(path) ? 5 : 0),
                end);
}
