/* Modelled: what the engine without weights is told of the model and machine
 * that it stands for. */
#ifndef AKIN_ENGINE_MODELLED_H
#define AKIN_ENGINE_MODELLED_H

#include "engine/model_config.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** First tokens of a sequence that name it: whose routes it takes. */
#define AKIN_MODELLED_NAME_TOKENS 8u

/** Positions at most: counts of a prompt are 16 bits wide. */
#define AKIN_MODELLED_MAX_POSITIONS 32768u

/** KV of a token and layer is this wide, or a multiple of it: 8 bytes. */
#define AKIN_MODELLED_KV_UNIT 4u

/** A step of a worker, of all its ranks together. */
typedef struct akin_modelled_load {
    uint32_t n_ranks;
    uint32_t n_tokens; /* rows */
    int has_prompts;   /* they are of prompts, several of a sequence */
    /* Before the tokens: of all sequences, of prompts a token's mean. */
    uint64_t context_tokens;
    uint32_t distinct; /* experts, added up over the layers */
    uint32_t busiest;  /* the same of the busiest rank of each layer */
} akin_modelled_load_t;

/** The functions are called by the engine thread. */
typedef struct akin_modelled_params {
    uint32_t n_layers;
    uint32_t n_experts;
    uint32_t top_k;
    uint32_t hidden;
    uint32_t moe_intermediate;
    /* bf16 values of a token's keys, and of its values, that a layer keeps: a
     * multiple of AKIN_MODELLED_KV_UNIT. The model's own are more. */
    uint32_t kv_width;
    double slowdown; /* a step takes so many times what seconds() says */
    /** Experts of a token: [n_layers][top_k], different ones in a layer, by
     * nothing but the arguments. */
    void (*routes)(void *arg, uint64_t name, uint32_t position,
                   uint16_t *routes);
    /** How long a step takes, >= 0. It lasts 10 s at most. */
    double (*seconds)(void *arg, const akin_modelled_load_t *load);
    void *arg;
} akin_modelled_params_t;

/** Name of an empty sequence. */
#define AKIN_MODELLED_NO_NAME UINT64_C(0x9e3779b97f4a7c15)

/** The name of a sequence with one more token; it depends on all tokens. Of a
 * longer sequence the name of the first AKIN_MODELLED_NAME_TOKENS counts. */
uint64_t akin_modelled_name(uint64_t name, uint32_t token);

/** Give a model's config the sizes of the one that is stood for; vocabulary and
 * ends stay. */
void akin_modelled_apply(const akin_modelled_params_t *params,
                         akin_model_config_t *config);

#ifdef __cplusplus
}
#endif

#endif
