/* Config tokens: the lexical checks that libconfig 1.5 does not make. */
#ifndef AKIN_BASE_CONFIG_TOKEN_H
#define AKIN_BASE_CONFIG_TOKEN_H

#include "base/error.h"

#include <stddef.h>

/* libconfig's parser recurses, and searches a group for every new setting. */
#define AKINI_CONFIG_NESTING_MAX 16
#define AKINI_CONFIG_ITEMS_MAX 8192 /* settings and includes */

/* What the token before was, as far as the next one depends on it. */
typedef enum akini_config_last {
    AKINI_CONFIG_LAST_OTHER,
    AKINI_CONFIG_LAST_EQUALS, /* '=' or ':': a value or group must follow */
    AKINI_CONFIG_LAST_STRING  /* another string may follow and adds to it */
} akini_config_last_t;

/* Starts as zero. */
typedef struct akini_config_lexer {
    akini_config_last_t last;
    int nesting;
    size_t items;
    char name[64]; /* the last name, cut, for messages */
} akini_config_lexer_t;

/*
 * Bytes of the token at `p`, which is not "@", cut exactly where libconfig
 * cuts it; 0 if it is refused, with err filled (without the place, which the
 * caller knows).
 *
 * What is refused here, libconfig 1.5 takes in silence, and most of it cannot
 * be told from the tree that it builds: an integer beyond 32 bits (it wraps),
 * a comment or string that the end of the file ends, a NUL byte in a string
 * (it cuts it). Lists and misplaced strings are refused as well: no key takes
 * a list, and libconfig leaks strings when its parser stops at one.
 */
size_t akini_config_token(akini_config_lexer_t *lexer, const char *p,
                          akin_error_t *err);

/* Bytes of the path in `@include "path"` at `p` and where it starts; 0 if p is
 * not such a directive. */
size_t akini_config_token_include(const char *p, const char **path_p);

#endif
