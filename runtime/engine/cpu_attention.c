/* Attention of the cpu engine: gathers the blocks of one row and kv head. */
#include "engine/cpu_internal.h"

#include <math.h>

void akini_cpu_attend(akini_cpu_engine_t *engine, const akin_kv_view_t *view,
                      uint32_t thread, uint32_t layer, uint32_t row,
                      uint32_t head)
{
    const akin_model_config_t *c = &engine->model->config;
    const akin_kv_layout_t *layout = view->layout;
    akini_cpu_scratch_t *s = &engine->scratch;
    const uint16_t **keys = s->keys[thread], **values = s->values[thread];
    const akini_cpu_row_t *r = &s->rows[row];
    const uint32_t group = c->n_heads / c->n_kv_heads;
    const size_t at = (size_t)row * c->n_heads * c->head_dim +
                      (size_t)head * group * c->head_dim;
    const uint32_t n_blocks = r->position / layout->shape.block_tokens + 1;
    for (uint32_t b = 0; b < n_blocks; b++) {
        unsigned char *slot = akin_kv_slot(view, r->slots[b]);
        keys[b] = akin_kv_keys(layout, slot, layer, head);
        values[b] = akin_kv_values(layout, slot, layer, head);
    }
    const akin_attention_t attention = {
        .queries = s->q + at,
        .out = s->attended + at,
        .n_queries = group,
        .head_dim = c->head_dim,
        .n_keys = r->position + 1,
        .block_tokens = layout->shape.block_tokens,
        .keys = keys,
        .values = values,
        .scale = 1.0f / sqrtf((float)c->head_dim),
    };
    engine->kernels->attend(&attention);
}
