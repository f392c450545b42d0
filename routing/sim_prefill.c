/* Sim prefill: who prefills a prompt, and for how long. */
#include "routing/sim_prefill.h"

#include <stdlib.h>

akin_status_t akini_sim_prefill_init(akini_sim_prefill_t *prefill,
                                     const akin_sim_params_t *params,
                                     akini_sim_requests_t *requests)
{
    *prefill = (akini_sim_prefill_t){.params = params, .requests = requests};
    prefill->workers = calloc(params->n_prefill, sizeof(*prefill->workers));
    if (prefill->workers == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t w = 0; w < params->n_prefill; w++) {
        prefill->workers[w].queue.head = AKINI_SIM_NONE;
        prefill->workers[w].running = AKINI_SIM_NONE;
    }
    return AKIN_OK;
}

void akini_sim_prefill_cleanup(akini_sim_prefill_t *prefill)
{
    free(prefill->workers);
}

uint32_t akini_sim_prefill_assign(akini_sim_prefill_t *prefill, uint32_t slot)
{
    uint32_t least = 0;
    for (uint32_t w = 1; w < prefill->params->n_prefill; w++)
        if (prefill->workers[w].n_assigned < prefill->workers[least].n_assigned)
            least = w;
    akini_sim_prefiller_t *worker = &prefill->workers[least];
    akini_sim_queue_put(&worker->queue, prefill->requests, slot);
    worker->n_assigned++;
    prefill->requests->slots[slot].worker = least;
    return least;
}

/* The ranks of a worker share a prompt's experts evenly: a chunk activates
 * nearly all. */
static double chunk_seconds(const akin_sim_params_t *params, uint32_t tokens,
                            uint32_t context)
{
    const uint32_t n_ranks = params->n_ranks > 1 ? params->n_ranks : 1;
    const akin_cost_chunk_t chunk = {
        .tokens = tokens, .context_tokens = context, .tensor_ranks = n_ranks};
    akin_cost_parts_t parts;
    const double all = akin_cost_model_prefill(&params->cost, &chunk, &parts);
    return all - parts.expert_s + parts.expert_s / n_ranks;
}

static double prompt_seconds(const akin_sim_params_t *params, uint32_t n_prompt)
{
    const uint32_t most =
        params->chunk_tokens > 0 ? params->chunk_tokens : n_prompt;
    double seconds = 0.0;
    for (uint32_t at = 0; at < n_prompt;) {
        const uint32_t n = n_prompt - at < most ? n_prompt - at : most;
        seconds += chunk_seconds(params, n, at);
        at += n;
    }
    return seconds;
}

int akini_sim_prefill_start(akini_sim_prefill_t *prefill, uint32_t w,
                            double *seconds_p)
{
    akini_sim_prefiller_t *worker = &prefill->workers[w];
    if (worker->running != AKINI_SIM_NONE ||
        worker->queue.head == AKINI_SIM_NONE)
        return 0;
    worker->running = akini_sim_queue_take(&worker->queue, prefill->requests);
    *seconds_p = prompt_seconds(
        prefill->params,
        prefill->requests->slots[worker->running].route.n_prompt);
    return 1;
}

uint32_t akini_sim_prefill_end(akini_sim_prefill_t *prefill, uint32_t w)
{
    akini_sim_prefiller_t *worker = &prefill->workers[w];
    const uint32_t slot = worker->running;
    worker->running = AKINI_SIM_NONE;
    worker->n_assigned--;
    return slot;
}
