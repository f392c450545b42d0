/* Worker cost: seconds of the steps of a worker of one or several ranks, by the
 * cost model of a rank. */
#include "routing/worker_cost.h"

/* What a rank sends the others in a step: its share of the hidden vectors of
 * all tokens, there and back in every layer. */
static uint64_t exchange_bytes(const akin_model_shape_t *shape,
                               uint32_t n_ranks, uint64_t n_tokens)
{
    return (uint64_t)2 * shape->n_layers * n_tokens * shape->wire_bytes *
           (n_ranks - 1) / n_ranks;
}

double akin_worker_cost_step(const akin_cost_model_t *model,
                             const akin_worker_step_t *step)
{
    const akin_model_shape_t *shape = model->shape;
    const uint32_t n_ranks = step->n_ranks > 1 ? step->n_ranks : 1;
    if (step->batch == 0 || step->distinct == 0)
        return 0.0;
    const akin_cost_step_t rank = {
        .batch = step->batch,
        .context_tokens = step->context_tokens,
        .distinct = (double)step->busiest / shape->n_layers,
        .choices =
            (double)step->batch * shape->top_k * step->busiest / step->distinct,
        .tensor_ranks = n_ranks,
        .exchange_bytes = exchange_bytes(shape, n_ranks, step->batch),
    };
    return akin_cost_model_step(model, &rank, NULL);
}

double akin_worker_cost_prefill(const akin_cost_model_t *model,
                                uint32_t n_ranks, uint32_t tokens,
                                uint64_t context_tokens)
{
    const uint32_t n = n_ranks > 1 ? n_ranks : 1;
    const akin_cost_chunk_t chunk = {
        .tokens = tokens, .context_tokens = context_tokens, .tensor_ranks = n};
    akin_cost_parts_t parts;
    const akin_machine_link_t *fabric = &model->machine->fabric;
    const double all = akin_cost_model_prefill(model, &chunk, &parts);
    const double exchange_s =
        n > 1 ? 2.0 * model->shape->n_layers * fabric->latency_s +
                    (double)exchange_bytes(model->shape, n, tokens) /
                        fabric->bytes_per_s
              : 0.0;
    return all - parts.expert_s + parts.expert_s / n + exchange_s;
}
