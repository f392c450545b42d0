/* Piece: blocks of a transfer that one read moves. */
#include "kv/transfer_state.h"

#include "base/log.h"

/*
 * Long enough for the full bandwidth of any path, short enough that a piece is
 * still in the cache when it is checked and that heartbeats are answered
 * between two pieces.
 */
#define PIECE_MAX_BYTES ((size_t)4 << 20)

void akini_kv_transfer_cut(akini_kv_transfer_t *t, size_t stride_bytes)
{
    size_t most = PIECE_MAX_BYTES / stride_bytes;
    akini_kv_piece_t *piece = NULL;
    for (uint32_t i = 0; i < t->params.n_blocks; i++) {
        if (piece != NULL && piece->n_blocks < most &&
            t->slots[i] == t->slots[i - 1] + 1 &&
            t->blocks[i].slot == t->blocks[i - 1].slot + 1) {
            piece->n_blocks++;
            continue;
        }
        piece = &t->pieces[t->n_pieces++];
        *piece = (akini_kv_piece_t){.transfer = t, .first = i, .n_blocks = 1};
    }
}

size_t akini_kv_piece_bytes(const akin_kv_layout_t *layout,
                            const akini_kv_piece_t *piece)
{
    return (piece->n_blocks - 1) * layout->stride_bytes + layout->payload_bytes;
}

akin_status_t akini_kv_piece_check(akini_kv_transfer_t *t,
                                   const akini_kv_piece_t *piece)
{
    akin_kv_transfers_t *owner = t->owner;
    const akin_kv_layout_t *layout = owner->view.layout;
    for (uint32_t i = piece->first; i < piece->first + piece->n_blocks; i++) {
        unsigned char *slot = akin_kv_slot(&owner->view, t->slots[i]);
#ifdef AKIN_FAULTS
        akini_kv_faults_damage(&owner->faults, layout, slot);
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
