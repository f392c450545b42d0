/* Transfer: reads of blocks in pieces, their checks and their ends. */
#include "kv/transfer_state.h"

#include "base/clock.h"
#include "base/fault_point.h"
#include "base/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/*
 * What may be under way at a time. One-sided reads can be copies by this very
 * thread: two pieces keep a wire busy while one is checked, and more would
 * leave the cache before their turn. Answers of an owner arrive one after
 * another, each some time after it was asked for: more of them hide that time.
 */
#define ONE_SIDED_WINDOW_BYTES ((size_t)8 << 20)
#define RENDEZVOUS_WINDOW_BYTES ((size_t)32 << 20)
#define WINDOW_PIECES 2

akin_status_t akin_kv_transfers_create(akin_net_t *net, akin_kv_cache_t *cache,
                                       const akin_kv_view_t *view,
                                       akin_kv_transfers_t **transfers_p)
{
    *transfers_p = NULL;
    akin_kv_transfers_t *transfers = calloc(1, sizeof(*transfers));
    if (transfers == NULL)
        return AKIN_ERR_NOMEM;
#ifdef AKIN_FAULTS
    akin_error_t err = {{0}};
    akin_status_t status = akini_kv_faults_init(&transfers->faults, &err);
    if (status != AKIN_OK) {
        AKIN_LOG(KV, ERROR, "%s", err.text);
        free(transfers);
        return status;
    }
#endif
    transfers->net = net;
    transfers->cache = cache;
    transfers->view = *view;
    transfers->next_id = 1;
    transfers->next_deadline_ns = INT64_MAX;
    *transfers_p = transfers;
    return AKIN_OK;
}

static void unref_piece(akini_kv_transfer_t *t, const akini_kv_piece_t *piece)
{
    for (uint32_t i = 0; i < piece->n_blocks; i++)
        akin_kv_cache_unref(t->owner->cache, t->slots[piece->first + i]);
}

static void set_starved(akini_kv_transfer_t *t, int is_starved)
{
    t->owner->n_starved -= (uint32_t)t->is_starved;
    t->is_starved = is_starved;
    t->owner->n_starved += (uint32_t)is_starved;
}

/* Ends a transfer's life among others; its running reads may go on. */
static void retire(akini_kv_transfer_t *t)
{
    akin_kv_transfers_t *owner = t->owner;
    t->is_ended = 1;
    set_starved(t, 0);
    DL_DELETE(owner->active, t);
    DL_APPEND(owner->zombies, t);
    if (t->params.deadline_ns == owner->next_deadline_ns)
        owner->is_deadline_stale = 1;
    for (uint32_t i = t->n_issued; i < t->n_pieces; i++)
        unref_piece(t, &t->pieces[i]);
}

static void free_if_done(akini_kv_transfer_t *t)
{
    if (t->n_flying > 0)
        return;
    DL_DELETE(t->owner->zombies, t);
    free(t);
}

static void finish(akini_kv_transfer_t *t, akin_status_t status)
{
    assert(!t->is_ended);
    retire(t);
    if (status != AKIN_OK && status != AKIN_ERR_REFUSED)
        t->owner->stats.failed++;
    t->result.status = status;
    t->result.ns = akin_clock_now_ns() - t->start_ns;
    t->params.done(t->params.arg, &t->result);
    free_if_done(t);
}

/* What a failed read means for the transfer. */
static akin_status_t convert_status(akin_status_t status)
{
    switch (status) {
    case AKIN_OK:
    case AKIN_ERR_NOMEM:
    case AKIN_ERR_RANGE:
    case AKIN_ERR_CANCELED:
    case AKIN_ERR_TIMEOUT:
        return status;
    default:
        return AKIN_ERR_PEER;
    }
}

static void on_read(void *arg, akin_status_t status);

/* Starts reads as far as the window and the net allow, at least one; without
 * room for that one the transfer is starved. */
static akin_status_t issue_pieces(akini_kv_transfer_t *t)
{
    akin_kv_transfers_t *owner = t->owner;
    const akin_kv_layout_t *layout = owner->view.layout;
    set_starved(t, 0);
    while (t->n_issued < t->n_pieces) {
        akini_kv_piece_t *piece = &t->pieces[t->n_issued];
        size_t bytes = akini_kv_piece_bytes(layout, piece);
        if (t->n_flying >= WINDOW_PIECES &&
            t->flying_bytes + bytes > t->window_bytes)
            break;
        uint64_t offset =
            (uint64_t)t->blocks[piece->first].slot * layout->stride_bytes;
        akin_status_t status =
            akin_net_read(owner->net, t->params.owner, offset,
                          akin_kv_slot(&owner->view, t->slots[piece->first]),
                          bytes, on_read, piece);
        if (status == AKIN_ERR_FULL) {
            set_starved(t, t->n_flying == 0);
            break;
        }
        if (status != AKIN_OK)
            return convert_status(status);
        t->n_issued++;
        t->n_flying++;
        t->flying_bytes += bytes;
        owner->stats.pieces++;
    }
    return AKIN_OK;
}

/* A read of this transfer has completed; may end and free it. */
static void advance(akini_kv_transfer_t *t, const akini_kv_piece_t *piece,
                    akin_status_t status)
{
    size_t bytes = akini_kv_piece_bytes(t->owner->view.layout, piece);
    t->flying_bytes -= bytes;
    if (status == AKIN_OK)
        t->owner->stats.bytes += bytes;
    if (t->is_ended) {
        unref_piece(t, piece);
        free_if_done(t);
        return;
    }
    status = convert_status(status);
    if (status == AKIN_OK) {
        t->result.bytes += bytes;
        if (t->n_flying > 0 || t->n_issued < t->n_pieces || t->n_pieces == 1)
            AKIN_FAULT_POINT("mid-read", NULL);
        status = akini_kv_piece_check(t, piece);
    }
    unref_piece(t, piece);
    if (status == AKIN_OK)
        status = issue_pieces(t);
    if (status != AKIN_OK || (t->n_flying == 0 && !t->is_starved)) {
        if (status == AKIN_OK)
            AKIN_FAULT_POINT("after-read", NULL);
        finish(t, status);
    }
}

/* The net has room for one more read. Callbacks may change the list, so the
 * search begins anew after each end. */
static void feed_starved(akin_kv_transfers_t *transfers)
{
    akini_kv_transfer_t *t = transfers->active;
    while (t != NULL && transfers->n_starved > 0) {
        akin_status_t status = t->is_starved ? issue_pieces(t) : AKIN_OK;
        if (status != AKIN_OK) {
            finish(t, status);
            t = transfers->active;
        } else if (t->is_starved) {
            return;
        } else {
            t = t->next;
        }
    }
}

static void on_read(void *arg, akin_status_t status)
{
    const akini_kv_piece_t *piece = arg;
    akini_kv_transfer_t *t = piece->transfer;
    akin_kv_transfers_t *owner = t->owner;
    t->n_flying--;
    if (owner != NULL) {
        advance(t, piece, status);
        feed_starved(owner);
    } else if (t->n_flying == 0) {
        free(t);
    }
}

static akin_status_t create_transfer(const akin_kv_transfer_params_t *params,
                                     akini_kv_transfer_t **transfer_p)
{
    const size_t n = params->n_blocks;
    akini_kv_transfer_t *t =
        calloc(1, sizeof(*t) + n * (sizeof(*t->blocks) + sizeof(*t->pieces) +
                                    sizeof(*t->slots)));
    if (t == NULL)
        return AKIN_ERR_NOMEM;
    void *after = t + 1;
    t->blocks = after;
    after = t->blocks + n;
    t->pieces = after;
    after = t->pieces + n;
    t->slots = after;
    memcpy(t->blocks, params->blocks, n * sizeof(*t->blocks));
    memcpy(t->slots, params->slots, n * sizeof(*t->slots));
    t->params = *params;
    t->params.blocks = t->blocks;
    t->params.slots = t->slots;
    t->start_ns = akin_clock_now_ns();
    *transfer_p = t;
    return AKIN_OK;
}

static akin_status_t check_params(const akin_kv_transfers_t *transfers,
                                  const akin_kv_transfer_params_t *params)
{
    const akin_kv_view_t *view = &transfers->view;
    if (params->n_blocks == 0 || params->n_blocks > view->n_slots)
        return AKIN_ERR_RANGE;
    for (uint32_t i = 0; i < params->n_blocks; i++)
        if (params->slots[i] >= view->n_slots ||
            params->blocks[i].n_tokens == 0 ||
            params->blocks[i].n_tokens > view->layout->shape.block_tokens)
            return AKIN_ERR_RANGE;
    return AKIN_OK;
}

akin_status_t akin_kv_transfers_start(akin_kv_transfers_t *transfers,
                                      const akin_kv_transfer_params_t *params,
                                      uint64_t *id_p)
{
    if (transfers->is_closing)
        return AKIN_ERR_PEER;
    akini_kv_transfer_t *t = NULL;
    akin_status_t status = check_params(transfers, params);
    if (status == AKIN_OK)
        status = create_transfer(params, &t);
    if (status != AKIN_OK)
        return status;
    t->owner = transfers;
    t->id = transfers->next_id++;
    t->window_bytes = akin_net_is_one_sided(transfers->net, params->owner)
                          ? ONE_SIDED_WINDOW_BYTES
                          : RENDEZVOUS_WINDOW_BYTES;
    akini_kv_transfer_cut(t, transfers->view.layout->stride_bytes);
    for (uint32_t i = 0; i < params->n_blocks; i++)
        akin_kv_cache_ref(transfers->cache, t->slots[i]);
    DL_APPEND(transfers->active, t);
    AKIN_FAULT_POINT("before-read", NULL);
    status = issue_pieces(t);
    if (status != AKIN_OK) {
        retire(t);
        free_if_done(t);
        return status == AKIN_ERR_RANGE || status == AKIN_ERR_NOMEM
                   ? status
                   : AKIN_ERR_PEER;
    }
    transfers->stats.transfers++;
    if (params->deadline_ns < transfers->next_deadline_ns)
        transfers->next_deadline_ns = params->deadline_ns;
    *id_p = t->id;
    return AKIN_OK;
}

void akin_kv_transfers_cancel(akin_kv_transfers_t *transfers, uint64_t id)
{
    akini_kv_transfer_t *t;
    DL_SEARCH_SCALAR(transfers->active, t, id, id);
    if (t != NULL)
        finish(t, AKIN_ERR_CANCELED);
}

/* The callbacks of those that end may start and cancel others, so the search
 * begins anew after each. */
static akini_kv_transfer_t *find_expired(const akin_kv_transfers_t *transfers,
                                         int64_t now_ns)
{
    akini_kv_transfer_t *t;
    DL_FOREACH(transfers->active, t)
    if (t->params.deadline_ns <= now_ns)
        return t;
    return NULL;
}

int64_t akin_kv_transfers_expire(akin_kv_transfers_t *transfers, int64_t now_ns)
{
    feed_starved(transfers);
    if (transfers->next_deadline_ns <= now_ns) {
        akini_kv_transfer_t *t;
        while ((t = find_expired(transfers, now_ns)) != NULL)
            finish(t, AKIN_ERR_TIMEOUT);
        transfers->is_deadline_stale = 1;
    }
    if (transfers->is_deadline_stale) {
        int64_t next = INT64_MAX;
        akini_kv_transfer_t *t;
        DL_FOREACH(transfers->active, t)
        if (t->params.deadline_ns < next)
            next = t->params.deadline_ns;
        transfers->next_deadline_ns = next;
        transfers->is_deadline_stale = 0;
    }
    return transfers->next_deadline_ns;
}

void akin_kv_transfers_destroy(akin_kv_transfers_t *transfers)
{
    if (transfers == NULL)
        return;
    transfers->is_closing = 1;
    while (transfers->active != NULL)
        finish(transfers->active, AKIN_ERR_CANCELED);
    akini_kv_transfer_t *t, *next;
    DL_FOREACH_SAFE(transfers->zombies, t, next)
    t->owner = NULL;
    free(transfers);
}

void akin_kv_transfers_stats(const akin_kv_transfers_t *transfers,
                             akin_kv_transfer_stats_t *stats_p)
{
    *stats_p = transfers->stats;
}
