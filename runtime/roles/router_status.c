/* The router's workers and requests as a JSON object. */
#include "roles/router_ctl.h"

#include "base/clock.h"
#include "roles/summary_state.h"

#include <jansson.h>
#include <stdio.h>
#include <utlist.h>

const char *akini_worker_state_name(akini_worker_state_t state)
{
    static const char *const names[AKINI_WORKER_STATES] = {
        [AKINI_WORKER_SERVING] = "serving",
        [AKINI_WORKER_DRAINING] = "draining",
        [AKINI_WORKER_DRAINED] = "drained",
        [AKINI_WORKER_JOINING] = "joining",
        [AKINI_WORKER_LOST] = "lost",
    };
    return names[state];
}

int akini_flight_needs(const akin_router_t *r, const akini_flight_t *f,
                       uint32_t worker)
{
    if (f->state == AKINI_FLIGHT_QUEUED)
        return 0;
    if (worker < r->params.job->n_prefill)
        return f->state <= AKINI_FLIGHT_TRANSFER &&
               r->prefill[f->prefill].worker == worker;
    return f->state >= AKINI_FLIGHT_TRANSFER &&
           r->decode[f->decode].worker == worker;
}

/* Whether a group is on its way to become a worker that is lost: one that was
 * it, or is to be it. */
static int is_joining(const akin_router_t *r, uint32_t worker)
{
    for (uint32_t i = 0; i < r->n_groups; i++)
        if (r->groups[i].worker == worker &&
            (r->groups[i].state == AKINI_GROUP_JOINING ||
             r->groups[i].state == AKINI_GROUP_ASSUMING))
            return 1;
    return 0;
}

static akini_worker_state_t state_of(const akin_router_t *r, uint32_t worker,
                                     const akini_worker_view_t *view)
{
    if (view->places[0].is_lost)
        return is_joining(r, worker) ? AKINI_WORKER_JOINING : AKINI_WORKER_LOST;
    if (!view->places[0].is_drained)
        return AKINI_WORKER_SERVING;
    return view->n_requests > 0 ? AKINI_WORKER_DRAINING : AKINI_WORKER_DRAINED;
}

void akini_router_view(const akin_router_t *r, uint32_t worker,
                       akini_worker_view_t *view_p)
{
    const akin_job_t *job = r->params.job;
    akini_worker_view_t *v = view_p;
    *v = (akini_worker_view_t){0};
    akini_router_worker_name(r, worker, v->name);
    v->places = akini_router_places(r, worker, &v->n_ranks);
    for (uint32_t i = 0; i < v->n_ranks; i++) {
        const uint32_t life = r->processes[v->places[i].rank].life;
        v->life = life > v->life ? life : v->life;
        v->n_reserved += v->places[i].n_reserved;
    }
    for (int state = 0; state < AKINI_FLIGHT_STATES; state++) {
        const akini_flight_t *f;
        DL_FOREACH(r->lists[state], f)
        v->n_requests += akini_flight_needs(r, f, worker) != 0;
    }
    if (worker >= job->n_prefill) {
        v->n_limit = job->max_batch * v->n_ranks;
        v->n_slots = (uint64_t)r->params.n_slots * v->n_ranks;
    }
    v->state = state_of(r, worker, v);
}

/* A failed set leaves a hole, and the whole is given up. */
static int append(json_t *array, json_t *value)
{
    return json_array_append_new(array, value) == 0;
}

static json_t *worker_json(const akin_router_t *r, uint32_t worker)
{
    akini_worker_view_t v;
    akini_router_view(r, worker, &v);
    const int is_prefill = worker < r->params.job->n_prefill;
    json_t *ranks = json_array();
    for (uint32_t i = 0; i < v.n_ranks; i++)
        if (!append(ranks, json_integer(v.places[i].rank))) {
            json_decref(ranks);
            return NULL;
        }
    json_t *json =
        json_pack("{s:s, s:s, s:o, s:s, s:I, s:I}", "name", v.name, "role",
                  is_prefill ? "prefill" : "decode", "ranks", ranks, "state",
                  akini_worker_state_name(v.state), "life", (json_int_t)v.life,
                  "requests", (json_int_t)v.n_requests);
    if (json == NULL || is_prefill)
        return json;
    if (json_object_set_new(json, "max_requests", json_integer(v.n_limit)) !=
            0 ||
        json_object_set_new(json, "slots_reserved",
                            json_integer(v.n_reserved)) != 0 ||
        json_object_set_new(json, "slots",
                            json_integer((json_int_t)v.n_slots)) != 0) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static json_t *workers_json(const akin_router_t *r)
{
    const akin_job_t *job = r->params.job;
    json_t *array = json_array();
    for (uint32_t w = 0; w < job->n_prefill + job->n_decode; w++)
        if (!append(array, worker_json(r, w))) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static const char *group_state_name(akini_group_state_t state)
{
    switch (state) {
    case AKINI_GROUP_SERVING:
        return "serving";
    case AKINI_GROUP_WAITING:
        return "waiting";
    case AKINI_GROUP_ASSUMING:
        return "assuming";
    case AKINI_GROUP_JOINING:
        return "joining";
    case AKINI_GROUP_LOST:
        return "lost";
    case AKINI_GROUP_GONE:
        return "gone";
    }
    return "?";
}

static json_t *group_json(const akin_router_t *r, const akini_group_t *g)
{
    uint32_t life = 0;
    json_t *ranks = json_array();
    for (uint32_t i = 0; i < g->n_ranks; i++) {
        const uint32_t rank = g->first + i;
        if (r->processes[rank].life > life)
            life = r->processes[rank].life;
        if (!append(ranks, json_integer(rank))) {
            json_decref(ranks);
            return NULL;
        }
    }
    return json_pack("{s:o, s:s, s:I}", "ranks", ranks, "state",
                     group_state_name(g->state), "life", (json_int_t)life);
}

/* Groups that are no worker at present. */
static json_t *spares_json(const akin_router_t *r)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < r->n_groups; i++)
        if (r->groups[i].state != AKINI_GROUP_SERVING &&
            !append(array, group_json(r, &r->groups[i]))) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static json_t *requests_json(const akin_router_t *r)
{
    const akin_progress_counts_t *c = &r->counts;
    return json_pack(
        "{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "total",
        c->total == 0 ? json_null() : json_integer((json_int_t)c->total),
        "done", (json_int_t)c->done, "failed", (json_int_t)c->failed, "queued",
        (json_int_t)r->n_in[AKINI_FLIGHT_QUEUED], "prefill",
        (json_int_t)r->n_in[AKINI_FLIGHT_PREFILL], "routed",
        (json_int_t)r->n_in[AKINI_FLIGHT_ROUTED], "transfer",
        (json_int_t)r->n_in[AKINI_FLIGHT_TRANSFER], "decode",
        (json_int_t)r->n_in[AKINI_FLIGHT_DECODE]);
}

json_t *akini_router_status(const akin_router_t *r)
{
    const akin_summary_t *s = r->summary;
    const double up_s = (double)(akin_clock_now_ns() - s->start_ns) / 1e9;
    return json_pack(
        "{s:b, s:s, s:s, s:s, s:f, s:I, s:o, s:o, s:o, s:I, s:I, s:I}", "ok", 1,
        "state", r->stop_ns != 0 ? "stopping" : "serving", "model",
        r->model_name, "policy", r->params.job->decode_policy, "uptime_s", up_s,
        "generated_tokens", (json_int_t)r->counts.tokens, "requests",
        requests_json(r), "workers", workers_json(r), "spares", spares_json(r),
        "deaths", (json_int_t)s->run.n_lost, "recoveries",
        (json_int_t)s->run.n_recovered, "retries",
        (json_int_t)s->recovery.n_retries);
}
