/* Output file: POSIX calls of the batch output. */
#include "roles/output_file.h"

#include "base/log.h"
#include "roles/batch_resume.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITE_BYTES ((size_t)1 << 20)
#define POLL_MS 100

/* A pipe that poll() calls writable takes this much without waiting. */
#define PIPE_BYTES ((size_t)PIPE_BUF)

/* Both signals end the process by default; the errors EPIPE and EFBIG of the
 * same write can be told to the user. */
static void ignore_signal(int number)
{
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0 &&
        (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL) {
        action.sa_handler = SIG_IGN;
        (void)sigaction(number, &action, NULL);
    }
}

static akin_status_t lock(const akini_output_file_t *file, akin_error_t *err)
{
    if (flock(file->fd, LOCK_EX | LOCK_NB) == 0)
        return AKIN_OK;
    if (errno == EWOULDBLOCK)
        return akin_error_set(err, AKIN_ERR_BUSY,
                              "%s: another run is writing this file; wait for "
                              "it or name another output",
                              file->name);
    AKIN_LOG(ROLES, WARN,
             "%s: this file system has no locks (%s): take care that no other "
             "run writes the same file",
             file->name, strerror(errno));
    return AKIN_OK;
}

/* A new file is there after a crash only if its directory was synced, too. */
static void sync_directory(const char *path)
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

static akin_status_t resume_file(akini_output_file_t *file, akin_id_set_t *done,
                                 akin_batch_resume_t *resume_p,
                                 akin_error_t *err)
{
    uint64_t keep = 0;
    akin_status_t status =
        akini_batch_resume_scan(file->name, done, resume_p, &keep, err);
    if (status != AKIN_OK)
        return status;
    if (resume_p->torn_bytes > 0 &&
        (ftruncate(file->fd, (off_t)keep) != 0 || fsync(file->fd) != 0))
        return akin_error_set(err, akin_status_from_errno(errno),
                              "%s: cannot cut the unfinished last line off: %s",
                              file->name, strerror(errno));
    file->offset = keep;
    return AKIN_OK;
}

static akin_status_t open_path(akini_output_file_t *file, const char *path,
                               int resume, akin_id_set_t *done,
                               akin_batch_resume_t *resume_p, akin_error_t *err)
{
    /* O_NONBLOCK: a FIFO without a reader is an error, not a wait. */
    file->fd = open(
        path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
        (mode_t)0666);
    if (file->fd < 0 && errno == ENXIO)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: is a FIFO that nobody reads: start its "
                              "reader first",
                              path);
    if (file->fd < 0 && (errno == EISDIR || errno == EACCES || errno == EROFS))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: cannot write the output: %s", path,
                              strerror(errno));
    if (file->fd < 0)
        return akin_error_set(err, akin_status_from_errno(errno),
                              "%s: cannot write the output: %s", path,
                              strerror(errno));
    struct stat st;
    if (fstat(file->fd, &st) != 0)
        return akin_error_set(err, AKIN_ERR_IO, "%s: %s", path,
                              strerror(errno));
    file->regular = S_ISREG(st.st_mode);
    if (!file->regular)
        return resume ? akin_error_set(err, AKIN_ERR_INVALID,
                                       "%s: is not a regular file: it cannot "
                                       "be resumed",
                                       path)
                      : AKIN_OK;
    akin_status_t status = lock(file, err);
    if (status != AKIN_OK)
        return status;
    /* Again: the run that held the lock may just have ended. */
    if (fstat(file->fd, &st) != 0)
        return akin_error_set(err, AKIN_ERR_IO, "%s: %s", path,
                              strerror(errno));
    if (st.st_size == 0) {
        sync_directory(path);
        return AKIN_OK;
    }
    if (!resume)
        return akin_error_set(err, AKIN_ERR_EXISTS,
                              "%s: exists and is not empty; go on with it by "
                              "--resume, remove it, or name another output",
                              path);
    return resume_file(file, done, resume_p, err);
}

akin_status_t akini_output_file_open(akini_output_file_t *file,
                                     const char *path, int resume,
                                     akin_id_set_t *done,
                                     akin_batch_resume_t *resume_p,
                                     akin_error_t *err)
{
    memset(file, 0, sizeof(*file));
    file->fd = -1;
    file->is_stdout = strcmp(path, "-") == 0;
    if (file->is_stdout && resume)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "standard output cannot be resumed: name a file");
    ignore_signal(SIGPIPE);
    ignore_signal(SIGXFSZ);
    file->name = strdup(file->is_stdout ? "standard output" : path);
    if (file->name == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory", path);
    akin_status_t status = AKIN_OK;
    if (file->is_stdout) {
        struct stat st;
        file->fd = STDOUT_FILENO;
        file->regular = fstat(file->fd, &st) == 0 && S_ISREG(st.st_mode);
    } else {
        status = open_path(file, path, resume, done, resume_p, err);
    }
    if (status != AKIN_OK)
        akini_output_file_cleanup(file);
    return status;
}

void akini_output_file_cleanup(akini_output_file_t *file)
{
    if (file->fd >= 0 && !file->is_stdout)
        (void)close(file->fd);
    file->fd = -1;
    free(file->name);
    file->name = NULL;
}

/* Bytes up to the last end of line, and the ends of line among them. */
static size_t whole_lines(const char *data, size_t bytes, uint64_t *n_p)
{
    const char *last = bytes == 0 ? NULL : memrchr(data, '\n', bytes);
    size_t whole = last == NULL ? 0 : (size_t)(last - data) + 1;
    *n_p = 0;
    for (const char *p = data; p < data + whole; (*n_p)++)
        p = (const char *)memchr(p, '\n', (size_t)(data + whole - p)) + 1;
    return whole;
}

static akin_status_t fail_write(akini_output_file_t *file, int error_number,
                                size_t partial_bytes, akin_error_t *err)
{
    int torn = partial_bytes > 0;
    if (torn && file->regular && !file->is_stdout)
        torn = ftruncate(file->fd, (off_t)file->offset) != 0;
    akin_status_t status = error_number == EFBIG
                               ? AKIN_ERR_FULL
                               : akin_status_from_errno(error_number);
    if (status != AKIN_ERR_FULL)
        status = AKIN_ERR_IO;
    const char *hint = file->regular && !file->is_stdout
                           ? "; when the cause is gone, go on with --resume"
                           : "";
    return akin_error_set(err, status,
                          "%s: writing failed after %llu lines of this run: "
                          "%s%s%s",
                          file->name, (unsigned long long)file->n_lines,
                          strerror(error_number),
                          torn ? "; its last line is not whole" : "", hint);
}

/* Wait until a pipe or terminal takes something. */
static akin_status_t wait_writable(const akini_output_file_t *file,
                                   const atomic_int *abandon)
{
    for (;;) {
        struct pollfd p = {.fd = file->fd, .events = POLLOUT};
        int n = poll(&p, 1, POLL_MS);
        if (n > 0 || (n < 0 && errno != EINTR))
            return AKIN_OK;
        if (atomic_load(abandon) != 0)
            return AKIN_ERR_CANCELED;
    }
}

akin_status_t akini_output_file_write(akini_output_file_t *file,
                                      const char *lines, size_t bytes,
                                      const atomic_int *abandon,
                                      atomic_ullong *n_moved, akin_error_t *err)
{
    const size_t most = file->regular ? WRITE_BYTES : PIPE_BYTES;
    size_t done = 0;
    int error_number = 0;
    akin_status_t status = AKIN_OK;
    while (done < bytes && error_number == 0) {
        if (!file->regular &&
            (status = wait_writable(file, abandon)) != AKIN_OK)
            break;
        size_t n = bytes - done < most ? bytes - done : most;
        ssize_t written = write(file->fd, lines + done, n);
        if (written >= 0) {
            done += (size_t)written;
            atomic_fetch_add(n_moved, (unsigned long long)written);
        } else if (errno != EINTR && errno != EAGAIN) {
            error_number = errno;
        }
    }
    uint64_t n_lines;
    size_t whole = whole_lines(lines, done, &n_lines);
    file->offset += whole;
    file->n_lines += n_lines;
    if (status != AKIN_OK)
        return akin_error_set(err, status,
                              "%s: its reader takes nothing more; given up "
                              "after %llu lines",
                              file->name, (unsigned long long)file->n_lines);
    if (error_number != 0)
        return fail_write(file, error_number, done - whole, err);
    return AKIN_OK;
}

akin_status_t akini_output_file_sync(akini_output_file_t *file,
                                     akin_error_t *err)
{
    if (!file->regular)
        return AKIN_OK;
    int rc;
    do
        rc = fdatasync(file->fd);
    while (rc != 0 && errno == EINTR);
    if (rc != 0)
        return akin_error_set(err,
                              errno == ENOSPC || errno == EDQUOT ? AKIN_ERR_FULL
                                                                 : AKIN_ERR_IO,
                              "%s: cannot sync: %s; lines of this run may be "
                              "lost: go on with --resume",
                              file->name, strerror(errno));
    return AKIN_OK;
}
