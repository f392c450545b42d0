/* Worker group: the ranks of a worker agree when each step begins. */
#include "roles/worker_group.h"

#include "base/clock.h"
#include "base/log.h"
#include "roles/worker.h"

/* The leader gives up first, since it knows which rank is late. */
#define MEMBER_MARGIN_NS AKIN_NS_PER_S

static int is_leader(const akin_worker_t *worker)
{
    return worker->rank == worker->group.leader;
}

static uint32_t place_of(const akin_worker_t *worker, uint32_t rank)
{
    return rank - worker->group.leader;
}

int akini_worker_group_has(const akin_worker_t *worker, uint32_t rank)
{
    return rank >= worker->group.leader &&
           place_of(worker, rank) < worker->group.n_ranks;
}

void akini_worker_group_init(akin_worker_t *worker)
{
    akin_pacer_init(&worker->group.pacer, worker->group.n_ranks);
    worker->group.deadline_ns = INT64_MAX;
}

static void send_step(akin_worker_t *worker, const akin_message_ep_step_t *m)
{
    const akin_worker_group_t *g = &worker->group;
    for (uint32_t rank = g->leader + 1; rank < g->leader + g->n_ranks; rank++) {
        akin_message_pack_ep_step(&worker->packer, m);
        akin_worker_send(worker, rank, AKIN_MESSAGE_EP_STEP);
    }
}

static void send_end(akin_worker_t *worker)
{
    const akin_worker_group_t *g = &worker->group;
    for (uint32_t rank = g->leader + 1; rank < g->leader + g->n_ranks; rank++) {
        akin_message_pack_id(&worker->packer, g->number);
        akin_worker_send(worker, rank, AKIN_MESSAGE_EP_END);
    }
}

static void say_ready(akin_worker_t *worker)
{
    worker->group.is_ready = 1;
    if (is_leader(worker)) {
        akin_pacer_ready(&worker->group.pacer, 0);
    } else {
        akin_message_pack_id(&worker->packer, worker->group.number);
        akin_worker_send(worker, worker->group.leader, AKIN_MESSAGE_EP_READY);
    }
}

/* A rank whose steps are out of order cannot be stepped with. */
static void on_done(akin_worker_t *worker, uint32_t from, uint64_t number,
                    int has_work)
{
    akin_status_t status = akin_pacer_done(
        &worker->group.pacer, place_of(worker, from), number, has_work);
    if (status != AKIN_OK)
        akin_worker_fail(worker, status,
                         "rank %u of this worker ended step %llu, which it is "
                         "not in",
                         from, (unsigned long long)number);
}

static void on_step(akin_worker_t *worker, const akin_message_ep_step_t *m)
{
    akin_worker_group_t *g = &worker->group;
    if (g->is_stepping || g->due != 0 || m->number != g->number + 1) {
        akin_worker_fail(worker, AKIN_ERR_FORMAT,
                         "the leader, rank %u, began step %llu after step %llu",
                         g->leader, (unsigned long long)m->number,
                         (unsigned long long)g->number);
        return;
    }
    g->due = m->number;
    g->due_epoch = m->epoch;
    g->is_ready = 0;
}

int akini_worker_group_message(akin_worker_t *worker, uint32_t from,
                               uint16_t type, const void *payload, size_t bytes)
{
    akin_message_ep_done_t done;
    akin_message_ep_step_t step;
    uint64_t number;
    akin_status_t status;
    if (type < AKIN_MESSAGE_EP_READY || type > AKIN_MESSAGE_EP_END)
        return 0;
    const int to_leader =
        type == AKIN_MESSAGE_EP_READY || type == AKIN_MESSAGE_EP_DONE;
    if (worker->group.n_ranks < 2 || to_leader != is_leader(worker) ||
        !akini_worker_group_has(worker, from) ||
        (!to_leader && from != worker->group.leader)) {
        akin_worker_refuse(from, type, AKIN_ERR_UNSUPPORTED);
        return 1;
    }
    if (type == AKIN_MESSAGE_EP_DONE)
        status = akin_message_unpack_ep_done(payload, bytes, &done);
    else if (type == AKIN_MESSAGE_EP_STEP)
        status = akin_message_unpack_ep_step(payload, bytes, &step);
    else
        status = akin_message_unpack_id(payload, bytes, &number);
    if (status != AKIN_OK)
        akin_worker_fail(worker, status,
                         "rank %u of this worker sent what cannot be read",
                         from);
    else if (type == AKIN_MESSAGE_EP_READY)
        akin_pacer_ready(&worker->group.pacer, place_of(worker, from));
    else if (type == AKIN_MESSAGE_EP_DONE)
        on_done(worker, from, done.number, done.has_work);
    else if (type == AKIN_MESSAGE_EP_STEP)
        on_step(worker, &step);
    else
        worker->stopping = 1;
    return 1;
}

void akini_worker_group_made(akin_worker_t *worker)
{
    akin_worker_group_t *g = &worker->group;
    g->is_stepping = 0;
    if (worker->failure != AKIN_OK)
        return;
    g->is_ready = worker->role->has_work(worker);
    if (is_leader(worker)) {
        on_done(worker, worker->rank, g->number, g->is_ready);
    } else {
        const akin_message_ep_done_t m = {.number = g->number,
                                          .has_work = g->is_ready != 0};
        akin_message_pack_ep_done(&worker->packer, &m);
        akin_worker_send(worker, g->leader, AKIN_MESSAGE_EP_DONE);
    }
}

static void pace(akin_worker_t *worker)
{
    akin_worker_group_t *g = &worker->group;
    if (g->is_ending) {
        if (g->pacer.running == 0) {
            send_end(worker);
            worker->stopping = 1;
        }
        return;
    }
    const uint64_t number = akin_pacer_next(&g->pacer);
    if (number == 0)
        return;
    const akin_message_ep_step_t m = {
        .number = number,
        .epoch = akini_worker_place_epoch(worker),
    };
    send_step(worker, &m);
    on_step(worker, &m);
}

/* A rank without rows takes part: it holds experts that others' rows need. */
static void begin_step(akin_worker_t *worker, akin_stepper_job_t *job)
{
    akin_worker_group_t *g = &worker->group;
    g->number = g->due;
    g->due = 0;
    g->is_stepping = 1;
    job->n_rows = 0;
    akini_worker_place_apply(worker, g->due_epoch);
    if (worker->failure != AKIN_OK)
        return;
    if (!g->is_ending)
        worker->role->fill(worker, job);
    akin_stepper_submit(worker->stepper);
}

/* While the engine is in a step it has deadlines of its own. */
static int is_waiting(const akin_worker_t *worker)
{
    const akin_worker_group_t *g = &worker->group;
    if (g->is_stepping)
        return 0;
    return is_leader(worker) ? g->pacer.running != 0
                             : g->is_ready || g->is_ending;
}

void akini_worker_group_turn(akin_worker_t *worker)
{
    akin_worker_group_t *g = &worker->group;
    if (!g->is_stepping && g->due == 0 && !g->is_ready && !g->is_ending &&
        worker->role->has_work(worker))
        say_ready(worker);
    if (is_leader(worker))
        pace(worker);
    akin_stepper_job_t *job = akin_stepper_job(worker->stepper);
    if (g->due != 0 && job != NULL && !worker->stopping)
        begin_step(worker, job);
    if (!is_waiting(worker))
        g->deadline_ns = INT64_MAX;
    else if (g->deadline_ns == INT64_MAX)
        g->deadline_ns = akin_clock_now_ns() + worker->job->ep_timeout_ns +
                         (is_leader(worker) ? 0 : MEMBER_MARGIN_NS);
}

void akini_worker_group_stop(akin_worker_t *worker)
{
    worker->group.is_ending = 1;
}

void akini_worker_group_lost(akin_worker_t *worker, uint32_t rank)
{
    if (!worker->stopping)
        akin_worker_fail(worker, AKIN_ERR_PEER,
                         "rank %u of this worker is lost, and with it the "
                         "worker",
                         rank);
}

int64_t akini_worker_group_expire(akin_worker_t *worker, int64_t now_ns)
{
    akin_worker_group_t *g = &worker->group;
    if (now_ns < g->deadline_ns)
        return g->deadline_ns;
    const double seconds =
        (double)worker->job->ep_timeout_ns / (double)AKIN_NS_PER_S;
    if (is_leader(worker)) {
        uint32_t late = 0;
        while ((g->pacer.running >> late & 1) == 0)
            late++;
        akin_worker_fail(worker, AKIN_ERR_TIMEOUT,
                         "rank %u of this worker has not ended step %llu "
                         "within ep.timeout, %.1f s",
                         g->leader + late, (unsigned long long)g->number,
                         seconds);
    } else {
        akin_worker_fail(worker, AKIN_ERR_TIMEOUT,
                         "the leader of this worker, rank %u, is silent for "
                         "longer than ep.timeout, %.1f s",
                         g->leader, seconds);
    }
    return INT64_MAX;
}
