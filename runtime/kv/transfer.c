/* Transfer: reads of blocks in pieces, their checks and their ends. */
#include "kv/transfer.h"

#include "base/clock.h"
#include "base/log.h"
#ifdef AKIN_FAULTS
#include "kv/fault.h"
#endif

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/*
 * A piece is long enough for the full bandwidth of any path, short enough that
 * it is still in the cache when it is checked and that heartbeats are answered
 * between two pieces. The window keeps the wire busy during the checks.
 */
#define PIECE_MAX_BYTES ((size_t)4 << 20)
#define WINDOW_BYTES ((size_t)16 << 20)

typedef struct transfer transfer_t;

/** Blocks [first, first + n_blocks) of a transfer, read at once. */
typedef struct piece {
    transfer_t *transfer;
    uint32_t first;
    uint32_t n_blocks;
} piece_t;

/**
 * A transfer is in `active` until it ends. As long as a read may still write
 * to its slots it stays in `zombies` and keeps their references.
 */
struct transfer {
    akin_kv_transfers_t *owner; /* NULL: destroyed while reads were running */
    transfer_t *prev, *next;
    uint64_t id;
    akin_kv_transfer_params_t params;
    akin_kv_transfer_result_t result;
    int64_t start_ns;
    uint32_t n_pieces;
    uint32_t n_issued; /* pieces of which the read was started */
    uint32_t n_flying; /* of these, not completed */
    size_t flying_bytes;
    int is_ended;
    akin_kv_descriptor_t *blocks; /* these three lie behind the struct */
    piece_t *pieces;
    uint32_t *slots;
};

struct akin_kv_transfers {
    akin_net_t *net;
    akin_kv_cache_t *cache;
    akin_kv_view_t view;
    transfer_t *active;
    transfer_t *zombies;
    uint64_t next_id;
    int64_t next_deadline_ns;
    int is_deadline_stale; /* the transfer that it belonged to has ended */
    int is_closing;
    akin_kv_transfer_stats_t stats;
};

akin_status_t akin_kv_transfers_create(akin_net_t *net, akin_kv_cache_t *cache,
                                       const akin_kv_view_t *view,
                                       akin_kv_transfers_t **transfers_p)
{
    *transfers_p = NULL;
#ifdef AKIN_FAULTS
    akin_error_t err = {{0}};
    akin_status_t status = akini_kv_fault_configure(&err);
    if (status != AKIN_OK) {
        AKIN_LOG(KV, ERROR, "%s", err.text);
        return status;
    }
#endif
    akin_kv_transfers_t *transfers = calloc(1, sizeof(*transfers));
    if (transfers == NULL)
        return AKIN_ERR_NOMEM;
    transfers->net = net;
    transfers->cache = cache;
    transfers->view = *view;
    transfers->next_id = 1;
    transfers->next_deadline_ns = INT64_MAX;
    *transfers_p = transfers;
    return AKIN_OK;
}

static size_t piece_bytes(const akin_kv_layout_t *layout, const piece_t *piece)
{
    return (piece->n_blocks - 1) * layout->stride_bytes + layout->payload_bytes;
}

static void unref_piece(transfer_t *t, const piece_t *piece)
{
    for (uint32_t i = 0; i < piece->n_blocks; i++)
        akin_kv_cache_unref(t->owner->cache, t->slots[piece->first + i]);
}

/* Ends a transfer's life among others; its running reads may go on. */
static void retire(transfer_t *t)
{
    akin_kv_transfers_t *owner = t->owner;
    t->is_ended = 1;
    DL_DELETE(owner->active, t);
    DL_APPEND(owner->zombies, t);
    if (t->params.deadline_ns == owner->next_deadline_ns)
        owner->is_deadline_stale = 1;
    for (uint32_t i = t->n_issued; i < t->n_pieces; i++)
        unref_piece(t, &t->pieces[i]);
}

static void free_if_done(transfer_t *t)
{
    if (t->n_flying > 0)
        return;
    DL_DELETE(t->owner->zombies, t);
    free(t);
}

static void finish(transfer_t *t, akin_status_t status)
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

/* Starts reads as far as the window allows, at least one. */
static akin_status_t issue_pieces(transfer_t *t)
{
    akin_kv_transfers_t *owner = t->owner;
    const akin_kv_layout_t *layout = owner->view.layout;
    while (t->n_issued < t->n_pieces) {
        piece_t *piece = &t->pieces[t->n_issued];
        size_t bytes = piece_bytes(layout, piece);
        if (t->n_flying > 0 && t->flying_bytes + bytes > WINDOW_BYTES)
            break;
        uint64_t offset =
            (uint64_t)t->blocks[piece->first].slot * layout->stride_bytes;
        akin_status_t status =
            akin_net_read(owner->net, t->params.owner, offset,
                          akin_kv_slot(&owner->view, t->slots[piece->first]),
                          bytes, on_read, piece);
        if (status != AKIN_OK)
            return convert_status(status);
        t->n_issued++;
        t->n_flying++;
        t->flying_bytes += bytes;
        owner->stats.pieces++;
    }
    return AKIN_OK;
}

/* Checks the blocks of a piece that has arrived. An accepted block belongs to
 * its new slot from here on. */
static akin_status_t check_piece(transfer_t *t, const piece_t *piece)
{
    akin_kv_transfers_t *owner = t->owner;
    const akin_kv_layout_t *layout = owner->view.layout;
    for (uint32_t i = piece->first; i < piece->first + piece->n_blocks; i++) {
        unsigned char *slot = akin_kv_slot(&owner->view, t->slots[i]);
#ifdef AKIN_FAULTS
        akini_kv_fault_damage(layout, slot);
#endif
        akin_kv_refusal_t refusal =
            akin_kv_block_check(layout, slot, &t->blocks[i]);
        if (refusal != AKIN_KV_REFUSAL_NONE) {
            AKIN_LOG(KV, WARN,
                     "block %u of %u from rank %u refused: %s is not what was "
                     "promised",
                     (unsigned)i, (unsigned)t->params.n_blocks,
                     (unsigned)t->params.owner,
                     akin_kv_refusal_string(refusal));
            t->result.refusal = refusal;
            t->result.refused_block = i;
            owner->stats.refused[refusal]++;
            return AKIN_ERR_REFUSED;
        }
        akin_kv_header(slot)->generation =
            akin_kv_cache_generation(owner->cache, t->slots[i]);
        t->result.n_blocks++;
        owner->stats.blocks++;
    }
    return AKIN_OK;
}

static void on_read(void *arg, akin_status_t status)
{
    const piece_t *piece = arg;
    transfer_t *t = piece->transfer;
    t->n_flying--;
    if (t->owner == NULL) {
        if (t->n_flying == 0)
            free(t);
        return;
    }
    size_t bytes = piece_bytes(t->owner->view.layout, piece);
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
        status = check_piece(t, piece);
    }
    unref_piece(t, piece);
    if (status == AKIN_OK)
        status = issue_pieces(t);
    if (status != AKIN_OK || t->n_flying == 0)
        finish(t, status);
}

/* Cuts a transfer into pieces: runs that ascend by one on both sides. */
static void cut_pieces(transfer_t *t, size_t stride_bytes)
{
    size_t most = PIECE_MAX_BYTES / stride_bytes;
    piece_t *piece = NULL;
    for (uint32_t i = 0; i < t->params.n_blocks; i++) {
        if (piece != NULL && piece->n_blocks < most &&
            t->slots[i] == t->slots[i - 1] + 1 &&
            t->blocks[i].slot == t->blocks[i - 1].slot + 1) {
            piece->n_blocks++;
            continue;
        }
        piece = &t->pieces[t->n_pieces++];
        *piece = (piece_t){.transfer = t, .first = i, .n_blocks = 1};
    }
}

static akin_status_t create_transfer(const akin_kv_transfer_params_t *params,
                                     transfer_t **transfer_p)
{
    const size_t n = params->n_blocks;
    transfer_t *t =
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
    transfer_t *t = NULL;
    akin_status_t status = check_params(transfers, params);
    if (status == AKIN_OK)
        status = create_transfer(params, &t);
    if (status != AKIN_OK)
        return status;
    t->owner = transfers;
    t->id = transfers->next_id++;
    cut_pieces(t, transfers->view.layout->stride_bytes);
    for (uint32_t i = 0; i < params->n_blocks; i++)
        akin_kv_cache_ref(transfers->cache, t->slots[i]);
    DL_APPEND(transfers->active, t);
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
    transfer_t *t;
    DL_SEARCH_SCALAR(transfers->active, t, id, id);
    if (t != NULL)
        finish(t, AKIN_ERR_CANCELED);
}

/* The callbacks of those that end may start and cancel others, so the search
 * begins anew after each. */
static transfer_t *find_expired(const akin_kv_transfers_t *transfers,
                                int64_t now_ns)
{
    transfer_t *t;
    DL_FOREACH(transfers->active, t)
    if (t->params.deadline_ns <= now_ns)
        return t;
    return NULL;
}

int64_t akin_kv_transfers_expire(akin_kv_transfers_t *transfers, int64_t now_ns)
{
    if (transfers->next_deadline_ns <= now_ns) {
        transfer_t *t;
        while ((t = find_expired(transfers, now_ns)) != NULL)
            finish(t, AKIN_ERR_TIMEOUT);
        transfers->is_deadline_stale = 1;
    }
    if (transfers->is_deadline_stale) {
        int64_t next = INT64_MAX;
        transfer_t *t;
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
    transfer_t *t, *next;
    DL_FOREACH_SAFE(transfers->zombies, t, next)
    t->owner = NULL;
    free(transfers);
}

void akin_kv_transfers_stats(const akin_kv_transfers_t *transfers,
                             akin_kv_transfer_stats_t *stats_p)
{
    *stats_p = transfers->stats;
}
