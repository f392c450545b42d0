/* Model support: refusing what the engine has not got, so that no model runs
 * wrongly. */
#include "engine/model_support.h"

#include <string.h>

/* Keys that must be absent, null or hold the one value that the engine
 * implements. */
static akin_status_t check_fixed(const akini_config_reader_t *r)
{
    static const struct {
        const char *key;
        const char *only; /* as JSON */
    } rows[] = {
        {"model_type", "\"qwen3_moe\""}, {"hidden_act", "\"silu\""},
        {"attention_bias", "false"},     {"use_sliding_window", "false"},
        {"decoder_sparse_step", "1"},    {"mlp_only_layers", "[]"},
        {"partial_rotary_factor", "1"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const json_t *value = akini_config_get(r->root, rows[i].key);
        if (value == NULL)
            continue;
        json_t *only = json_loads(rows[i].only, JSON_DECODE_ANY, NULL);
        if (only == NULL)
            return akin_error_set(r->err, AKIN_ERR_NOMEM, "%s: out of memory",
                                  r->name);
        /* 1 and 1.0 are equal here, which json_equal() does not say. */
        int same = json_equal(value, only) ||
                   (json_is_number(value) && json_is_number(only) &&
                    json_number_value(value) == json_number_value(only));
        json_decref(only);
        if (!same)
            return akini_config_refuse(r, rows[i].key, value, rows[i].only);
    }
    const json_t *quantization =
        akini_config_get(r->root, "quantization_config");
    if (quantization != NULL)
        return akini_config_refuse(r, "quantization_config", quantization,
                                   "weights in bfloat16, float16 or float32");
    return AKIN_OK;
}

/* rope_scaling (old spelling) and rope_parameters (new) are objects whose type
 * must be "default": any other one changes the frequencies. */
static akin_status_t check_rope(const akini_config_reader_t *r, const char *key)
{
    const json_t *rope = akini_config_get(r->root, key);
    if (rope == NULL)
        return AKIN_OK;
    if (!json_is_object(rope))
        return akini_config_wrong(r, key, rope, "an object or null");
    static const char *const spellings[] = {"rope_type", "type"};
    for (int i = 0; i < 2; i++) {
        const json_t *type = akini_config_get(rope, spellings[i]);
        if (type == NULL)
            continue;
        if (!json_is_string(type) ||
            strcmp(json_string_value(type), "default") != 0)
            return akini_config_refuse(r, key, rope,
                                       "null, or the type \"default\"");
    }
    /* An old-style object exists only to scale; one without a type is broken.
     */
    if (strcmp(key, "rope_scaling") == 0 &&
        akini_config_get(rope, "rope_type") == NULL &&
        akini_config_get(rope, "type") == NULL)
        return akini_config_refuse(r, key, rope,
                                   "null, or the type \"default\"");
    const json_t *partial = akini_config_get(rope, "partial_rotary_factor");
    if (partial != NULL && json_number_value(partial) != 1.0)
        return akini_config_refuse(r, key, rope, "\"partial_rotary_factor\" 1");
    return AKIN_OK;
}

static akin_status_t check_layer_types(const akini_config_reader_t *r)
{
    const json_t *list = akini_config_get(r->root, "layer_types");
    if (list == NULL)
        return AKIN_OK;
    if (!json_is_array(list))
        return akini_config_wrong(r, "layer_types", list,
                                  "an array of strings");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *type = json_string_value(json_array_get(list, i));
        if (type == NULL || strcmp(type, "full_attention") != 0)
            return akini_config_refuse(r, "layer_types",
                                       json_array_get(list, i),
                                       "\"full_attention\" in every layer");
    }
    return AKIN_OK;
}

/* The tensors say what they are stored in; a model that claims a type without
 * a kernel is told so before gigabytes are opened. */
static akin_status_t check_dtype(const akini_config_reader_t *r)
{
    const json_t *value;
    const char *key;
    akin_status_t status =
        akini_config_get_either(r, "torch_dtype", "dtype", &value, &key);
    if (status != AKIN_OK || value == NULL)
        return status;
    const char *dtype = json_string_value(value);
    if (dtype == NULL)
        return akini_config_wrong(r, key, value, "a string");
    if (strcmp(dtype, "bfloat16") != 0 && strcmp(dtype, "float16") != 0 &&
        strcmp(dtype, "float32") != 0)
        return akini_config_refuse(r, key, value,
                                   "\"bfloat16\", \"float16\" and \"float32\"");
    return AKIN_OK;
}

akin_status_t akini_model_support_check(const akini_config_reader_t *r)
{
    akin_status_t status = check_fixed(r);
    if (status == AKIN_OK)
        status = check_layer_types(r);
    if (status == AKIN_OK)
        status = check_rope(r, "rope_scaling");
    if (status == AKIN_OK)
        status = check_rope(r, "rope_parameters");
    if (status == AKIN_OK)
        status = check_dtype(r);
    return status;
}
