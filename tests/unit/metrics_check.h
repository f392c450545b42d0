/* Metrics check: a reader of Prometheus' text format that believes nothing,
 * written from the format's description. */
#ifndef AKIN_TESTS_UNIT_METRICS_CHECK_H
#define AKIN_TESTS_UNIT_METRICS_CHECK_H

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_SAMPLES 1024
#define CHECK_FAMILIES 128

typedef struct checked_sample {
    char key[256];   /* name{label="value",...} as it stands */
    char label[256]; /* value of the first label, unescaped */
    char name[128];
    size_t family; /* its index */
    double value;
} checked_sample_t;

typedef struct checked {
    checked_sample_t samples[CHECK_SAMPLES];
    size_t n;
    char families[CHECK_FAMILIES][128];
    char types[CHECK_FAMILIES][16];
    size_t n_families;
    char error[512]; /* "": all is well */
} checked_t;

static inline int check_fail(checked_t *c, const char *what, const char *line)
{
    (void)snprintf(c->error, sizeof(c->error), "%s: %.200s", what, line);
    return 0;
}

/* Length of a name of that grammar; 0: there is none. */
static inline size_t check_name(const char *text, int may_colon)
{
    size_t n = 0;
    while (isalpha((unsigned char)text[n]) || text[n] == '_' ||
           (may_colon && text[n] == ':') ||
           (n > 0 && isdigit((unsigned char)text[n])))
        n++;
    return n;
}

static inline int check_comment(checked_t *c, const char *line)
{
    const int is_type = strncmp(line, "# TYPE ", 7) == 0;
    if (!is_type && strncmp(line, "# HELP ", 7) != 0)
        return check_fail(c, "a comment", line);
    const char *name = line + 7;
    const size_t n = check_name(name, 1);
    if (n == 0 || n >= 128 || name[n] != ' ')
        return check_fail(c, "a name", line);
    if (!is_type) {
        for (size_t i = 0; i < c->n_families; i++)
            if (strncmp(c->families[i], name, n) == 0 &&
                c->families[i][n] == '\0')
                return check_fail(c, "a second family of that name", line);
        if (c->n_families == CHECK_FAMILIES)
            return check_fail(c, "too many families", line);
        (void)snprintf(c->families[c->n_families], 128, "%.*s", (int)n, name);
        c->types[c->n_families++][0] = '\0';
        return 1;
    }
    if (c->n_families == 0)
        return check_fail(c, "a type without help", line);
    const size_t last = c->n_families - 1;
    if (strncmp(c->families[last], name, n) != 0 ||
        c->families[last][n] != '\0' || c->types[last][0] != '\0')
        return check_fail(c, "a type that does not follow its help", line);
    static const char *const types[] = {"counter", "gauge", "histogram",
                                        "summary"};
    for (size_t i = 0; i < 4; i++)
        if (strcmp(name + n + 1, types[i]) == 0) {
            (void)snprintf(c->types[last], 16, "%s", types[i]);
            return 1;
        }
    return check_fail(c, "no type", line);
}

/* Behind the labels; NULL: they are malformed. */
static inline const char *check_labels(const char *at, char *first, size_t room)
{
    size_t n_labels = 0;
    if (*at++ != '{')
        return NULL;
    while (*at != '}') {
        size_t n = check_name(at, 0), k = 0;
        if (n == 0 || at[n] != '=' || at[n + 1] != '"')
            return NULL;
        for (at += n + 2; *at != '"'; at++) {
            char byte = *at;
            if (byte == '\0')
                return NULL;
            if (byte == '\\') {
                at++;
                if (*at != '\\' && *at != '"' && *at != 'n')
                    return NULL;
                byte = *at;
                if (byte == 'n')
                    byte = '\n';
            }
            if (n_labels == 0 && k + 1 < room)
                first[k++] = byte;
        }
        if (n_labels++ == 0)
            first[k] = '\0';
        at++;
        if (*at == ',' && at[1] != '}')
            at++;
        else if (*at != '}')
            return NULL;
    }
    return at + 1;
}

static inline int check_sample(checked_t *c, const char *line)
{
    if (c->n == CHECK_SAMPLES)
        return check_fail(c, "too many samples", line);
    checked_sample_t *s = &c->samples[c->n];
    memset(s, 0, sizeof(*s));
    const size_t n = check_name(line, 1);
    if (n == 0 || n >= sizeof(s->name))
        return check_fail(c, "a name", line);
    memcpy(s->name, line, n);
    const char *at = line + n;
    if (*at == '{')
        at = check_labels(at, s->label, sizeof(s->label));
    if (at == NULL || *at != ' ' || (size_t)(at - line) >= sizeof(s->key))
        return check_fail(c, "labels", line);
    memcpy(s->key, line, (size_t)(at - line));
    char *end;
    s->value = strtod(at + 1, &end);
    if (end == at + 1 || *end != '\0' || isspace((unsigned char)at[1]))
        return check_fail(c, "a value", line);
    if (c->n_families == 0 || c->types[c->n_families - 1][0] == '\0')
        return check_fail(c, "a sample without a type", line);
    const char *family = c->families[c->n_families - 1];
    const char *type = c->types[c->n_families - 1];
    const size_t bytes = strlen(family);
    const char *suffix = s->name + bytes;
    const int is_plain =
        strcmp(type, "counter") == 0 || strcmp(type, "gauge") == 0;
    if (strncmp(s->name, family, bytes) != 0 ||
        (is_plain
             ? *suffix != '\0'
             : strcmp(suffix, "_sum") != 0 && strcmp(suffix, "_count") != 0 &&
                   (strcmp(suffix, "_bucket") != 0 ||
                    strcmp(type, "histogram") != 0)))
        return check_fail(c, "a sample of another family", line);
    if (strcmp(type, "gauge") != 0 && !(s->value >= 0))
        return check_fail(c, "a count below 0", line);
    s->family = c->n_families - 1;
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->samples[i].key, s->key) == 0)
            return check_fail(c, "a sample twice", line);
    c->n++;
    return 1;
}

static inline const checked_sample_t *check_find(const checked_t *c,
                                                 const char *key)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->samples[i].key, key) == 0)
            return &c->samples[i];
    return NULL;
}

/* Value of a sample, by its text; NaN: there is none. */
static inline double check_value(const checked_t *c, const char *key)
{
    const checked_sample_t *s = check_find(c, key);
    if (s == NULL)
        (void)fprintf(stderr, "no sample %s\n", key);
    return s == NULL ? (double)NAN : s->value;
}

/* Buckets grow with their bounds, the last one is all. */
static inline int check_histogram(checked_t *c, size_t index)
{
    const char *family = c->families[index];
    double bound = -INFINITY, count = -1;
    char key[160];
    for (size_t i = 0; i < c->n; i++) {
        const checked_sample_t *s = &c->samples[i];
        if (s->family != index || strstr(s->name, "_bucket") == NULL)
            continue;
        char *end;
        const double le = strtod(s->label, &end);
        if (end == s->label || *end != '\0' || !(le > bound) ||
            s->value < count)
            return check_fail(c, "a bucket", s->key);
        bound = le;
        count = s->value;
    }
    (void)snprintf(key, sizeof(key), "%s_count", family);
    if (!isinf(bound) || !(fabs(count - check_value(c, key)) < 0.5))
        return check_fail(c, "the last bucket", family);
    (void)snprintf(key, sizeof(key), "%s_sum", family);
    if (isnan(check_value(c, key)))
        return check_fail(c, "the sum", family);
    return 1;
}

/** Read a text; says whether it is sound, else c->error tells why not. */
static inline int check_read(checked_t *c, const char *text)
{
    memset(c, 0, sizeof(*c));
    while (*text != '\0') {
        char line[1024];
        const char *end = strchr(text, '\n');
        if (end == NULL || (size_t)(end - text) >= sizeof(line))
            return check_fail(c, "no end of a line", text);
        memcpy(line, text, (size_t)(end - text));
        line[end - text] = '\0';
        if (line[0] == '#' ? !check_comment(c, line) : !check_sample(c, line))
            return 0;
        text = end + 1;
    }
    for (size_t i = 0; i < c->n_families; i++)
        if (strcmp(c->types[i], "histogram") == 0 && !check_histogram(c, i))
            return 0;
    return 1;
}

#endif
