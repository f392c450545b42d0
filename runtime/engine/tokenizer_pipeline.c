/* Pipeline: the steps of tokenizer.json before and after the model. */
#include "engine/tokenizer_state.h"

#include "engine/utf8.h"

#include <string.h>

/* The type of a step, or NULL and a status. `key` is its path. */
static const char *step_type(const json_t *step, const char *key,
                             akin_status_t *status_p, akin_error_t *err)
{
    const char *type = json_string_value(json_object_get(step, "type"));
    if (type == NULL)
        *status_p =
            akin_error_set(err, AKIN_ERR_FORMAT,
                           "%s must be an object with a string \"type\"", key);
    return type;
}

static akin_status_t unsupported(const char *key, const char *type,
                                 const char *supported, akin_error_t *err)
{
    char shown[48];
    return akin_error_set(err, AKIN_ERR_UNSUPPORTED,
                          "%s: \"%s\" is not supported; byte-level BPE needs "
                          "%s",
                          key, akini_utf8_shown(type, shown), supported);
}

/* A boolean that must have one value; missing means `otherwise`. */
static akin_status_t expect_flag(const json_t *step, const char *key,
                                 const char *flag, int expected, int otherwise,
                                 akin_error_t *err)
{
    const json_t *value = json_object_get(step, flag);
    if (value != NULL && !json_is_boolean(value))
        return akin_error_set(err, AKIN_ERR_FORMAT, "%s.%s must be a boolean",
                              key, flag);
    int given = value == NULL ? otherwise : json_is_true(value);
    if (given != expected)
        return akin_error_set(err, AKIN_ERR_UNSUPPORTED,
                              "%s.%s: only %s is supported", key, flag,
                              expected ? "true" : "false");
    return AKIN_OK;
}

static akin_status_t read_normalizer(akin_tokenizer_t *tokenizer,
                                     const json_t *root, akin_error_t *err)
{
    static const char key[] = "normalizer";
    const json_t *step = json_object_get(root, key);
    if (step == NULL || json_is_null(step))
        return AKIN_OK;
    akin_status_t status = AKIN_OK;
    const char *type = step_type(step, key, &status, err);
    if (type == NULL)
        return status;
    if (strcmp(type, "NFC") != 0)
        return unsupported(key, type, "NFC or null", err);
    tokenizer->nfc = 1;
    return AKIN_OK;
}

static akin_status_t read_split(akin_tokenizer_t *tokenizer, const json_t *step,
                                akin_error_t *err)
{
    static const char key[] = "pre_tokenizer.pretokenizers[0]";
    akin_status_t status = AKIN_OK;
    const char *type = step_type(step, key, &status, err);
    if (type == NULL)
        return status;
    if (strcmp(type, "Split") != 0)
        return unsupported(key, type, "Split", err);
    const char *behavior = json_string_value(json_object_get(step, "behavior"));
    if (behavior == NULL)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s.behavior must be a string", key);
    if (strcmp(behavior, "Isolated") != 0)
        return unsupported("pre_tokenizer.pretokenizers[0].behavior", behavior,
                           "Isolated", err);
    status = expect_flag(step, key, "invert", 0, 0, err);
    if (status != AKIN_OK)
        return status;
    const json_t *pattern = json_object_get(step, "pattern");
    if (json_object_get(pattern, "String") != NULL)
        return akin_error_set(err, AKIN_ERR_UNSUPPORTED,
                              "%s.pattern: only {\"Regex\": ...} is supported",
                              key);
    const char *regex = json_string_value(json_object_get(pattern, "Regex"));
    if (regex == NULL)
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s.pattern must be {\"Regex\": string}", key);
    status = akini_pre_split_create(regex, &tokenizer->split, err);
    return status == AKIN_OK
               ? AKIN_OK
               : akin_error_prefix(err, status, "%s.pattern.Regex: ", key);
}

static akin_status_t read_byte_level(const json_t *step, akin_error_t *err)
{
    static const char key[] = "pre_tokenizer.pretokenizers[1]";
    akin_status_t status = AKIN_OK;
    const char *type = step_type(step, key, &status, err);
    if (type == NULL)
        return status;
    if (strcmp(type, "ByteLevel") != 0)
        return unsupported(key, type, "ByteLevel", err);
    status = expect_flag(step, key, "add_prefix_space", 0, 1, err);
    if (status == AKIN_OK)
        status = expect_flag(step, key, "use_regex", 0, 1, err);
    return status;
}

static akin_status_t read_pre_tokenizer(akin_tokenizer_t *tokenizer,
                                        const json_t *root, akin_error_t *err)
{
    static const char key[] = "pre_tokenizer";
    static const char needed[] = "a Sequence of Split and ByteLevel";
    const json_t *step = json_object_get(root, key);
    if (step == NULL || json_is_null(step))
        return unsupported(key, "null", needed, err);
    akin_status_t status = AKIN_OK;
    const char *type = step_type(step, key, &status, err);
    if (type == NULL)
        return status;
    if (strcmp(type, "Sequence") != 0)
        return unsupported(key, type, needed, err);
    const json_t *steps = json_object_get(step, "pretokenizers");
    if (!json_is_array(steps))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s.pretokenizers must be an array", key);
    if (json_array_size(steps) != 2)
        return akin_error_set(err, AKIN_ERR_UNSUPPORTED,
                              "%s.pretokenizers has %zu steps; byte-level BPE "
                              "needs Split and ByteLevel",
                              key, json_array_size(steps));
    status = read_split(tokenizer, json_array_get(steps, 0), err);
    if (status == AKIN_OK)
        status = read_byte_level(json_array_get(steps, 1), err);
    return status;
}

/* The post-processor may only be one that adds no token. */
static akin_status_t check_ends(const json_t *root, akin_error_t *err)
{
    akin_status_t status = AKIN_OK;
    const json_t *step = json_object_get(root, "post_processor");
    if (step != NULL && !json_is_null(step)) {
        const char *type = step_type(step, "post_processor", &status, err);
        if (type == NULL)
            return status;
        if (strcmp(type, "ByteLevel") != 0)
            return unsupported("post_processor", type, "ByteLevel or null",
                               err);
    }
    step = json_object_get(root, "decoder");
    if (step == NULL || json_is_null(step))
        return unsupported("decoder", "null", "ByteLevel", err);
    const char *type = step_type(step, "decoder", &status, err);
    if (type == NULL)
        return status;
    return strcmp(type, "ByteLevel") == 0
               ? AKIN_OK
               : unsupported("decoder", type, "ByteLevel", err);
}

/* Steps that would change how many tokens a text has. */
static akin_status_t expect_null(const json_t *root, const char *key,
                                 akin_error_t *err)
{
    const json_t *value = json_object_get(root, key);
    if (value == NULL || json_is_null(value))
        return AKIN_OK;
    return akin_error_set(err, AKIN_ERR_UNSUPPORTED,
                          "%s is not supported; set it to null", key);
}

akin_status_t akini_tokenizer_read_pipeline(akin_tokenizer_t *tokenizer,
                                            const json_t *root,
                                            akin_error_t *err)
{
    akin_status_t status = expect_null(root, "truncation", err);
    if (status == AKIN_OK)
        status = expect_null(root, "padding", err);
    if (status == AKIN_OK)
        status = read_normalizer(tokenizer, root, err);
    if (status == AKIN_OK)
        status = read_pre_tokenizer(tokenizer, root, err);
    if (status == AKIN_OK)
        status = check_ends(root, err);
    return status;
}
