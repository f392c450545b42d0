/* Engine: dispatch by name, checks that every engine shares. */
#include "engine/engine.h"

#include <string.h>

static const akin_engine_ops_t *const engines[] = {&akin_engine_cpu_ops,
                                                   &akin_engine_modelled_ops};

akin_status_t akin_engine_load(const char *name,
                               const akin_engine_params_t *params,
                               akin_engine_t **engine_p, akin_error_t *err)
{
    *engine_p = NULL;
    for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
        if (strcmp(engines[i]->name, name) == 0)
            return engines[i]->load(params, engine_p, err);
    return akin_error_set(err, AKIN_ERR_INVALID,
                          "unknown engine \"%s\": use \"cpu\" or \"modelled\"",
                          name);
}

void akin_engine_destroy(akin_engine_t *engine)
{
    if (engine != NULL)
        engine->ops->destroy(engine);
}

void akin_engine_describe(const akin_engine_t *engine,
                          akin_engine_info_t *info_p)
{
    engine->ops->describe(engine, info_p);
}

void akin_engine_kv_shape(const akin_engine_t *engine, uint32_t block_tokens,
                          akin_kv_shape_t *shape_p)
{
    akin_engine_info_t info;
    engine->ops->describe(engine, &info);
    *shape_p = (akin_kv_shape_t){
        .n_layers = info.model->n_layers,
        .n_kv_heads = info.model->n_kv_heads,
        .head_dim = info.model->head_dim,
        .n_experts = info.model->n_experts,
        .top_k = info.model->top_k,
        .block_tokens = block_tokens,
    };
}

static int span_in_range(const akin_engine_span_t *span,
                         const akin_model_config_t *model,
                         const akin_kv_view_t *view)
{
    uint32_t block_tokens = view->layout->shape.block_tokens;
    if (span->n_tokens == 0 || span->position >= model->max_positions ||
        span->n_tokens > model->max_positions - span->position)
        return 0;
    for (uint32_t i = 0; i < span->n_tokens; i++)
        if (span->tokens[i] >= model->vocab_size)
            return 0;
    uint32_t last = (span->position + span->n_tokens - 1) / block_tokens;
    for (uint32_t b = 0; b <= last; b++)
        if (span->slots[b] >= view->n_slots)
            return 0;
    return 1;
}

akin_status_t akin_engine_step(akin_engine_t *engine,
                               const akin_kv_view_t *view,
                               const akin_engine_span_t *spans,
                               uint32_t n_spans, akin_engine_report_t *report)
{
    akin_engine_info_t info;
    engine->ops->describe(engine, &info);
    for (uint32_t i = 0; i < n_spans; i++)
        if (!span_in_range(&spans[i], info.model, view))
            return AKIN_ERR_RANGE;
    return engine->ops->step(engine, view, spans, n_spans, report);
}

void akin_engine_touch_expert(const akin_engine_t *engine, uint32_t layer,
                              uint32_t expert)
{
    akin_engine_info_t info;
    engine->ops->describe(engine, &info);
    if (engine->ops->touch_expert != NULL && layer < info.model->n_layers &&
        expert < info.model->n_experts)
        engine->ops->touch_expert(engine, layer, expert);
}
