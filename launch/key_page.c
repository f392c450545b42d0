/* Key page: the keys of a table as a part of a manual page. */
#include "launch/key_page.h"

#include <string.h>

/* Of a line of the source; escapes make it somewhat longer. */
#define LINE_WIDTH 70

/* A word as man(7) source. What man(7) takes for its own are a control
 * character where a line begins, the escape character, and the signs that it
 * sets as typographic ones. Keys and values are copied from the page, so these
 * must stay what they are. */
static void write_word(const char *word, size_t length, FILE *stream)
{
    static const char *const escapes[][2] = {
        {"\\", "\\e"},  {"-", "\\-"},   {"'", "\\(aq"},
        {"`", "\\(ga"}, {"^", "\\(ha"}, {"~", "\\(ti"},
    };
    if (word[0] == '.')
        (void)fputs("\\&", stream);
    for (size_t i = 0; i < length; i++) {
        size_t k = 0;
        while (k < sizeof(escapes) / sizeof(escapes[0]) &&
               word[i] != escapes[k][0][0])
            k++;
        if (k < sizeof(escapes) / sizeof(escapes[0]))
            (void)fputs(escapes[k][1], stream);
        else
            (void)fputc(word[i], stream);
    }
}

/* Words on lines that are not too long for a source. A sentence ends with its
 * line, or roff does not know it for one. */
static void write_text(const char *text, FILE *stream)
{
    size_t column = 0;
    int is_end = 0;
    while (*(text += strspn(text, " \n")) != '\0') {
        size_t length = strcspn(text, " \n");
        if (column > 0) {
            if (is_end || column + 1 + length > LINE_WIDTH)
                column = 0;
            (void)fputc(column > 0 ? ' ' : '\n', stream);
        }
        write_word(text, length, stream);
        column += length + 1;
        text += length;
        is_end = text[-1] == '.';
    }
    (void)fputc('\n', stream);
}

static size_t group_length(const char *key)
{
    return strcspn(key, ".");
}

static void write_key(const akin_config_row_t *row, FILE *stream)
{
    char facts[AKIN_CONFIG_FACTS_BYTES], line[AKIN_CONFIG_FACTS_BYTES + 64];
    /* The facts have the unit of a plain number only, and bytes is what a size
     * is in anyway. */
    const int has_unit =
        (row->type == AKIN_CONFIG_SIZE || row->type == AKIN_CONFIG_TIME) &&
        row->unit[0] != '\0' && strcmp(row->unit, "bytes") != 0;
    (void)fputs(".TP\n.B ", stream);
    write_text(row->key, stream);
    write_text(row->help, stream);
    (void)fputs(".br\n", stream);
    akin_config_row_facts(row, facts);
    (void)snprintf(line, sizeof(line), "%s%s%s%s.", facts, has_unit ? " (" : "",
                   has_unit ? row->unit : "", has_unit ? ")" : "");
    write_text(line, stream);
}

static int is_of_group(const akin_config_row_t *row, const char *group,
                       size_t length)
{
    return group_length(row->key) == length &&
           memcmp(row->key, group, length) == 0;
}

static int has_group(const akin_config_row_t *row)
{
    return row->key[group_length(row->key)] == '.';
}

void akini_key_page_write(const akin_config_row_t *rows, size_t n_rows,
                          FILE *stream)
{
    for (size_t i = 0; i < n_rows; i++)
        if (!has_group(&rows[i]))
            write_key(&rows[i], stream);
    for (size_t i = 0; i < n_rows; i++) {
        const char *group = rows[i].key;
        const size_t length = group_length(group);
        size_t first = 0;
        /* A group's keys stand together whatever their order in the table. */
        while (!is_of_group(&rows[first], group, length))
            first++;
        if (first != i || !has_group(&rows[i]))
            continue;
        (void)fprintf(stream, ".SS %.*s\n", (int)length, group);
        for (size_t k = i; k < n_rows; k++)
            if (is_of_group(&rows[k], group, length))
                write_key(&rows[k], stream);
    }
}
