/* Transfer state: a running transfer and its pieces, shared by the files that
 * move them. */
#ifndef AKIN_KV_TRANSFER_STATE_H
#define AKIN_KV_TRANSFER_STATE_H

#include "kv/transfer.h"
#ifdef AKIN_FAULTS
#include "kv/fault.h"
#endif

typedef struct akini_kv_transfer akini_kv_transfer_t;

/** Blocks [first, first + n_blocks) of a transfer, read at once. */
typedef struct akini_kv_piece {
    akini_kv_transfer_t *transfer;
    uint32_t first;
    uint32_t n_blocks;
} akini_kv_piece_t;

/**
 * A transfer is in `active` until it ends. As long as a read may still write
 * to its slots it stays in `zombies` and keeps their references.
 */
struct akini_kv_transfer {
    akin_kv_transfers_t *owner; /* NULL: destroyed while reads were running */
    akini_kv_transfer_t *prev, *next;
    uint64_t id;
    akin_kv_transfer_params_t params;
    akin_kv_transfer_result_t result;
    int64_t start_ns;
    uint32_t n_pieces;
    uint32_t n_issued; /* pieces of which the read was started */
    uint32_t n_flying; /* of these, not completed */
    size_t flying_bytes;
    size_t window_bytes;
    int is_starved; /* the net had no room for any of its reads */
    int is_ended;
    akin_kv_descriptor_t *blocks; /* these three lie behind the struct */
    akini_kv_piece_t *pieces;
    uint32_t *slots;
};

struct akin_kv_transfers {
    akin_net_t *net;
    akin_kv_cache_t *cache;
    akin_kv_view_t view;
    akini_kv_transfer_t *active;
    akini_kv_transfer_t *zombies;
    uint64_t next_id;
    uint32_t n_starved;
    int64_t next_deadline_ns;
    int is_deadline_stale; /* the transfer that it belonged to has ended */
    int is_closing;
    akin_kv_transfer_stats_t stats;
#ifdef AKIN_FAULTS
    akini_kv_faults_t faults;
#endif
};

/** Cut a transfer into pieces: runs that ascend by one on both sides. */
void akini_kv_transfer_cut(akini_kv_transfer_t *t, size_t stride_bytes);

/** What a piece moves: whole strides, but of the last block the payload. */
size_t akini_kv_piece_bytes(const akin_kv_layout_t *layout,
                            const akini_kv_piece_t *piece);

/**
 * Check the blocks of a piece that has arrived. An accepted block belongs to
 * its new slot from here on: the header has that slot's generation.
 *
 * \return AKIN_OK
 * \return AKIN_ERR_REFUSED: the transfer's result says which block and why.
 */
akin_status_t
akini_kv_piece_check(akini_kv_transfer_t *t,
                     const akini_kv_piece_t *piece) AKIN_MUST_CHECK;

#endif
