/* Config for people: a table of keys, values and what they mean. */
#include "base/config_internal.h"

#include <libsmartcols.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Width where the stream is no terminal, and the least and most that the
 * help may take: shorter or longer lines are hard to read. */
#define WIDTH_DEFAULT 100
#define HELP_WIDTH_MIN 40
#define HELP_WIDTH_MAX 76

/* Distance between two columns. */
#define GAP 2

static size_t stream_width(FILE *stream)
{
    struct winsize size;
    int fd = fileno(stream);
    if (fd >= 0 && isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 &&
        size.ws_col > 0)
        return size.ws_col;
    return WIDTH_DEFAULT;
}

/* Add to a text of AKIN_CONFIG_FACTS_BYTES. */
static void facts_add(char *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void facts_add(char *text, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text + used, AKIN_CONFIG_FACTS_BYTES - used, format, args);
    va_end(args);
}

void akin_config_row_facts(const akin_config_row_t *row,
                           char text[AKIN_CONFIG_FACTS_BYTES])
{
    static const char *const type_words[] = {
        "integer", "number", "boolean", "text", "one of", "size", "time"};
    text[0] = '\0';
    facts_add(text, "%s", type_words[row->type]);
    char range[160];
    akini_config_range_format(row, range, sizeof(range));
    if (row->type == AKIN_CONFIG_CHOICE) {
        for (const char *p = row->choices; *p != '\0';) {
            size_t length = strcspn(p, "|");
            facts_add(text, " %.*s%s", (int)length, p,
                      p[length] != '\0' ? "," : "");
            p += length + (p[length] != '\0');
        }
    } else if (range[0] != '\0') {
        facts_add(text, ", %s", range);
    } else if (row->type != AKIN_CONFIG_SIZE && row->type != AKIN_CONFIG_TIME &&
               row->unit != NULL && row->unit[0] != '\0') {
        facts_add(text, ", %s", row->unit);
    }
    if (row->default_value == NULL)
        facts_add(text, "; required");
    else if (row->default_value[0] == '\0')
        facts_add(text, "; default \"\"");
    else
        facts_add(text, "; default %s", row->default_value);
}

/* Break a text at blanks so that no line exceeds `width` unless a word does.
 */
static void text_wrap(char *text, size_t width)
{
    size_t column = 0;
    char *blank = NULL;
    for (char *p = text; *p != '\0'; p++) {
        column++;
        if (*p == '\n') {
            column = 0;
            blank = NULL;
        } else if (*p == ' ') {
            if (column <= width)
                blank = p;
            else if (blank == NULL)
                blank = p;
        }
        if (column > width && blank != NULL) {
            *blank = '\n';
            column = (size_t)(p - blank);
            blank = NULL;
        }
    }
}

/* Help and facts of a row, wrapped; NULL without memory. */
static char *help_text(const akin_config_row_t *row,
                       const akini_config_value_t *value, size_t width)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    if (stream == NULL)
        return NULL;
    if (row->help != NULL && row->help[0] != '\0')
        (void)fprintf(stream, "%s\n", row->help);
    char facts[AKIN_CONFIG_FACTS_BYTES];
    akin_config_row_facts(row, facts);
    (void)fputs(facts, stream);
    if (value->origin != NULL)
        (void)fprintf(stream, "; set by %s", value->origin);
    int failed = ferror(stream);
    if (fclose(stream) != 0 || failed) {
        free(text);
        return NULL;
    }
    text_wrap(text, width);
    return text;
}

static char *value_text(const akin_config_row_t *row,
                        const akini_config_value_t *value)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    if (stream == NULL)
        return NULL;
    if (value->is_set)
        akini_config_value_write(row, value, stream);
    else
        (void)fputs("(not set)", stream);
    int failed = ferror(stream);
    if (fclose(stream) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}

/* Add a row's line, and take its texts, which may be NULL. */
static int line_add(struct libscols_table *table, const char *key, char *value,
                    char *help)
{
    struct libscols_line *line = NULL;
    if (value != NULL && help != NULL)
        line = scols_table_new_line(table, NULL);
    int failed = line == NULL || scols_line_set_data(line, 0, key) != 0 ||
                 scols_line_set_data(line, 1, value) != 0 ||
                 scols_line_set_data(line, 2, help) != 0;
    free(value);
    free(help);
    return failed;
}

/* Columns of the key and the value as wide as their longest text. */
static int widths(const akin_config_t *config, size_t *key_p, size_t *value_p)
{
    *key_p = 0;
    *value_p = 0;
    for (size_t i = 0; i < config->n_rows; i++) {
        char *text = value_text(&config->rows[i], &config->values[i]);
        if (text == NULL)
            return -1;
        size_t key = strlen(config->rows[i].key);
        size_t value = strlen(text);
        free(text);
        *key_p = key > *key_p ? key : *key_p;
        *value_p = value > *value_p ? value : *value_p;
    }
    return 0;
}

static struct libscols_table *table_create(FILE *stream)
{
    struct libscols_table *table = scols_new_table();
    if (table == NULL)
        return NULL;
    struct libscols_column *help = NULL;
    if (scols_table_new_column(table, "KEY", 0, 0) != NULL &&
        scols_table_new_column(table, "VALUE", 0, 0) != NULL)
        help = scols_table_new_column(table, "MEANING", 0, SCOLS_FL_WRAP);
    /* Lines are broken here, at blanks, so the table need not fit any width
     * and never cuts a value. */
    if (help == NULL ||
        scols_column_set_wrapfunc(help, scols_wrapnl_chunksize,
                                  scols_wrapnl_nextchunk, NULL) != 0 ||
        scols_column_set_safechars(help, "\n") != 0 ||
        scols_table_set_column_separator(table, "  ") != 0 ||
        scols_table_set_termforce(table, SCOLS_TERMFORCE_NEVER) != 0 ||
        scols_table_set_stream(table, stream) != 0) {
        scols_unref_table(table);
        return NULL;
    }
    return table;
}

akin_status_t akin_config_print(const akin_config_t *config, FILE *stream)
{
    size_t key_width;
    size_t value_width;
    if (widths(config, &key_width, &value_width) != 0)
        return AKIN_ERR_NOMEM;
    size_t width = stream_width(stream);
    size_t taken = key_width + value_width + (size_t)2 * GAP;
    size_t help_width = width > taken ? width - taken : 0;
    if (help_width < HELP_WIDTH_MIN)
        help_width = HELP_WIDTH_MIN;
    if (help_width > HELP_WIDTH_MAX)
        help_width = HELP_WIDTH_MAX;
    struct libscols_table *table = table_create(stream);
    int failed = table == NULL;
    for (size_t i = 0; !failed && i < config->n_rows; i++) {
        const akin_config_row_t *row = &config->rows[i];
        const akini_config_value_t *value = &config->values[i];
        failed = line_add(table, row->key, value_text(row, value),
                          help_text(row, value, help_width));
    }
    if (!failed)
        failed = scols_print_table(table) != 0;
    scols_unref_table(table);
    return failed ? AKIN_ERR_NOMEM : AKIN_OK;
}
