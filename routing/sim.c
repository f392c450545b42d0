/* Sim: requests come, are prefilled, decided on, moved, decoded and end. */
#include "routing/sim.h"

#include "base/rng.h"
#include "routing/sim_decode.h"
#include "routing/sim_heap.h"
#include "routing/sim_mix.h"
#include "routing/sim_prefill.h"
#include "routing/sim_prompt.h"
#include "routing/sim_statistics.h"

#include <math.h>
#include <string.h>

enum { STREAM_ARRIVAL = 104, PROGRESS_EVENTS = 4096 };

#define NS_PER_S 1e9
/* The policy's clock stops before its 64 bits end; simulated time goes on. */
#define MAX_NS 9e18

typedef struct sim {
    const akin_sim_params_t *params;
    akin_policy_t *policy;
    akini_sim_heap_t heap;
    akini_sim_requests_t requests;
    akini_sim_prefill_t prefill;
    akini_sim_decode_t decode;
    akini_sim_queue_t backlog; /* prefilled, but no worker has room */
    akini_sim_statistics_t statistics;
    akini_sim_prompt_t prompt;
    double now_s;
    double window_begin_s;
    double window_s;
    uint64_t n_arrived;
    uint64_t n_ended;
    uint64_t n_measured_ended;
    uint64_t n_events;
    uint64_t n_decisions;
    int64_t decision_ns;
} sim_t;

static int is_measured(const sim_t *s, uint64_t index)
{
    return index >= s->params->n_warmup &&
           index - s->params->n_warmup < s->params->n_measured;
}

/* Is it between the first and the last arrival of a measured request? */
static int is_counting(const sim_t *s)
{
    return s->n_arrived > s->params->n_warmup &&
           s->n_arrived < (uint64_t)s->params->n_warmup + s->params->n_measured;
}

static akin_status_t put_arrival(sim_t *s)
{
    const double u =
        akin_rng_uniform(s->params->seed, STREAM_ARRIVAL, s->n_arrived);
    return akini_sim_heap_put(&s->heap, s->now_s - log1p(-u) / s->params->rate,
                              AKINI_SIM_ARRIVAL, 0);
}

static akin_status_t start_prefill(sim_t *s, uint32_t w)
{
    double seconds;
    if (!akini_sim_prefill_start(&s->prefill, w, &seconds))
        return AKIN_OK;
    const akini_sim_request_t *request =
        &s->requests.slots[s->prefill.workers[w].running];
    if (is_measured(s, request->index))
        s->statistics.queue_s += s->now_s - request->arrival_s;
    return akini_sim_heap_put(&s->heap, s->now_s + seconds, AKINI_SIM_PREFILLED,
                              w);
}

static akin_status_t check_size(const sim_t *s,
                                const akini_sim_request_t *request,
                                akin_error_t *err)
{
    const uint64_t kv_tokens = s->params->kv_tokens;
    const uint64_t tokens = request->route.n_prompt + request->route.n_output;
    if (kv_tokens == 0 || tokens <= kv_tokens)
        return AKIN_OK;
    return akin_error_set(err, AKIN_ERR_INVALID,
                          "a request has %llu tokens, but a decode worker "
                          "holds the KV of %llu: raise that, or have shorter "
                          "requests",
                          (unsigned long long)tokens,
                          (unsigned long long)kv_tokens);
}

static akin_status_t arrive(sim_t *s, akin_error_t *err)
{
    uint32_t slot;
    akin_status_t status = akini_sim_requests_take(&s->requests, &slot);
    if (status == AKIN_ERR_RANGE)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "the workers cannot keep up: after %.0f s %u "
                              "requests wait; lower the rate",
                              s->now_s, s->requests.n_inside);
    if (status != AKIN_OK)
        return status;
    akini_sim_request_t *request = &s->requests.slots[slot];
    request->index = s->n_arrived++;
    request->arrival_s = s->now_s;
    akini_sim_mix_make(s->params, request->index, &request->route);
    if (request->index == s->params->n_warmup)
        s->window_begin_s = s->now_s;
    if (is_measured(s, request->index))
        s->window_s = s->now_s - s->window_begin_s;
    status = check_size(s, request, err);
    if (status == AKIN_OK)
        status = start_prefill(s, akini_sim_prefill_assign(&s->prefill, slot));
    return status == AKIN_OK ? put_arrival(s) : status;
}

static void end_request(sim_t *s, uint32_t slot)
{
    const akini_sim_request_t *request = &s->requests.slots[slot];
    if (is_measured(s, request->index)) {
        akini_sim_statistics_end(
            &s->statistics, request,
            akini_sim_mix_phase(s->params, request->index));
        s->n_measured_ended++;
    }
    s->n_ended++;
    akini_sim_requests_put(&s->requests, slot);
}

/* Sender and receiver are busy with the bytes, one after another; the latency
 * is on top. */
static akin_status_t move(sim_t *s, uint32_t slot, uint32_t to)
{
    akini_sim_request_t *request = &s->requests.slots[slot];
    const akin_sim_params_t *params = s->params;
    const akin_machine_link_t *nic = &params->cost.machine->nic;
    double *from_s = &s->prefill.workers[request->worker].nic_s;
    double *to_s = &s->decode.workers[to].nic_s;
    const double begin_s = fmax(s->now_s, fmax(*from_s, *to_s));
    /* Every rank of a worker sends its heads over its own NIC. */
    const uint64_t bytes =
        akin_model_kv_bytes(params->cost.shape, request->route.n_prompt) /
        (params->n_ranks > 1 ? params->n_ranks : 1);
    const double end_s = begin_s + akin_cost_model_transfer(nic, bytes);
    *from_s = *to_s = end_s - nic->latency_s;
    request->worker = to;
    return akini_sim_heap_put(&s->heap, end_s, AKINI_SIM_MOVED, slot);
}

static int64_t clock_ns(const sim_t *s)
{
    return s->params->clock_ns != NULL ? s->params->clock_ns() : 0;
}

static akin_status_t decide(sim_t *s, uint32_t slot)
{
    const akini_sim_request_t *request = &s->requests.slots[slot];
    const uint64_t kv_tokens =
        request->route.n_prompt + request->route.n_output;
    const akin_policy_request_t asked = {
        .id = request->index,
        .counts = s->prompt.counts,
        .n_tokens = akini_sim_prompt_count(&s->prompt, &request->route),
        .domain = s->params->workload->domains[request->route.domain].name,
        .now_ns = (int64_t)fmin(s->now_s * NS_PER_S, MAX_NS),
    };
    uint32_t w;
    const int64_t begin_ns = clock_ns(s);
    const akin_status_t status =
        akin_policy_decide(s->policy, &asked, s->decode.eligible, &w);
    s->decision_ns += clock_ns(s) - begin_ns;
    if (status != AKIN_OK || w == AKIN_ROUTING_NO_WORKER)
        return status != AKIN_OK ? status : AKIN_ERR_INTERNAL;
    s->n_decisions++;
    s->decode.workers[w].n_assigned++;
    s->decode.workers[w].kv_tokens += kv_tokens;
    return move(s, slot, w);
}

static akin_status_t decide_backlog(sim_t *s)
{
    akin_status_t status = AKIN_OK;
    while (status == AKIN_OK && s->backlog.head != AKINI_SIM_NONE) {
        const akin_route_request_t *route =
            &s->requests.slots[s->backlog.head].route;
        if (!akini_sim_decode_find_room(&s->decode,
                                        route->n_prompt + route->n_output))
            break;
        status = decide(s, akini_sim_queue_take(&s->backlog, &s->requests));
    }
    return status;
}

/* The first token is there. */
static akin_status_t end_prefill(sim_t *s, uint32_t w)
{
    const uint32_t slot = akini_sim_prefill_end(&s->prefill, w);
    akini_sim_request_t *request = &s->requests.slots[slot];
    akin_status_t status = AKIN_OK;
    request->n_done = 1;
    request->first_s = request->token_s = s->now_s;
    if (is_measured(s, request->index))
        s->statistics.ttft[s->statistics.n_ttft++] =
            s->now_s - request->arrival_s;
    if (request->route.n_output == 1) {
        end_request(s, slot);
    } else {
        akini_sim_queue_put(&s->backlog, &s->requests, slot);
        status = decide_backlog(s);
    }
    return status == AKIN_OK ? start_prefill(s, w) : status;
}

static akin_status_t start_step(sim_t *s, uint32_t w)
{
    if (!akini_sim_decode_start(&s->decode, w))
        return AKIN_OK;
    return akini_sim_heap_put(&s->heap, s->now_s + s->decode.workers[w].seconds,
                              AKINI_SIM_STEP, w);
}

static akin_status_t join(sim_t *s, uint32_t slot)
{
    const uint32_t w = s->requests.slots[slot].worker;
    akin_status_t status = akini_sim_requests_begin(&s->requests, slot);
    if (status != AKIN_OK)
        return status;
    akin_route_urn_fill(s->params->generator, &s->requests.slots[slot].route,
                        AKIN_ROUTE_DECODE, s->requests.slots[slot].urn);
    status = akini_sim_decode_join(&s->decode, w, slot);
    if (status != AKIN_OK || s->decode.workers[w].is_stepping)
        return status;
    return start_step(s, w);
}

static void leave(sim_t *s, akini_sim_worker_t *worker, uint32_t slot)
{
    const akini_sim_request_t *request = &s->requests.slots[slot];
    akin_policy_finish(s->policy, request->index);
    akin_policy_observe_counts(s->policy, request->counts,
                               request->route.n_output - 1);
    worker->n_assigned--;
    worker->kv_tokens -= request->route.n_prompt + request->route.n_output;
    end_request(s, slot);
}

static void observe_step(sim_t *s, uint32_t w)
{
    const akini_sim_worker_t *worker = &s->decode.workers[w];
    const akin_policy_step_t step = {.batch = worker->n_running,
                                     .distinct = worker->busiest,
                                     .seconds = worker->seconds};
    akin_policy_observe(s->policy, w, &step);
    if (!is_counting(s))
        return;
    akini_sim_statistics_step(&s->statistics, worker,
                              akini_sim_mix_phase(s->params, s->n_arrived - 1));
}

static akin_status_t end_step(sim_t *s, uint32_t w)
{
    akini_sim_worker_t *worker = &s->decode.workers[w];
    uint32_t n_kept = 0;
    observe_step(s, w);
    for (uint32_t i = 0; i < worker->n_running; i++) {
        const uint32_t slot = worker->members[i];
        akini_sim_request_t *request = &s->requests.slots[slot];
        if (is_measured(s, request->index))
            akini_sim_statistics_gap(&s->statistics,
                                     s->now_s - request->token_s);
        request->token_s = s->now_s;
        if (++request->n_done == request->route.n_output)
            leave(s, worker, slot);
        else
            worker->members[n_kept++] = slot;
    }
    const int has_left = n_kept < worker->n_running;
    memmove(worker->members + n_kept, worker->members + worker->n_running,
            worker->n_waiting * sizeof(*worker->members));
    worker->n_running = n_kept;
    const akin_status_t status = has_left ? decide_backlog(s) : AKIN_OK;
    return status == AKIN_OK ? start_step(s, w) : status;
}

static akin_status_t advance(sim_t *s, akin_error_t *err)
{
    const akini_sim_event_t event = akini_sim_heap_take(&s->heap);
    if (is_counting(s))
        s->statistics.area += s->requests.n_inside * (event.time_s - s->now_s);
    s->now_s = event.time_s;
    s->n_events++;
    switch (event.kind) {
    case AKINI_SIM_ARRIVAL:
        return arrive(s, err);
    case AKINI_SIM_PREFILLED:
        return end_prefill(s, event.of);
    case AKINI_SIM_MOVED:
        return join(s, event.of);
    case AKINI_SIM_STEP:
    default:
        return end_step(s, event.of);
    }
}

static akin_status_t run(sim_t *s, akin_error_t *err)
{
    const akin_sim_params_t *params = s->params;
    akin_status_t status = put_arrival(s);
    while (status == AKIN_OK && s->n_measured_ended < params->n_measured) {
        status = advance(s, err);
        if (status == AKIN_OK && params->progress != NULL &&
            s->n_events % PROGRESS_EVENTS == 0 &&
            params->progress(params->arg, (uint32_t)s->n_measured_ended))
            return akin_error_set(err, AKIN_ERR_CANCELED, "stopped");
    }
    return status;
}

static akin_status_t check(const akin_sim_params_t *params, akin_error_t *err)
{
    if (params->n_prefill == 0 || params->n_decode == 0 ||
        params->n_measured == 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "simulation: prefill workers, decode workers and "
                              "measured requests must be above 0");
    if (!(params->rate > 0.0 && isfinite(params->rate)))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "simulation: the rate must be above 0");
    return AKIN_OK;
}

static akin_status_t init(sim_t *s, akin_error_t *err)
{
    const akin_sim_params_t *params = s->params;
    const akin_model_shape_t *shape = params->cost.shape;
    const size_t n_cells = (size_t)shape->n_layers * shape->n_experts;
    const size_t urn_items =
        (size_t)shape->n_layers * akin_route_slots(params->generator);
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
    akini_sim_requests_init(&s->requests, urn_items, n_cells);
    akin_status_t status =
        akin_policy_create(params->policy, &policy, &s->policy, err);
    if (status != AKIN_OK)
        return status;
    status = akini_sim_prompt_init(&s->prompt, params);
    if (status == AKIN_OK)
        status = akini_sim_statistics_init(&s->statistics, params->n_measured);
    if (status == AKIN_OK)
        status = akini_sim_prefill_init(&s->prefill, params, &s->requests);
    if (status == AKIN_OK)
        status = akini_sim_decode_init(&s->decode, params, &s->requests);
    return status;
}

static void cleanup(sim_t *s)
{
    akini_sim_decode_cleanup(&s->decode);
    akini_sim_prefill_cleanup(&s->prefill);
    akini_sim_prompt_cleanup(&s->prompt);
    akini_sim_statistics_cleanup(&s->statistics);
    akini_sim_requests_cleanup(&s->requests);
    akini_sim_heap_cleanup(&s->heap);
    akin_policy_destroy(s->policy);
}

akin_status_t akin_sim_run(const akin_sim_params_t *params,
                           akin_sim_result_t *result_p, akin_error_t *err)
{
    akin_status_t status = check(params, err);
    if (status != AKIN_OK)
        return status;
    sim_t s = {.params = params, .backlog = {AKINI_SIM_NONE, AKINI_SIM_NONE}};
    status = init(&s, err);
    if (status == AKIN_OK)
        status = run(&s, err);
    if (status == AKIN_OK) {
        akini_sim_statistics_result(&s.statistics, params->cost.shape->n_layers,
                                    s.window_s, result_p);
        result_p->n_arrived = s.n_arrived;
        result_p->n_ended = s.n_ended;
        result_p->n_left = s.requests.n_inside;
        result_p->n_events = s.n_events;
        result_p->n_decisions = s.n_decisions;
        result_p->decision_ns = s.decision_ns;
    } else if (status == AKIN_ERR_NOMEM) {
        status = akin_error_set(err, status, "simulation: out of memory");
    }
    cleanup(&s);
    return status;
}
