/* Fuzz target: the index of a trace, or a journal, and behind a NUL the rows
 * that go with it. */
#include "fuzz.h"
#include "routing/trace_index.h"
#include "routing/trace_journal.h"
#include "routing/trace_rows.h"

#include <stdlib.h>
#include <string.h>

static void need(int holds)
{
    if (!holds)
        abort();
}

/* What was read is within bounds, and rows that are right stay right. */
static void check_index(const akini_trace_index_t *index, const uint8_t *rows,
                        size_t bytes)
{
    const uint64_t row_bytes = akini_trace_row_bytes(&index->shape);
    akini_trace_checker_t checker = {0};
    need(index->n_records > 0 && index->model != NULL);
    need(akini_trace_shape_check(&index->shape, "fuzz", NULL) == AKIN_OK);
    /* Memory for a row of a shape of nonsense is not what is tested. */
    if (row_bytes > 65536 || index->shape.n_experts > 65536 ||
        akini_trace_checker_init(&index->shape, &checker, NULL) != AKIN_OK)
        return;
    for (uint32_t i = 0; i < index->n_records; i++) {
        const akin_trace_record_t *record = &index->records[i];
        const uint64_t length = record->n_tokens * row_bytes;
        need(record->n_tokens > 0 && record->n_prompt <= record->n_tokens);
        need(record->id[0] != '\0' && record->domain != NULL);
        if (record->offset > bytes || length > bytes - record->offset)
            continue;
        akin_error_t err = {{0}};
        if (akini_trace_check_bytes(&checker, rows + record->offset,
                                    record->n_tokens, &err) != AKIN_OK)
            need(strstr(err.text, "row ") != NULL);
        else
            need(checker.ids[0] < index->shape.n_experts);
    }
    akini_trace_checker_cleanup(&checker);
}

static akin_status_t take(void *arg, const akin_trace_record_t *record,
                          uint64_t hash, akin_error_t *err)
{
    uint64_t *sum = arg;
    *sum += record->n_tokens + (hash & 1);
    need(record->n_tokens > 0 && record->n_prompt <= record->n_tokens);
    return record->n_prompt == 77
               ? akin_error_set(err, AKIN_ERR_FORMAT, "not this one")
               : AKIN_OK;
}

static void check_journal(const char *text, size_t bytes)
{
    char model[] = "m", data[] = "t.u8";
    const akini_trace_index_t index = {
        .model = model, .data = data, .shape = {2, 4, 2, 1}};
    akin_error_t err = {{0}};
    uint64_t keep = 0, sum = 0;
    akin_status_t status = akini_trace_journal_scan(text, bytes, "fuzz", &index,
                                                    take, &sum, &keep, &err);
    need(keep <= bytes);
    if (status != AKIN_OK)
        need(strstr(err.text, "fuzz") != NULL);
    else
        need(keep == 0 || text[keep - 1] == '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    akini_trace_index_t index = {0};
    akin_error_t err = {{0}};
    const uint8_t *end = size > 0 ? memchr(data, '\0', size) : NULL;
    const size_t bytes = end != NULL ? (size_t)(end - data) : size;
    const char *text = (const char *)data;
    akin_status_t status =
        akini_trace_index_parse(text, bytes, "fuzz", &index, &err);
    if (status == AKIN_OK) {
        const size_t skip = bytes + (end != NULL);
        check_index(&index, data + skip, size - skip);
    } else {
        need(strstr(err.text, "fuzz") != NULL);
        need(index.records == NULL && index.texts == NULL);
    }
    akini_trace_index_cleanup(&index);
    check_journal(text, size);
    return 0;
}
