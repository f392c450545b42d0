/* Config files: libconfig's tree to the values of the table. */
#include "base/config_internal.h"
#include "base/config_source.h"

#include <libconfig.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_BYTES 60

/* One file being read into a stage. */
typedef struct reader {
    const akin_config_t *config;
    const akini_config_source_t *source;
    akini_config_value_t *stage;
    akin_error_t *err;
} reader_t;

/* Put the place of a setting before a message. */
static akin_status_t at(const reader_t *reader, const config_setting_t *setting,
                        akin_status_t status)
{
    int line;
    const char *name = akini_config_source_where(
        reader->source, (int)config_setting_source_line(setting), &line);
    return akin_error_prefix(reader->err, status, "%s:%d: ", name, line);
}

/* The source has no lists. */
static const char *found_name(const config_setting_t *setting)
{
    switch (config_setting_type(setting)) {
    case CONFIG_TYPE_GROUP:
        return "a group";
    case CONFIG_TYPE_BOOL:
        return "true or false";
    case CONFIG_TYPE_STRING:
        return "text";
    case CONFIG_TYPE_FLOAT:
        return "a number with a fraction";
    default:
        return "a number";
    }
}

/* Text of a scalar, in `buffer` unless libconfig has it; NULL if its kind does
 * not fit the row's type. */
static const char *scalar_text(const config_setting_t *setting,
                               akin_config_type_t type,
                               char buffer[AKINI_CONFIG_NUMBER_BYTES])
{
    int kind = config_setting_type(setting);
    int is_text = type != AKIN_CONFIG_FLOAT && type != AKIN_CONFIG_BOOL;
    switch (kind) {
    case CONFIG_TYPE_STRING:
        return is_text ? config_setting_get_string(setting) : NULL;
    case CONFIG_TYPE_BOOL:
        if (type != AKIN_CONFIG_BOOL)
            return NULL;
        return config_setting_get_bool(setting) ? "true" : "false";
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_INT64:
        /* A quantity without a unit gets its own message further down. */
        if (type == AKIN_CONFIG_BOOL || type == AKIN_CONFIG_STRING ||
            type == AKIN_CONFIG_CHOICE)
            return NULL;
        (void)snprintf(buffer, AKINI_CONFIG_NUMBER_BYTES, "%lld",
                       kind == CONFIG_TYPE_INT
                           ? (long long)config_setting_get_int(setting)
                           : config_setting_get_int64(setting));
        return buffer;
    case CONFIG_TYPE_FLOAT:
        if (type != AKIN_CONFIG_FLOAT)
            return NULL;
        akini_config_float_format(config_setting_get_float(setting), buffer);
        return buffer;
    default:
        return NULL;
    }
}

static akin_status_t take_scalar(const reader_t *reader, size_t row,
                                 const config_setting_t *setting)
{
    const akin_config_row_t *r = &reader->config->rows[row];
    char buffer[AKINI_CONFIG_NUMBER_BYTES];
    const char *text = scalar_text(setting, r->type, buffer);
    if (text == NULL)
        return akin_error_set(
            reader->err, AKIN_ERR_CONFIG, "expected %s, found %s",
            akini_config_type_name(r->type), found_name(setting));
    int line;
    const char *name = akini_config_source_where(
        reader->source, (int)config_setting_source_line(setting), &line);
    size_t bytes = strlen(name) + 16;
    char *origin = malloc(bytes);
    if (origin == NULL)
        return akin_error_set(reader->err, AKIN_ERR_NOMEM, "out of memory");
    (void)snprintf(origin, bytes, "%s:%d", name, line);
    akin_status_t status = akini_config_stage_put(
        reader->config, reader->stage, row, text, origin, reader->err);
    free(origin);
    return status;
}

/* Read a group; `path` is its own name, "" for the whole file. The source's
 * bound on nesting bounds this recursion. */
static akin_status_t take_group(const reader_t *reader, const char *path,
                                const config_setting_t *group)
{
    int n = config_setting_length(group);
    for (int i = 0; i < n; i++) {
        const config_setting_t *setting =
            config_setting_get_elem(group, (unsigned)i);
        const char *name = config_setting_name(setting);
        size_t bytes = strlen(path) + strlen(name) + 2;
        char *key = malloc(bytes);
        if (key == NULL)
            return akin_error_set(reader->err, AKIN_ERR_NOMEM, "out of memory");
        (void)snprintf(key, bytes, "%s%s%s", path, path[0] != '\0' ? "." : "",
                       name);
        long row = akini_config_row_find(reader->config, key, strlen(key));
        int is_group = config_setting_is_group(setting);
        akin_status_t status;
        if (row >= 0) {
            status = take_scalar(reader, (size_t)row, setting);
            if (status != AKIN_OK) {
                (void)akin_error_prefix(reader->err, status, "%s: ", key);
                status = at(reader, setting, status);
            }
        } else if (!akini_config_is_group(reader->config, key)) {
            (void)akini_config_unknown(reader->config, key, is_group,
                                       reader->err);
            status = at(reader, setting, AKIN_ERR_CONFIG);
        } else if (!is_group) {
            (void)akin_error_set(reader->err, AKIN_ERR_CONFIG,
                                 "%s: expected a group, %s: { ... };, found %s",
                                 key, name, found_name(setting));
            status = at(reader, setting, AKIN_ERR_CONFIG);
        } else {
            status = take_group(reader, key, setting);
        }
        free(key);
        if (status != AKIN_OK)
            return status;
    }
    return AKIN_OK;
}

/* libconfig names no key, so its messages show the line. */
static akin_status_t parse_error(const config_t *tree,
                                 const akini_config_source_t *source,
                                 akin_error_t *err)
{
    int line = config_error_line(tree);
    size_t length;
    const char *text = akini_config_source_line(source, line, &length);
    int line_in_file;
    const char *name = akini_config_source_where(source, line, &line_in_file);
    const char *cut = length > SHOWN_BYTES ? "..." : "";
    int shown = length > SHOWN_BYTES ? SHOWN_BYTES : (int)length;
    const char *what = config_error_text(tree);
    if (what != NULL && strstr(what, "duplicate") != NULL)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "%s:%d: duplicate key: %.*s%s", name,
                              line_in_file, shown, text, cut);
    if (length == 0) {
        text = "the end of the file";
        shown = (int)strlen(text);
    }
    return akin_error_set(err, AKIN_ERR_CONFIG,
                          "%s:%d: %s at or before: %.*s%s (settings look "
                          "like kv: { slab = \"4GiB\"; };)",
                          name, line_in_file,
                          what != NULL ? what : "syntax error", shown, text,
                          cut);
}

static akin_status_t read_source(akin_config_t *config,
                                 const akini_config_source_t *source,
                                 akin_error_t *err)
{
    config_t tree;
    config_init(&tree);
    reader_t reader = {config, source, akini_config_stage_create(config), err};
    akin_status_t status;
    if (reader.stage == NULL)
        status = akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    else if (config_read_string(&tree, source->text) != CONFIG_TRUE)
        status = parse_error(&tree, source, err);
    else
        status = take_group(&reader, "", config_root_setting(&tree));
    config_destroy(&tree);
    if (status == AKIN_OK)
        akini_config_stage_commit(config, reader.stage);
    else
        akini_config_stage_discard(config, reader.stage);
    return status;
}

akin_status_t akin_config_read_file(akin_config_t *config, const char *path,
                                    akin_error_t *err)
{
    akini_config_source_t source;
    akin_status_t status = akini_config_source_load(&source, path, err);
    if (status != AKIN_OK)
        return status;
    status = read_source(config, &source, err);
    akini_config_source_cleanup(&source);
    return status;
}

akin_status_t akin_config_read_text(akin_config_t *config, const char *text,
                                    const char *name, akin_error_t *err)
{
    akini_config_source_t source;
    akin_status_t status = akini_config_source_text(&source, text, name, err);
    if (status != AKIN_OK)
        return status;
    status = read_source(config, &source, err);
    akini_config_source_cleanup(&source);
    return status;
}
