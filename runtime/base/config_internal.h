/* Config internals: what the config files share with each other. */
#ifndef AKIN_BASE_CONFIG_INTERNAL_H
#define AKIN_BASE_CONFIG_INTERNAL_H

#include "base/config.h"

/* Longest key of a table, with the final NUL. */
#define AKINI_CONFIG_KEY_BYTES 96

/* Enough for any number or quantity as text. */
#define AKINI_CONFIG_NUMBER_BYTES 64

/* One value; `text` and `origin` are owned. */
typedef struct akini_config_value {
    int is_set;
    int64_t integer; /* INT, BOOL, SIZE in bytes, TIME in ns */
    double number;   /* FLOAT */
    char *text;      /* STRING, CHOICE */
    char *origin;    /* NULL: the table's default */
} akini_config_value_t;

struct akin_config {
    const akin_config_row_t *rows;
    size_t n_rows;
    akini_config_value_t *values; /* n_rows of them */
    const char *lister;           /* NULL: akin info --config */
};

/* config.c */

/* Row of a key of `length` bytes, -1 if the table has none. */
long akini_config_row_find(const akin_config_t *config, const char *key,
                           size_t length);

/* Whether keys start with "path.", that is, whether path names a group. */
int akini_config_is_group(const akin_config_t *config, const char *path);

/* Say that a key or group is unknown, with the nearest known one. */
akin_status_t akini_config_unknown(const akin_config_t *config,
                                   const char *path, int is_group,
                                   akin_error_t *err);

/*
 * A stage collects new values so that a failed read changes nothing: create,
 * put any number of values, then commit, which moves them into the config, or
 * discard. It is an array of n_rows values of which most are not set.
 */
akini_config_value_t *akini_config_stage_create(const akin_config_t *config);
akin_status_t akini_config_stage_put(const akin_config_t *config,
                                     akini_config_value_t *stage, size_t row,
                                     const char *text, const char *origin,
                                     akin_error_t *err);
void akini_config_stage_commit(akin_config_t *config,
                               akini_config_value_t *stage);
void akini_config_stage_discard(const akin_config_t *config,
                                akini_config_value_t *stage);

/* config_value.c */

/* Value of a row from text; err does not name the key, callers prefix it. */
akin_status_t akini_config_value_parse(const akin_config_row_t *row,
                                       const char *text,
                                       akini_config_value_t *value_p,
                                       akin_error_t *err);
void akini_config_value_cleanup(akini_config_value_t *value);

/* What a type is called in messages: "a whole number". */
const char *akini_config_type_name(akin_config_type_t type);

/* Range of a row as one would write its ends ("8 to 64 tokens"), "" if any
 * value is allowed; cut at `bytes`. */
void akini_config_range_format(const akin_config_row_t *row, char *buffer,
                               size_t bytes);

/* config_canonical.c */

/* Value as libconfig reads it back: strings quoted and escaped. */
void akini_config_value_write(const akin_config_row_t *row,
                              const akini_config_value_t *value, FILE *stream);

/* config_quantity.c */

/* Bytes or nanoseconds from text; NULL, or what is wrong with it. */
const char *akini_config_quantity_parse(const char *text, int is_time,
                                        int64_t *value_p);

/* Shortest exact form with a unit: 268435456 bytes are "256MiB". */
void akini_config_quantity_format(int64_t value, int is_time,
                                  char buffer[AKINI_CONFIG_NUMBER_BYTES]);

/* Units in a sentence: "B, KB, ...". */
const char *akini_config_quantity_units(int is_time);

/* Finite double in the C locale whatever the program's is; -1 if it is none. */
int akini_config_float_parse(const char *text, double *value_p);

/* Shortest decimal form that reads back to the same double; has a point or an
 * exponent, as libconfig wants it. */
void akini_config_float_format(double value,
                               char buffer[AKINI_CONFIG_NUMBER_BYTES]);

#endif
