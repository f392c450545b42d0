/* Config source: the text of a job file with its includes in place, checked
 * for what would hurt libconfig, and where each line came from. */
#ifndef AKIN_BASE_CONFIG_SOURCE_H
#define AKIN_BASE_CONFIG_SOURCE_H

#include "base/config_token.h"

#include <stddef.h>

/* Bounds of a job file together with its includes: none is nearly as large,
 * and a file that includes itself ends somewhere. */
#define AKINI_CONFIG_SOURCE_BYTES_MAX ((size_t)1 << 20)
#define AKINI_CONFIG_SOURCE_DEPTH_MAX 8

/* From merged line `line` on, text comes from `name`, where that line has
 * number `line_in_file`. */
typedef struct akini_config_span {
    int line;
    int line_in_file;
    const char *name; /* borrowed from the source's names */
} akini_config_span_t;

typedef struct akini_config_source {
    char *text; /* merged, NUL-terminated, ends with a newline */
    size_t bytes;
    size_t capacity;
    int line; /* of the next byte in the merged text, from 1 */
    akini_config_lexer_t lexer; /* goes on from file to file */
    akini_config_span_t *spans;
    size_t n_spans;
    char **names;
    size_t n_names;
} akini_config_source_t;

/*
 * Load a file, or text in which `@include` is refused. On failure the source
 * is empty and err names file and line; on success free it with cleanup.
 */
akin_status_t akini_config_source_load(akini_config_source_t *source,
                                       const char *path, akin_error_t *err);
akin_status_t akini_config_source_text(akini_config_source_t *source,
                                       const char *text, const char *name,
                                       akin_error_t *err);
void akini_config_source_cleanup(akini_config_source_t *source);

/* File name and line of a line of the merged text. */
const char *akini_config_source_where(const akini_config_source_t *source,
                                      int line, int *line_in_file_p);

/* Start and length, without blanks at the ends, of a merged line. */
const char *akini_config_source_line(const akini_config_source_t *source,
                                     int line, size_t *length_p);

#endif
