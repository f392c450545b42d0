/* UTF-8, one byte at a time: how far a sequence is from a whole character. */
#ifndef AKIN_ENGINE_UTF8_H
#define AKIN_ENGINE_UTF8_H

#include <stddef.h>
#include <stdint.h>

typedef enum akini_utf8 {
    AKINI_UTF8_BAD,   /* no well-formed character starts with these bytes */
    AKINI_UTF8_SHORT, /* the start of a character */
    AKINI_UTF8_WHOLE, /* one character */
} akini_utf8_t;

/**
 * Classify a sequence after its last byte. The bytes before the last one must
 * be a sequence that was AKINI_UTF8_SHORT (Unicode 15, table 3-7).
 *
 * \param[in] bytes  1 to 4 bytes.
 * \param[in] n      how many.
 */
akini_utf8_t akini_utf8_classify(const unsigned char *bytes, size_t n);

/**
 * Length of the character that starts at well-formed text.
 *
 * \param[in] first  its first byte.
 * \return 1 to 4.
 */
size_t akini_utf8_length(unsigned char first);

/**
 * Copy text for a message: cut at a character and at 40 bytes, control
 * characters as '?'.
 *
 * \param[in]  text  well-formed UTF-8, NUL-terminated.
 * \param[out] out   the copy, NUL-terminated.
 * \return out.
 */
const char *akini_utf8_shown(const char *text, char out[48]);

#endif
