/* Config in canonical form: libconfig text of every value in table order. */
#include "base/config_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistr.h>

static void string_write(const char *text, FILE *stream)
{
    size_t bytes = strlen(text);
    /* A name of a file may be any bytes, but the form is always UTF-8. */
    int is_utf8 = u8_check((const uint8_t *)text, bytes) == NULL;
    (void)fputc('"', stream);
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\')
            (void)fprintf(stream, "\\%c", c);
        else if (c == '\n')
            (void)fputs("\\n", stream);
        else if (c == '\t')
            (void)fputs("\\t", stream);
        else if (c < ' ' || c == 0x7f || (c > 0x7f && !is_utf8))
            (void)fprintf(stream, "\\x%02x", c);
        else
            (void)fputc(c, stream);
    }
    (void)fputc('"', stream);
}

void akini_config_value_write(const akin_config_row_t *row,
                              const akini_config_value_t *value, FILE *stream)
{
    char number[AKINI_CONFIG_NUMBER_BYTES];
    switch (row->type) {
    case AKIN_CONFIG_INT:
        (void)fprintf(stream, "%lld", (long long)value->integer);
        /* Without its suffix libconfig would wrap it at 32 bits. */
        if (value->integer < INT32_MIN || value->integer > INT32_MAX)
            (void)fputc('L', stream);
        break;
    case AKIN_CONFIG_FLOAT:
        akini_config_float_format(value->number, number);
        (void)fputs(number, stream);
        break;
    case AKIN_CONFIG_BOOL:
        (void)fputs(value->integer ? "true" : "false", stream);
        break;
    case AKIN_CONFIG_SIZE:
    case AKIN_CONFIG_TIME:
        akini_config_quantity_format(value->integer,
                                     row->type == AKIN_CONFIG_TIME, number);
        (void)fprintf(stream, "\"%s\"", number);
        break;
    case AKIN_CONFIG_STRING:
    case AKIN_CONFIG_CHOICE:
        string_write(value->text, stream);
        break;
    }
}

/* A group is written where its first key stands, with all of its keys: a group
 * that is opened a second time is a duplicate to libconfig. */
static int starts_group(const akin_config_t *config, size_t row,
                        size_t prefix_length)
{
    for (size_t i = 0; i < row; i++)
        if (strncmp(config->rows[i].key, config->rows[row].key,
                    prefix_length) == 0)
            return 0;
    return 1;
}

/* Write the keys below the first `prefix_length` bytes of row `first`. */
static void group_write(const akin_config_t *config, size_t first,
                        size_t prefix_length, int depth, FILE *stream)
{
    const char *prefix = config->rows[first].key;
    for (size_t i = first; i < config->n_rows; i++) {
        const akin_config_row_t *row = &config->rows[i];
        if (strncmp(row->key, prefix, prefix_length) != 0)
            continue;
        const char *name = row->key + prefix_length;
        size_t length = strcspn(name, ".");
        if (name[length] == '.') {
            /* The dot belongs to the prefix: "kv." is not "kvs.". */
            size_t inner = prefix_length + length + 1;
            if (!starts_group(config, i, inner))
                continue;
            (void)fprintf(stream, "%*s%.*s: {\n", 4 * depth, "", (int)length,
                          name);
            group_write(config, i, inner, depth + 1, stream);
            (void)fprintf(stream, "%*s};\n", 4 * depth, "");
        } else if (config->values[i].is_set) {
            (void)fprintf(stream, "%*s%s = ", 4 * depth, "", name);
            akini_config_value_write(row, &config->values[i], stream);
            (void)fputs(";\n", stream);
        }
    }
}

akin_status_t akin_config_canonical(const akin_config_t *config, char **text_p)
{
    *text_p = NULL;
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    if (stream == NULL)
        return AKIN_ERR_NOMEM;
    if (config->n_rows > 0)
        group_write(config, 0, 0, 0, stream);
    int failed = ferror(stream);
    if (fclose(stream) != 0 || failed) {
        free(text);
        return AKIN_ERR_NOMEM;
    }
    *text_p = text;
    return AKIN_OK;
}
