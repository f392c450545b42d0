/* Config: a table's values, their sources by key=value and environment. */
#include "base/config_internal.h"
#include "base/log.h"
#include "base/nearest.h"

#include <stdlib.h>
#include <string.h>

long akini_config_row_find(const akin_config_t *config, const char *key,
                           size_t length)
{
    for (size_t i = 0; i < config->n_rows; i++)
        if (strncmp(config->rows[i].key, key, length) == 0 &&
            config->rows[i].key[length] == '\0')
            return (long)i;
    return -1;
}

/* First row whose key starts with "path.", NULL if path is no group. */
static const akin_config_row_t *group_first(const akin_config_t *config,
                                            const char *path)
{
    size_t length = strlen(path);
    for (size_t i = 0; i < config->n_rows; i++)
        if (strncmp(config->rows[i].key, path, length) == 0 &&
            config->rows[i].key[length] == '.')
            return &config->rows[i];
    return NULL;
}

int akini_config_is_group(const akin_config_t *config, const char *path)
{
    return group_first(config, path) != NULL;
}

static const char *leaf_of(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot != NULL ? dot + 1 : key;
}

/* Offer the groups that are as deep as the one written. */
static void offer_groups(const akin_config_t *config, akin_nearest_t *nearest)
{
    for (size_t i = 0; i < config->n_rows; i++) {
        const char *key = config->rows[i].key;
        size_t length = strcspn(key, ".");
        for (const char *dot = strchr(nearest->word, '.');
             dot != NULL && key[length] == '.'; dot = strchr(dot + 1, '.'))
            length += 1 + strcspn(key + length + 1, ".");
        if (key[length] == '.')
            akin_nearest_offer(nearest, key, length);
    }
}

/* A key that is right but for its group is found by its last name alone. */
static const char *nearest_leaf(const akin_config_t *config, const char *path)
{
    akin_nearest_t nearest;
    akin_nearest_init(&nearest, leaf_of(path));
    const char *best = NULL;
    for (size_t i = 0; i < config->n_rows; i++) {
        const char *leaf = leaf_of(config->rows[i].key);
        size_t before = nearest.distance;
        akin_nearest_offer(&nearest, leaf, strlen(leaf));
        if (nearest.distance != before)
            best = config->rows[i].key;
    }
    return best;
}

akin_status_t akini_config_unknown(const akin_config_t *config,
                                   const char *path, int is_group,
                                   akin_error_t *err)
{
    const char *what = is_group ? "group" : "key";
    akin_nearest_t nearest;
    akin_nearest_init(&nearest, path);
    if (is_group)
        offer_groups(config, &nearest);
    else
        for (size_t i = 0; i < config->n_rows; i++)
            akin_nearest_offer(&nearest, config->rows[i].key,
                               strlen(config->rows[i].key));
    const char *name = nearest.name;
    if (name[0] == '\0' && !is_group)
        name = nearest_leaf(config, path);
    if (name == NULL || name[0] == '\0')
        return akin_error_set(
            err, AKIN_ERR_CONFIG, "unknown %s \"%.128s\"; `%s` lists the keys",
            what, path,
            config->lister != NULL ? config->lister : "akin info --config");
    return akin_error_set(err, AKIN_ERR_CONFIG,
                          "unknown %s \"%.128s\", did you mean \"%s\"?", what,
                          path, name);
}

akini_config_value_t *akini_config_stage_create(const akin_config_t *config)
{
    return calloc(config->n_rows + 1, sizeof(akini_config_value_t));
}

akin_status_t akini_config_stage_put(const akin_config_t *config,
                                     akini_config_value_t *stage, size_t row,
                                     const char *text, const char *origin,
                                     akin_error_t *err)
{
    akini_config_value_t value;
    akin_status_t status =
        akini_config_value_parse(&config->rows[row], text, &value, err);
    if (status != AKIN_OK)
        return status;
    if (origin != NULL) {
        value.origin = strdup(origin);
        if (value.origin == NULL) {
            akini_config_value_cleanup(&value);
            return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
        }
    }
    akini_config_value_cleanup(&stage[row]);
    stage[row] = value;
    return AKIN_OK;
}

void akini_config_stage_commit(akin_config_t *config,
                               akini_config_value_t *stage)
{
    for (size_t i = 0; i < config->n_rows; i++) {
        if (!stage[i].is_set)
            continue;
        akini_config_value_cleanup(&config->values[i]);
        config->values[i] = stage[i];
    }
    free(stage);
}

void akini_config_stage_discard(const akin_config_t *config,
                                akini_config_value_t *stage)
{
    for (size_t i = 0; stage != NULL && i < config->n_rows; i++)
        akini_config_value_cleanup(&stage[i]);
    free(stage);
}

/* Names as libconfig has them: a letter, then letters, digits, '-' or '_'. */
static int key_is_well_formed(const char *key)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz";
    if (strlen(key) >= AKINI_CONFIG_KEY_BYTES)
        return 0;
    for (const char *p = key;; p++) {
        if (*p == '\0' || strchr(letters, *p) == NULL)
            return 0;
        p += strspn(p, letters);
        while (*p != '\0' && strchr("0123456789-_", *p) != NULL)
            p += 1 + strspn(p + 1, letters);
        if (*p == '\0')
            return 1;
        if (*p != '.')
            return 0;
    }
}

/* What is wrong with a row of the program's own table, NULL if nothing is. */
static const char *row_fault(const akin_config_t *config, size_t row)
{
    const akin_config_row_t *r = &config->rows[row];
    if (r->key == NULL || !key_is_well_formed(r->key))
        return "its key is malformed";
    if (akini_config_row_find(config, r->key, strlen(r->key)) != (long)row)
        return "its key occurs twice";
    if (akini_config_is_group(config, r->key))
        return "its key is also a group";
    if (r->type == AKIN_CONFIG_CHOICE &&
        (r->choices == NULL || r->choices[0] == '\0'))
        return "it has no choices";
    if (!(r->min <= r->max))
        return "its range is empty";
    return NULL;
}

akin_status_t akin_config_create(const akin_config_row_t *rows, size_t n_rows,
                                 akin_config_t **config_p)
{
    *config_p = NULL;
    akin_config_t *config = calloc(1, sizeof(*config));
    if (config == NULL)
        return AKIN_ERR_NOMEM;
    config->rows = rows;
    config->n_rows = n_rows;
    config->values = akini_config_stage_create(config);
    akin_status_t status = config->values != NULL ? AKIN_OK : AKIN_ERR_NOMEM;
    for (size_t i = 0; status == AKIN_OK && i < n_rows; i++) {
        akin_error_t err = {{0}};
        const char *fault = row_fault(config, i);
        if (fault != NULL)
            status = akin_error_set(&err, AKIN_ERR_INTERNAL, "%s", fault);
        else if (rows[i].default_value != NULL)
            status = akini_config_stage_put(config, config->values, i,
                                            rows[i].default_value, NULL, &err);
        if (status == AKIN_OK || status == AKIN_ERR_NOMEM)
            continue;
        AKIN_LOG(BASE, ERROR, "config table, row %zu (%s): %s", i,
                 rows[i].key != NULL ? rows[i].key : "no key", err.text);
        status = AKIN_ERR_INTERNAL;
    }
    if (status != AKIN_OK) {
        akin_config_destroy(config);
        return status;
    }
    *config_p = config;
    return AKIN_OK;
}

void akin_config_set_lister(akin_config_t *config, const char *command)
{
    config->lister = command;
}

void akin_config_destroy(akin_config_t *config)
{
    if (config == NULL)
        return;
    akini_config_stage_discard(config, config->values);
    free(config);
}

akin_status_t akin_config_set(akin_config_t *config, const char *setting,
                              akin_error_t *err)
{
    const char *equals = strchr(setting, '=');
    if (equals == NULL || equals == setting)
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "--set %.128s: write key=value, as in "
                              "kv.slab=4GiB",
                              setting);
    char key[AKINI_CONFIG_KEY_BYTES];
    (void)snprintf(key, sizeof(key), "%.*s", (int)(equals - setting), setting);
    long row =
        akini_config_row_find(config, setting, (size_t)(equals - setting));
    if (row < 0) {
        const akin_config_row_t *first = group_first(config, key);
        if (first != NULL)
            (void)akin_error_set(err, AKIN_ERR_CONFIG,
                                 "%s is a group; name one of its keys, as in "
                                 "%s=...",
                                 key, first->key);
        else
            (void)akini_config_unknown(config, key, 0, err);
        return akin_error_prefix(err, AKIN_ERR_CONFIG, "--set: ");
    }
    akini_config_value_t *stage = akini_config_stage_create(config);
    if (stage == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    akin_status_t status = akini_config_stage_put(config, stage, (size_t)row,
                                                  equals + 1, "--set", err);
    if (status != AKIN_OK) {
        akini_config_stage_discard(config, stage);
        return akin_error_prefix(err, status, "--set %s: ", key);
    }
    akini_config_stage_commit(config, stage);
    return AKIN_OK;
}

/* "kv.block_tokens" is AKIN_KV_BLOCK_TOKENS. */
static void variable_of(const char *key,
                        char variable[AKINI_CONFIG_KEY_BYTES + 8])
{
    (void)snprintf(variable, AKINI_CONFIG_KEY_BYTES + 8, "AKIN_%s", key);
    for (char *p = variable; *p != '\0'; p++) {
        if (*p == '.' || *p == '-')
            *p = '_';
        else if (*p >= 'a' && *p <= 'z')
            *p = (char)(*p - 'a' + 'A');
    }
}

static const char *variable_value(char *const *environ_p, const char *variable)
{
    size_t length = strlen(variable);
    for (; *environ_p != NULL; environ_p++)
        if (strncmp(*environ_p, variable, length) == 0 &&
            (*environ_p)[length] == '=')
            return *environ_p + length + 1;
    return NULL;
}

akin_status_t akin_config_read_environment(akin_config_t *config,
                                           char *const *environ_p,
                                           akin_error_t *err)
{
    akini_config_value_t *stage = akini_config_stage_create(config);
    if (stage == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < config->n_rows; i++) {
        char variable[AKINI_CONFIG_KEY_BYTES + 8];
        variable_of(config->rows[i].key, variable);
        const char *text = variable_value(environ_p, variable);
        if (text == NULL)
            continue;
        akin_status_t status =
            akini_config_stage_put(config, stage, i, text, variable, err);
        if (status != AKIN_OK) {
            akini_config_stage_discard(config, stage);
            return akin_error_prefix(err, status, "%s: ", variable);
        }
    }
    akini_config_stage_commit(config, stage);
    return AKIN_OK;
}

akin_status_t akin_config_check(const akin_config_t *config, akin_error_t *err)
{
    for (size_t i = 0; i < config->n_rows; i++) {
        const akin_config_row_t *row = &config->rows[i];
        if (config->values[i].is_set)
            continue;
        char variable[AKINI_CONFIG_KEY_BYTES + 8];
        variable_of(row->key, variable);
        return akin_error_set(err, AKIN_ERR_CONFIG,
                              "%s is not set: %s Set it in the job file, with "
                              "%s or with --set %s=...",
                              row->key, row->help != NULL ? row->help : "",
                              variable, row->key);
    }
    return AKIN_OK;
}

/* A wrong key is a bug of the caller; going on would serve a wrong value, so
 * this ends the process in release builds too. */
static const akini_config_value_t *value_of(const akin_config_t *config,
                                            const char *key, unsigned types)
{
    long row = akini_config_row_find(config, key, strlen(key));
    if (row < 0 || (types & 1u << config->rows[row].type) == 0) {
        AKIN_LOG(BASE, ERROR, "config: no key %s of the type asked for", key);
        abort();
    }
    return &config->values[row];
}

int64_t akin_config_int(const akin_config_t *config, const char *key)
{
    return value_of(config, key, 1u << AKIN_CONFIG_INT)->integer;
}

double akin_config_float(const akin_config_t *config, const char *key)
{
    return value_of(config, key, 1u << AKIN_CONFIG_FLOAT)->number;
}

int akin_config_bool(const akin_config_t *config, const char *key)
{
    return value_of(config, key, 1u << AKIN_CONFIG_BOOL)->integer != 0;
}

const char *akin_config_string(const akin_config_t *config, const char *key)
{
    const akini_config_value_t *value = value_of(
        config, key, 1u << AKIN_CONFIG_STRING | 1u << AKIN_CONFIG_CHOICE);
    return value->text != NULL ? value->text : "";
}

uint64_t akin_config_bytes(const akin_config_t *config, const char *key)
{
    return (uint64_t)value_of(config, key, 1u << AKIN_CONFIG_SIZE)->integer;
}

int64_t akin_config_ns(const akin_config_t *config, const char *key)
{
    return value_of(config, key, 1u << AKIN_CONFIG_TIME)->integer;
}

const char *akin_config_origin(const akin_config_t *config, const char *key)
{
    const akini_config_value_t *value = value_of(config, key, ~0u);
    return value->origin != NULL ? value->origin : "default";
}
