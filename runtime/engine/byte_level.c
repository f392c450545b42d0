/* Byte level: the alphabet is three runs of characters that stand for
 * themselves and three runs of bytes that are moved up to U+0100. */
#include "engine/byte_level.h"

#include <stdint.h>

enum {
    MOVED = 0x100,       /* where the moved bytes start */
    N_LOW = 0x21,        /* moved: 00-20 */
    N_MIDDLE = 0x22,     /* moved: 7F-A0 */
    MIDDLE_FIRST = 0x7f, /* first byte of the second moved run */
    SOFT_HYPHEN = 0xad,  /* the last moved byte */
};

/* The byte that a character stands for, or -1. */
static int byte_of(uint32_t c)
{
    if (c < MOVED) {
        int visible =
            (c > 0x20 && c < MIDDLE_FIRST) || (c > 0xa0 && c != SOFT_HYPHEN);
        return visible ? (int)c : -1;
    }
    uint32_t moved = c - MOVED;
    if (moved < N_LOW)
        return (int)moved;
    moved -= N_LOW;
    if (moved < N_MIDDLE)
        return (int)(MIDDLE_FIRST + moved);
    return moved == N_MIDDLE ? SOFT_HYPHEN : -1;
}

int akini_byte_level_decode(const char *text, size_t n, char *bytes,
                            size_t *n_p)
{
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t c = (unsigned char)text[i];
        if (c >= 0x80) {
            /* The alphabet ends at U+0143: two bytes at most. */
            if (c < 0xc0 || c >= 0xe0 || i + 1 == n)
                return -1;
            i++;
            c = (c & 0x1f) << 6 | ((unsigned char)text[i] & 0x3f);
        }
        int byte = byte_of(c);
        if (byte < 0)
            return -1;
        bytes[used++] = (char)byte;
    }
    *n_p = used;
    return 0;
}
