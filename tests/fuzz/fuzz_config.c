/* Fuzz: arbitrary text as a job file; what is read must read back equal. */
#include "base/config.h"

#include "fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A table with a key of every type, with and without bounds. */
static const akin_config_row_t rows[] = {
    {"s", AKIN_CONFIG_STRING, "", "", 0, 0, NULL, "Text."},
    {"i", AKIN_CONFIG_INT, "", "0", 0, 0, NULL, "Integer."},
    {"f", AKIN_CONFIG_FLOAT, "", "0", 0, 0, NULL, "Number."},
    {"b", AKIN_CONFIG_BOOL, "", "false", 0, 0, NULL, "Boolean."},
    {"g.size", AKIN_CONFIG_SIZE, "bytes", "0", 0, 0, NULL, "Size."},
    {"g.time", AKIN_CONFIG_TIME, "ns", "1s", 1, INFINITY, NULL, "Time."},
    {"g.h.choice", AKIN_CONFIG_CHOICE, "", "one", 0, 0, "one|two", "Choice."},
    {"g.h.small", AKIN_CONFIG_INT, "", "8", 8, 64, NULL, "Bounded."},
    {"g.h.ratio", AKIN_CONFIG_FLOAT, "", "0.5", 0, 1, NULL, "Bounded."},
};

static akin_config_t *config_make(void)
{
    akin_config_t *config = NULL;
    if (akin_config_create(rows, sizeof(rows) / sizeof(rows[0]), &config) !=
        AKIN_OK)
        abort();
    return config;
}

static char *canonical(const akin_config_t *config)
{
    char *text = NULL;
    if (akin_config_canonical(config, &text) != AKIN_OK)
        abort();
    return text;
}

static void check_equal(const char *a, const char *b)
{
    if (strcmp(a, b) == 0)
        return;
    fprintf(stderr, "differ:\n%s\n%s\n", a, b);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    char *text = malloc(size_bytes + 1);
    if (text == NULL)
        abort();
    memcpy(text, data, size_bytes);
    text[size_bytes] = '\0';
    akin_config_t *config = config_make();
    char *before = canonical(config);
    akin_error_t err = {{0}};
    akin_status_t status = akin_config_read_text(config, text, "job", &err);
    char *form = canonical(config);
    if (status == AKIN_OK) {
        akin_config_t *again = config_make();
        if (akin_config_read_text(again, form, "form", &err) != AKIN_OK) {
            fprintf(stderr, "%s\n%s\n", err.text, form);
            abort();
        }
        char *form_again = canonical(again);
        check_equal(form, form_again);
        free(form_again);
        akin_config_destroy(again);
    } else {
        /* A refusal says why and changes nothing. */
        if (err.text[0] == '\0')
            abort();
        check_equal(before, form);
    }
    /* The same bytes as one setting of the command line. */
    status = akin_config_set(config, text, &err);
    if (status != AKIN_OK && status != AKIN_ERR_CONFIG)
        abort();
    free(before);
    free(form);
    free(text);
    akin_config_destroy(config);
    return 0;
}
