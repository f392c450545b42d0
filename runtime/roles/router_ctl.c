/* What akin ctl asks of the router: its state, and workers that get nothing
 * new. */
#include "roles/router_ctl.h"

#include "base/clock.h"
#include "base/log.h"
#include "roles/ctl.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static uint32_t n_workers(const akin_router_t *r)
{
    return r->params.job->n_prefill + r->params.job->n_decode;
}

/* "decode 1", "decode:1", "decode1". */
static uint32_t find_worker(const akin_router_t *r, const char *name)
{
    const akin_job_t *job = r->params.job;
    const int is_decode = strncmp(name, "decode", 6) == 0;
    if (!is_decode && strncmp(name, "prefill", 7) != 0)
        return AKIN_ROUTING_NO_WORKER;
    const char *digits = name + (is_decode ? 6 : 7);
    digits += *digits == ' ' || *digits == ':';
    const size_t n = strspn(digits, "0123456789");
    if (n == 0 || n > 9 || digits[n] != '\0')
        return AKIN_ROUTING_NO_WORKER;
    const unsigned long worker = strtoul(digits, NULL, 10);
    if (worker >= (is_decode ? job->n_decode : job->n_prefill))
        return AKIN_ROUTING_NO_WORKER;
    return (is_decode ? job->n_prefill : 0) + (uint32_t)worker;
}

static json_t *no_worker(const akin_router_t *r, const char *name)
{
    char first[32], prefill[32], decode[32];
    akini_router_worker_name(r, 0, first);
    akini_router_worker_name(r, r->params.job->n_prefill - 1, prefill);
    akini_router_worker_name(r, n_workers(r) - 1, decode);
    return akin_ctl_refuse("no worker \"%.64s\": there are %s to %s and "
                           "decode 0 to %s",
                           name, first, strrchr(prefill, ' ') + 1,
                           strrchr(decode, ' ') + 1);
}

static void set_drained(akin_router_t *r, uint32_t worker, int is_drained)
{
    uint32_t n;
    akini_rank_t *places = akini_router_places(r, worker, &n);
    for (uint32_t i = 0; i < n; i++)
        places[i].is_drained = is_drained;
}

/* Workers [*first_p, *end_p) have the role of a worker. */
static void find_role(const akin_router_t *r, uint32_t worker,
                      uint32_t *first_p, uint32_t *end_p)
{
    const uint32_t n_prefill = r->params.job->n_prefill;
    *first_p = worker < n_prefill ? 0 : n_prefill;
    *end_p = worker < n_prefill ? n_prefill : n_workers(r);
}

static int is_serving(const akin_router_t *r, uint32_t worker)
{
    uint32_t n;
    const akini_rank_t *places = akini_router_places(r, worker, &n);
    return !places->is_lost && !places->is_drained;
}

/* Another worker of its role that serves. */
static int has_other(const akin_router_t *r, uint32_t worker)
{
    uint32_t first, end;
    find_role(r, worker, &first, &end);
    for (uint32_t w = first; w < end; w++)
        if (w != worker && is_serving(r, w))
            return 1;
    return 0;
}

/* Requests begin again at others. One whose blocks are being read from a
 * prefill worker is done with it in a moment. */
static uint32_t move_requests(akin_router_t *r, uint32_t worker)
{
    const int is_prefill = worker < r->params.job->n_prefill;
    uint32_t n = 0;
    akini_flight_t *f, *next;
    for (int state = AKINI_FLIGHT_PREFILL; state < AKINI_FLIGHT_STATES; state++)
        DL_FOREACH_SAFE(r->lists[state], f, next)
        {
            if (!akini_flight_needs(r, f, worker) ||
                (is_prefill && state == AKINI_FLIGHT_TRANSFER))
                continue;
            n++;
            /* To be moved is no failure: it may be so any number of times.
             * Below 0 lies the largest number, and the restart adds one. */
            f->n_restarts--;
            akini_flight_restart(r, f, "its worker is drained");
        }
    return n;
}

static json_t *worker_answer(const akin_router_t *r, uint32_t worker,
                             uint32_t n_moved)
{
    akini_worker_view_t v;
    akini_router_view(r, worker, &v);
    return json_pack("{s:b, s:s, s:s, s:I, s:I}", "ok", 1, "worker", v.name,
                     "state", akini_worker_state_name(v.state), "requests",
                     (json_int_t)v.n_requests, "moved", (json_int_t)n_moved);
}

static json_t *drain(akin_router_t *r, json_t *request)
{
    const char *name;
    int is_moving = 0;
    uint32_t n_moved = 0;
    json_error_t error;
    if (json_unpack_ex(request, &error, JSON_STRICT, "{s:s, s:s, s?b}",
                       "command", &name, "worker", &name, "move",
                       &is_moving) != 0)
        return akin_ctl_refuse("drain: %s", error.text);
    const uint32_t worker = find_worker(r, name);
    if (worker == AKIN_ROUTING_NO_WORKER)
        return no_worker(r, name);
    if (r->stop_ns != 0)
        return akin_ctl_refuse("the job is stopping: its workers get nothing "
                               "new as it is");
    akini_worker_view_t v;
    akini_router_worker_name(r, worker, v.name);
    if (!has_other(r, worker))
        return akin_ctl_refuse(
            "%s cannot be drained: no other %s worker serves, and the job "
            "would stand still",
            v.name, worker < r->params.job->n_prefill ? "prefill" : "decode");
    set_drained(r, worker, 1);
    if (is_moving)
        n_moved = move_requests(r, worker);
    akini_router_view(r, worker, &v);
    AKIN_LOG(ROLES, WARN,
             "%s is drained on demand: %u requests finish there, %u go on "
             "elsewhere",
             v.name, v.n_requests, n_moved);
    return worker_answer(r, worker, n_moved);
}

static json_t *resume(akin_router_t *r, json_t *request)
{
    const char *name;
    json_error_t error;
    if (json_unpack_ex(request, &error, JSON_STRICT, "{s:s, s:s}", "command",
                       &name, "worker", &name) != 0)
        return akin_ctl_refuse("resume: %s", error.text);
    const uint32_t worker = find_worker(r, name);
    if (worker == AKIN_ROUTING_NO_WORKER)
        return no_worker(r, name);
    set_drained(r, worker, 0);
    akini_worker_view_t v;
    akini_router_view(r, worker, &v);
    AKIN_LOG(ROLES, WARN, "%s gets work again, on demand", v.name);
    return worker_answer(r, worker, 0);
}

static json_t *metrics(const akin_router_t *r)
{
    char *text = akini_router_metrics(r);
    json_t *json =
        text == NULL ? NULL : json_pack("{s:b, s:s}", "ok", 1, "text", text);
    free(text);
    return json;
}

static json_t *answer(void *arg, const char *command, json_t *request)
{
    akin_router_t *r = arg;
    if (strcmp(command, "status") == 0)
        return akini_router_status(r);
    if (strcmp(command, "metrics") == 0)
        return metrics(r);
    if (strcmp(command, "drain") == 0)
        return drain(r, request);
    if (strcmp(command, "resume") == 0)
        return resume(r, request);
    return akin_ctl_refuse("no command \"%.64s\": there are status, metrics, "
                           "drain and resume",
                           command);
}

void akini_router_ctl_open(akin_router_t *r)
{
    const char *path = r->params.job->socket_path;
    akin_error_t err = {{0}};
    if (path == NULL || path[0] == '\0')
        return;
    /* A batch goes on without it: nobody may ever ask. */
    if (akin_ctl_open(path, answer, r, &r->ctl, &err) != AKIN_OK)
        AKIN_LOG(ROLES, WARN, "akin ctl cannot reach this job: %s", err.text);
    else
        AKIN_LOG(ROLES, INFO, "akin ctl reaches this job at %s",
                 akin_ctl_path(r->ctl));
}

/* Whether somebody may yet become one of the lost workers [first, end) that are
 * not drained. */
static int has_hope(const akin_router_t *r, uint32_t first, uint32_t end,
                    int64_t now_ns)
{
    uint32_t n_ranks;
    for (uint32_t w = first; w < end; w++) {
        if (r->lost_ns[w] == 0 ||
            akini_router_places(r, w, &n_ranks)->is_drained ||
            now_ns - r->lost_ns[w] >= r->params.job->recovery_timeout_ns)
            continue;
        for (uint32_t i = 0; i < r->n_groups; i++)
            if (r->groups[i].n_ranks == n_ranks &&
                r->groups[i].state != AKINI_GROUP_SERVING &&
                r->groups[i].state != AKINI_GROUP_GONE)
                return 1;
    }
    return 0;
}

/* A drained worker is better than none. */
static void take_back(akin_router_t *r, uint32_t first, uint32_t end,
                      int64_t now_ns)
{
    int is_any_drained = 0;
    uint32_t n;
    for (uint32_t w = first; w < end; w++) {
        if (is_serving(r, w))
            return;
        is_any_drained |= akini_router_places(r, w, &n)->is_drained;
    }
    if (!is_any_drained || has_hope(r, first, end, now_ns))
        return;
    for (uint32_t w = first; w < end; w++) {
        char name[32];
        if (!akini_router_places(r, w, &n)->is_drained)
            continue;
        akini_router_worker_name(r, w, name);
        AKIN_LOG(ROLES, WARN,
                 "%s was drained and gets work again: all others are lost",
                 name);
        set_drained(r, w, 0);
    }
}

int akini_router_ctl_turn(akin_router_t *r)
{
    if (r->ctl == NULL)
        return 0;
    const int64_t now = akin_clock_now_ns();
    const uint32_t n_prefill = r->params.job->n_prefill;
    take_back(r, 0, n_prefill, now);
    take_back(r, n_prefill, n_workers(r), now);
    return (int)akin_ctl_turn(r->ctl);
}

void akini_router_ctl_close(akin_router_t *r)
{
    akin_ctl_close(r->ctl);
    r->ctl = NULL;
}
