/* Config tokens: the lexical checks that libconfig 1.5 does not make. */
#ifndef AKIN_BASE_CONFIG_TOKEN_H
#define AKIN_BASE_CONFIG_TOKEN_H

#include "base/error.h"

#include <stddef.h>

/*
 * Bytes of the token at `p`, cut exactly where libconfig cuts it; 0 if the
 * token is wrong, with err filled (without the place, which the caller knows).
 *
 * libconfig 1.5 takes each of these in silence, and none can be told from the
 * tree that it builds: an integer beyond 32 bits (it wraps), a comment or
 * string that the end of the file ends, a NUL byte in a string (it cuts it).
 */
size_t akini_config_token_comment(const char *p, akin_error_t *err);
size_t akini_config_token_string(const char *p, akin_error_t *err);

/*
 * A value that starts neither a string nor a group nor a list: a number, true
 * or false. Anything else is refused with the advice to put it in quotes.
 */
size_t akini_config_token_value(const char *p, akin_error_t *err);

/* Bytes of the path in `@include "path"` at `p` and where it starts; 0 if p is
 * not such a directive. */
size_t akini_config_token_include(const char *p, const char **path_p);

#endif
