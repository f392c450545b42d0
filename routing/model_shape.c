/* Model shape: the published models, and shapes by numbers. */
#include "routing/model_shape.h"

#include <stddef.h>
#include <string.h>

#define MAX_DIM (UINT32_C(1) << 20)

/*
 * From the models' config.json and the list of their tensors, whose bytes add
 * up to the published total sizes. resident_bytes are all tensors but the
 * experts and, where it is no head, the input embedding.
 */
static const akin_model_shape_t shapes[] = {
    /* bfloat16; 3 x 2,048 x 768 weights per expert. */
    {.name = "qwen3-30b-a3b",
     .n_layers = 48,
     .hidden = 2048,
     .n_experts = 128,
     .top_k = 8,
     .moe_intermediate = 768,
     .n_heads = 32,
     .n_kv_heads = 4,
     .head_dim = 128,
     .vocab = 151936,
     .expert_bytes = 9437184,
     .resident_bytes = 2459856896,
     .resident_weights = 1229928448,
     .kv_token_bytes = 98304,
     .wire_bytes = 4096},
    /* bfloat16; 3 x 4,096 x 1,536 weights per expert. */
    {.name = "qwen3-235b-a22b",
     .n_layers = 94,
     .hidden = 4096,
     .n_experts = 128,
     .top_k = 8,
     .moe_intermediate = 1536,
     .n_heads = 64,
     .n_kv_heads = 4,
     .head_dim = 128,
     .vocab = 151936,
     .expert_bytes = 37748736,
     .resident_bytes = 14749817856,
     .resident_weights = 7374908928,
     .kv_token_bytes = 192512,
     .wire_bytes = 8192},
    /* Experts in MXFP4: 4 bits, a scale byte per 32 weights, bfloat16 biases.
     * Every other layer sees the last 128 tokens alone. */
    {.name = "gpt-oss-20b",
     .n_layers = 24,
     .hidden = 2880,
     .n_experts = 32,
     .top_k = 4,
     .moe_intermediate = 2880,
     .n_heads = 64,
     .n_kv_heads = 8,
     .head_dim = 64,
     .vocab = 201088,
     .expert_bytes = 13236480,
     .is_packed = true,
     .resident_bytes = 2437381248,
     .resident_weights = 1218690624,
     .kv_token_bytes = 24576,
     .window_token_bytes = 24576,
     .window_tokens = 128,
     .wire_bytes = 5760},
    {.name = "gpt-oss-120b",
     .n_layers = 36,
     .hidden = 2880,
     .n_experts = 128,
     .top_k = 4,
     .moe_intermediate = 2880,
     .n_heads = 64,
     .n_kv_heads = 8,
     .head_dim = 64,
     .vocab = 201088,
     .expert_bytes = 13236480,
     .is_packed = true,
     .resident_bytes = 3096849024,
     .resident_weights = 1548424512,
     .kv_token_bytes = 36864,
     .window_token_bytes = 36864,
     .window_tokens = 128,
     .wire_bytes = 5760},
    /* bfloat16, head and embedding are one, a dense MLP of 2,112 beside the
     * experts. 25 of 30 layers see the last 1,024 tokens, with 8 KV heads of
     * 256; the others have 2 of 512. */
    {.name = "gemma-4-26b-a4b",
     .n_layers = 30,
     .hidden = 2816,
     .n_experts = 128,
     .top_k = 8,
     .moe_intermediate = 704,
     .n_heads = 16,
     .n_kv_heads = 2,
     .head_dim = 512,
     .vocab = 262144,
     .expert_bytes = 11894784,
     .resident_bytes = 4790313020,
     .resident_weights = 2395156510,
     .kv_token_bytes = 20480,
     .window_token_bytes = 204800,
     .window_tokens = 1024,
     .wire_bytes = 5632},
};

#define N_SHAPES (sizeof(shapes) / sizeof(shapes[0]))

const akin_model_shape_t *akin_model_shape_find(const char *name)
{
    for (size_t i = 0; i < N_SHAPES; i++)
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
    return NULL;
}

const akin_model_shape_t *akin_model_shape_at(uint32_t index)
{
    return index < N_SHAPES ? &shapes[index] : NULL;
}

static akin_status_t check(const akin_model_dims_t *d, akin_error_t *err)
{
    const struct {
        const char *name;
        uint32_t value;
    } dims[] = {{"layers", d->n_layers},
                {"hidden", d->hidden},
                {"experts", d->n_experts},
                {"top_k", d->top_k},
                {"moe_intermediate", d->moe_intermediate},
                {"heads", d->n_heads},
                {"kv heads", d->n_kv_heads},
                {"head_dim", d->head_dim},
                {"vocab", d->vocab}};
    for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++)
        if (dims[i].value == 0 || dims[i].value > MAX_DIM)
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "model shape: %s is %u, not from 1 to %u",
                                  dims[i].name, dims[i].value, MAX_DIM);
    if (d->top_k > d->n_experts || d->n_kv_heads > d->n_heads)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "model shape: top_k %u of %u experts, %u kv "
                              "heads of %u heads: no part is above its whole",
                              d->top_k, d->n_experts, d->n_kv_heads,
                              d->n_heads);
    if (d->shared_intermediate > MAX_DIM ||
        !(d->weight_bytes >= 0.0 && d->weight_bytes <= 8.0))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "model shape: shared_intermediate up to %u and "
                              "weight_bytes from 0 to 8 are possible",
                              MAX_DIM);
    return AKIN_OK;
}

akin_status_t akin_model_shape_derive(const akin_model_dims_t *d,
                                      akin_model_shape_t *shape,
                                      akin_error_t *err)
{
    akin_status_t status = check(d, err);
    if (status != AKIN_OK)
        return status;
    const double bytes = d->weight_bytes > 0.0 ? d->weight_bytes : 2.0;
    const double hidden = d->hidden;
    const double kv_width = (double)d->n_kv_heads * d->head_dim;
    const double q_width = (double)d->n_heads * d->head_dim;
    const double layer = hidden * (2.0 * q_width + 2.0 * kv_width) +
                         hidden * d->n_experts +
                         3.0 * hidden * d->shared_intermediate;
    const double resident = d->n_layers * layer + hidden * d->vocab;
    *shape = (akin_model_shape_t){
        .name = d->name != NULL ? d->name : "",
        .n_layers = d->n_layers,
        .hidden = d->hidden,
        .n_experts = d->n_experts,
        .top_k = d->top_k,
        .moe_intermediate = d->moe_intermediate,
        .n_heads = d->n_heads,
        .n_kv_heads = d->n_kv_heads,
        .head_dim = d->head_dim,
        .vocab = d->vocab,
        .expert_bytes = (uint64_t)(3.0 * hidden * d->moe_intermediate * bytes),
        .is_packed = bytes < 1.0,
        .resident_bytes = (uint64_t)(2.0 * resident),
        .resident_weights = (uint64_t)resident,
        .kv_token_bytes = (uint64_t)(4.0 * kv_width * d->n_layers),
        .wire_bytes = 2 * d->hidden,
    };
    return AKIN_OK;
}

uint64_t akin_model_kv_bytes(const akin_model_shape_t *s,
                             uint64_t context_tokens)
{
    const uint64_t kept =
        context_tokens < s->window_tokens ? context_tokens : s->window_tokens;
    return s->kv_token_bytes * context_tokens + s->window_token_bytes * kept;
}
