/* Byte level: the alphabet in which tokenizer.json writes bytes. */
#ifndef AKIN_ENGINE_BYTE_LEVEL_H
#define AKIN_ENGINE_BYTE_LEVEL_H

#include <stddef.h>

/**
 * Bytes that a string of the byte-level alphabet stands for. A byte that is a
 * visible Latin-1 character (21-7E, A1-AC, AE-FF) is written as that
 * character, the other 68 in ascending order as U+0100 to U+0143.
 *
 * \param[in]  text   well-formed UTF-8.
 * \param[in]  n      its length in bytes.
 * \param[out] bytes  room for n bytes.
 * \param[out] n_p    bytes written, at most n.
 * \return 0; -1: a character that is not of the alphabet.
 */
int akini_byte_level_decode(const char *text, size_t n, char *bytes,
                            size_t *n_p);

#endif
