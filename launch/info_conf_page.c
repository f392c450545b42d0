/* Manual page of the job file: text around a paragraph for each key. */
#include "launch/info_conf_page.h"

#include "roles/job.h"

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

static const char head[] =
    ".\\\" Written by `akin info --config=man`.\n"
    ".TH AKIN.CONF 5 2026-11-30 Akin \"File Formats Manual\"\n"
    ".SH NAME\n"
    "akin.conf \\- job file of akin\n"
    ".SH DESCRIPTION\n"
    "A job file says what a job of\n"
    ".BR akin\\-run (1)\n"
    "consists of: the model, how many ranks of which role, and how they work.\n"
    ".BR \"akin run\" ,\n"
    ".B akin calibrate\n"
    "and\n"
    ".B akin plan\n"
    "take its path with\n"
    ".BR \\-c ;\n"
    "it may have any name.\n"
    "The only key without a default is\n"
    ".BR model.path .\n"
    ".SS Syntax\n"
    "The syntax is that of libconfig: groups of settings,\n"
    ".IB name \" = \" value ;\n"
    "or\n"
    ".IB name \" : \" value ;\n"
    "and comments as in C, or from # or // to the end of the line.\n"
    "A key's name below is its path:\n"
    ".B kv.slab\n"
    "is\n"
    ".B slab\n"
    "in the group\n"
    ".BR kv .\n"
    ".IP\n"
    ".EX\n"
    "model:   { path = \"examples/tiny\\-moe\"; };\n"
    "roles:   { prefill = 2; decode = 4; };\n"
    "kv:      { slab = \"256MiB\"; };\n"
    ".EE\n"
    ".PP\n"
    ".BI \"@include \\(dq\" FILE \\(dq\n"
    "on a line of its own puts another file in its place, relative to the "
    "file\n"
    "that names it, up to 8 deep.\n"
    "A job file with its includes has at most 1 MiB, 8192 settings and 16\n"
    "levels of groups.\n"
    "An unknown key, a key that is set twice, a value of another type or out\n"
    "of\n"
    "range is an error that names file and line and, where there is one, the\n"
    "nearest name.\n"
    ".SS Values\n"
    ".TP\n"
    ".B integer\n"
    "A whole number; beyond 32 bits with the suffix\n"
    ".BR L ,\n"
    "or as a string of digits.\n"
    ".TP\n"
    ".B number\n"
    "A number with or without a fraction.\n"
    ".TP\n"
    ".B boolean\n"
    ".B true\n"
    "or\n"
    ".BR false .\n"
    ".TP\n"
    ".B text\n"
    "A string in double quotes, with \\e\\(dq and \\e\\e for these two signs.\n"
    ".TP\n"
    ".B one of\n"
    "One of the words named, in double quotes.\n"
    ".TP\n"
    ".B size\n"
    "A string of a number and a unit: B, KB, KiB, MB, MiB, GB, GiB, TB, TiB,\n"
    "PB or PiB, as in \\(dq1.5GiB\\(dq.\n"
    "KB is 1000 bytes, KiB 1024.\n"
    ".TP\n"
    ".B time\n"
    "A string of a number and a unit: ns, us, ms, s, min or h, as in\n"
    "\\(dq250ms\\(dq.\n"
    ".SS Precedence\n"
    "A key has the value of the last of these that sets it:\n"
    ".IP 1. 4\n"
    "the default;\n"
    ".IP 2. 4\n"
    "the job file;\n"
    ".IP 3. 4\n"
    "the environment: the variable is\n"
    ".B AKIN_\n"
    "and the key in upper case with underscores for dots, as in\n"
    ".BR AKIN_KV_SLAB=1GiB ,\n"
    "of the process that reads the job file, which is rank 0 of a job;\n"
    ".IP 4. 4\n"
    ".BI \\-\\-set \" key\" = value\n"
    "on the command line, the last one of a key.\n"
    ".PP\n"
    "In the environment and on the command line a value stands without\n"
    "quotes.\n"
    ".SH KEYS\n"
    "Every key with what it means, what may be written and its default.\n"
    ".B akin info \\-\\-config\n"
    "prints the same table.\n";

static const char tail[] =
    ".SH FILES\n"
    "Job files for one machine and for clusters are installed with akin, in\n"
    ".I \\%akin/examples/jobs\n"
    "below the folder of shared data\n"
    ".RI ( /usr/share\n"
    "in a Debian package).\n"
    ".SH SEE ALSO\n"
    ".BR akin (1),\n"
    ".BR akin\\-plan (1),\n"
    ".BR akin\\-run (1)\n";

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

void akini_info_conf_page_write(FILE *stream)
{
    (void)fputs(head, stream);
    for (size_t i = 0; i < akin_job_n_rows; i++) {
        const akin_config_row_t *row = &akin_job_rows[i];
        const size_t length = group_length(row->key);
        size_t first = 0;
        /* A group's keys stand together whatever their order in the table. */
        while (group_length(akin_job_rows[first].key) != length ||
               memcmp(akin_job_rows[first].key, row->key, length) != 0)
            first++;
        if (first != i)
            continue;
        (void)fprintf(stream, ".SS %.*s\n", (int)length, row->key);
        for (size_t k = i; k < akin_job_n_rows; k++) {
            const akin_config_row_t *member = &akin_job_rows[k];
            if (group_length(member->key) != length ||
                memcmp(member->key, row->key, length) != 0)
                continue;
            write_key(member, stream);
        }
    }
    (void)fputs(tail, stream);
}
