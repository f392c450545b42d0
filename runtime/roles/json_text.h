/* JSON text: a growing buffer to which JSON is written in a fixed order,
 * without a tree: an answer with logprobs may have tens of MB. */
#ifndef AKIN_ROLES_JSON_TEXT_H
#define AKIN_ROLES_JSON_TEXT_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Start it as `{0}`. A failed append marks the buffer and later ones do
 * nothing, so that only the end needs a check.
 */
typedef struct akini_json_text {
    char *data; /* malloc'ed, owned; not NUL-terminated */
    size_t bytes;
    size_t capacity;
    akin_status_t status; /* AKIN_OK or AKIN_ERR_NOMEM */
} akini_json_text_t;

/** Append text as it is: punctuation, keys. */
void akini_json_text_raw(akini_json_text_t *text, const char *raw);

/** Append a string, quoted and escaped; bytes that are not UTF-8 come out as
 * U+FFFD. */
void akini_json_text_string(akini_json_text_t *text, const char *string,
                            size_t bytes);

/** As akini_json_text_string(), of a NUL-terminated text; NULL: null. */
void akini_json_text_word(akini_json_text_t *text, const char *word);

void akini_json_text_integer(akini_json_text_t *text, int64_t value);

/** Append a float with the 9 digits that give it back exactly. */
void akini_json_text_float(akini_json_text_t *text, float value);

/** Forget the content; memory beyond 1 MiB is given back. */
void akini_json_text_reset(akini_json_text_t *text);

/** Free the memory. */
void akini_json_text_cleanup(akini_json_text_t *text);

#ifdef __cplusplus
}
#endif

#endif
