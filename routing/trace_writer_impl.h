/* Trace writer: what its files share. */
#ifndef AKIN_ROUTING_TRACE_WRITER_IMPL_H
#define AKIN_ROUTING_TRACE_WRITER_IMPL_H

#include "routing/trace_index.h"
#include "routing/trace_record.h"
#include "routing/trace_rows.h"
#include "routing/trace_writer.h"

#include <stdint.h>

/* Without these two uthash ends the process when memory runs out. */
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element)->lost = 1)
#include <uthash.h>

struct akini_trace_entry {
    akin_trace_record_t record;
    int lost; /* uthash had no memory for it */
    UT_hash_handle hh;
    char texts[]; /* id and domain */
};

struct akin_trace_writer {
    akini_trace_index_t index; /* without records */
    char *path;
    char *journal_path;
    char *data_path;
    int journal; /* descriptors; -1: not open */
    int data;
    uint64_t journal_bytes; /* up to the last whole record */
    uint64_t data_bytes;
    uint64_t synced_bytes;             /* of the data */
    uint32_t unsynced;                 /* records */
    struct akini_trace_entry *entries; /* by id */
    akini_trace_checker_t checker;
    uint8_t *packed; /* [pack_rows] */
    uint32_t pack_rows;
    int is_broken; /* a failed write could not be taken back */
    int is_finished;
};

/** The entry of that id, or NULL. */
struct akini_trace_entry *
akini_trace_writer_find(const akin_trace_writer_t *writer, const char *id);

/** Copy a record into the table; NULL: out of memory. */
struct akini_trace_entry *
akini_trace_writer_add(akin_trace_writer_t *writer,
                       const akin_trace_record_t *record);

/** Take an entry out of the table and free it. */
void akini_trace_writer_drop(akin_trace_writer_t *writer,
                             struct akini_trace_entry *entry);

/** Chain the hashes of packed rows onto that of the rows before, or 0. */
uint64_t akini_trace_writer_hash(const akin_trace_writer_t *writer,
                                 const uint8_t *rows, uint32_t n,
                                 uint64_t hash);

/** Cut rows without a record and half lines off both files. */
akin_status_t akini_trace_writer_cut(akin_trace_writer_t *writer,
                                     akin_error_t *err) AKIN_MUST_CHECK;

/** Make both files durable. */
akin_status_t akini_trace_writer_sync(akin_trace_writer_t *writer,
                                      akin_error_t *err) AKIN_MUST_CHECK;

#endif
