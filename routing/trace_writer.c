/* Trace writer: rows and journal lines, and the index at the end. */
#include "routing/trace_writer.h"

#include "base/hash.h"
#include "routing/trace_file.h"
#include "routing/trace_journal.h"
#include "routing/trace_writer_impl.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Records and bytes that a crash of the machine may cost. */
#define SYNC_RECORDS 64u
#define SYNC_BYTES ((uint64_t)64 << 20)

#define SHOWN "%.120s"

static akin_status_t no_memory(const char *path, akin_error_t *err)
{
    return akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory", path);
}

struct akini_trace_entry *
akini_trace_writer_find(const akin_trace_writer_t *writer, const char *id)
{
    struct akini_trace_entry *entry;
    HASH_FIND_STR(writer->entries, id, entry);
    return entry;
}

struct akini_trace_entry *
akini_trace_writer_add(akin_trace_writer_t *writer,
                       const akin_trace_record_t *record)
{
    const char *domain = record->domain != NULL ? record->domain : "";
    struct akini_trace_entry *entry =
        calloc(1, sizeof(*entry) + strlen(record->id) + strlen(domain) + 2);
    if (entry == NULL)
        return NULL;
    entry->record = *record;
    entry->record.id = entry->texts;
    entry->record.domain = stpcpy(entry->texts, record->id) + 1;
    (void)stpcpy(entry->texts + strlen(record->id) + 1, domain);
    HASH_ADD_KEYPTR(hh, writer->entries, entry->record.id,
                    strlen(entry->record.id), entry);
    if (!entry->lost)
        return entry;
    free(entry);
    return NULL;
}

void akini_trace_writer_drop(akin_trace_writer_t *writer,
                             struct akini_trace_entry *entry)
{
    HASH_DEL(writer->entries, entry);
    free(entry);
}

uint64_t akini_trace_writer_hash(const akin_trace_writer_t *writer,
                                 const uint8_t *rows, uint32_t n, uint64_t hash)
{
    const size_t row_bytes = akini_trace_row_bytes(&writer->index.shape);
    for (uint32_t r = 0; r < n; r++)
        hash = akin_hash64(rows + r * row_bytes, row_bytes, hash);
    return hash;
}

/* Rows without a record, and what is left of a line, are cut off. */
akin_status_t akini_trace_writer_cut(akin_trace_writer_t *w, akin_error_t *err)
{
    if (ftruncate(w->data, (off_t)w->data_bytes) != 0)
        return akini_trace_file_fail(w->data_path, "cut", errno, err);
    if (ftruncate(w->journal, (off_t)w->journal_bytes) != 0)
        return akini_trace_file_fail(w->journal_path, "cut", errno, err);
    return AKIN_OK;
}

/* The rows first: a line in the journal must not outlive them. */
akin_status_t akini_trace_writer_sync(akin_trace_writer_t *w, akin_error_t *err)
{
    if (fdatasync(w->data) != 0)
        return akini_trace_file_fail(w->data_path, "sync", errno, err);
    if (fdatasync(w->journal) != 0)
        return akini_trace_file_fail(w->journal_path, "sync", errno, err);
    w->unsynced = 0;
    w->synced_bytes = w->data_bytes;
    return AKIN_OK;
}

int akin_trace_writer_has(const akin_trace_writer_t *writer, const char *id)
{
    return akini_trace_writer_find(writer, id) != NULL;
}

uint32_t akin_trace_writer_count(const akin_trace_writer_t *writer)
{
    return HASH_COUNT(writer->entries);
}

static int is_text(const char *text)
{
    json_t *json =
        strlen(text) <= AKINI_TRACE_MAX_TEXT ? json_string(text) : NULL;
    const int is_valid = json != NULL;
    json_decref(json);
    return is_valid;
}

static akin_status_t check_record(akin_trace_writer_t *w,
                                  const akin_trace_record_t *record,
                                  const uint16_t *routes, akin_error_t *err)
{
    const size_t n_ids = akini_trace_row_ids(&w->index.shape);
    if (w->is_broken || w->is_finished)
        return akin_error_set(err, AKIN_ERR_INVALID, "%s",
                              w->is_finished ? "the trace is finished"
                                             : "an earlier write failed");
    if (record->id == NULL || record->id[0] == '\0' || !is_text(record->id) ||
        (record->domain != NULL && !is_text(record->domain)))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "the id is empty, or a text is not UTF-8 or "
                              "longer than %u bytes",
                              AKINI_TRACE_MAX_TEXT);
    if (akini_trace_writer_find(w, record->id) != NULL)
        return akin_error_set(err, AKIN_ERR_EXISTS, "the id is there already");
    if (record->n_tokens == 0 || record->n_prompt > record->n_tokens)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%u rows, %u of the prompt", record->n_tokens,
                              record->n_prompt);
    if (akin_trace_writer_count(w) == UINT32_MAX - 1)
        return akin_error_set(err, AKIN_ERR_INVALID, "too many records");
    for (uint32_t r = 0; r < record->n_tokens; r++)
        if (akini_trace_check_row(&w->checker, routes + r * n_ids, r, err) !=
            AKIN_OK)
            return AKIN_ERR_INVALID;
    return AKIN_OK;
}

static akin_status_t write_rows(akin_trace_writer_t *w, uint32_t n_rows,
                                const uint16_t *routes, uint64_t *hash_p,
                                akin_error_t *err)
{
    const akin_trace_shape_t *shape = &w->index.shape;
    const size_t n_ids = akini_trace_row_ids(shape);
    const size_t row_bytes = akini_trace_row_bytes(shape);
    akin_status_t status = AKIN_OK;
    *hash_p = 0;
    for (uint32_t r = 0; r < n_rows && status == AKIN_OK;) {
        const uint32_t n =
            n_rows - r < w->pack_rows ? n_rows - r : w->pack_rows;
        akini_trace_ids_pack(shape, routes + r * n_ids, n * n_ids, w->packed);
        *hash_p = akini_trace_writer_hash(w, w->packed, n, *hash_p);
        status = akini_trace_file_write(w->data, w->data_path, w->packed,
                                        n * row_bytes,
                                        w->data_bytes + r * row_bytes, err);
        r += n;
    }
    return status;
}

static akin_status_t write_record(akin_trace_writer_t *w,
                                  const akin_trace_record_t *record,
                                  const uint16_t *routes, akin_error_t *err)
{
    uint64_t hash = 0;
    akin_status_t status = write_rows(w, record->n_tokens, routes, &hash, err);
    if (status != AKIN_OK)
        return status;
    char *line = akini_trace_journal_line(record, hash);
    if (line == NULL)
        return no_memory(w->journal_path, err);
    const size_t bytes = strlen(line);
    status = akini_trace_file_write(w->journal, w->journal_path, line, bytes,
                                    w->journal_bytes, err);
    free(line);
    if (status != AKIN_OK)
        return status;
    w->journal_bytes += bytes;
    w->data_bytes +=
        record->n_tokens * (uint64_t)akini_trace_row_bytes(&w->index.shape);
    return AKIN_OK;
}

akin_status_t akin_trace_writer_append(akin_trace_writer_t *w,
                                       const akin_trace_record_t *record,
                                       const uint16_t *routes,
                                       akin_error_t *err)
{
    akin_status_t status = check_record(w, record, routes, err);
    if (status != AKIN_OK)
        return akin_error_prefix(err, status,
                                 "%s: record \"" SHOWN "\": ", w->path,
                                 record->id != NULL ? record->id : "");
    struct akini_trace_entry *entry = akini_trace_writer_add(w, record);
    if (entry == NULL)
        return no_memory(w->path, err);
    entry->record.offset = w->data_bytes;
    status = write_record(w, &entry->record, routes, err);
    if (status != AKIN_OK) {
        akini_trace_writer_drop(w, entry);
        /* Half a record must not lie under the next one. */
        w->is_broken = akini_trace_writer_cut(w, NULL) != AKIN_OK;
        return status;
    }
    w->unsynced++;
    if (w->unsynced >= SYNC_RECORDS ||
        w->data_bytes - w->synced_bytes >= SYNC_BYTES)
        status = akini_trace_writer_sync(w, err);
    return status;
}

static int by_id(const struct akini_trace_entry *a,
                 const struct akini_trace_entry *b)
{
    return strcmp(a->record.id, b->record.id);
}

/* Gives 0, or the reason as an errno. */
static int print_index(akin_trace_writer_t *w, FILE *file)
{
    json_t *head = akini_trace_head_json(&w->index);
    char *text = head != NULL ? json_dumps(head, 0) : NULL;
    json_decref(head);
    if (text == NULL)
        return ENOMEM;
    errno = 0;
    /* The object stays open for the records. */
    int failed =
        fprintf(file, "%.*s,\n\"records\": [", (int)strlen(text) - 1, text) < 0;
    free(text);
    HASH_SORT(w->entries, by_id);
    for (struct akini_trace_entry *entry = w->entries; entry != NULL && !failed;
         entry = entry->hh.next) {
        json_t *json = akini_trace_record_json(&entry->record);
        if (json == NULL)
            return ENOMEM;
        failed = fprintf(file, "%s\n", entry == w->entries ? "" : ",") < 0 ||
                 json_dumpf(json, file, 0) != 0;
        json_decref(json);
    }
    if (failed || fprintf(file, "\n]}\n") < 0 || fflush(file) != 0 ||
        fsync(fileno(file)) != 0)
        return errno != 0 ? errno : EIO;
    return 0;
}

akin_status_t akin_trace_writer_finish(akin_trace_writer_t *w,
                                       akin_error_t *err)
{
    char *path = NULL;
    if (w->entries == NULL)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "%s: no record, so there is no trace", w->path);
    akin_status_t status = akini_trace_writer_sync(w, err);
    if (status != AKIN_OK)
        return status;
    if (asprintf(&path, "%s.tmp", w->path) < 0)
        return no_memory(w->path, err);
    FILE *file = fopen(path, "we");
    int code = file == NULL ? errno : print_index(w, file);
    if (file != NULL && fclose(file) != 0 && code == 0)
        code = errno;
    if (code == 0 && rename(path, w->path) != 0)
        code = errno;
    if (code == 0) {
        akini_trace_file_sync_directory(w->path);
        (void)unlink(w->journal_path);
        akini_trace_file_sync_directory(w->path);
        w->is_finished = 1;
    } else {
        status = akini_trace_file_fail(path, "write", code, err);
        (void)unlink(path);
    }
    free(path);
    return status;
}
