/* Trace writer: begins a trace, or goes on with one from its journal. */
#include "routing/trace_writer_impl.h"

#include "base/log.h"
#include "routing/trace_file.h"
#include "routing/trace_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PACK_BYTES ((size_t)1 << 20)

static akin_status_t no_memory(const char *path, akin_error_t *err)
{
    return akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory", path);
}

struct resume {
    akin_trace_writer_t *writer;
    const uint8_t *data; /* mapped */
    size_t bytes;
};

static akin_status_t take_record(void *arg, const akin_trace_record_t *record,
                                 uint64_t hash, akin_error_t *err)
{
    struct resume *resume = arg;
    akin_trace_writer_t *w = resume->writer;
    const size_t row_bytes = akini_trace_row_bytes(&w->index.shape);
    const uint64_t bytes = (uint64_t)record->n_tokens * row_bytes;
    if (record->offset != w->data_bytes ||
        akini_trace_writer_find(w, record->id) != NULL)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "not the record that comes next");
    if (record->offset > resume->bytes ||
        bytes > resume->bytes - record->offset)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "its rows are not all in the data");
    const uint8_t *rows = resume->data + record->offset;
    if (akini_trace_writer_hash(w, rows, record->n_tokens, 0) != hash)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "its rows do not have their checksum");
    akin_status_t status =
        akini_trace_check_bytes(&w->checker, rows, record->n_tokens, err);
    if (status != AKIN_OK)
        return status;
    if (akini_trace_writer_add(w, record) == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    w->data_bytes += bytes;
    return AKIN_OK;
}

static akin_status_t read_journal(akin_trace_writer_t *w, akin_error_t *err)
{
    void *journal = NULL, *data = NULL;
    size_t journal_bytes = 0, data_bytes = 0;
    akin_status_t status = akini_trace_file_map(w->journal_path, SIZE_MAX,
                                                &journal, &journal_bytes, err);
    if (status != AKIN_OK)
        return status;
    status =
        akini_trace_file_map(w->data_path, SIZE_MAX, &data, &data_bytes, err);
    if (status == AKIN_OK || status == AKIN_ERR_NOT_FOUND) {
        struct resume resume = {w, data, data_bytes};
        status = akini_trace_journal_scan(
            journal, journal_bytes, w->journal_path, &w->index, take_record,
            &resume, &w->journal_bytes, err);
    }
    akini_trace_file_unmap(journal, journal_bytes);
    akini_trace_file_unmap(data, data_bytes);
    return status;
}

static akin_status_t open_journal(akin_trace_writer_t *w, int resume,
                                  akin_error_t *err)
{
    struct stat st;
    if (lstat(w->path, &st) == 0)
        return akin_error_set(err, AKIN_ERR_EXISTS,
                              "%s: exists already; remove it or name another "
                              "output",
                              w->path);
    w->journal = open(w->journal_path,
                      O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK |
                          (resume ? 0 : O_EXCL),
                      (mode_t)0666);
    if (w->journal < 0 && errno == EEXIST)
        return akin_error_set(err, AKIN_ERR_EXISTS,
                              "%s: exists: a trace was begun; go on with it "
                              "with --resume, or remove it and %s",
                              w->journal_path, w->data_path);
    if (w->journal < 0)
        return akini_trace_file_fail(w->journal_path, "create", errno, err);
    if (flock(w->journal, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return akin_error_set(err, AKIN_ERR_BUSY,
                              "%s: another process is writing this trace; "
                              "wait for it or name another output",
                              w->journal_path);
    return read_journal(w, err);
}

static akin_status_t write_head(akin_trace_writer_t *w, akin_error_t *err)
{
    char *head = akini_trace_journal_head(&w->index);
    if (head == NULL)
        return no_memory(w->journal_path, err);
    const size_t bytes = strlen(head);
    akin_status_t status = akini_trace_file_write(w->journal, w->journal_path,
                                                  head, bytes, 0, err);
    free(head);
    if (status != AKIN_OK)
        return status;
    w->journal_bytes = bytes;
    if (fsync(w->journal) != 0)
        return akini_trace_file_fail(w->journal_path, "sync", errno, err);
    return AKIN_OK;
}

static akin_status_t open_files(akin_trace_writer_t *w, int resume,
                                akin_error_t *err)
{
    akin_status_t status = open_journal(w, resume, err);
    if (status != AKIN_OK)
        return status;
    /* The first line is there before the data: data without it are not ours. */
    const int is_new = w->journal_bytes == 0;
    if (is_new)
        status = write_head(w, err);
    if (status == AKIN_OK) {
        w->data = open(w->data_path,
                       O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK |
                           (is_new ? O_EXCL : 0),
                       (mode_t)0666);
        if (w->data < 0)
            status =
                errno == EEXIST
                    ? akin_error_set(err, AKIN_ERR_EXISTS,
                                     "%s: exists already; remove it or name "
                                     "another output",
                                     w->data_path)
                    : akini_trace_file_fail(w->data_path, "create", errno, err);
    }
    if (status == AKIN_OK)
        status = akini_trace_writer_cut(w, err);
    if (status == AKIN_OK) {
        w->synced_bytes = w->data_bytes;
        akini_trace_file_sync_directory(w->path);
    } else if (is_new) {
        (void)unlink(w->journal_path);
        if (w->data >= 0)
            (void)unlink(w->data_path);
    }
    return status;
}

static akin_status_t init(akin_trace_writer_t *w,
                          const akin_trace_writer_params_t *params,
                          akin_error_t *err)
{
    akin_trace_shape_t shape = params->shape;
    const char *model = params->model != NULL ? params->model : "";
    if (shape.id_bytes == 0)
        shape.id_bytes = shape.n_experts <= 256 ? 1 : 2;
    if (akini_trace_shape_check(&shape, params->path, err) != AKIN_OK)
        return AKIN_ERR_INVALID;
    json_t *text = json_string(model);
    if (text == NULL || strlen(model) > AKINI_TRACE_MAX_TEXT) {
        json_decref(text);
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: the model's name is not UTF-8 or too long",
                              params->path);
    }
    json_decref(text);
    const char *end = shape.id_bytes == 1 ? ".u8" : ".u16";
    const size_t row_bytes = akini_trace_row_bytes(&shape);
    w->index.shape = shape;
    w->index.prompt_stands_in = params->prompt_stands_in != 0;
    w->pack_rows =
        row_bytes < PACK_BYTES ? (uint32_t)(PACK_BYTES / row_bytes) : 1;
    w->packed = malloc(w->pack_rows * row_bytes);
    w->path = strdup(params->path);
    w->data_path = akini_trace_file_renamed(params->path, end);
    w->index.model = strdup(model);
    if (asprintf(&w->journal_path, "%s.part", params->path) < 0)
        w->journal_path = NULL;
    if (w->data_path != NULL)
        w->index.data = strdup(akini_trace_file_base(w->data_path));
    if (w->packed == NULL || w->path == NULL || w->data_path == NULL ||
        w->index.model == NULL || w->index.data == NULL ||
        w->journal_path == NULL)
        return no_memory(params->path, err);
    return akini_trace_checker_init(&shape, &w->checker, err);
}

akin_status_t akin_trace_writer_create(const akin_trace_writer_params_t *params,
                                       akin_trace_writer_t **writer_p,
                                       akin_error_t *err)
{
    *writer_p = NULL;
    akin_trace_writer_t *w = calloc(1, sizeof(*w));
    if (w == NULL)
        return no_memory(params->path, err);
    w->journal = -1;
    w->data = -1;
    akin_status_t status = init(w, params, err);
    if (status == AKIN_OK)
        status = open_files(w, params->resume, err);
    if (status != AKIN_OK) {
        w->is_broken = 1;
        akin_trace_writer_destroy(w);
        return status;
    }
    *writer_p = w;
    return AKIN_OK;
}

void akin_trace_writer_destroy(akin_trace_writer_t *w)
{
    if (w == NULL)
        return;
    akin_error_t err = {{0}};
    if (w->unsynced > 0 && !w->is_broken &&
        akini_trace_writer_sync(w, &err) != AKIN_OK)
        AKIN_LOG(ROUTING, WARN, "%s", err.text);
    if (w->journal >= 0)
        (void)close(w->journal);
    if (w->data >= 0)
        (void)close(w->data);
    struct akini_trace_entry *entry, *next;
    HASH_ITER(hh, w->entries, entry, next)
    {
        akini_trace_writer_drop(w, entry);
    }
    akini_trace_checker_cleanup(&w->checker);
    akini_trace_index_cleanup(&w->index);
    free(w->path);
    free(w->journal_path);
    free(w->data_path);
    free(w->packed);
    free(w);
}
