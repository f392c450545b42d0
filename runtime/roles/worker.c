/* Worker: the event loop of prefill and decode ranks. */
#include "roles/worker.h"

#include "base/clock.h"
#include "base/fault_point.h"
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define EXIT_FAILED 1

static int is_group(const akin_worker_t *worker)
{
    return worker->group.n_ranks > 1;
}

void akin_worker_fail(akin_worker_t *worker, akin_status_t status,
                      const char *format, ...)
{
    if (worker->failure != AKIN_OK)
        return;
    worker->failure = status;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(worker->error.text, sizeof(worker->error.text), format,
                    args);
    va_end(args);
}

void akin_worker_fail_step(akin_worker_t *worker, akin_status_t status)
{
    const char *why =
        worker->ep_group != NULL ? akin_ep_group_error(worker->ep_group) : NULL;
    akin_worker_fail(worker, status, "a step failed: %s",
                     why != NULL ? why : akin_status_string(status));
}

void akin_worker_send(akin_worker_t *worker, uint32_t rank,
                      akin_message_type_t type)
{
    akin_status_t status = worker->packer.status;
    AKIN_FAULT_POINT("before-send", akin_message_name((uint16_t)type));
    if (status == AKIN_OK)
        status = akin_net_send(worker->net, rank, (uint16_t)type,
                               worker->packer.data, worker->packer.bytes);
    akin_packer_reset(&worker->packer);
    AKIN_FAULT_POINT("after-send", akin_message_name((uint16_t)type));
    /* Another worker that takes nothing any more is as good as lost. */
    if (status == AKIN_ERR_FULL && rank != AKIN_ROUTER_RANK) {
        akin_net_drop_peer(worker->net, rank);
        status = AKIN_ERR_PEER;
    }
    /* Without its messages a request would wait for its deadline. */
    if (status != AKIN_OK && status != AKIN_ERR_PEER)
        akin_worker_fail(worker, status, "cannot send to rank %u: %s", rank,
                         akin_status_string(status));
}

void akin_worker_send_routes(akin_worker_t *worker, uint64_t id, uint32_t first,
                             uint32_t n_tokens, uint16_t *routes)
{
    const akin_model_config_t *c = worker->model;
    const akin_message_routes_t m = {
        .id = id,
        .first = first,
        .n_tokens = n_tokens,
        .routes = routes,
        .n_routes = (size_t)n_tokens * c->n_layers * c->top_k,
    };
    akin_message_pack_routes(&worker->packer, &m);
    akin_worker_send(worker, AKIN_ROUTER_RANK, AKIN_MESSAGE_ROUTES);
}

void akin_worker_report(akin_worker_t *worker, const akin_stepper_job_t *job,
                        akin_message_step_t *step_p)
{
    int64_t now = akin_clock_now_ns();
    int64_t idle = now - job->ns - worker->step_end_ns;
    worker->step_end_ns = now;
    worker->busy_ns += job->ns;
    worker->n_steps++;
    *step_p = (akin_message_step_t){
        .ns = job->ns,
        .idle_ns = idle > 0 ? idle : 0,
        .number = is_group(worker) ? worker->group.number : worker->n_steps,
        .n_rows = job->n_tokens,
        .served = job->served,
        .n_served = worker->model->n_layers,
    };
}

void akin_worker_refuse(uint32_t from, uint16_t type, akin_status_t status)
{
    AKIN_LOG(ROLES, ERROR, "message %u from rank %u dropped: %s", type, from,
             akin_status_string(status));
}

static void send_stats(akin_worker_t *worker)
{
    akin_kv_cache_stats_t cache;
    akin_net_stats_t net;
    akin_kv_cache_stats(worker->cache, &cache);
    akin_net_stats(worker->net, &net);
    akin_message_stats_t stats = {
        .steps = worker->n_steps,
        .busy_ns = (uint64_t)worker->busy_ns,
        .total_ns = (uint64_t)(akin_clock_now_ns() - worker->start_ns),
        .evictions = cache.evictions,
        .reads_one_sided = net.reads_one_sided,
        .reads_rendezvous = net.reads_rendezvous,
        .read_bytes = net.read_bytes,
        .messages_late = net.messages_late,
    };
    worker->role->stats(worker, &stats);
    akin_message_pack_stats(&worker->packer, &stats);
    akin_worker_send(worker, AKIN_ROUTER_RANK, AKIN_MESSAGE_STATS);
}

static void take_message(akin_worker_t *worker, uint32_t from, uint16_t type,
                         const void *payload, size_t bytes)
{
    if (akini_worker_peers_message(worker, from, type, payload, bytes))
        return;
    if (worker->role == NULL) {
        if (from == AKIN_ROUTER_RANK)
            worker->waiter->message(worker->waiter_arg, type, payload, bytes);
        else
            akin_worker_refuse(from, type, AKIN_ERR_UNSUPPORTED);
    } else if (type == AKIN_MESSAGE_STOP && from == AKIN_ROUTER_RANK) {
        if (is_group(worker))
            akini_worker_group_stop(worker);
        else
            worker->stopping = 1;
    } else if (!akini_worker_group_message(worker, from, type, payload,
                                           bytes) &&
               !akini_worker_place_message(worker, from, type, payload,
                                           bytes)) {
        worker->role->message(worker, from, type, payload, bytes);
    }
}

void akin_worker_on_message(void *arg, uint32_t from, uint16_t type,
                            const void *payload, size_t bytes)
{
    AKIN_FAULT_POINT("before-receive", akin_message_name(type));
    take_message(arg, from, type, payload, bytes);
    AKIN_FAULT_POINT("after-receive", akin_message_name(type));
}

void akin_worker_on_peer_lost(void *arg, uint32_t rank, akin_status_t status)
{
    akin_worker_t *worker = arg;
    if (rank == AKIN_ROUTER_RANK) {
        if (!worker->stopping)
            akin_worker_fail(worker, AKIN_ERR_PEER, "the router is lost: %s",
                             akin_status_string(status));
    } else if (is_group(worker) && akini_worker_group_has(worker, rank)) {
        akini_worker_group_lost(worker, rank);
    } else {
        if (worker->role != NULL)
            worker->role->peer_lost(worker, rank);
        akini_worker_peers_lost(worker, rank);
    }
}

static void wake(void *arg)
{
    akin_net_wake(arg);
}

/* Take back what is done and give the engine what is to be done. */
static void turn(akin_worker_t *worker)
{
    akin_stepper_job_t *job = akin_stepper_finished(worker->stepper);
    if (job != NULL)
        worker->role->finished(worker, job);
    if (is_group(worker)) {
        if (job != NULL)
            akini_worker_group_made(worker);
        if (worker->failure == AKIN_OK)
            akini_worker_place_turn(worker);
        if (worker->failure == AKIN_OK)
            akini_worker_group_turn(worker);
        return;
    }
    job = akin_stepper_job(worker->stepper);
    if (job == NULL || worker->stopping)
        return;
    job->n_rows = 0;
    worker->role->fill(worker, job);
    if (job->n_rows > 0)
        akin_stepper_submit(worker->stepper);
}

/* Do what is due; the time of what is due next. */
static int64_t next_ns(akin_worker_t *worker)
{
    const int64_t now = akin_clock_now_ns();
    int64_t next = worker->role->expire(worker, now);
    if (is_group(worker)) {
        int64_t late = akini_worker_group_expire(worker, now);
        next = late < next ? late : next;
        late = akini_worker_place_expire(worker, now);
        next = late < next ? late : next;
    }
    /* Then there is nothing to wait for. */
    return worker->failure == AKIN_OK ? next : now;
}

void akin_worker_wait(akin_worker_t *worker, int64_t until_ns)
{
    akin_status_t status = akin_net_wait(worker->net, until_ns);
    if (status != AKIN_OK && status != AKIN_ERR_TIMEOUT)
        akin_worker_fail(worker, status, "network: %s",
                         akin_status_string(status));
}

void akin_worker_leave(akin_worker_t *worker)
{
    /* Where the router has died the launcher is about to end the job: a moment
     * spares the user the words of all its ranks. */
    static const struct timespec moment = {.tv_nsec = 500 * AKIN_NS_PER_MS};
    if (!akin_net_has_peer(worker->net, AKIN_ROUTER_RANK))
        (void)nanosleep(&moment, NULL);
    AKIN_LOG(ROLES, ERROR, "this worker ends: %s",
             worker->error.text[0] != '\0'
                 ? worker->error.text
                 : akin_status_string(worker->failure));
    _exit(EXIT_FAILED);
}

akin_status_t akin_worker_run(akin_worker_t *worker)
{
    const akin_stepper_params_t params = {
        .engine = worker->engine,
        .view = worker->view,
        .max_rows = worker->max_rows,
        .max_tokens = worker->max_tokens,
        .count_routes = worker->count_routes,
        .keep_routes = worker->job->record_routes,
        .wake = wake,
        .arg = worker->net,
    };
    akin_status_t status = akin_stepper_create(&params, &worker->stepper);
    if (status != AKIN_OK)
        return status;
    worker->start_ns = akin_clock_now_ns();
    worker->step_end_ns = worker->start_ns;
    if (is_group(worker))
        akini_worker_group_init(worker);
    while (!worker->stopping && worker->failure == AKIN_OK) {
        akin_worker_wait(worker, next_ns(worker));
        turn(worker);
    }
    if (worker->failure != AKIN_OK)
        akin_worker_leave(worker);
    akin_stepper_destroy(worker->stepper);
    worker->stepper = NULL;
    akini_worker_place_cleanup(worker);
    send_stats(worker);
    akin_packer_cleanup(&worker->packer);
    akini_worker_peers_cleanup(worker);
    return AKIN_OK;
}
