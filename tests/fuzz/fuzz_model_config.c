/* Fuzz target: the text of config.json and generation_config.json. */
#include "engine/model_config.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

/* What a config that was taken promises to the engine. */
static void check_config(const akin_model_config_t *c)
{
    if (c->n_heads == 0 || c->n_kv_heads == 0 || c->n_layers == 0 ||
        c->hidden_size == 0 || c->moe_intermediate_size == 0 ||
        c->max_positions == 0 || c->n_heads % c->n_kv_heads != 0 ||
        c->top_k == 0 || c->top_k > c->n_experts || c->n_experts > 65535 ||
        c->head_dim == 0 || c->head_dim % 2 != 0 || c->head_dim > 512 ||
        !(c->rope_theta >= 1) || !(c->rms_norm_eps > 0) ||
        c->n_eos_ids > AKIN_MODEL_MAX_EOS)
        abort();
    for (uint32_t i = 0; i < c->n_eos_ids; i++)
        if (c->eos_ids[i] >= c->vocab_size)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    akin_error_t err = {{0}};
    akin_model_config_t config = {0};
    akin_status_t status =
        akin_model_config_parse(text, size, "fuzz", &config, &err);
    if (status == AKIN_OK)
        check_config(&config);
    else if (strstr(err.text, "fuzz") == NULL)
        abort();
    config.vocab_size = 151936;
    status =
        akin_model_config_parse_generation(text, size, "fuzz", &config, &err);
    if (status == AKIN_OK && config.n_eos_ids > AKIN_MODEL_MAX_EOS)
        abort();
    return 0;
}
