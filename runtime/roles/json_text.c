/* JSON text: jansson writes the leaves, the buffer grows by doubling. */
#include "roles/json_text.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistr.h>

#define FIRST_BYTES ((size_t)4 << 10)
#define KEPT_BYTES ((size_t)1 << 20)
#define FLOAT_DIGITS 9

static int append(const char *data, size_t bytes, void *buffer)
{
    akini_json_text_t *text = buffer;
    if (text->status != AKIN_OK)
        return -1;
    if (bytes > text->capacity - text->bytes) {
        size_t capacity = text->capacity == 0 ? FIRST_BYTES : text->capacity;
        while (capacity - text->bytes < bytes)
            capacity *= 2;
        char *larger = realloc(text->data, capacity);
        if (larger == NULL) {
            text->status = AKIN_ERR_NOMEM;
            return -1;
        }
        text->data = larger;
        text->capacity = capacity;
    }
    memcpy(text->data + text->bytes, data, bytes);
    text->bytes += bytes;
    return 0;
}

void akini_json_text_raw(akini_json_text_t *text, const char *raw)
{
    (void)append(raw, strlen(raw), text);
}

/* Takes the reference. */
static void append_value(akini_json_text_t *text, json_t *value, size_t flags)
{
    if (value == NULL ||
        json_dump_callback(value, append, text, JSON_ENCODE_ANY | flags) != 0)
        text->status = AKIN_ERR_NOMEM;
    json_decref(value);
}

/* The string with U+FFFD for each byte that is not UTF-8; NULL: no memory. */
static char *repair(const char *string, size_t bytes, size_t *repaired_p)
{
    static const char replacement[] = "\xef\xbf\xbd";
    const size_t n = sizeof(replacement) - 1;
    if (bytes > SIZE_MAX / n - 1)
        return NULL;
    char *repaired = malloc(bytes * n + 1);
    if (repaired == NULL)
        return NULL;
    size_t out = 0;
    while (bytes > 0) {
        const uint8_t *bad = u8_check((const uint8_t *)string, bytes);
        size_t good =
            bad == NULL ? bytes : (size_t)(bad - (const uint8_t *)string);
        memcpy(repaired + out, string, good);
        out += good;
        string += good;
        bytes -= good;
        if (bad == NULL)
            break;
        memcpy(repaired + out, replacement, n);
        out += n;
        string++;
        bytes--;
    }
    *repaired_p = out;
    return repaired;
}

void akini_json_text_string(akini_json_text_t *text, const char *string,
                            size_t bytes)
{
    if (u8_check((const uint8_t *)string, bytes) == NULL) {
        append_value(text, json_stringn_nocheck(string, bytes), 0);
        return;
    }
    size_t n = 0;
    char *repaired = repair(string, bytes, &n);
    if (repaired == NULL)
        text->status = AKIN_ERR_NOMEM;
    else
        append_value(text, json_stringn_nocheck(repaired, n), 0);
    free(repaired);
}

void akini_json_text_word(akini_json_text_t *text, const char *word)
{
    if (word == NULL)
        akini_json_text_raw(text, "null");
    else
        akini_json_text_string(text, word, strlen(word));
}

void akini_json_text_integer(akini_json_text_t *text, int64_t value)
{
    char digits[24];
    (void)snprintf(digits, sizeof(digits), "%" PRId64, value);
    akini_json_text_raw(text, digits);
}

void akini_json_text_float(akini_json_text_t *text, float value)
{
    append_value(text, json_real((double)value),
                 JSON_REAL_PRECISION(FLOAT_DIGITS));
}

void akini_json_text_reset(akini_json_text_t *text)
{
    if (text->capacity > KEPT_BYTES)
        akini_json_text_cleanup(text);
    text->bytes = 0;
    text->status = AKIN_OK;
}

void akini_json_text_cleanup(akini_json_text_t *text)
{
    free(text->data);
    *text = (akini_json_text_t){0};
}
