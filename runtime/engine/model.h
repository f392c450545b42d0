/* Model: config and weights of one model directory, bound by name. */
#ifndef AKIN_ENGINE_MODEL_H
#define AKIN_ENGINE_MODEL_H

#include "engine/model_config.h"
#include "ep/expert.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Weights of one layer; every pointer is borrowed from the model. */
typedef struct akin_layer {
    akin_matrix_t input_norm;     /* [1][hidden] */
    akin_matrix_t q_proj;         /* [heads * dim][hidden] */
    akin_matrix_t k_proj;         /* [kv_heads * dim][hidden] */
    akin_matrix_t v_proj;         /* [kv_heads * dim][hidden] */
    akin_matrix_t o_proj;         /* [hidden][heads * dim] */
    akin_matrix_t q_norm;         /* [1][dim] */
    akin_matrix_t k_norm;         /* [1][dim] */
    akin_matrix_t post_norm;      /* [1][hidden] */
    akin_matrix_t router;         /* [experts][hidden] */
    const akin_expert_t *experts; /* [experts] */
} akin_layer_t;

typedef struct akin_model {
    akin_model_config_t config;
    akin_matrix_t embedding;    /* [vocab][hidden] */
    akin_matrix_t final_norm;   /* [1][hidden] */
    akin_matrix_t head;         /* [vocab][hidden], the embedding if tied */
    const akin_layer_t *layers; /* [layers] */
    uint64_t weight_bytes;      /* of all tensors bound, a tied head once */
    struct akin_model_storage *storage;
} akin_model_t;

/**
 * Read a model directory and bind every tensor that the forward pass uses.
 * Weights stay in the mapped files; binding touches none of their pages.
 * Tensors that it has no use for are ignored.
 *
 * \param[in]  dir      model directory.
 * \param[out] model_p  owned by the caller.
 * \param[out] err      names the file and the key or tensor.
 * \return AKIN_OK, or the status of akin_model_config_read(),
 *         akin_tensor_set_open() and akin_tensor_find_matrix().
 */
akin_status_t akin_model_open(const char *dir, akin_model_t **model_p,
                              akin_error_t *err) AKIN_MUST_CHECK;

/** Unmap and free; NULL is allowed. */
void akin_model_close(akin_model_t *model);

/** Bytes of one expert's three matrices, layer 0, expert 0. */
uint64_t akin_model_expert_bytes(const akin_model_t *model);

#ifdef __cplusplus
}
#endif

#endif
