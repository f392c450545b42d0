/* Config: typed values described by a table, read from a libconfig file, the
 * environment and key=value settings. */
#ifndef AKIN_BASE_CONFIG_H
#define AKIN_BASE_CONFIG_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum akin_config_type {
    AKIN_CONFIG_INT,    /* signed 64-bit */
    AKIN_CONFIG_FLOAT,  /* double, finite */
    AKIN_CONFIG_BOOL,   /* true, false */
    AKIN_CONFIG_STRING, /* any text */
    AKIN_CONFIG_CHOICE, /* one of `choices` */
    AKIN_CONFIG_SIZE,   /* bytes, written with a unit: "256MiB" */
    AKIN_CONFIG_TIME    /* nanoseconds, written with a unit: "250ms" */
} akin_config_type_t;

/**
 * One key. The table feeds the parser, `akin info --config` and the manual
 * page, so `help` is a full sentence.
 */
typedef struct akin_config_row {
    const char *key; /* dotted path: "kv.block_tokens" */
    akin_config_type_t type;
    const char *unit;          /* for people: "tokens"; "" if none */
    const char *default_value; /* as one would write it; NULL: required */
    /* Inclusive range, in bytes or ns for SIZE and TIME; min == max == 0: any.
     */
    double min;
    double max;
    const char *choices; /* CHOICE: words separated by '|'; else NULL */
    const char *help;
} akin_config_row_t;

typedef struct akin_config akin_config_t;

/**
 * Make a config that holds every default of a table.
 *
 * \param[in]  rows      the table; borrowed, must outlive the config.
 * \param[in]  n_rows    its length.
 * \param[out] config_p  the new config, owned by the caller.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 * \return AKIN_ERR_INTERNAL: the table itself is wrong (malformed or repeated
 *         key, bad default, no choices); the log names the row.
 */
akin_status_t akin_config_create(const akin_config_row_t *rows, size_t n_rows,
                                 akin_config_t **config_p) AKIN_MUST_CHECK;

/** Say which command lists the keys, for messages about unknown ones:
 * `akin info --config` if it is not said. The text is borrowed. */
void akin_config_set_lister(akin_config_t *config, const char *command);

/** Free a config; NULL is allowed. */
void akin_config_destroy(akin_config_t *config);

/**
 * Read a libconfig file over the present values. On failure nothing changes.
 *
 * `@include "FILE"` on a line of its own puts FILE in its place, relative to
 * the file that names it, up to 8 deep. A job file with its includes has at
 * most 1 MiB, 8192 settings and 16 levels of groups. Integers beyond 32 bits
 * need libconfig's suffix L; an INT key also takes a string of digits.
 *
 * \param[in,out] config
 * \param[in]     path    file to read; messages name it with the line.
 * \param[out]    err     unknown key (with the nearest known one), wrong
 *                        type, missing unit, out of range, wrong choice,
 *                        duplicate key, syntax error: "path:line: key: ...".
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND, AKIN_ERR_IO: the file cannot be read.
 * \return AKIN_ERR_CONFIG: anything wrong inside it.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_config_read_file(akin_config_t *config, const char *path,
                                    akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Read libconfig text, as akin_config_read_file() does, but without
 * `@include`, which is refused.
 *
 * \param[in,out] config
 * \param[in]     text  NUL-terminated.
 * \param[in]     name  stands for the path in messages.
 * \param[out]    err   as for akin_config_read_file().
 * \return AKIN_OK
 * \return AKIN_ERR_CONFIG: anything wrong in the text.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_config_read_text(akin_config_t *config, const char *text,
                                    const char *name,
                                    akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Read AKIN_<KEY> from an environment for every row: dots become underscores,
 * letters upper case ("kv.block_tokens": AKIN_KV_BLOCK_TOKENS).
 *
 * \param[in]  environ_p  NULL-terminated array of "NAME=value".
 * \param[out] err        names the variable.
 * \return AKIN_OK
 * \return AKIN_ERR_CONFIG: a bad value; nothing was changed.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_config_read_environment(akin_config_t *config,
                                           char *const *environ_p,
                                           akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Apply one "key=value" setting of the command line. The value stands as it
 * is, without libconfig's quotes.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_CONFIG: no '=', unknown key, bad value; nothing changed.
 */
akin_status_t akin_config_set(akin_config_t *config, const char *setting,
                              akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Check that every required key has got a value.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_CONFIG: err names the key and its help.
 */
akin_status_t akin_config_check(const akin_config_t *config,
                                akin_error_t *err) AKIN_MUST_CHECK;

/*
 * Values. The key must be in the table with this type (a wrong key is a bug
 * of the caller, not bad input, and aborts). Strings are borrowed from the
 * config and live until it changes; a choice reads as a string. A required key
 * that has no value yet reads as 0, false or "".
 */
int64_t akin_config_int(const akin_config_t *config, const char *key);
double akin_config_float(const akin_config_t *config, const char *key);
int akin_config_bool(const akin_config_t *config, const char *key);
const char *akin_config_string(const akin_config_t *config, const char *key);
uint64_t akin_config_bytes(const akin_config_t *config, const char *key);
int64_t akin_config_ns(const akin_config_t *config, const char *key);

/**
 * Where a value came from: "default", "path:line", "AKIN_...", "--set".
 */
const char *akin_config_origin(const akin_config_t *config, const char *key);

/**
 * Canonical form: libconfig text with every key that has a value, groups and
 * keys in table order, which reads back to the same values. Two configs are
 * equal if and only if their forms are.
 *
 * \param[out] text_p  NUL-terminated, owned by the caller, free() it.
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_config_canonical(const akin_config_t *config,
                                    char **text_p) AKIN_MUST_CHECK;

/**
 * Print the table for people: key, type and unit, default, range or choices,
 * present value with its origin if it is not the default, help.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_config_print(const akin_config_t *config,
                                FILE *stream) AKIN_MUST_CHECK;

/** Longest text of akin_config_row_facts(), with the final NUL. */
#define AKIN_CONFIG_FACTS_BYTES 1024

/**
 * What may be written for a key and what stands if nothing is: type, choices
 * or range, unit, default ("integer, 8 to 64 tokens; default 16").
 *
 * \param[out] text  cut at AKIN_CONFIG_FACTS_BYTES.
 */
void akin_config_row_facts(const akin_config_row_t *row,
                           char text[AKIN_CONFIG_FACTS_BYTES]);

/**
 * Bytes from text such as "4096B", "256MiB", "4GiB", "1.5GB"; a unit (B, KB,
 * KiB, MB, MiB, GB, GiB, TB, TiB, PB, PiB; kB is KB) is needed except for 0.
 * A fraction rounds to the nearest byte.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT: no number, unknown or missing unit, more than
 *         2^63 - 1, negative.
 */
akin_status_t akin_config_parse_size(const char *text,
                                     uint64_t *bytes_p) AKIN_MUST_CHECK;

/**
 * Nanoseconds from text such as "250ms", "2s", "1.5min", "40us"; a unit (ns,
 * us, ms, s, min, h) is needed except for 0.
 *
 * \return as akin_config_parse_size().
 */
akin_status_t akin_config_parse_time(const char *text,
                                     int64_t *ns_p) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
