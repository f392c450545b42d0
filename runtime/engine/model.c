/* Model: binding the tensors of a Qwen3-MoE checkpoint by name. Names and
 * shapes are those of the published checkpoints' layout. */
#include "engine/model.h"

#include "base/log.h"
#include "engine/safetensors.h"

#include <stdio.h>
#include <stdlib.h>

/* Long enough for every name below with 32-bit numbers. */
#define NAME_BYTES 96

struct akin_model_storage {
    akin_tensor_set_t *set;
    akin_layer_t *layers;
    akin_expert_t **experts; /* [layers], each [experts] */
    size_t n_bound;          /* tensors that are used */
};

/* What binding goes through: the model in the making and the first error. */
struct binder {
    akin_model_t *model;
    struct akin_model_storage *storage;
    akin_error_t *err;
};

static akin_status_t bind(struct binder *binder, const char *name,
                          uint32_t rows, uint32_t cols, akin_matrix_t *matrix_p)
{
    akin_status_t status = akin_tensor_find_matrix(
        binder->storage->set, name, rows, cols, matrix_p, binder->err);
    if (status != AKIN_OK)
        return status;
    binder->storage->n_bound++;
    binder->model->weight_bytes += akin_matrix_bytes(matrix_p);
    return AKIN_OK;
}

static akin_status_t bind_experts(struct binder *binder, uint32_t layer)
{
    const akin_model_config_t *config = &binder->model->config;
    /* Layer by layer, after the layer's other tensors were found: the memory
     * asked for stays in proportion to the files, whatever config.json says. */
    akin_expert_t *experts = calloc(config->n_experts, sizeof(*experts));
    if (experts == NULL)
        return akin_error_set(binder->err, AKIN_ERR_NOMEM,
                              "layer %u: out of memory", layer);
    binder->storage->experts[layer] = experts;
    binder->storage->layers[layer].experts = experts;

    const uint32_t hidden = config->hidden_size;
    const uint32_t width = config->moe_intermediate_size;
    for (uint32_t e = 0; e < config->n_experts; e++) {
        const struct {
            const char *part;
            uint32_t rows;
            uint32_t cols;
            akin_matrix_t *matrix;
        } rows[] = {
            {"gate_proj", width, hidden, &experts[e].gate},
            {"up_proj", width, hidden, &experts[e].up},
            {"down_proj", hidden, width, &experts[e].down},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            char name[NAME_BYTES];
            (void)snprintf(name, sizeof(name),
                           "model.layers.%u.mlp.experts.%u.%s.weight", layer, e,
                           rows[i].part);
            akin_status_t status =
                bind(binder, name, rows[i].rows, rows[i].cols, rows[i].matrix);
            if (status != AKIN_OK)
                return status;
        }
    }
    return AKIN_OK;
}

static akin_status_t bind_layer(struct binder *binder, uint32_t index)
{
    const akin_model_config_t *config = &binder->model->config;
    akin_layer_t *layer = &binder->storage->layers[index];
    const uint32_t hidden = config->hidden_size;
    const uint32_t dim = config->head_dim;
    const uint32_t q_width = config->n_heads * dim;
    const uint32_t kv_width = config->n_kv_heads * dim;
    const struct {
        const char *part;
        uint32_t rows;
        uint32_t cols;
        akin_matrix_t *matrix;
    } rows[] = {
        {"input_layernorm", 1, hidden, &layer->input_norm},
        {"self_attn.q_proj", q_width, hidden, &layer->q_proj},
        {"self_attn.k_proj", kv_width, hidden, &layer->k_proj},
        {"self_attn.v_proj", kv_width, hidden, &layer->v_proj},
        {"self_attn.o_proj", hidden, q_width, &layer->o_proj},
        {"self_attn.q_norm", 1, dim, &layer->q_norm},
        {"self_attn.k_norm", 1, dim, &layer->k_norm},
        {"post_attention_layernorm", 1, hidden, &layer->post_norm},
        {"mlp.gate", config->n_experts, hidden, &layer->router},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[NAME_BYTES];
        (void)snprintf(name, sizeof(name), "model.layers.%u.%s.weight", index,
                       rows[i].part);
        akin_status_t status =
            bind(binder, name, rows[i].rows, rows[i].cols, rows[i].matrix);
        if (status != AKIN_OK)
            return status;
    }
    return bind_experts(binder, index);
}

static akin_status_t bind_all(struct binder *binder)
{
    akin_model_t *model = binder->model;
    const akin_model_config_t *config = &model->config;
    const uint32_t hidden = config->hidden_size;
    akin_status_t status = bind(binder, "model.embed_tokens.weight",
                                config->vocab_size, hidden, &model->embedding);
    if (status != AKIN_OK)
        return status;
    status = bind(binder, "model.norm.weight", 1, hidden, &model->final_norm);
    if (status != AKIN_OK)
        return status;
    if (config->tie_word_embeddings) {
        /* A stored lm_head.weight is then a copy, or stale: it is left out. */
        model->head = model->embedding;
    } else {
        status = bind(binder, "lm_head.weight", config->vocab_size, hidden,
                      &model->head);
        if (status != AKIN_OK)
            return status;
    }
    for (uint32_t i = 0; i < config->n_layers; i++) {
        status = bind_layer(binder, i);
        if (status != AKIN_OK)
            return status;
    }
    return AKIN_OK;
}

akin_status_t akin_model_open(const char *dir, akin_model_t **model_p,
                              akin_error_t *err)
{
    *model_p = NULL;
    akin_model_config_t config;
    akin_status_t status = akin_model_config_read(dir, &config, err);
    if (status != AKIN_OK)
        return status;

    akin_model_t *model = calloc(1, sizeof(*model));
    struct akin_model_storage *storage = calloc(1, sizeof(*storage));
    if (model == NULL || storage == NULL) {
        free(model);
        free(storage);
        return akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory", dir);
    }
    model->config = config;
    model->storage = storage;
    storage->layers = calloc(config.n_layers, sizeof(*storage->layers));
    storage->experts = calloc(config.n_layers, sizeof(*storage->experts));
    model->layers = storage->layers;
    if (storage->layers == NULL || storage->experts == NULL) {
        status = akin_error_set(err, AKIN_ERR_NOMEM, "%s: out of memory", dir);
        goto err_close;
    }
    status = akin_tensor_set_open(dir, &storage->set, err);
    if (status != AKIN_OK)
        goto err_close;
    struct binder binder = {model, storage, err};
    status = bind_all(&binder);
    if (status != AKIN_OK)
        goto err_close;
    AKIN_LOG(ENGINE, DEBUG,
             "%s: %zu tensors bound, %zu in the files are not used", dir,
             storage->n_bound,
             akin_tensor_set_count(storage->set) - storage->n_bound);
    *model_p = model;
    return AKIN_OK;

err_close:
    akin_model_close(model);
    return status;
}

void akin_model_close(akin_model_t *model)
{
    if (model == NULL)
        return;
    struct akin_model_storage *storage = model->storage;
    if (storage->experts != NULL)
        for (uint32_t i = 0; i < model->config.n_layers; i++)
            free(storage->experts[i]);
    free(storage->experts);
    free(storage->layers);
    akin_tensor_set_close(storage->set);
    free(storage);
    free(model);
}

uint64_t akin_model_expert_bytes(const akin_model_t *model)
{
    const akin_expert_t *expert = &model->layers[0].experts[0];
    return (uint64_t)akin_matrix_bytes(&expert->gate) +
           akin_matrix_bytes(&expert->up) + akin_matrix_bytes(&expert->down);
}
