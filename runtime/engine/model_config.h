/* Model config: config.json and generation_config.json of a Hugging Face
 * model directory. */
#ifndef AKIN_ENGINE_MODEL_CONFIG_H
#define AKIN_ENGINE_MODEL_CONFIG_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AKIN_MODEL_MAX_EOS 8

/** Shape and constants of a model of the Qwen3-MoE architecture. */
typedef struct akin_model_config {
    char architecture[64]; /* "Qwen3MoeForCausalLM" */
    uint32_t vocab_size;   /* rows of the embedding */
    uint32_t hidden_size;
    uint32_t n_layers;
    uint32_t n_heads;
    uint32_t n_kv_heads;
    uint32_t head_dim;
    uint32_t n_experts;
    uint32_t top_k;
    uint32_t moe_intermediate_size;
    uint32_t max_positions; /* max_position_embeddings, tokens */
    double rope_theta;
    double rms_norm_eps;
    int norm_topk_prob;      /* divide the k weights by their sum */
    int tie_word_embeddings; /* the head is the embedding */
    /* From generation_config.json if there is one, else from config.json. */
    uint32_t eos_ids[AKIN_MODEL_MAX_EOS];
    uint32_t n_eos_ids;
} akin_model_config_t;

/**
 * Read DIR/config.json and, if it exists, DIR/generation_config.json. Both
 * spellings are taken: num_experts and num_local_experts, rope_theta and
 * rope_parameters, torch_dtype and dtype.
 *
 * \param[in]  dir       model directory.
 * \param[out] config_p
 * \param[out] err       names the file and the key.
 * \return AKIN_OK
 * \return AKIN_ERR_NOT_FOUND, AKIN_ERR_IO: no such directory or file.
 * \return AKIN_ERR_FORMAT: not JSON, a key missing, of the wrong type or out
 *         of range.
 * \return AKIN_ERR_UNSUPPORTED: another architecture, or an option of it that
 *         this engine has not got (rope scaling, sliding window, dense layers,
 *         attention bias, quantisation, another activation).
 */
akin_status_t akin_model_config_read(const char *dir,
                                     akin_model_config_t *config_p,
                                     akin_error_t *err) AKIN_MUST_CHECK;

/**
 * As akin_model_config_read(), from the text of a config.json alone.
 *
 * \param[in]  text, bytes  the file's content; need not be NUL-terminated.
 * \param[in]  name         stands for the path in messages.
 * \param[out] config_p     written only on success.
 * \return as akin_model_config_read().
 */
akin_status_t akin_model_config_parse(const char *text, size_t bytes,
                                      const char *name,
                                      akin_model_config_t *config_p,
                                      akin_error_t *err) AKIN_MUST_CHECK;

/**
 * Take over eos_token_id from the text of a generation_config.json; without
 * that key nothing changes.
 *
 * \param[in]     text, bytes  the file's content.
 * \param[in]     name         stands for the path in messages.
 * \param[in,out] config       from akin_model_config_parse(); written only on
 *                             success.
 * \return AKIN_OK
 * \return AKIN_ERR_FORMAT: not JSON, or ids that are none.
 * \return AKIN_ERR_UNSUPPORTED: more than AKIN_MODEL_MAX_EOS ids.
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_model_config_parse_generation(
    const char *text, size_t bytes, const char *name,
    akin_model_config_t *config, akin_error_t *err) AKIN_MUST_CHECK;

/** Whether a token ends a sequence of this model. */
int akin_model_config_is_eos(const akin_model_config_t *config, uint32_t token);

#ifdef __cplusplus
}
#endif

#endif
