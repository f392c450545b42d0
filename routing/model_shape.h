/* Model shape: the sizes of a mixture-of-experts model that time and memory
 * follow from. */
#ifndef AKIN_ROUTING_MODEL_SHAPE_H
#define AKIN_ROUTING_MODEL_SHAPE_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_model_shape {
    const char *name;
    uint32_t n_layers;
    uint32_t hidden;
    uint32_t n_experts;
    uint32_t top_k;
    uint32_t moe_intermediate;
    uint32_t n_heads;    /* of queries */
    uint32_t n_kv_heads; /* of the layers whose context grows without bound */
    uint32_t head_dim;   /* of the same */
    uint32_t vocab;
    uint64_t expert_bytes; /* one expert of one layer */
    bool is_packed;        /* experts of four bits a weight, to be unpacked */
    /* What every step reads whatever it routes: attention, norms, router,
     * dense MLP and head of all layers, without the input embedding. */
    uint64_t resident_bytes;
    /* Weights among resident_bytes that a token multiplies with. */
    uint64_t resident_weights;
    uint64_t kv_token_bytes; /* of a token, in layers that keep all tokens */
    /* And in layers that keep the last window_tokens alone. */
    uint64_t window_token_bytes;
    uint32_t window_tokens;
    uint32_t wire_bytes; /* of a hidden vector */
} akin_model_shape_t;

/**
 * "qwen3-30b-a3b", "qwen3-235b-a22b", "gpt-oss-20b", "gpt-oss-120b" or
 * "gemma-4-26b-a4b".
 *
 * \return NULL if there is none of that name.
 */
const akin_model_shape_t *akin_model_shape_find(const char *name);

/** The i-th of the table; NULL from the last on. */
const akin_model_shape_t *akin_model_shape_at(uint32_t index);

/** A shape by numbers; 0 where a default is named. */
typedef struct akin_model_dims {
    const char *name; /* borrowed; NULL: "" */
    uint32_t n_layers;
    uint32_t hidden;
    uint32_t n_experts;
    uint32_t top_k;
    uint32_t moe_intermediate;
    uint32_t n_heads;
    uint32_t n_kv_heads;
    uint32_t head_dim;
    uint32_t vocab;
    uint32_t shared_intermediate; /* of a dense MLP or a shared expert beside
                                     the routed ones; 0: none */
    double weight_bytes;          /* per weight of an expert; 0: 2. Below 1 the
                                     experts are packed. */
} akin_model_dims_t;

/**
 * Sizes of a model whose layers are alike: gated MLPs (three matrices), q, k,
 * v and o of n_heads and n_kv_heads, a router, an untied head; norms and
 * biases, which are below a thousandth, are left out. All but the
 * experts take two bytes per value.
 *
 * \param[out] err  names the number.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: a number is 0, above 2^20, or n_kv_heads above
 *         n_heads, or top_k above n_experts.
 */
akin_status_t akin_model_shape_derive(const akin_model_dims_t *dims,
                                      akin_model_shape_t *shape,
                                      akin_error_t *err) AKIN_MUST_CHECK;

/** Bytes of KV that a request of this many tokens holds. */
uint64_t akin_model_kv_bytes(const akin_model_shape_t *shape,
                             uint64_t context_tokens);

#ifdef __cplusplus
}
#endif

#endif
