/* Replay: a pool of decode workers that serve recorded requests. */
#include "routing/replay.h"

#include "base/rng.h"
#include "routing/replay_stream.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_ARRIVAL = 102 };

#define NS_PER_S 1e9

/* A request on a worker. */
typedef struct member {
    uint64_t id;
    uint32_t request; /* index into params->requests */
    uint32_t n_done;  /* decode tokens */
    double start_s;   /* of its decision */
} member_t;

typedef struct worker {
    member_t *members; /* [n_running] in the step, then [n_waiting] */
    uint32_t n_running;
    uint32_t n_waiting; /* join at the next step */
    uint32_t capacity;
    double end_s; /* of the step; infinite: idle */
    double distinct;
} worker_t;

typedef struct replay {
    const akin_replay_params_t *params;
    akin_policy_t *policy;
    akini_replay_stream_t stream;
    worker_t *workers;
    uint8_t *eligible;
    uint64_t *active; /* [n_words] union of a step */
    double *tpots;    /* [n_measured] */
    uint64_t n_admitted;
    uint32_t n_ended; /* measured ones */
    uint32_t n_in_flight;
    uint32_t n_backlog; /* open loop: come, but no worker has room */
    double *backlog;    /* [n_requests] ring of their arrivals */
    uint32_t backlog_head;
    double now_s;
    uint64_t n_arrivals;
    double next_arrival_s;
    akin_replay_result_t sums;
    uint64_t n_decisions;
} replay_t;

static int is_measured(const replay_t *r, uint64_t id)
{
    return id >= r->params->n_warmup &&
           id - r->params->n_warmup < r->params->n_measured;
}

/* Are statistics of the pool taken now? */
static int is_counting(const replay_t *r)
{
    return r->n_admitted > r->params->n_warmup;
}

static const akin_replay_request_t *request_of(const replay_t *r,
                                               const member_t *member)
{
    return &r->params->set->requests[r->params->requests[member->request]];
}

static void start_step(replay_t *r, worker_t *worker)
{
    worker->n_running += worker->n_waiting;
    worker->n_waiting = 0;
    if (worker->n_running == 0) {
        worker->end_s = INFINITY;
        return;
    }
    const uint32_t n_words = r->params->set->n_words;
    memset(r->active, 0, n_words * sizeof(*r->active));
    for (uint32_t i = 0; i < worker->n_running; i++) {
        const member_t *member = &worker->members[i];
        const uint64_t *token =
            request_of(r, member)->active + (size_t)member->n_done * n_words;
        for (uint32_t j = 0; j < n_words; j++)
            r->active[j] |= token[j];
    }
    uint32_t distinct = 0;
    for (uint32_t j = 0; j < n_words; j++)
        distinct += (uint32_t)__builtin_popcountll(r->active[j]);
    worker->distinct = distinct;
    worker->end_s = r->now_s + akin_cost_seconds(&r->params->cost, distinct,
                                                 worker->n_running);
}

static void note_choice(replay_t *r)
{
    if (!is_counting(r))
        return;
    uint32_t most = 0;
    for (uint32_t w = 0; w < r->params->n_workers; w++) {
        uint32_t n = akin_policy_in_flight(r->policy, w);
        most = n > most ? n : most;
    }
    akin_policy_choice_t choice = akin_policy_last_choice(r->policy);
    r->sums.spread +=
        (double)most * r->params->n_workers / (double)r->n_in_flight;
    r->sums.n_band += choice.n_band;
    r->sums.similarity += choice.similarity;
    r->n_decisions++;
}

static akin_status_t push_member(worker_t *worker, const member_t *member)
{
    uint32_t n = worker->n_running + worker->n_waiting;
    if (n == worker->capacity) {
        uint32_t capacity = 2 * worker->capacity + 16;
        member_t *members =
            realloc(worker->members, capacity * sizeof(*members));
        if (members == NULL)
            return AKIN_ERR_NOMEM;
        worker->members = members;
        worker->capacity = capacity;
    }
    worker->members[n] = *member;
    worker->n_waiting++;
    return AKIN_OK;
}

/* Route one request; room_p says whether a worker had room for it. */
static akin_status_t admit(replay_t *r, int *room_p, akin_error_t *err)
{
    const akin_replay_params_t *params = r->params;
    *room_p = 0;
    for (uint32_t w = 0; w < params->n_workers; w++) {
        const worker_t *worker = &r->workers[w];
        r->eligible[w] =
            params->max_batch == 0 ||
            worker->n_running + worker->n_waiting < params->max_batch;
        *room_p |= r->eligible[w];
    }
    if (!*room_p)
        return AKIN_OK;
    uint32_t index = akini_replay_stream_take(&r->stream);
    if (index == AKINI_STREAM_NONE)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "all %u requests of the trace run at once, and "
                              "none may run beside its copy: lower the load",
                              params->n_requests);
    const member_t member = {
        .id = r->n_admitted,
        .request = index,
        .start_s = r->now_s,
    };
    const akin_replay_request_t *recorded = request_of(r, &member);
    const akin_policy_request_t request = {
        .id = member.id,
        .counts = recorded->prompt_counts,
        .n_tokens = recorded->n_prompt,
        .domain = recorded->domain[0] != '\0' ? recorded->domain : NULL,
        .now_ns = (int64_t)(r->now_s * NS_PER_S),
    };
    uint32_t w;
    akin_status_t status =
        akin_policy_decide(r->policy, &request, r->eligible, &w);
    if (status == AKIN_OK && w == AKIN_ROUTING_NO_WORKER)
        status = AKIN_ERR_INVALID;
    if (status == AKIN_OK)
        status = push_member(&r->workers[w], &member);
    if (status != AKIN_OK)
        return akin_error_set(err, status, "replay of %s: %s", params->policy,
                              akin_status_string(status));
    r->n_admitted++;
    r->n_in_flight++;
    note_choice(r);
    if (isinf(r->workers[w].end_s))
        start_step(r, &r->workers[w]);
    return AKIN_OK;
}

static void end_member(replay_t *r, const member_t *member)
{
    const akin_replay_request_t *recorded = request_of(r, member);
    akin_policy_finish(r->policy, member->id);
    akin_policy_observe_counts(r->policy, recorded->decode_counts,
                               recorded->n_decode);
    akini_replay_stream_put(&r->stream, member->request);
    r->n_in_flight--;
    if (is_measured(r, member->id))
        r->tpots[r->n_ended++] =
            (r->now_s - member->start_s) / (double)recorded->n_decode;
}

/* End a worker's step. \return requests that ended with it. */
static uint32_t end_step(replay_t *r, uint32_t w)
{
    worker_t *worker = &r->workers[w];
    const akin_policy_step_t step = {
        .batch = worker->n_running,
        .distinct = worker->distinct,
        .seconds = akin_cost_seconds(&r->params->cost, worker->distinct,
                                     worker->n_running),
    };
    akin_policy_observe(r->policy, w, &step);
    if (is_counting(r)) {
        r->sums.distinct += worker->distinct;
        r->sums.batch += worker->n_running;
        r->sums.n_tokens += worker->n_running;
        r->sums.n_steps++;
    }
    uint32_t n_kept = 0;
    const uint32_t n_running = worker->n_running;
    for (uint32_t i = 0; i < n_running; i++) {
        member_t member = worker->members[i];
        if (++member.n_done == request_of(r, &member)->n_decode)
            end_member(r, &member);
        else
            worker->members[n_kept++] = member;
    }
    memmove(worker->members + n_kept, worker->members + n_running,
            worker->n_waiting * sizeof(*worker->members));
    worker->n_running = n_kept;
    return n_running - n_kept;
}

static void draw_arrival(replay_t *r)
{
    double u = akin_rng_uniform(r->params->seed, STREAM_ARRIVAL, r->n_arrivals);
    r->n_arrivals++;
    r->next_arrival_s += -log1p(-u) / r->params->rate;
}

/* Open loop: requests that came while no worker had room. */
static akin_status_t admit_backlog(replay_t *r, akin_error_t *err)
{
    int room = 1;
    while (r->n_backlog > 0 && room) {
        akin_status_t status = admit(r, &room, err);
        if (status != AKIN_OK || !room)
            return status;
        if (is_counting(r))
            r->sums.wait_s += r->now_s - r->backlog[r->backlog_head];
        r->backlog_head = (r->backlog_head + 1) % r->params->n_requests;
        r->n_backlog--;
    }
    return AKIN_OK;
}

static akin_status_t arrive(replay_t *r, akin_error_t *err)
{
    const uint32_t n = r->params->n_requests;
    if (r->n_backlog == n)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "the pool cannot keep up: %u requests wait; "
                              "lower the rate",
                              n);
    r->backlog[(r->backlog_head + r->n_backlog++) % n] = r->now_s;
    draw_arrival(r);
    return admit_backlog(r, err);
}

static uint32_t first_to_end(const replay_t *r)
{
    uint32_t first = 0;
    for (uint32_t w = 1; w < r->params->n_workers; w++)
        if (r->workers[w].end_s < r->workers[first].end_s)
            first = w;
    return first;
}

static akin_status_t advance(replay_t *r, akin_error_t *err)
{
    uint32_t w = first_to_end(r);
    akin_status_t status = AKIN_OK;
    if (r->next_arrival_s < r->workers[w].end_s) {
        r->now_s = r->next_arrival_s;
        return arrive(r, err);
    }
    r->now_s = r->workers[w].end_s;
    uint32_t n_ended = end_step(r, w);
    int room = 1;
    if (r->params->rate > 0.0)
        status = admit_backlog(r, err);
    else
        for (uint32_t i = 0; i < n_ended && room && status == AKIN_OK; i++)
            status = admit(r, &room, err);
    start_step(r, &r->workers[w]);
    return status;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of sorted values, between the two nearest ones. */
static double percentile(const double *sorted, uint32_t n, double q)
{
    double at = q * (double)(n - 1);
    uint32_t low = (uint32_t)at;
    uint32_t high = low + 1 < n ? low + 1 : low;
    return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}

static void summarise(replay_t *r, double begin_s, akin_replay_result_t *result)
{
    uint32_t n = r->params->n_measured;
    double sum = 0.0;
    qsort(r->tpots, n, sizeof(*r->tpots), compare_doubles);
    for (uint32_t i = 0; i < n; i++)
        sum += r->tpots[i];
    double steps = fmax((double)r->sums.n_steps, 1.0);
    double decisions = fmax((double)r->n_decisions, 1.0);
    *result = (akin_replay_result_t){
        .tpot_p50_s = percentile(r->tpots, n, 0.50),
        .tpot_mean_s = sum / (double)n,
        .tpot_p95_s = percentile(r->tpots, n, 0.95),
        .tpot_p99_s = percentile(r->tpots, n, 0.99),
        .distinct =
            r->sums.distinct / steps / (double)r->params->set->shape.n_layers,
        .batch = r->sums.batch / steps,
        .spread = r->sums.spread / decisions,
        .wait_s = r->sums.wait_s / decisions,
        .seconds = r->now_s - begin_s,
        .n_band = r->sums.n_band / decisions,
        .similarity = r->sums.similarity / decisions,
        .n_steps = r->sums.n_steps,
        .n_tokens = r->sums.n_tokens,
    };
}

static akin_status_t check(const akin_replay_params_t *params,
                           akin_error_t *err)
{
    if (params->n_workers == 0 || params->n_measured == 0 ||
        params->n_requests == 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "replay: workers, requests and measured "
                              "requests must be above 0");
    for (uint32_t i = 0; i < params->n_requests; i++)
        if (params->requests[i] >= params->set->n_requests)
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "replay: there is no request %u",
                                  params->requests[i]);
    if (params->rate > 0.0)
        return AKIN_OK;
    uint64_t total = (uint64_t)params->n_workers * params->in_flight;
    if (total == 0 || total >= params->n_requests)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "replay: %u workers x %u in flight need more "
                              "than %llu different requests, as none may run "
                              "beside its copy; there are %u",
                              params->n_workers, params->in_flight,
                              (unsigned long long)total, params->n_requests);
    if (params->max_batch != 0 && params->max_batch < params->in_flight)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "replay: at most %u requests per worker leave "
                              "no room for %u in flight",
                              params->max_batch, params->in_flight);
    return AKIN_OK;
}

static akin_status_t init(replay_t *r, const akin_replay_params_t *params,
                          akin_error_t *err)
{
    *r = (replay_t){.params = params, .next_arrival_s = INFINITY};
    const akin_trace_shape_t *shape = &params->set->shape;
    const akin_policy_params_t policy = {
        .n_workers = params->n_workers,
        .n_layers = shape->n_layers,
        .n_experts = shape->n_experts,
        .top_k = shape->top_k,
        .seed = params->seed,
        .fit = params->fit,
        .tau = params->tau,
        .pull = params->pull,
        .refit_inline = 1,
    };
    akin_status_t status =
        akin_policy_create(params->policy, &policy, &r->policy, err);
    if (status != AKIN_OK)
        return status;
    r->workers = calloc(params->n_workers, sizeof(*r->workers));
    r->eligible = calloc(params->n_workers, sizeof(*r->eligible));
    r->active = calloc(params->set->n_words, sizeof(*r->active));
    r->tpots = calloc(params->n_measured, sizeof(*r->tpots));
    r->backlog = calloc(params->n_requests, sizeof(*r->backlog));
    status =
        akini_replay_stream_init(&r->stream, params->n_requests, params->seed);
    if (r->workers == NULL || r->eligible == NULL || r->active == NULL ||
        r->tpots == NULL || r->backlog == NULL || status != AKIN_OK)
        return akin_error_set(err, AKIN_ERR_NOMEM, "replay: out of memory");
    for (uint32_t w = 0; w < params->n_workers; w++)
        r->workers[w].end_s = INFINITY;
    return AKIN_OK;
}

static void cleanup(replay_t *r)
{
    for (uint32_t w = 0; r->workers != NULL && w < r->params->n_workers; w++)
        free(r->workers[w].members);
    free(r->workers);
    free(r->eligible);
    free(r->active);
    free(r->tpots);
    free(r->backlog);
    akini_replay_stream_cleanup(&r->stream);
    akin_policy_destroy(r->policy);
}

static akin_status_t run(replay_t *r, akin_replay_result_t *result_p,
                         akin_error_t *err)
{
    const akin_replay_params_t *params = r->params;
    akin_status_t status = AKIN_OK;
    if (params->rate > 0.0) {
        r->next_arrival_s = 0.0;
        draw_arrival(r);
    } else {
        int room;
        uint32_t total = params->n_workers * params->in_flight;
        for (uint32_t i = 0; i < total && status == AKIN_OK; i++)
            status = admit(r, &room, err);
    }
    double begin_s = 0.0;
    while (status == AKIN_OK && r->n_ended < params->n_measured) {
        if (!is_counting(r))
            begin_s = r->now_s;
        status = advance(r, err);
    }
    if (status == AKIN_OK)
        summarise(r, begin_s, result_p);
    return status;
}

akin_status_t akin_replay_run(const akin_replay_params_t *params,
                              akin_replay_result_t *result_p, akin_error_t *err)
{
    akin_status_t status = check(params, err);
    if (status != AKIN_OK)
        return status;
    replay_t r;
    status = init(&r, params, err);
    if (status == AKIN_OK)
        status = run(&r, result_p, err);
    cleanup(&r);
    return status;
}
