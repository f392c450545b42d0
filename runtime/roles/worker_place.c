/* Worker place: a layer's next map, from the router's word to the step that
 * runs under it. */
#include "roles/worker_place.h"

#include "base/clock.h"
#include "base/log.h"
#include "ep/placement_change.h"
#include "roles/worker.h"

#include <stdlib.h>

static int is_leader(const akin_worker_t *worker)
{
    return worker->rank == worker->group.leader;
}

/* The epoch that the last step ran under. */
static uint64_t current(const akin_worker_t *worker)
{
    return worker->ep_group != NULL
               ? akin_ep_group_placement(worker->ep_group)->epoch
               : 0;
}

static void forget(akin_worker_place_t *p)
{
    free(p->holders);
    p->holders = NULL;
    p->epoch = 0;
    p->is_warming = 0;
}

static void send_placed(akin_worker_t *worker, uint32_t rank, uint64_t epoch,
                        akin_status_t status)
{
    const akin_message_placed_t m = {.epoch = epoch, .status = status};
    akin_message_pack_placed(&worker->packer, &m);
    akin_worker_send(worker, rank, AKIN_MESSAGE_PLACED);
}

/* The leader alone knows whether a step has begun under it, so that it alone
 * can drop a change. */
static void drop(akin_worker_t *worker, uint64_t epoch, akin_status_t status)
{
    if (worker->place.epoch == epoch)
        forget(&worker->place);
    send_placed(worker, AKIN_ROUTER_RANK, epoch, status);
}

/* A rank of this leader's worker has the weights, or cannot have them. */
static void note(akin_worker_t *worker, uint32_t place, uint64_t epoch,
                 akin_status_t status)
{
    akin_worker_place_t *p = &worker->place;
    if (status == AKIN_OK) {
        p->placed[place] = epoch;
        return;
    }
    AKIN_LOG(ROLES, WARN, "placement %llu is dropped: rank %u: %s",
             (unsigned long long)epoch, worker->group.leader + place,
             akin_status_string(status));
    p->refused = epoch;
    /* The router's word may still be on its way here. */
    if (place == 0 || p->epoch == epoch)
        drop(worker, epoch, status);
}

static void answer(akin_worker_t *worker, uint64_t epoch, akin_status_t status)
{
    if (is_leader(worker))
        note(worker, 0, epoch, status);
    else
        send_placed(worker, worker->group.leader, epoch, status);
}

static akin_status_t check(const akin_worker_t *worker,
                           const akin_message_place_t *m)
{
    akin_error_t err = {{0}};
    if (worker->ep_group == NULL)
        return AKIN_ERR_UNSUPPORTED;
    const akin_placement_t *now = akin_ep_group_placement(worker->ep_group);
    if (m->n_holders != now->n_experts || m->epoch <= now->epoch)
        return AKIN_ERR_INVALID;
    akin_status_t status =
        akin_placement_check_layer(now, m->layer, m->holders, &err);
    if (status != AKIN_OK)
        AKIN_LOG(ROLES, WARN, "%s", err.text);
    return status;
}

static void wake(void *arg)
{
    akin_net_wake(arg);
}

/* Bring what this rank holds then and does not now. */
static akin_status_t warm(akin_worker_t *worker, const akin_message_place_t *m)
{
    akin_worker_place_t *p = &worker->place;
    const akin_placement_t *now = akin_ep_group_placement(worker->ep_group);
    const uint64_t own = UINT64_C(1) << (worker->rank - worker->group.leader);
    const uint64_t *held = akin_placement_layer(now, m->layer);
    akin_status_t status = AKIN_OK;
    if (p->warmer == NULL)
        status =
            akin_warmer_create(worker->engine, wake, worker->net, &p->warmer);
    if (status != AKIN_OK)
        return status;
    uint8_t *wanted = calloc(now->n_experts, sizeof(*wanted));
    if (wanted == NULL)
        return AKIN_ERR_NOMEM;
    for (uint32_t e = 0; e < now->n_experts; e++)
        wanted[e] = (m->holders[e] & ~held[e] & own) != 0;
    status = akin_warmer_start(p->warmer, m->layer, wanted, now->n_experts);
    free(wanted);
    return status;
}

static void on_place(akin_worker_t *worker, const void *payload, size_t bytes)
{
    akin_worker_place_t *p = &worker->place;
    akin_message_place_t m;
    akin_status_t status = akin_message_unpack_place(payload, bytes, &m);
    if (status != AKIN_OK) {
        akin_worker_refuse(AKIN_ROUTER_RANK, AKIN_MESSAGE_PLACE, status);
        return;
    }
    status = check(worker, &m);
    /* A change that was dropped gives way to the next one. */
    if (status == AKIN_OK)
        status = warm(worker, &m);
    if (status != AKIN_OK) {
        free(m.holders);
        answer(worker, m.epoch, status);
        return;
    }
    forget(p);
    p->epoch = m.epoch;
    p->layer = m.layer;
    p->holders = m.holders;
    p->is_warming = 1;
    p->deadline_ns = akin_clock_now_ns() + worker->job->ep_timeout_ns;
    if (is_leader(worker) && p->refused == m.epoch)
        drop(worker, m.epoch, AKIN_ERR_REFUSED);
}

static void on_placed(akin_worker_t *worker, uint32_t from, const void *payload,
                      size_t bytes)
{
    akin_message_placed_t m;
    akin_status_t status = akin_message_unpack_placed(payload, bytes, &m);
    if (status == AKIN_OK && from != worker->group.leader)
        note(worker, from - worker->group.leader, m.epoch,
             (akin_status_t)m.status);
    else
        akin_worker_refuse(from, AKIN_MESSAGE_PLACED, status);
}

int akini_worker_place_message(akin_worker_t *worker, uint32_t from,
                               uint16_t type, const void *payload, size_t bytes)
{
    if (worker->group.n_ranks < 2)
        return 0;
    if (type == AKIN_MESSAGE_PLACE && from == AKIN_ROUTER_RANK)
        on_place(worker, payload, bytes);
    else if (type == AKIN_MESSAGE_PLACED && is_leader(worker) &&
             akini_worker_group_has(worker, from))
        on_placed(worker, from, payload, bytes);
    else
        return 0;
    return 1;
}

void akini_worker_place_turn(akin_worker_t *worker)
{
    akin_worker_place_t *p = &worker->place;
    if (!p->is_warming || !akin_warmer_is_done(p->warmer))
        return;
    p->is_warming = 0;
    answer(worker, p->epoch, AKIN_OK);
}

/* The first rank that has not got the weights; n_ranks: all have. */
static uint32_t first_late(const akin_worker_t *worker)
{
    uint32_t i = 0;
    while (i < worker->group.n_ranks &&
           worker->place.placed[i] == worker->place.epoch)
        i++;
    return i;
}

uint64_t akini_worker_place_epoch(const akin_worker_t *worker)
{
    const akin_worker_place_t *p = &worker->place;
    return p->epoch != 0 && first_late(worker) == worker->group.n_ranks
               ? p->epoch
               : current(worker);
}

void akini_worker_place_apply(akin_worker_t *worker, uint64_t epoch)
{
    akin_worker_place_t *p = &worker->place;
    akin_error_t err = {{0}};
    if (epoch == current(worker))
        return;
    if (epoch != p->epoch || p->is_warming) {
        akin_worker_fail(worker, AKIN_ERR_FORMAT,
                         "epoch out of order: the leader, rank %u, began a "
                         "step under placement %llu, this rank has %llu",
                         worker->group.leader, (unsigned long long)epoch,
                         (unsigned long long)current(worker));
        return;
    }
    akin_status_t status = akin_ep_group_set_layer(worker->ep_group, p->layer,
                                                   p->holders, epoch, &err);
    if (status != AKIN_OK) {
        akin_worker_fail(worker, status, "%s", err.text);
        return;
    }
    forget(p);
    if (is_leader(worker))
        send_placed(worker, AKIN_ROUTER_RANK, epoch, AKIN_OK);
}

int64_t akini_worker_place_expire(akin_worker_t *worker, int64_t now_ns)
{
    akin_worker_place_t *p = &worker->place;
    if (p->epoch == 0 || !is_leader(worker))
        return INT64_MAX;
    const uint32_t late = first_late(worker);
    if (late == worker->group.n_ranks)
        return INT64_MAX;
    if (now_ns < p->deadline_ns)
        return p->deadline_ns;
    AKIN_LOG(ROLES, WARN,
             "placement %llu is dropped: rank %u has not brought its weights "
             "within ep.timeout, %.1f s",
             (unsigned long long)p->epoch, worker->group.leader + late,
             (double)worker->job->ep_timeout_ns / (double)AKIN_NS_PER_S);
    drop(worker, p->epoch, AKIN_ERR_TIMEOUT);
    return INT64_MAX;
}

void akini_worker_place_cleanup(akin_worker_t *worker)
{
    akin_warmer_destroy(worker->place.warmer);
    worker->place.warmer = NULL;
    forget(&worker->place);
}
