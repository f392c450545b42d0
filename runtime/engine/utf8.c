/* UTF-8, one byte at a time: lead bytes and the ranges that may follow. */
#include "engine/utf8.h"

#include <string.h>

/* Bytes that a well-formed character with this lead byte has; 0: not a lead
 * byte. C0, C1 and F5 to FF can only start overlong or too high ones. */
static size_t lead_length(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2)
        return 0;
    if (lead < 0xe0)
        return 2;
    if (lead < 0xf0)
        return 3;
    return lead < 0xf5 ? 4 : 0;
}

/* Whether the second byte keeps the character shortest, below U+110000 and
 * out of the surrogates. */
static int second_fits(unsigned char lead, unsigned char second)
{
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    if (lead == 0xe0)
        low = 0xa0;
    else if (lead == 0xed)
        high = 0x9f;
    else if (lead == 0xf0)
        low = 0x90;
    else if (lead == 0xf4)
        high = 0x8f;
    return second >= low && second <= high;
}

akini_utf8_t akini_utf8_classify(const unsigned char *bytes, size_t n)
{
    size_t length = lead_length(bytes[0]);
    if (n == 0 || n > length)
        return AKINI_UTF8_BAD;
    if (n == 2 && !second_fits(bytes[0], bytes[1]))
        return AKINI_UTF8_BAD;
    if (n > 2 && (bytes[n - 1] & 0xc0) != 0x80)
        return AKINI_UTF8_BAD;
    return n == length ? AKINI_UTF8_WHOLE : AKINI_UTF8_SHORT;
}

size_t akini_utf8_length(unsigned char first)
{
    size_t length = lead_length(first);
    return length == 0 ? 1 : length;
}

const char *akini_utf8_shown(const char *text, char out[48])
{
    size_t n = strnlen(text, 41);
    size_t end = n;
    if (n == 41) {
        end = 40;
        while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
            end--;
    }
    for (size_t i = 0; i < end; i++) {
        unsigned char c = (unsigned char)text[i];
        out[i] = c < 0x20 || c == 0x7f ? '?' : text[i];
    }
    const char *rest = n == 41 ? "..." : "";
    memcpy(out + end, rest, strlen(rest) + 1);
    return out;
}
