/* The router's groups: processes that are lost, are started anew and join. */
#include "roles/router_state.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* The supervisor of a rank that is started anew is the first to give it up, and
 * does not count the time that it has the rank wait. */
#define START_MARGIN_NS (20 * AKIN_NS_PER_S)

akin_status_t akini_router_create_groups(akin_router_t *r)
{
    const akin_job_t *job = r->params.job;
    const uint32_t n_ranks = akin_job_n_ranks(job);
    r->n_groups = job->n_prefill + job->n_decode + job->n_spare;
    r->groups = calloc(r->n_groups, sizeof(*r->groups));
    r->processes = calloc(n_ranks, sizeof(*r->processes));
    if (r->groups == NULL || r->processes == NULL)
        return AKIN_ERR_NOMEM;
    uint32_t n = 0;
    for (uint32_t rank = 1; rank < n_ranks;) {
        const akin_job_place_t place = akin_job_place(job, rank);
        const int is_spare = place.role == AKIN_JOB_SPARE;
        r->groups[n] = (akini_group_t){
            .first = rank,
            .n_ranks = place.n_ranks,
            .state = is_spare ? AKINI_GROUP_WAITING : AKINI_GROUP_SERVING,
            .worker = is_spare ? AKIN_ROUTING_NO_WORKER : n,
        };
        n++;
        rank += place.n_ranks;
    }
    return AKIN_OK;
}

static void forget_identity(akini_process_t *p)
{
    free(p->net);
    free(p->exchange);
    p->net = NULL;
    p->exchange = NULL;
    p->net_bytes = 0;
    p->exchange_bytes = 0;
}

void akini_router_destroy_groups(akin_router_t *r)
{
    const uint32_t n_ranks = akin_job_n_ranks(r->params.job);
    for (uint32_t i = 0; r->processes != NULL && i < n_ranks; i++)
        forget_identity(&r->processes[i]);
    free(r->processes);
    free(r->groups);
    free(r->places);
    free(r->lost_ns);
}

static akini_group_t *group_of(const akin_router_t *r, uint32_t rank)
{
    uint32_t i = 0;
    while (rank >= r->groups[i].first + r->groups[i].n_ranks)
        i++;
    return &r->groups[i];
}

static akin_status_t copy(const void *data, size_t bytes, void **copy_p,
                          size_t *bytes_p)
{
    if (bytes == 0)
        return AKIN_OK;
    *copy_p = malloc(bytes);
    if (*copy_p == NULL)
        return AKIN_ERR_NOMEM;
    memcpy(*copy_p, data, bytes);
    *bytes_p = bytes;
    return AKIN_OK;
}

static akin_status_t keep_identity(akini_process_t *p,
                                   const akin_message_identity_t *id)
{
    forget_identity(p);
    akin_status_t status = copy(id->net, id->net_bytes, &p->net, &p->net_bytes);
    if (status == AKIN_OK)
        status = copy(id->exchange, id->exchange_bytes, &p->exchange,
                      &p->exchange_bytes);
    return status;
}

/* From now on the process is expected to show that it lives. */
static akin_status_t watch(akin_router_t *r, uint32_t rank)
{
    const akin_job_t *job = r->params.job;
    r->processes[rank].incarnation = akin_net_peer_incarnation(r->net, rank);
    akin_status_t status = akin_net_watch_peer(r->net, rank, job->heartbeat_ns,
                                               job->heartbeat_timeout_ns);
    /* A peer that is lost already will be told as lost. */
    return status == AKIN_ERR_PEER ? AKIN_OK : status;
}

akin_status_t akini_router_start_groups(akin_router_t *r)
{
    const uint32_t n_ranks = akin_job_n_ranks(r->params.job);
    akin_status_t status = AKIN_OK;
    for (uint32_t rank = 1; rank < n_ranks && status == AKIN_OK; rank++) {
        if (r->params.identities != NULL)
            status =
                keep_identity(&r->processes[rank], &r->params.identities[rank]);
        if (status == AKIN_OK)
            status = watch(r, rank);
    }
    return status;
}

static void send_rank(akin_router_t *r, uint32_t to, akin_message_type_t type,
                      const akin_message_rank_t *m)
{
    akin_message_pack_rank(&r->packer, m);
    akini_router_send(r, to, type);
}

/* Nobody waits for the dead: not for its messages, not for a swap with it. The
 * processes that were bound to it by their group end; those that have come anew
 * since are not. */
static void tell_lost(akin_router_t *r, const akini_group_t *g, int is_bound,
                      const akin_message_rank_t *m)
{
    const uint32_t n_ranks = akin_job_n_ranks(r->params.job);
    for (uint32_t to = 1; to < n_ranks; to++) {
        const int is_fellow = to >= g->first && to - g->first < g->n_ranks;
        if (to == m->rank || !akin_net_has_peer(r->net, to) ||
            (is_fellow && !is_bound))
            continue;
        send_rank(r, to, AKIN_MESSAGE_LOST, m);
        r->processes[to].is_doomed |= is_fellow;
    }
}

void akini_router_lose_rank(akin_router_t *r, uint32_t rank,
                            akin_status_t status)
{
    akini_group_t *g = group_of(r, rank);
    akini_process_t *p = &r->processes[rank];
    const akin_message_rank_t m = {
        .rank = rank, .incarnation = p->incarnation, .status = status};
    const int is_worker = g->state == AKINI_GROUP_SERVING && !p->is_doomed;
    const int is_bound = is_worker || g->state == AKINI_GROUP_WAITING ||
                         g->state == AKINI_GROUP_ASSUMING ||
                         (g->state == AKINI_GROUP_JOINING && g->is_complete);
    const int is_doomed = p->is_doomed;
    p->incarnation = 0;
    p->is_doomed = 0;
    p->n_owed = 0;
    p->leases = (akin_message_leases_t){0};
    forget_identity(p);
    if (r->is_closing)
        return;
    g->said &= ~(UINT64_C(1) << (rank - g->first));
    tell_lost(r, g, is_bound && !is_doomed, &m);
    if (is_bound && !is_doomed) {
        AKIN_LOG(ROLES, ERROR, "%s rank %u is lost: %s",
                 is_worker
                     ? akini_router_is_prefill(r, rank) ? "prefill" : "decode"
                     : "waiting",
                 rank, akin_status_string(status));
        g->said = 0;
        g->is_complete = 0;
        g->state = r->params.job->recovery == AKIN_RECOVERY_SHRINK ||
                           akin_job_keeps_mpi(r->params.job)
                       ? AKINI_GROUP_GONE
                       : AKINI_GROUP_LOST;
    }
    if (is_worker)
        akini_router_lose_worker(r, g->worker);
    /* What it owed to others that become workers is owed no more. */
    for (uint32_t i = 0; i < r->n_groups; i++)
        akini_router_settle_group(r, &r->groups[i]);
    akini_router_fill_places(r);
}

static void stop(akin_router_t *r, uint32_t rank)
{
    akini_router_send(r, rank, AKIN_MESSAGE_STOP);
}

/* A group that lacks a rank for good can never serve: those of its ranks that
 * have come anew would wait in vain. The others end by themselves. */
static void give_up_group(akin_router_t *r, akini_group_t *g)
{
    g->state = AKINI_GROUP_GONE;
    for (uint32_t rank = g->first; rank < g->first + g->n_ranks; rank++)
        if (akin_net_has_peer(r->net, rank) && !r->processes[rank].is_doomed)
            stop(r, rank);
}

/* All ranks of a group are there: each learns of the others, and loads. */
static void tell_group(akin_router_t *r, akini_group_t *g)
{
    akin_message_identity_t ranks[AKIN_PLACEMENT_MAX_RANKS];
    const akin_message_group_t m = {.ranks = ranks, .n_ranks = g->n_ranks};
    for (uint32_t i = 0; i < g->n_ranks; i++) {
        const akini_process_t *p = &r->processes[g->first + i];
        ranks[i] = (akin_message_identity_t){
            .rank = g->first + i,
            .net = p->net,
            .net_bytes = p->net_bytes,
            .exchange = p->exchange,
            .exchange_bytes = p->exchange_bytes,
        };
    }
    g->said = 0;
    g->is_complete = 1;
    g->deadline_ns =
        akin_clock_now_ns() + r->params.job->start_timeout_ns + START_MARGIN_NS;
    for (uint32_t i = 0; i < g->n_ranks; i++) {
        akin_message_pack_group(&r->packer, &m);
        akini_router_send(r, g->first + i, AKIN_MESSAGE_GROUP);
    }
}

/* Whether a rank of the group may join: one that serves or waits is whole. */
static int is_open(const akin_router_t *r, const akini_group_t *g)
{
    return r->is_closing || g->state == AKINI_GROUP_LOST ||
           g->state == AKINI_GROUP_GONE ||
           (g->state == AKINI_GROUP_JOINING && !g->is_complete);
}

/* A new process of a rank whose loss was told before. */
static akin_status_t join(akin_router_t *r, uint32_t from,
                          const akin_message_join_t *m)
{
    akini_group_t *g = group_of(r, from);
    akini_process_t *p = &r->processes[from];
    akin_error_t err = {{0}};
    if (m->identity.rank != from || akin_net_has_peer(r->net, from) ||
        !is_open(r, g))
        return AKIN_ERR_INVALID;
    akin_status_t status = akin_net_add_peer(r->net, from, m->identity.net,
                                             m->identity.net_bytes, &err);
    if (status != AKIN_OK) {
        AKIN_LOG(ROLES, ERROR, "rank %u cannot join: %s", from, err.text);
        return AKIN_OK;
    }
    p->life = m->life;
    p->is_doomed = 0;
    p->has_stats = 0;
    status = keep_identity(p, &m->identity);
    if (status == AKIN_OK)
        status = watch(r, from);
    if (status != AKIN_OK)
        return status;
    if (m->is_last && g->state != AKINI_GROUP_GONE) {
        AKIN_LOG(ROLES, WARN, "rank %u is not started any more", from);
        give_up_group(r, g);
        return AKIN_OK;
    }
    if (r->is_closing || g->state == AKINI_GROUP_GONE) {
        stop(r, from);
        return AKIN_OK;
    }
    if (g->state == AKINI_GROUP_LOST) {
        g->state = AKINI_GROUP_JOINING;
        g->said = 0;
        g->deadline_ns = INT64_MAX; /* until all have come */
    }
    g->said |= UINT64_C(1) << (from - g->first);
    if (g->said == UINT64_MAX >> (64 - g->n_ranks))
        tell_group(r, g);
    return AKIN_OK;
}

static akin_status_t on_join(akin_router_t *r, uint32_t from,
                             const void *payload, size_t bytes)
{
    akin_message_join_t m;
    akin_status_t status = akin_message_unpack_join(payload, bytes, &m);
    return status == AKIN_OK ? join(r, from, &m) : status;
}

/* READY or ASSUMED of a rank. */
static void on_said(akin_router_t *r, uint32_t from, uint16_t type,
                    const akin_message_rank_t *m)
{
    akini_group_t *g = group_of(r, from);
    const int is_ready = type == AKIN_MESSAGE_READY;
    if (is_ready ? g->state != AKINI_GROUP_JOINING || !g->is_complete
                 : g->state != AKINI_GROUP_ASSUMING)
        return; /* its group was lost meanwhile */
    if (m->status != AKIN_OK) {
        AKIN_LOG(ROLES, ERROR, "rank %u cannot %s: %s", from,
                 is_ready ? "join" : "take the place of a lost one",
                 akin_status_string((akin_status_t)m->status));
        akin_net_drop_peer(r->net, from);
        return;
    }
    g->said |= UINT64_C(1) << (from - g->first);
    if (!is_ready) {
        akini_router_settle_group(r, g);
    } else if (g->said == UINT64_MAX >> (64 - g->n_ranks)) {
        g->state = AKINI_GROUP_WAITING;
        akini_router_fill_places(r);
    }
}

static void on_peered(akin_router_t *r, uint32_t from,
                      const akin_message_rank_t *m)
{
    if (r->processes[from].n_owed == 0)
        return;
    r->processes[from].n_owed--;
    /* Requests between the two would fail; they may go other ways. */
    if (m->status != AKIN_OK)
        AKIN_LOG(ROLES, WARN, "rank %u cannot connect to rank %u: %s", from,
                 m->rank, akin_status_string((akin_status_t)m->status));
    for (uint32_t i = 0; i < r->n_groups; i++)
        akini_router_settle_group(r, &r->groups[i]);
}

int akini_router_on_group_message(akin_router_t *r, uint32_t from,
                                  uint16_t type, const void *payload,
                                  size_t bytes)
{
    akin_message_rank_t m = {0};
    akin_status_t status;
    if (type == AKIN_MESSAGE_JOIN)
        status = on_join(r, from, payload, bytes);
    else if (type == AKIN_MESSAGE_READY || type == AKIN_MESSAGE_ASSUMED ||
             type == AKIN_MESSAGE_PEERED)
        status = akin_message_unpack_rank(payload, bytes, &m);
    else
        return 0;
    if (status != AKIN_OK) {
        AKIN_LOG(ROLES, ERROR, "%s of rank %u: %s", akin_message_name(type),
                 from, akin_status_string(status));
        akin_net_drop_peer(r->net, from);
    } else if (type == AKIN_MESSAGE_PEERED) {
        on_peered(r, from, &m);
    } else if (type != AKIN_MESSAGE_JOIN) {
        on_said(r, from, type, &m);
    }
    return 1;
}

int akini_router_is_awaited(const akin_router_t *r, int is_end)
{
    const uint32_t n_ranks = akin_job_n_ranks(r->params.job);
    for (uint32_t rank = 1; rank < n_ranks; rank++)
        if (akin_net_has_peer(r->net, rank) &&
            (is_end ||
             (r->places[rank] != NULL && !r->processes[rank].has_stats)))
            return 1;
    return 0;
}
