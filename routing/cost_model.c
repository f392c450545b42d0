/* Cost model: bytes over bandwidth, operations over their rate. */
#include "routing/cost_model.h"

#include <math.h>
#include <stddef.h>

static double resident_rate(const akin_machine_t *m)
{
    return m->memory_bytes_per_s * m->resident_efficiency;
}

static double flops_rate(const akin_machine_t *m)
{
    return m->flops_per_s * m->flops_efficiency;
}

/* Of what is read at the resident rate. */
static double slower(const akin_machine_t *m, double bytes, double flops)
{
    return fmax(bytes / resident_rate(m), flops / flops_rate(m));
}

static double expert_layer(const akin_cost_model_t *model, double distinct,
                           double choices)
{
    const akin_machine_t *m = model->machine;
    const akin_model_shape_t *s = model->shape;
    /* Three matrices, a multiply and an add per weight. */
    const double flops =
        choices * 6.0 * (double)s->hidden * (double)s->moe_intermediate;
    const double efficiency =
        s->is_packed ? m->packed_efficiency : m->expert_efficiency;
    return fmax(distinct * (double)s->expert_bytes /
                    (m->memory_bytes_per_s * efficiency),
                flops / flops_rate(m));
}

double akin_cost_model_expert_layer(const akin_cost_model_t *model,
                                    double distinct, double choices)
{
    return model->machine->expert_layer_s +
           expert_layer(model, distinct, choices);
}

static double fixed(const akin_cost_model_t *model)
{
    const akin_machine_t *m = model->machine;
    return m->step_s +
           model->shape->n_layers * (m->layer_s + m->expert_layer_s);
}

/* Bytes of KV that requests of the same context read. */
static double kv_bytes(const akin_model_shape_t *s, double n_requests,
                       double context_tokens)
{
    const double window = n_requests * s->window_tokens;
    return (double)s->kv_token_bytes * context_tokens +
           (double)s->window_token_bytes * fmin(context_tokens, window);
}

static double finish(akin_cost_parts_t *parts, akin_cost_parts_t *parts_p)
{
    parts->total_s = parts->fixed_s + parts->resident_s + parts->attention_s +
                     parts->expert_s + parts->exchange_s;
    if (parts_p != NULL)
        *parts_p = *parts;
    return parts->total_s;
}

double akin_cost_model_step(const akin_cost_model_t *model,
                            const akin_cost_step_t *step,
                            akin_cost_parts_t *parts_p)
{
    const akin_machine_t *m = model->machine;
    const akin_model_shape_t *s = model->shape;
    akin_cost_parts_t parts = {0};
    if (step->batch == 0)
        return finish(&parts, parts_p);
    const double share = step->tensor_ranks > 1 ? step->tensor_ranks : 1.0;
    const double batch = step->batch;
    const double context = (double)step->context_tokens;
    const double choices =
        step->choices > 0.0 ? step->choices : batch * s->top_k;
    parts.fixed_s = fixed(model);
    parts.resident_s = slower(m, (double)s->resident_bytes,
                              2.0 * batch * (double)s->resident_weights) /
                       share;
    /* Scores and their sum over the values. */
    parts.attention_s =
        slower(m, kv_bytes(s, batch, context),
               4.0 * context * s->n_layers * (double)s->n_heads * s->head_dim) /
        share;
    parts.expert_s = s->n_layers * expert_layer(model, step->distinct, choices);
    if (step->exchange_bytes > 0) {
        const akin_machine_link_t *link = step->over_nic ? &m->nic : &m->fabric;
        /* A layer sends once there and once back. */
        parts.exchange_s = 2.0 * s->n_layers * link->latency_s +
                           (double)step->exchange_bytes / link->bytes_per_s;
    }
    return finish(&parts, parts_p);
}

double akin_cost_model_prefill(const akin_cost_model_t *model,
                               const akin_cost_chunk_t *chunk,
                               akin_cost_parts_t *parts_p)
{
    const akin_machine_t *m = model->machine;
    const akin_model_shape_t *s = model->shape;
    akin_cost_parts_t parts = {0};
    if (chunk->tokens == 0)
        return finish(&parts, parts_p);
    const double share = chunk->tensor_ranks > 1 ? chunk->tensor_ranks : 1.0;
    const double tokens = (double)chunk->tokens;
    const double context = (double)chunk->context_tokens;
    const double experts = s->n_experts;
    const double distinct =
        chunk->distinct > 0.0
            ? chunk->distinct
            : experts * (1.0 - pow(1.0 - s->top_k / experts, tokens));
    parts.fixed_s = fixed(model);
    parts.resident_s = slower(m, (double)s->resident_bytes,
                              2.0 * tokens * (double)s->resident_weights) /
                       share;
    /* A token of the chunk sees the context and half of the chunk. */
    parts.attention_s =
        slower(m, kv_bytes(s, 1.0, context + tokens),
               4.0 * tokens * (context + tokens / 2.0) * s->n_layers *
                   (double)s->n_heads * s->head_dim) /
        share;
    parts.expert_s =
        s->n_layers * expert_layer(model, distinct, tokens * s->top_k);
    return finish(&parts, parts_p);
}

double akin_cost_model_transfer(const akin_machine_link_t *link, uint64_t bytes)
{
    return link->latency_s + (double)bytes / link->bytes_per_s;
}

akin_cost_line_t akin_cost_model_line(const akin_cost_model_t *model,
                                      uint64_t context_tokens)
{
    const akin_machine_t *m = model->machine;
    const akin_model_shape_t *s = model->shape;
    const akin_cost_line_t line = {
        .t0_s = fixed(model) + (double)s->resident_bytes / resident_rate(m),
        .a_s = expert_layer(model, 1.0, 0.0),
        .b_s = kv_bytes(s, 1.0, (double)context_tokens) / resident_rate(m),
    };
    return line;
}
