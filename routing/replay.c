/* Replay: requests come, are decided on, run and end. */
#include "routing/replay.h"

#include "base/rng.h"
#include "routing/replay_pool.h"
#include "routing/replay_statistics.h"
#include "routing/replay_stream.h"

#include <math.h>
#include <stdlib.h>

enum { STREAM_ARRIVAL = 102 };

#define NS_PER_S 1e9
/* The policy's clock stops before its 64 bits end; replayed time goes on. */
#define MAX_NS 9e18

typedef struct replay {
    const akin_replay_params_t *params;
    akin_policy_t *policy;
    akini_replay_stream_t stream;
    akini_replay_pool_t pool;
    akini_replay_statistics_t statistics;
    uint64_t n_admitted;
    double *backlog; /* [n_requests] ring: when those came that found no room */
    uint32_t backlog_head;
    uint32_t n_backlog;
    double now_s;
    uint64_t n_arrivals;
    double next_arrival_s; /* open loop; else infinite */
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

static void watch_load(const replay_t *r, uint32_t w)
{
    if (r->params->watch != NULL)
        akin_load_watch_set(r->params->watch, w, r->now_s,
                            r->pool.workers[w].n_running +
                                r->pool.workers[w].n_waiting);
}

static akin_status_t decide(replay_t *r, const akini_replay_member_t *member,
                            uint32_t *worker_p)
{
    const akin_replay_request_t *recorded =
        akini_replay_pool_request(&r->pool, member);
    const akin_policy_request_t request = {
        .id = member->id,
        .counts = recorded->prompt_counts,
        .n_tokens = recorded->n_prompt,
        .domain = recorded->domain[0] != '\0' ? recorded->domain : NULL,
        .now_ns = (int64_t)fmin(r->now_s * NS_PER_S, MAX_NS),
    };
    akin_status_t status =
        akin_policy_decide(r->policy, &request, r->pool.eligible, worker_p);
    if (status == AKIN_OK && *worker_p == AKIN_ROUTING_NO_WORKER)
        status = AKIN_ERR_INVALID;
    return status;
}

/* Route one request; room_p says whether a worker had room for it. */
static akin_status_t admit(replay_t *r, int *room_p, akin_error_t *err)
{
    const akin_replay_params_t *params = r->params;
    *room_p = akini_replay_pool_find_room(&r->pool);
    if (!*room_p)
        return AKIN_OK;
    uint32_t index = akini_replay_stream_take(&r->stream);
    if (index == AKINI_STREAM_NONE)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "all %u requests of the trace run at once, and "
                              "none may run beside its copy: lower the load",
                              params->n_requests);
    const akini_replay_member_t member = {
        .id = r->n_admitted,
        .request = index,
        .start_s = r->now_s,
    };
    uint32_t w;
    akin_status_t status = decide(r, &member, &w);
    if (status == AKIN_OK)
        status = akini_replay_pool_join(&r->pool, w, &member, r->now_s);
    if (status != AKIN_OK)
        return akin_error_set(err, status, "replay of %s: %s", params->policy,
                              akin_status_string(status));
    watch_load(r, w);
    r->n_admitted++;
    if (is_counting(r))
        akini_replay_statistics_decision(
            &r->statistics, r->policy, params->n_workers, r->pool.n_in_flight);
    return AKIN_OK;
}

static void end_member(replay_t *r, uint32_t w,
                       const akini_replay_member_t *member)
{
    const akin_replay_request_t *recorded =
        akini_replay_pool_request(&r->pool, member);
    akin_policy_finish(r->policy, member->id);
    akin_policy_observe_counts(r->policy, recorded->decode_counts,
                               recorded->n_decode);
    if (r->params->watch != NULL)
        akin_load_watch_add(r->params->watch, w, recorded->decode_counts);
    akini_replay_stream_put(&r->stream, member->request);
    if (is_measured(r, member->id))
        r->statistics.tpots[r->statistics.n_tpots++] =
            (r->now_s - member->start_s) / (double)recorded->n_decode;
}

static void end_step(replay_t *r, uint32_t w)
{
    const akin_policy_step_t step = {
        .batch = r->pool.workers[w].n_running,
        .distinct = r->pool.workers[w].busiest,
        .seconds = akini_replay_pool_step_seconds(&r->pool, w),
    };
    akin_policy_observe(r->policy, w, &step);
    if (is_counting(r) && r->params->watch != NULL)
        akin_load_watch_step(r->params->watch, step.batch,
                             (uint64_t)r->pool.workers[w].distinct);
    if (is_counting(r))
        akini_replay_statistics_step(&r->statistics, &r->pool.workers[w]);
    akini_replay_pool_end_step(&r->pool, w);
    for (uint32_t i = 0; i < r->pool.n_ended; i++)
        end_member(r, w, &r->pool.ended[i]);
    if (r->pool.n_ended > 0)
        watch_load(r, w);
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
            r->statistics.wait_s += r->now_s - r->backlog[r->backlog_head];
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

static akin_status_t advance(replay_t *r, akin_error_t *err)
{
    const uint32_t w = akini_replay_pool_first(&r->pool);
    const double end_s = r->pool.workers[w].end_s;
    akin_status_t status = AKIN_OK;
    if (r->next_arrival_s < end_s) {
        r->now_s = r->next_arrival_s;
        return arrive(r, err);
    }
    r->now_s = end_s;
    end_step(r, w);
    int room = 1;
    if (r->params->rate > 0.0)
        status = admit_backlog(r, err);
    else
        for (uint32_t i = 0; i < r->pool.n_ended && room && status == AKIN_OK;
             i++)
            status = admit(r, &room, err);
    akini_replay_pool_start_step(&r->pool, w, r->now_s);
    r->pool.workers[w].expected = akin_policy_expected_distinct(r->policy, w);
    return status;
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
        .placements = params->placements,
        .refit_inline = 1,
    };
    akin_status_t status =
        akin_policy_create(params->policy, &policy, &r->policy, err);
    if (status != AKIN_OK)
        return status;
    r->backlog = calloc(params->n_requests, sizeof(*r->backlog));
    status = r->backlog != NULL ? AKIN_OK : AKIN_ERR_NOMEM;
    if (status == AKIN_OK)
        status = akini_replay_pool_init(&r->pool, params);
    if (status == AKIN_OK)
        status =
            akini_replay_statistics_init(&r->statistics, params->n_measured);
    if (status == AKIN_OK)
        status = akini_replay_stream_init(&r->stream, params->n_requests,
                                          params->seed);
    return status == AKIN_OK
               ? status
               : akin_error_set(err, status, "replay: out of memory");
}

static void cleanup(replay_t *r)
{
    akini_replay_stream_cleanup(&r->stream);
    akini_replay_statistics_cleanup(&r->statistics);
    akini_replay_pool_cleanup(&r->pool);
    free(r->backlog);
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
    while (status == AKIN_OK && r->statistics.n_tpots < params->n_measured) {
        if (!is_counting(r))
            begin_s = r->now_s;
        status = advance(r, err);
    }
    if (status == AKIN_OK && params->watch != NULL)
        akin_load_watch_end(params->watch, r->now_s);
    if (status == AKIN_OK)
        akini_replay_statistics_result(&r->statistics,
                                       params->set->shape.n_layers,
                                       r->now_s - begin_s, result_p);
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
