/* Worker cost: seconds of the steps of a worker of one or several ranks, by the
 * cost model of a rank. */
#include "routing/worker_cost.h"

double akin_worker_cost_step(const akin_cost_model_t *model,
                             const akin_worker_step_t *step)
{
    const akin_model_shape_t *shape = model->shape;
    const uint32_t n_ranks = step->n_ranks > 1 ? step->n_ranks : 1;
    if (step->batch == 0 || step->distinct == 0)
        return 0.0;
    akin_cost_step_t rank = {
        .batch = step->batch,
        .context_tokens = step->context_tokens,
        .distinct = (double)step->busiest / shape->n_layers,
        .choices =
            (double)step->batch * shape->top_k * step->busiest / step->distinct,
        .tensor_ranks = n_ranks,
    };
    if (n_ranks > 1)
        rank.exchange_bytes = (uint64_t)2 * shape->n_layers * step->batch *
                              shape->wire_bytes * (n_ranks - 1) / n_ranks;
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
    const double all = akin_cost_model_prefill(model, &chunk, &parts);
    return all - parts.expert_s + parts.expert_s / n;
}
