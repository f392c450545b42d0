/* Sim: requests come, are prefilled, decided on, moved, decoded and end. */
#include "routing/sim.h"

#include "routing/sim_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRESS_EVENTS = 4096 };

bool akin_sim_needs_counts(const char *policy)
{
    static const char *const without[] = {"random", "rr", "jsq", "p2c",
                                          "domain"};
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
        if (strcmp(policy, without[i]) == 0)
            return false;
    return true;
}

static akin_status_t advance(akini_sim_t *s, akin_error_t *err)
{
    if (s->heap.n == 0)
        return akin_error_set(err, AKIN_ERR_INTERNAL,
                              "simulation: nothing happens any more");
    const akini_sim_event_t event = akini_sim_heap_take(&s->heap);
    if (akini_sim_is_counting(s))
        s->statistics.area += s->requests.n_inside * (event.time_s - s->now_s);
    s->now_s = event.time_s;
    s->n_events++;
    switch (event.kind) {
    case AKINI_SIM_ARRIVAL:
        return akini_sim_arrive(s, err);
    case AKINI_SIM_PREFILLED:
        return event.epoch == s->prefill.workers[event.of].epoch
                   ? akini_sim_end_prefill(s, event.of)
                   : AKIN_OK;
    case AKINI_SIM_MOVED:
        return event.epoch == s->requests.slots[event.of].epoch
                   ? akini_sim_join(s, event.of)
                   : AKIN_OK;
    case AKINI_SIM_STEP:
        return event.epoch == s->decode.workers[event.of].epoch
                   ? akini_sim_end_step(s, event.of)
                   : AKIN_OK;
    case AKINI_SIM_DEATH:
        return akini_sim_die(s, event.of, event.epoch);
    case AKINI_SIM_LOSS:
        return akini_sim_lose(s, event.of, err);
    case AKINI_SIM_RETURN:
    default:
        return akini_sim_return(s, event.of);
    }
}

static akin_status_t run(akini_sim_t *s, akin_error_t *err)
{
    const akin_sim_params_t *params = s->params;
    akin_status_t status = akini_sim_faults_begin(s);
    if (status == AKIN_OK)
        status = akini_sim_arrivals_begin(s);
    while (status == AKIN_OK && !akini_sim_is_over(s)) {
        status = advance(s, err);
        if (status == AKIN_OK && params->progress != NULL &&
            s->n_events % PROGRESS_EVENTS == 0 &&
            params->progress(params->arg, (uint32_t)s->n_measured_ended))
            return akin_error_set(err, AKIN_ERR_CANCELED, "stopped");
    }
    if (params->watch != NULL)
        akin_load_watch_end(params->watch, s->now_s);
    return status;
}

static akin_status_t check_pool(const akin_sim_params_t *params,
                                akin_error_t *err)
{
    const akin_route_pool_t *pool = params->pool;
    const akin_model_shape_t *shape = params->cost.shape;
    if (pool->n_layers != shape->n_layers ||
        pool->n_experts != shape->n_experts || pool->top_k != shape->top_k)
        return akin_error_set(
            err, AKIN_ERR_INVALID,
            "simulation: the routes are of %u layers x %u experts, top-%u, but "
            "%s has %u x %u, top-%u: name the model that they are of",
            pool->n_layers, pool->n_experts, pool->top_k, shape->name,
            shape->n_layers, shape->n_experts, shape->top_k);
    if (pool->prompt_counts == NULL && akin_sim_needs_counts(params->policy))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "simulation: %s looks at counts, and the routes "
                              "have none",
                              params->policy);
    if (params->arrivals == AKIN_SIM_TRACE)
        for (uint32_t i = 0; i < pool->n_entries; i++)
            if (!(pool->entries[i].arrival_s >= 0.0))
                return akin_error_set(err, AKIN_ERR_INVALID,
                                      "simulation: request %u of the routes "
                                      "has no arrival_s, so that arrivals "
                                      "cannot be the trace's",
                                      i);
    return AKIN_OK;
}

static akin_status_t check_requests(const akin_sim_params_t *params,
                                    akin_error_t *err)
{
    const uint64_t n = (uint64_t)params->n_warmup + params->n_measured;
    if (params->n_prefill == 0 || params->n_decode == 0 ||
        params->n_measured == 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "simulation: prefill workers, decode workers and "
                              "measured requests must be above 0");
    if (params->arrivals == AKIN_SIM_POISSON &&
        !(params->rate > 0.0 && isfinite(params->rate)))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "simulation: the rate must be above 0");
    if (params->arrivals == AKIN_SIM_CLOSED &&
        (params->in_flight == 0 || params->in_flight > AKIN_SIM_MAX_INSIDE))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "simulation: 1 to %u requests can be in flight",
                              AKIN_SIM_MAX_INSIDE);
    if (params->arrivals == AKIN_SIM_CLOSED && params->n_total == 0 &&
        params->in_flight >= n)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "simulation: all %llu requests to warm up and to "
                              "be measured come at once where %u are in "
                              "flight, so that no time is between them: "
                              "measure more, or let the run have an end "
                              "(requests.total)",
                              (unsigned long long)n, params->in_flight);
    if (params->n_total > 0 && n > params->n_total)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "simulation: %llu requests to warm up and to be "
                              "measured are more than the %llu of the run",
                              (unsigned long long)n,
                              (unsigned long long)params->n_total);
    return AKIN_OK;
}

static akin_status_t init(akini_sim_t *s, akin_error_t *err)
{
    const akin_sim_params_t *params = s->params;
    const akin_model_shape_t *shape = params->cost.shape;
    const akin_policy_params_t policy = {
        .n_workers = params->n_decode,
        .n_layers = shape->n_layers,
        .n_experts = shape->n_experts,
        .top_k = shape->top_k,
        .seed = params->seed,
        .fit = params->fit,
        .tau = params->tau,
        .pull = params->pull,
        .placements = params->placements,
        .refit_inline = 1,
    };
    akin_status_t status =
        akin_policy_create(params->policy, &policy, &s->policy, err);
    if (status != AKIN_OK)
        return status;
    s->counts = calloc(akin_route_pool_cells(params->pool), sizeof(*s->counts));
    s->n_chances = calloc((size_t)params->n_prefill + params->n_decode,
                          sizeof(*s->n_chances));
    if (s->counts == NULL || s->n_chances == NULL)
        return AKIN_ERR_NOMEM;
    status = akini_sim_mix_init(&s->mix, params);
    if (status == AKIN_OK)
        status = akini_sim_requests_init(&s->requests, params->pool);
    if (status == AKIN_OK)
        status = akini_sim_statistics_init(&s->statistics, params->n_measured);
    if (status == AKIN_OK)
        status = akini_sim_prefill_init(&s->prefill, params, &s->requests, err);
    if (status == AKIN_OK)
        status = akini_sim_decode_init(&s->decode, params, &s->requests);
    return status;
}

static void cleanup(akini_sim_t *s)
{
    akini_sim_decode_cleanup(&s->decode);
    akini_sim_prefill_cleanup(&s->prefill);
    akini_sim_statistics_cleanup(&s->statistics);
    akini_sim_requests_cleanup(&s->requests);
    akini_sim_mix_cleanup(&s->mix);
    akini_sim_heap_cleanup(&s->heap);
    akin_policy_destroy(s->policy);
    free(s->counts);
    free(s->n_chances);
}

static void give_result(akini_sim_t *s, akin_sim_result_t *result_p)
{
    akini_sim_statistics_result(&s->statistics, s->params->pool->n_layers,
                                s->window_s, result_p);
    result_p->cached = s->n_prompted > 0
                           ? (double)s->n_cached / (double)s->n_prompted
                           : (double)NAN;
    result_p->n_arrived = s->n_arrived;
    result_p->n_ended = s->n_ended;
    result_p->n_left = s->requests.n_inside;
    result_p->n_events = s->n_events;
    result_p->n_decisions = s->n_decisions;
    result_p->decision_ns = s->decision_ns;
    result_p->deaths = (double)s->n_deaths;
    result_p->rerun = (double)s->n_rerun;
    result_p->reprefilled_tokens = (double)s->n_reprefilled;
}

akin_status_t akin_sim_run(const akin_sim_params_t *params,
                           akin_sim_result_t *result_p, akin_error_t *err)
{
    akin_status_t status = check_requests(params, err);
    if (status == AKIN_OK)
        status = check_pool(params, err);
    if (status == AKIN_OK)
        status = akini_sim_faults_check(params, err);
    if (status != AKIN_OK)
        return status;
    akini_sim_t s = {
        .params = params,
        .queued = {AKINI_SIM_NONE, AKINI_SIM_NONE},
        .backlog = {AKINI_SIM_NONE, AKINI_SIM_NONE},
    };
    status = init(&s, err);
    if (status == AKIN_OK)
        status = run(&s, err);
    if (status == AKIN_OK)
        give_result(&s, result_p);
    else if (status == AKIN_ERR_NOMEM)
        status = akin_error_set(err, status, "simulation: out of memory");
    cleanup(&s);
    return status;
}
