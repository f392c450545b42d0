/* Batch output: the order of lines, and the thread that writes them. */
#include "roles/batch_output.h"

#include "base/clock.h"
#include "base/thread.h"
#include "roles/line_order.h"
#include "roles/output_file.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFAULT_HELD_LINES 4096
#define DEFAULT_HELD_BYTES ((size_t)64 << 20)
#define DEFAULT_SYNC_LINES 64
#define CLOSE_WAIT_S 60  /* without progress, before close() gives up */
#define ABANDON_WAIT_S 5 /* for the thread to notice */
#define KEPT_BYTES ((size_t)4 << 20)

typedef struct buffer {
    char *data;
    size_t bytes;
    size_t capacity;
} buffer_t;

struct akin_batch_output {
    /* The caller's. */
    akin_batch_output_params_t params; /* defaults filled in; no path */
    akini_line_order_t order;
    uint32_t unsynced_lines;
    int64_t unsynced_since_ns;

    /* Under the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t wake; /* there is something to do, or it is done */
    buffer_t pending;    /* lines for the thread to take */
    size_t writing_bytes;
    int want_sync;
    int stop;
    int ended;
    uint64_t n_written;
    akin_status_t failed;
    akin_error_t failure;

    /* The thread's. */
    pthread_t thread;
    akini_output_file_t file;
    atomic_int abandon;
    atomic_ullong n_moved;
};

static void fail(akin_batch_output_t *output, akin_status_t status,
                 const akin_error_t *err)
{
    output->failed = status;
    output->failure = *err;
    output->pending.bytes = 0;
}

/* With the mutex held; it is released while the disk works. */
static void write_some(akin_batch_output_t *output, buffer_t *work)
{
    buffer_t swap = output->pending;
    output->pending = *work;
    *work = swap;
    const int sync = output->want_sync;
    output->want_sync = 0;
    output->writing_bytes = work->bytes;
    (void)pthread_mutex_unlock(&output->mutex);

    akin_error_t err = {{0}};
    akin_status_t status = AKIN_OK;
    if (work->bytes > 0)
        status =
            akini_output_file_write(&output->file, work->data, work->bytes,
                                    &output->abandon, &output->n_moved, &err);
    if (status == AKIN_OK && sync)
        status = akini_output_file_sync(&output->file, &err);
    if (work->capacity > KEPT_BYTES) {
        free(work->data);
        *work = (buffer_t){0};
    }
    work->bytes = 0;

    (void)pthread_mutex_lock(&output->mutex);
    output->writing_bytes = 0;
    output->n_written = output->file.n_lines;
    if (status != AKIN_OK)
        fail(output, status, &err);
}

static void *run(void *data)
{
    akin_batch_output_t *output = data;
    buffer_t work = {0};
    akin_thread_set_name("akin-output");
    (void)pthread_mutex_lock(&output->mutex);
    while (output->failed == AKIN_OK) {
        if (output->pending.bytes > 0 || output->want_sync)
            write_some(output, &work);
        else if (output->stop)
            break;
        else
            (void)pthread_cond_wait(&output->wake, &output->mutex);
    }
    output->ended = 1;
    (void)pthread_cond_broadcast(&output->wake);
    (void)pthread_mutex_unlock(&output->mutex);
    free(work.data);
    return NULL;
}

static void free_output(akin_batch_output_t *output)
{
    akini_line_order_cleanup(&output->order);
    free(output->pending.data);
    akini_output_file_cleanup(&output->file);
    (void)pthread_cond_destroy(&output->wake);
    (void)pthread_mutex_destroy(&output->mutex);
    free(output);
}

static akin_status_t start_thread(akin_batch_output_t *output)
{
    /* Signals are for the threads of the program. */
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&output->thread, NULL, run, output);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0 ? AKIN_OK : AKIN_ERR_NOMEM;
}

akin_status_t akin_batch_output_open(const akin_batch_output_params_t *params,
                                     akin_id_set_t *done,
                                     akin_batch_resume_t *resume_p,
                                     akin_batch_output_t **output_p,
                                     akin_error_t *err)
{
    *output_p = NULL;
    akin_batch_resume_t found = {0};
    if (params->resume && done == NULL)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: a resume needs a set of ids", params->path);
    akin_batch_output_t *output = calloc(1, sizeof(*output));
    if (output == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory",
                              params->path);
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&output->wake, &attr);
    (void)pthread_condattr_destroy(&attr);
    (void)pthread_mutex_init(&output->mutex, NULL);
    output->file.fd = -1;
    output->params = *params;
    output->params.path = NULL;
    if (params->max_held_lines == 0)
        output->params.max_held_lines = DEFAULT_HELD_LINES;
    if (params->max_held_bytes == 0)
        output->params.max_held_bytes = DEFAULT_HELD_BYTES;
    if (params->sync_lines == 0)
        output->params.sync_lines = DEFAULT_SYNC_LINES;
    if (params->sync_ns == 0)
        output->params.sync_ns = AKIN_NS_PER_S;

    akin_status_t status = akini_output_file_open(
        &output->file, params->path, params->resume, done, &found, err);
    if (status != AKIN_OK)
        goto err_free;
    if (params->ordered)
        status = akini_line_order_init(&output->order,
                                       output->params.max_held_lines);
    if (status == AKIN_OK)
        status = start_thread(output);
    if (status != AKIN_OK) {
        (void)akin_error_set(err, status, "%s: no memory or no thread for it",
                             params->path);
        goto err_free;
    }
    if (resume_p != NULL)
        *resume_p = found;
    *output_p = output;
    return AKIN_OK;

err_free:
    free_output(output);
    return status;
}

/* The state of the thread, for a call that wants to go on. */
static akin_status_t check(const akin_batch_output_t *output, akin_error_t *err)
{
    if (output->failed != AKIN_OK)
        return akin_error_set(err, output->failed, "%s", output->failure.text);
    return AKIN_OK;
}

uint32_t akin_batch_output_room(akin_batch_output_t *output, uint64_t n_begun)
{
    (void)pthread_mutex_lock(&output->mutex);
    size_t bytes = output->pending.bytes + output->writing_bytes;
    (void)pthread_mutex_unlock(&output->mutex);
    if (bytes + output->order.held_bytes >= output->params.max_held_bytes)
        return 0;
    if (!output->params.ordered)
        return UINT32_MAX;
    uint64_t end = output->order.next + output->order.size;
    return n_begun >= end ? 0 : (uint32_t)(end - n_begun);
}

/* Hand a line to the thread. */
static akin_status_t pass_on(akin_batch_output_t *output, const char *line,
                             size_t bytes, akin_error_t *err)
{
    akin_status_t status;
    (void)pthread_mutex_lock(&output->mutex);
    buffer_t *pending = &output->pending;
    if ((status = check(output, err)) != AKIN_OK)
        goto out;
    if (bytes > pending->capacity - pending->bytes) {
        size_t capacity = 2 * pending->capacity;
        if (capacity < pending->bytes + bytes)
            capacity = pending->bytes + bytes;
        char *data = realloc(pending->data, capacity);
        if (data == NULL) {
            status = akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory",
                                    output->file.name);
            goto out;
        }
        pending->data = data;
        pending->capacity = capacity;
    }
    memcpy(pending->data + pending->bytes, line, bytes);
    pending->bytes += bytes;
    output->unsynced_lines++;
    (void)pthread_cond_signal(&output->wake);
out:
    (void)pthread_mutex_unlock(&output->mutex);
    return status;
}

/* Hand on what became next in order. */
static akin_status_t pass_on_held(akin_batch_output_t *output,
                                  akin_error_t *err)
{
    const char *line;
    size_t bytes;
    akin_status_t status = AKIN_OK;
    while (status == AKIN_OK &&
           (line = akini_line_order_first(&output->order, &bytes)) != NULL) {
        status = pass_on(output, line, bytes, err);
        if (status == AKIN_OK)
            akini_line_order_advance(&output->order);
    }
    /* They stay where they are, and the next call tries again. */
    return status == AKIN_ERR_NOMEM ? AKIN_OK : status;
}

static akin_status_t put_ordered(akin_batch_output_t *output, uint64_t sequence,
                                 const char *line, size_t bytes,
                                 akin_error_t *err)
{
    akin_status_t status =
        akini_line_order_hold(&output->order, sequence, line, bytes);
    if (status != AKIN_OK)
        return akin_error_set(
            err, status,
            "%s: line %llu of the run does not fit behind line "
            "%llu: %s",
            output->file.name, (unsigned long long)sequence,
            (unsigned long long)output->order.next, akin_status_string(status));
    return pass_on_held(output, err);
}

akin_status_t akin_batch_output_put(akin_batch_output_t *output,
                                    uint64_t sequence, const char *line,
                                    size_t bytes, int64_t now_ns,
                                    akin_error_t *err)
{
    if (bytes == 0 || memchr(line, '\n', bytes) != line + bytes - 1)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: a line must end with its only end of line",
                              output->file.name);
    if (bytes > AKIN_BATCH_OUTPUT_LINE_BYTES)
        return akin_error_set(err, AKIN_ERR_RANGE,
                              "%s: a line of %zu bytes, more than %zu: ask for "
                              "fewer tokens or logprobs",
                              output->file.name, bytes,
                              AKIN_BATCH_OUTPUT_LINE_BYTES);
    const uint32_t before = output->unsynced_lines;
    akin_status_t status = output->params.ordered
                               ? put_ordered(output, sequence, line, bytes, err)
                               : pass_on(output, line, bytes, err);
    if (before == 0)
        output->unsynced_since_ns = now_ns;
    if (status != AKIN_OK)
        return status;
    return akin_batch_output_tick(output, now_ns, err);
}

akin_status_t akin_batch_output_tick(akin_batch_output_t *output,
                                     int64_t now_ns, akin_error_t *err)
{
    const int due =
        output->unsynced_lines >= output->params.sync_lines ||
        (output->unsynced_lines > 0 &&
         now_ns - output->unsynced_since_ns >= output->params.sync_ns);
    (void)pthread_mutex_lock(&output->mutex);
    if (due) {
        output->want_sync = 1;
        (void)pthread_cond_signal(&output->wake);
    }
    akin_status_t status = check(output, err);
    (void)pthread_mutex_unlock(&output->mutex);
    if (due)
        output->unsynced_lines = 0;
    return status;
}

uint64_t akin_batch_output_held(const akin_batch_output_t *output)
{
    return output->order.n_held;
}

uint64_t akin_batch_output_written(akin_batch_output_t *output)
{
    (void)pthread_mutex_lock(&output->mutex);
    uint64_t n = output->n_written;
    (void)pthread_mutex_unlock(&output->mutex);
    return n;
}

/* Wait for the thread to end, at most so long without a byte moving. */
static int wait_for_end(akin_batch_output_t *output, int wait_s)
{
    unsigned long long moved = atomic_load(&output->n_moved);
    int64_t deadline = akin_clock_now_ns() + wait_s * AKIN_NS_PER_S;
    while (!output->ended && akin_clock_now_ns() < deadline) {
        int64_t next = akin_clock_now_ns() + AKIN_NS_PER_S;
        struct timespec t = {.tv_sec = (time_t)(next / AKIN_NS_PER_S),
                             .tv_nsec = (long)(next % AKIN_NS_PER_S)};
        (void)pthread_cond_timedwait(&output->wake, &output->mutex, &t);
        unsigned long long now_moved = atomic_load(&output->n_moved);
        if (now_moved != moved)
            deadline = akin_clock_now_ns() + wait_s * AKIN_NS_PER_S;
        moved = now_moved;
    }
    return output->ended;
}

akin_status_t akin_batch_output_close(akin_batch_output_t *output,
                                      akin_error_t *err)
{
    if (output == NULL)
        return AKIN_OK;
    if (output->params.ordered)
        (void)pass_on_held(output, NULL);
    (void)pthread_mutex_lock(&output->mutex);
    output->want_sync = 1;
    output->stop = 1;
    (void)pthread_cond_broadcast(&output->wake);
    int ended = wait_for_end(output, CLOSE_WAIT_S);
    if (!ended) {
        atomic_store(&output->abandon, 1);
        ended = wait_for_end(output, ABANDON_WAIT_S);
        output->failed = AKIN_ERR_TIMEOUT;
        (void)akin_error_set(&output->failure, AKIN_ERR_TIMEOUT,
                             "%s: nothing could be written for %d s; given up "
                             "after %llu lines of this run",
                             output->file.name, CLOSE_WAIT_S,
                             (unsigned long long)output->n_written);
    }
    akin_status_t status = check(output, err);
    (void)pthread_mutex_unlock(&output->mutex);
    if (!ended) {
        /* It hangs in the kernel and still uses this memory. */
        (void)pthread_detach(output->thread);
        return status;
    }
    (void)pthread_join(output->thread, NULL);
    free_output(output);
    return status;
}
