/* Sim arrivals: when requests come and how they end. */
#include "base/rng.h"
#include "routing/sim_state.h"

#include <math.h>

enum { STREAM_ARRIVAL = 104 };

bool akini_sim_is_measured(const akini_sim_t *s, uint64_t index)
{
    return index >= s->params->n_warmup &&
           index - s->params->n_warmup < s->params->n_measured;
}

bool akini_sim_is_counting(const akini_sim_t *s)
{
    const akin_sim_params_t *params = s->params;
    if (s->n_arrived <= params->n_warmup)
        return false;
    return params->n_total > 0
               ? s->n_measured_ended < params->n_measured
               : s->n_arrived < (uint64_t)params->n_warmup + params->n_measured;
}

bool akini_sim_is_over(const akini_sim_t *s)
{
    return s->params->n_total > 0
               ? s->n_ended == s->params->n_total
               : s->n_measured_ended == s->params->n_measured;
}

static akin_status_t put_arrival(akini_sim_t *s)
{
    const akin_sim_params_t *params = s->params;
    double at_s = s->now_s;
    if (params->n_total > 0 && s->n_expected == params->n_total)
        return AKIN_OK;
    if (params->arrivals == AKIN_SIM_POISSON) {
        const double u =
            akin_rng_uniform(params->seed, STREAM_ARRIVAL, s->n_expected);
        at_s -= log1p(-u) / params->rate;
    } else if (params->arrivals == AKIN_SIM_TRACE) {
        at_s = fmax(at_s, akini_sim_mix_arrival(&s->mix, s->n_expected));
    }
    s->n_expected++;
    return akini_sim_heap_put(&s->heap, at_s, AKINI_SIM_ARRIVAL, 0, 0);
}

akin_status_t akini_sim_arrivals_begin(akini_sim_t *s)
{
    const uint32_t n =
        s->params->arrivals == AKIN_SIM_CLOSED ? s->params->in_flight : 1;
    akin_status_t status = AKIN_OK;
    for (uint32_t i = 0; i < n && status == AKIN_OK; i++)
        status = put_arrival(s);
    return status;
}

static akin_status_t check_size(const akini_sim_t *s,
                                const akini_sim_request_t *request,
                                akin_error_t *err)
{
    const uint64_t kv_tokens = s->params->kv_tokens;
    const uint64_t tokens = (uint64_t)request->n_prompt + request->n_output;
    if (kv_tokens == 0 || tokens <= kv_tokens)
        return AKIN_OK;
    return akin_error_set(err, AKIN_ERR_INVALID,
                          "a request has %llu tokens, but a decode worker "
                          "holds the KV of %llu: raise decode.kv_tokens, or "
                          "have shorter requests",
                          (unsigned long long)tokens,
                          (unsigned long long)kv_tokens);
}

akin_status_t akini_sim_arrive(akini_sim_t *s, akin_error_t *err)
{
    const uint64_t index = s->n_arrived;
    const uint32_t entry = akini_sim_mix_take(&s->mix, index);
    uint32_t slot;
    akin_status_t status = akini_sim_requests_take(&s->requests, entry, &slot);
    if (status == AKIN_ERR_RANGE)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "the workers cannot keep up: after %.0f s %u "
                              "requests wait; have more workers or %s",
                              s->now_s, s->requests.n_inside,
                              s->params->arrivals == AKIN_SIM_POISSON
                                  ? "lower the rate"
                                  : "fewer requests, with requests.total");
    if (status != AKIN_OK)
        return status;
    akini_sim_request_t *request = &s->requests.slots[slot];
    s->n_arrived++;
    request->index = index;
    request->arrival_s = s->now_s;
    request->n_prompt = s->params->pool->entries[entry].n_prompt;
    request->n_output = s->params->pool->entries[entry].n_output;
    request->n_start = request->n_prompt;
    if (index == s->params->n_warmup)
        s->window_begin_s = s->now_s;
    if (akini_sim_is_measured(s, index))
        s->window_s = s->now_s - s->window_begin_s;
    status = check_size(s, request, err);
    if (status != AKIN_OK)
        return status;
    akini_sim_queue_put(&s->queued, &s->requests, slot);
    status = akini_sim_dispatch(s);
    return status == AKIN_OK && s->params->arrivals != AKIN_SIM_CLOSED
               ? put_arrival(s)
               : status;
}

akin_status_t akini_sim_end(akini_sim_t *s, uint32_t slot)
{
    const akini_sim_request_t *request = &s->requests.slots[slot];
    if (akini_sim_is_measured(s, request->index)) {
        akini_sim_statistics_end(
            &s->statistics, request,
            akini_sim_mix_phase(s->params, request->index));
        s->n_measured_ended++;
        if (s->params->n_total > 0)
            s->window_s = s->now_s - s->window_begin_s;
    }
    s->n_ended++;
    akini_sim_requests_put(&s->requests, slot);
    return s->params->arrivals == AKIN_SIM_CLOSED ? put_arrival(s) : AKIN_OK;
}
