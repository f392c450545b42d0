/* Model config: reading config.json and generation_config.json. */
#include "engine/model_config.h"

#include "engine/config_reader.h"
#include "engine/model_file.h"
#include "engine/model_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARCHITECTURE "Qwen3MoeForCausalLM"
#define MAX_CONFIG_BYTES ((size_t)16 << 20)

/* Keys that hold a whole number. The bounds keep every product of sizes that
 * the engine forms (bytes of a matrix, of a KV slot) far below 2^63. */
static const struct size_row {
    const char *key;
    const char *other; /* second spelling, or NULL */
    size_t offset;     /* of the uint32_t in the config */
    uint32_t max;      /* the least is 1 */
} size_rows[] = {
#define SIZE_ROW(key, other, field, max)                                       \
    {                                                                          \
        key, other, offsetof(akin_model_config_t, field), max                  \
    }
    SIZE_ROW("vocab_size", NULL, vocab_size, 1U << 24),
    SIZE_ROW("hidden_size", NULL, hidden_size, 1U << 18),
    SIZE_ROW("num_hidden_layers", NULL, n_layers, 4096),
    SIZE_ROW("num_attention_heads", NULL, n_heads, 4096),
    SIZE_ROW("num_key_value_heads", NULL, n_kv_heads, 4096),
    SIZE_ROW("num_experts", "num_local_experts", n_experts, UINT16_MAX),
    SIZE_ROW("num_experts_per_tok", NULL, top_k, UINT16_MAX),
    SIZE_ROW("moe_intermediate_size", NULL, moe_intermediate_size, 1U << 18),
    SIZE_ROW("max_position_embeddings", NULL, max_positions, 1U << 26),
#undef SIZE_ROW
};

static akin_status_t read_sizes(const akini_config_reader_t *r,
                                akin_model_config_t *config)
{
    for (size_t i = 0; i < sizeof(size_rows) / sizeof(size_rows[0]); i++) {
        const struct size_row *row = &size_rows[i];
        const json_t *value;
        const char *key;
        akin_status_t status =
            akini_config_get_either(r, row->key, row->other, &value, &key);
        if (status != AKIN_OK)
            return status;
        if (value == NULL)
            return akini_config_missing(r, row->key, row->other);
        uint32_t size;
        status = akini_config_to_size(r, key, value, row->max, &size);
        if (status != AKIN_OK)
            return status;
        memcpy((char *)config + row->offset, &size, sizeof(size));
    }
    return AKIN_OK;
}

static akin_status_t read_head_dim(const akini_config_reader_t *r,
                                   akin_model_config_t *config)
{
    const json_t *value = akini_config_get(r->root, "head_dim");
    if (value == NULL) {
        if (config->n_heads == 0 || config->hidden_size % config->n_heads != 0)
            return akin_error_set(
                r->err, AKIN_ERR_FORMAT,
                "%s: without \"head_dim\", \"hidden_size\" %u must be a "
                "multiple of \"num_attention_heads\" %u",
                r->name, config->hidden_size, config->n_heads);
        config->head_dim = config->hidden_size / config->n_heads;
    } else {
        akin_status_t status =
            akini_config_to_size(r, "head_dim", value, 512, &config->head_dim);
        if (status != AKIN_OK)
            return status;
    }
    if (config->head_dim % 2 != 0 || config->head_dim > 512)
        return akin_error_set(r->err, AKIN_ERR_FORMAT,
                              "%s: key \"head_dim\" is %u, it must be an even "
                              "number from 2 to 512",
                              r->name, config->head_dim);
    return AKIN_OK;
}

static akin_status_t check_sizes(const akini_config_reader_t *r,
                                 const akin_model_config_t *config)
{
    if (config->n_kv_heads == 0 || config->n_heads % config->n_kv_heads != 0)
        return akin_error_set(r->err, AKIN_ERR_FORMAT,
                              "%s: \"num_attention_heads\" %u must be a "
                              "multiple of \"num_key_value_heads\" %u",
                              r->name, config->n_heads, config->n_kv_heads);
    if (config->top_k > config->n_experts)
        return akin_error_set(r->err, AKIN_ERR_FORMAT,
                              "%s: \"num_experts_per_tok\" %u must not exceed "
                              "\"num_experts\" %u",
                              r->name, config->top_k, config->n_experts);
    return AKIN_OK;
}

static akin_status_t read_rope(const akini_config_reader_t *r,
                               akin_model_config_t *config)
{
    akin_status_t status;
    const json_t *old = akini_config_get(r->root, "rope_theta");
    const json_t *new = akini_config_get(
        akini_config_get(r->root, "rope_parameters"), "rope_theta");
    if (old == NULL && new == NULL)
        return akini_config_missing(r, "rope_theta",
                                    "rope_parameters.rope_theta");
    double theta = 0;
    if (old != NULL) {
        status = akini_config_to_real(r, "rope_theta", old, 1, 1e15, &theta);
        if (status != AKIN_OK)
            return status;
        config->rope_theta = theta;
    }
    if (new != NULL) {
        status = akini_config_to_real(r, "rope_parameters.rope_theta", new, 1,
                                      1e15, &theta);
        if (status != AKIN_OK)
            return status;
        if (old != NULL &&
            (theta < config->rope_theta || theta > config->rope_theta))
            return akin_error_set(r->err, AKIN_ERR_FORMAT,
                                  "%s: keys \"rope_theta\" and "
                                  "\"rope_parameters.rope_theta\" disagree",
                                  r->name);
        config->rope_theta = theta;
    }
    return AKIN_OK;
}

static akin_status_t read_constants(const akini_config_reader_t *r,
                                    akin_model_config_t *config)
{
    const json_t *eps = akini_config_get(r->root, "rms_norm_eps");
    if (eps == NULL)
        return akini_config_missing(r, "rms_norm_eps", NULL);
    akin_status_t status = akini_config_to_real(r, "rms_norm_eps", eps, 1e-15,
                                                0.1, &config->rms_norm_eps);
    if (status != AKIN_OK)
        return status;
    /* A wrong guess would give fluent nonsense, so it must be there. */
    const json_t *norm = akini_config_get(r->root, "norm_topk_prob");
    if (norm == NULL)
        return akini_config_missing(r, "norm_topk_prob", NULL);
    status = akini_config_to_bool(r, "norm_topk_prob", norm,
                                  &config->norm_topk_prob);
    if (status != AKIN_OK)
        return status;
    const json_t *tie = akini_config_get(r->root, "tie_word_embeddings");
    config->tie_word_embeddings = 0;
    if (tie == NULL)
        return AKIN_OK;
    return akini_config_to_bool(r, "tie_word_embeddings", tie,
                                &config->tie_word_embeddings);
}

static akin_status_t read_architecture(const akini_config_reader_t *r,
                                       akin_model_config_t *config)
{
    const json_t *list = akini_config_get(r->root, "architectures");
    if (list == NULL)
        return akini_config_missing(r, "architectures", NULL);
    const json_t *first = json_array_get(list, 0);
    if (json_array_size(list) != 1 || !json_is_string(first))
        return akini_config_wrong(r, "architectures", list,
                                  "an array of one string");
    if (strcmp(json_string_value(first), ARCHITECTURE) != 0)
        return akini_config_refuse(r, "architectures", list, ARCHITECTURE);
    (void)snprintf(config->architecture, sizeof(config->architecture), "%s",
                   ARCHITECTURE);
    return AKIN_OK;
}

/* One id or an array of them; config is written only on success. */
static akin_status_t read_eos(const akini_config_reader_t *r,
                              akin_model_config_t *config)
{
    const json_t *eos = akini_config_get(r->root, "eos_token_id");
    if (eos == NULL)
        return AKIN_OK;
    uint32_t ids[AKIN_MODEL_MAX_EOS];
    uint32_t n_ids = 0;
    size_t n = json_is_array(eos) ? json_array_size(eos) : 1;
    if (n > AKIN_MODEL_MAX_EOS)
        return akin_error_set(r->err, AKIN_ERR_UNSUPPORTED,
                              "%s: key \"eos_token_id\" lists %zu ids, at most "
                              "%d are supported",
                              r->name, n, AKIN_MODEL_MAX_EOS);
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_is_array(eos) ? json_array_get(eos, i) : eos;
        json_int_t value = json_integer_value(id);
        if (!json_is_integer(id) || value < 0 ||
            value >= (json_int_t)config->vocab_size) {
            char expected[96];
            (void)snprintf(expected, sizeof(expected),
                           "token ids from 0 to %u (\"vocab_size\" - 1)",
                           config->vocab_size - 1);
            return akini_config_wrong(r, "eos_token_id", eos, expected);
        }
        ids[n_ids++] = (uint32_t)value;
    }
    memcpy(config->eos_ids, ids, n_ids * sizeof(ids[0]));
    config->n_eos_ids = n_ids;
    return AKIN_OK;
}

static akin_status_t read_all(const akini_config_reader_t *r,
                              akin_model_config_t *config)
{
    /* The architecture first: another one has other keys, and "missing" would
     * mislead. */
    akin_status_t status = read_architecture(r, config);
    if (status == AKIN_OK)
        status = akini_model_support_check(r);
    if (status == AKIN_OK)
        status = read_sizes(r, config);
    if (status == AKIN_OK)
        status = read_head_dim(r, config);
    if (status == AKIN_OK)
        status = check_sizes(r, config);
    if (status == AKIN_OK)
        status = read_rope(r, config);
    if (status == AKIN_OK)
        status = read_constants(r, config);
    if (status == AKIN_OK)
        status = read_eos(r, config);
    return status;
}

akin_status_t akin_model_config_parse(const char *text, size_t bytes,
                                      const char *name,
                                      akin_model_config_t *config_p,
                                      akin_error_t *err)
{
    json_t *root = NULL;
    akin_status_t status =
        akini_model_json_parse(text, bytes, name, &root, err);
    if (status != AKIN_OK)
        return status;
    akin_model_config_t config = {0};
    const akini_config_reader_t reader = {root, name, err};
    status = read_all(&reader, &config);
    json_decref(root);
    if (status == AKIN_OK)
        *config_p = config;
    return status;
}

akin_status_t akin_model_config_parse_generation(const char *text, size_t bytes,
                                                 const char *name,
                                                 akin_model_config_t *config,
                                                 akin_error_t *err)
{
    json_t *root = NULL;
    akin_status_t status =
        akini_model_json_parse(text, bytes, name, &root, err);
    if (status != AKIN_OK)
        return status;
    const akini_config_reader_t reader = {root, name, err};
    status = read_eos(&reader, config);
    json_decref(root);
    return status;
}

typedef akin_status_t (*parse_fn_t)(const char *text, size_t bytes,
                                    const char *name,
                                    akin_model_config_t *config,
                                    akin_error_t *err);

static akin_status_t read_file(const char *dir, const char *file,
                               parse_fn_t parse, akin_model_config_t *config,
                               akin_error_t *err)
{
    char *path = akini_model_path(dir, file);
    if (path == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory", dir);
    char *text = NULL;
    size_t bytes = 0;
    akin_status_t status =
        akini_model_file_read(path, MAX_CONFIG_BYTES, &text, &bytes, err);
    if (status == AKIN_OK)
        status = parse(text, bytes, path, config, err);
    free(text);
    free(path);
    return status;
}

akin_status_t akin_model_config_read(const char *dir,
                                     akin_model_config_t *config_p,
                                     akin_error_t *err)
{
    akin_model_config_t config;
    akin_status_t status =
        read_file(dir, "config.json", akin_model_config_parse, &config, err);
    if (status != AKIN_OK)
        return status;
    /* A missing file is no failure, so its message must not stay behind. */
    akin_error_t why = {{0}};
    status = read_file(dir, "generation_config.json",
                       akin_model_config_parse_generation, &config, &why);
    if (status != AKIN_OK && status != AKIN_ERR_NOT_FOUND)
        return akin_error_set(err, status, "%s", why.text);
    *config_p = config;
    return AKIN_OK;
}

int akin_model_config_is_eos(const akin_model_config_t *config, uint32_t token)
{
    for (uint32_t i = 0; i < config->n_eos_ids; i++)
        if (config->eos_ids[i] == token)
            return 1;
    return 0;
}
