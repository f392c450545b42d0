/* Rank join: a later life of a rank tells the router, loads while it shows that
 * it lives, and waits for a worker's place, as spare ranks do. */
#include "roles/rank_state.h"

#include "base/clock.h"
#include "base/fault_point.h"
#include "base/log.h"
#include "ep/exchange_ucx.h"
#include "net/supervisor.h"
#include "roles/ticket.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For the word of a last life to leave. */
#define FLUSH_NS AKIN_NS_PER_S
/* For a host to refuse a connection. */
#define REFUSAL_NS (500 * AKIN_NS_PER_MS)

static akin_status_t read_ticket(akini_self_t *self)
{
    akini_ticket_t ticket;
    akin_status_t status = akini_ticket_unpack(
        self->life->ticket, self->life->ticket_bytes, &ticket);
    if (status != AKIN_OK)
        return akin_error_set(&self->err, status,
                              "what the rank's first life left for this one "
                              "cannot be read");
    self->number = ticket.rank;
    self->host_ranks = ticket.host_ranks;
    self->router_identity = ticket.router;
    self->router_identity_bytes = ticket.router_bytes;
    self->job_text = strdup(ticket.job);
    if (self->job_text == NULL)
        return akin_error_set(&self->err, AKIN_ERR_NOMEM, "out of memory");
    status = akini_rank_read_text(self);
    if (status == AKIN_OK && ticket.placements[0] != '\0')
        status = akin_job_placements_unpack(&self->job, ticket.placements,
                                            &self->ep.placements, &self->err);
    if (status == AKIN_OK)
        status = akin_kernels_find(ticket.kernel, &self->kernels, &self->err);
    if (status != AKIN_OK)
        return status;
    self->job.record_routes = self->params->calibration != NULL;
    self->place = akin_job_place(&self->job, self->number);
    akin_log_identify((int)self->number, akin_job_role_name(self->place.role));
    return akin_job_model_read(&self->job, &self->model, &self->err);
}

/* The net with its one peer so far. */
static akin_status_t meet_router(akini_self_t *self)
{
    akin_status_t status = akini_rank_compute_layout(self);
    if (status == AKIN_OK)
        status = akini_rank_create_net(self);
    if (status != AKIN_OK)
        return status;
    self->met_ns = akin_clock_now_ns();
    status =
        akin_net_add_peer(self->net, AKIN_ROUTER_RANK, self->router_identity,
                          self->router_identity_bytes, &self->err);
    /* A router that is gone leaves nothing to connect to. */
    self->router_is_gone = status == AKIN_ERR_UCX;
    self->router_is_away = status == AKIN_ERR_NOT_FOUND;
    /* Its first word is waited for no longer than need be. */
    if (status == AKIN_OK)
        status = akin_net_watch_peer(self->net, AKIN_ROUTER_RANK,
                                     self->job.heartbeat_ns,
                                     self->job.heartbeat_timeout_ns);
    if (status == AKIN_OK)
        status = akini_rank_ep_open(&self->ep, self->number, &self->place,
                                    &self->err);
    return status;
}

/* Whether the router has ever said anything to this life, which knows nobody
 * else. One that has, and is lost, may have given this life up; the next one
 * will see. */
static int has_heard_router(const akini_self_t *self)
{
    akin_net_stats_t stats;
    akin_net_stats(self->net, &stats);
    return stats.messages_received + stats.heartbeats_received > 0;
}

static akin_status_t send_join(akini_self_t *self)
{
    void *net = NULL, *exchange = NULL;
    size_t net_bytes = 0, exchange_bytes = 0;
    akin_status_t status =
        akin_net_identity(self->net, &net, &net_bytes, &self->err);
    if (status == AKIN_OK && self->ep.exchange != NULL)
        status = akin_ep_exchange_ucx_identity(self->ep.exchange, &exchange,
                                               &exchange_bytes, &self->err);
    if (status == AKIN_OK) {
        const akin_message_join_t m = {
            .life = self->life->number,
            .is_last = self->life->is_last != 0,
            .identity = {.rank = self->number,
                         .net = net,
                         .net_bytes = net_bytes,
                         .exchange = exchange,
                         .exchange_bytes = exchange_bytes},
        };
        akin_message_pack_join(&self->worker.packer, &m);
        akin_worker_send(&self->worker, AKIN_ROUTER_RANK, AKIN_MESSAGE_JOIN);
        status = self->worker.failure;
    }
    free(net);
    free(exchange);
    return status;
}

/* Whether waiting goes on; AKIN_ERR_CANCELED and failures end it. */
static akin_status_t wait_more(akini_self_t *self, akini_worker_wait_t *wait,
                               int64_t until_ns)
{
    akin_worker_wait(&self->worker, until_ns);
    if (wait->is_stopped)
        return AKIN_ERR_CANCELED;
    if (self->worker.failure != AKIN_OK)
        self->err = self->worker.error;
    return self->worker.failure;
}

static akin_status_t meet_group(akini_self_t *self,
                                const akin_message_group_t *m)
{
    akin_status_t status = AKIN_OK;
    for (size_t i = 0; i < m->n_ranks && status == AKIN_OK; i++) {
        const akin_message_identity_t *id = &m->ranks[i];
        if (id->rank < self->place.first ||
            id->rank - self->place.first >= self->place.n_ranks)
            return akin_error_set(&self->err, AKIN_ERR_FORMAT,
                                  "rank %u is not of this group", id->rank);
        if (akini_rank_is_fellow(self, id->rank))
            status = akini_worker_peers_add(&self->worker, id);
        if (status == AKIN_OK && id->rank != self->number &&
            self->ep.exchange != NULL)
            status = akin_ep_exchange_ucx_connect(
                self->ep.exchange, id->rank - self->place.first, id->exchange,
                id->exchange_bytes, &self->err);
    }
    if (status == AKIN_OK)
        status = akini_rank_ep_bind(&self->ep, &self->job, self->number,
                                    &self->place, &self->err);
    self->worker.ep_group = self->ep.group;
    return status;
}

/* Loading may take minutes: this rank has to show meanwhile that it lives. */
typedef struct loader {
    akini_self_t *self;
    akin_status_t status;
    atomic_int is_done;
} loader_t;

static void *load(void *arg)
{
    loader_t *l = arg;
    l->status = akini_rank_load_engine(l->self);
    atomic_store(&l->is_done, 1);
    akin_net_wake(l->self->net);
    return NULL;
}

static akin_status_t load_beside(akini_self_t *self, akini_worker_wait_t *wait)
{
    loader_t loader = {.self = self};
    pthread_t thread;
    akin_status_t status = AKIN_OK;
    if (pthread_create(&thread, NULL, load, &loader) != 0)
        return akin_error_set(&self->err, AKIN_ERR_NOMEM,
                              "no thread to load the model in");
    while (!atomic_load(&loader.is_done)) {
        status = wait_more(self, wait, INT64_MAX);
        /* Nothing can break the loading off but the end of the process. */
        if (status == AKIN_ERR_CANCELED)
            _exit(0);
        if (status != AKIN_OK)
            akin_worker_leave(&self->worker);
    }
    (void)pthread_join(thread, NULL);
    return loader.status;
}

/* The router wants to know of the death, and nothing else. */
static akin_status_t take_leave(akini_self_t *self, akini_worker_wait_t *wait)
{
    const int64_t deadline_ns = akin_clock_now_ns() + FLUSH_NS;
    while (akin_clock_now_ns() < deadline_ns &&
           wait_more(self, wait, deadline_ns) == AKIN_OK)
        continue;
    return AKIN_ERR_CANCELED;
}

/* Until all ranks of the group have come, and the time that this one has to
 * wait is over. */
static akin_status_t wait_for_group(akini_self_t *self,
                                    akini_worker_wait_t *wait, int64_t ready_ns)
{
    akin_status_t status = AKIN_OK;
    int is_patient = 0;
    while (status == AKIN_OK &&
           (wait->group_data == NULL || akin_clock_now_ns() < ready_ns)) {
        status = wait_more(self, wait,
                           wait->group_data == NULL ? INT64_MAX : ready_ns);
        if (status == AKIN_OK && !is_patient && has_heard_router(self)) {
            is_patient = 1;
            status = akini_rank_watch_router(self);
        }
    }
    if (status == AKIN_ERR_PEER &&
        !akin_net_has_peer(self->net, AKIN_ROUTER_RANK) &&
        !has_heard_router(self)) {
        /* The host of a router that is gone says so at once. */
        self->router_is_away = akin_clock_now_ns() - self->met_ns > REFUSAL_NS;
        self->router_is_gone = !self->router_is_away;
    }
    return status;
}

static akin_status_t join(akini_self_t *self, akini_worker_wait_t *wait)
{
    const int64_t ready_ns = akin_clock_now_ns() + self->life->delay_ns;
    akin_status_t status = send_join(self);
    if (status == AKIN_OK && self->life->is_last)
        return take_leave(self, wait);
    if (status == AKIN_OK)
        status = wait_for_group(self, wait, ready_ns);
    if (status == AKIN_OK)
        status = meet_group(self, &wait->group);
    if (status == AKIN_OK)
        status = load_beside(self, wait);
    if (status == AKIN_OK)
        akini_worker_wait_say(wait, AKIN_MESSAGE_READY, status);
    return status;
}

akin_status_t akini_rank_join(akini_self_t *self, akini_worker_wait_t *wait)
{
    akin_status_t status = read_ticket(self);
    akin_supervised_beat();
    if (status == AKIN_OK)
        status = meet_router(self);
    if (status != AKIN_OK)
        return status;
    akini_worker_wait_begin(wait, &self->worker);
    return join(self, wait);
}

akin_status_t akini_rank_wait(akini_self_t *self, akini_worker_wait_t *wait)
{
    akin_status_t status = AKIN_OK;
    while (status == AKIN_OK && wait->assume_data == NULL)
        status = wait_more(self, wait, INT64_MAX);
    if (status != AKIN_OK)
        return status;
    status = akini_rank_ep_assume(&self->ep, &wait->assume, &self->err);
    self->place.role =
        wait->assume.is_prefill ? AKIN_JOB_PREFILL : AKIN_JOB_DECODE;
    self->place.worker = wait->assume.worker;
    akin_log_identify((int)self->number, akin_job_role_name(self->place.role));
    akini_worker_wait_say(wait, AKIN_MESSAGE_ASSUMED, status);
    return status;
}
