/* Config tokens: comments, strings, numbers and bare words. */
#include "base/config_token.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SHOWN_BYTES 64

static size_t comment_token(const char *p, akin_error_t *err)
{
    if (p[0] == '#' || p[1] == '/')
        return strcspn(p, "\n");
    const char *end = strstr(p + 2, "*/");
    if (end != NULL)
        return (size_t)(end + 2 - p);
    (void)akin_error_set(err, AKIN_ERR_CONFIG, "this comment has no end");
    return 0;
}

static size_t string_token(const char *p, akin_error_t *err)
{
    for (size_t i = 1; p[i] != '\0'; i++) {
        if (p[i] == '"')
            return i + 1;
        if (p[i] != '\\')
            continue;
        if (strncmp(p + i, "\\x00", 4) == 0) {
            (void)akin_error_set(err, AKIN_ERR_CONFIG,
                                 "text cannot hold \\x00");
            return 0;
        }
        /* Other escapes end in a byte that means nothing else. */
        if (p[i + 1] == '"' || p[i + 1] == '\\')
            i++;
    }
    (void)akin_error_set(err, AKIN_ERR_CONFIG,
                         "this text has no closing quote");
    return 0;
}

/* Length of "L" or "LL" at the end of an integer. */
static size_t suffix_length(const char *end)
{
    size_t length = strspn(end, "L");
    return length <= 2 && end[length] == '\0' ? length : 0;
}

static size_t digits_length(const char *p)
{
    return strspn(p, "0123456789");
}

typedef enum number {
    NUMBER_FINE,
    NUMBER_NONE,     /* not a number */
    NUMBER_WIDER_32, /* an integer that libconfig would wrap */
    NUMBER_WIDER_64
} number_t;

static number_t hexadecimal_check(const char *text)
{
    size_t digits = strspn(text + 2, "0123456789abcdefABCDEF");
    const char *end = text + 2 + digits;
    size_t suffix = suffix_length(end);
    if (digits == 0 || end[suffix] != '\0')
        return NUMBER_NONE;
    errno = 0;
    unsigned long long value = strtoull(text, NULL, 16);
    if (errno != 0 || value > INT64_MAX)
        return NUMBER_WIDER_64;
    return suffix == 0 && value > INT32_MAX ? NUMBER_WIDER_32 : NUMBER_FINE;
}

static number_t integer_check(const char *text, int has_suffix)
{
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    if (errno != 0)
        return NUMBER_WIDER_64;
    return !has_suffix && (value < INT32_MIN || value > INT32_MAX)
               ? NUMBER_WIDER_32
               : NUMBER_FINE;
}

/* Check a NUL-terminated token against libconfig's forms of a number. */
static number_t number_check(const char *text)
{
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        return hexadecimal_check(text);
    const char *p = text + (text[0] == '-' || text[0] == '+');
    size_t whole = digits_length(p);
    p += whole;
    size_t suffix = suffix_length(p);
    if (whole > 0 && p[suffix] == '\0')
        return integer_check(text, suffix > 0);
    size_t decimals = *p == '.' ? digits_length(p + 1) : 0;
    p += *p == '.' ? 1 + decimals : 0;
    if (whole + decimals == 0)
        return NUMBER_NONE;
    if (*p == 'e' || *p == 'E') {
        p += p[1] == '+' || p[1] == '-' ? 2 : 1;
        size_t digits = digits_length(p);
        if (digits == 0)
            return NUMBER_NONE;
        p += digits;
    }
    return *p == '\0' ? NUMBER_FINE : NUMBER_NONE;
}

/* A number, true or false; anything else is taken for text without quotes. */
static size_t value_token(const char *p, akin_error_t *err)
{
    /* What a person would take for one value: libconfig may see several. */
    size_t length = strcspn(p, " \t\r\n\f;,=:{}[]()\"#");
    for (size_t i = 1; i + 1 < length; i++)
        if (p[i] == '/' && (p[i + 1] == '/' || p[i + 1] == '*'))
            length = i;
    char text[SHOWN_BYTES];
    size_t shown = length < sizeof(text) ? length : sizeof(text) - 1;
    memcpy(text, p, shown);
    text[shown] = '\0';
    if (length == 0) {
        (void)akin_error_set(err, AKIN_ERR_CONFIG,
                             "a value is missing before \"%c\"", *p);
        return 0;
    }
    if (strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0)
        return length;
    int is_number = strchr("+-.0123456789", text[0]) != NULL;
    number_t number = is_number ? number_check(text) : NUMBER_NONE;
    if (length >= sizeof(text))
        number = NUMBER_NONE;
    if (number == NUMBER_FINE)
        return length;
    if (number == NUMBER_WIDER_32)
        (void)akin_error_set(err, AKIN_ERR_CONFIG,
                             "%s is beyond 32 bits; write it as %sL", text,
                             text);
    else if (number == NUMBER_WIDER_64)
        (void)akin_error_set(err, AKIN_ERR_CONFIG, "%s is beyond 64 bits",
                             text);
    else
        (void)akin_error_set(err, AKIN_ERR_CONFIG,
                             "%s is %s; text stands in quotes: \"%s\"", text,
                             is_number ? "not a number"
                                       : "neither true, false nor a number",
                             text);
    return 0;
}

static int is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '*' ||
           c == '.';
}

/* Keep a name for messages. In libconfig a dot would end it. */
static size_t name_token(akini_config_lexer_t *lexer, const char *p,
                         akin_error_t *err)
{
    size_t length = 0;
    while (is_name(p[length]))
        length++;
    if (length == 0)
        return 1;
    size_t kept =
        length < sizeof(lexer->name) ? length : sizeof(lexer->name) - 1;
    memcpy(lexer->name, p, kept);
    lexer->name[kept] = '\0';
    const char *dot = strchr(lexer->name, '.');
    if (dot == NULL)
        return length;
    (void)akin_error_set(
        err, AKIN_ERR_CONFIG, "%s: a group is written %.*s: { %s = ...; };",
        lexer->name, (int)(dot - lexer->name), lexer->name, dot + 1);
    return 0;
}

/* What is wrong with a mark or the start of a string, NULL if nothing is. */
static const char *mark_fault(akini_config_lexer_t *lexer, char c)
{
    if (c == '{')
        lexer->nesting++;
    else if (c == '}' && lexer->nesting > 0)
        lexer->nesting--;
    else if (c == '=' || c == ':')
        lexer->items++;
    else if (c == '"' && lexer->last == AKINI_CONFIG_LAST_OTHER)
        return "text in quotes must follow an =; names have no quotes";
    if (lexer->nesting > AKINI_CONFIG_NESTING_MAX)
        return "groups are nested more than 16 deep";
    if (lexer->items > AKINI_CONFIG_ITEMS_MAX)
        return "more than 8192 settings";
    return NULL;
}

static void list_refuse(const akini_config_lexer_t *lexer, char c,
                        akin_error_t *err)
{
    if (lexer->last == AKINI_CONFIG_LAST_EQUALS)
        (void)akin_error_set(err, AKIN_ERR_CONFIG,
                             "%s: lists and arrays have no use here",
                             lexer->name);
    else
        (void)akin_error_set(err, AKIN_ERR_CONFIG,
                             "unexpected \"%c\"; a group is written kv: { slab "
                             "= ...; };",
                             c);
}

size_t akini_config_token(akini_config_lexer_t *lexer, const char *p,
                          akin_error_t *err)
{
    if (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r' || *p == '\f')
        return 1;
    if (*p == '#' || (p[0] == '/' && (p[1] == '/' || p[1] == '*')))
        return comment_token(p, err);
    const char *fault = mark_fault(lexer, *p);
    if (fault != NULL) {
        (void)akin_error_set(err, AKIN_ERR_CONFIG, "%s", fault);
        return 0;
    }
    akini_config_last_t last = lexer->last;
    if (*p == '[' || *p == '(') {
        list_refuse(lexer, *p, err);
        return 0;
    }
    lexer->last = *p == '=' || *p == ':' ? AKINI_CONFIG_LAST_EQUALS
                  : *p == '"'            ? AKINI_CONFIG_LAST_STRING
                                         : AKINI_CONFIG_LAST_OTHER;
    if (*p == '"')
        return string_token(p, err);
    if (last == AKINI_CONFIG_LAST_EQUALS && *p != '{')
        return value_token(p, err);
    return name_token(lexer, p, err);
}

size_t akini_config_token_include(const char *p, const char **path_p)
{
    static const char word[] = "@include";
    size_t length = sizeof(word) - 1;
    if (strncmp(p, word, length) != 0)
        return 0;
    p += length;
    size_t blanks = strspn(p, " \t");
    if (blanks == 0 || p[blanks] != '"')
        return 0;
    *path_p = p + blanks + 1;
    return strcspn(*path_p, "\"\n");
}
