/* Piece buffer: memory of its own for a piece that came from a rank. */
#ifndef AKIN_EP_PIECE_BUFFER_H
#define AKIN_EP_PIECE_BUFFER_H

#include "ep/exchange.h"

/* A piece stays while the next swap runs, and meanwhile a rank that is ahead
 * may send one for the swap after it. */
#define AKINI_EP_PIECE_AGES 3u

/** Starts zeroed. */
typedef struct akini_ep_piece_buffer {
    akin_ep_piece_t piece; /* of `memory`, aligned to 64 bytes */
    void *memory;
    size_t capacity_bytes;
} akini_ep_piece_buffer_t;

/** Make room; what was there is lost. \return AKIN_OK, AKIN_ERR_NOMEM */
akin_status_t akini_ep_piece_buffer_reserve(akini_ep_piece_buffer_t *buffer,
                                            size_t bytes) AKIN_MUST_CHECK;

/** Copy a piece. \return AKIN_OK, AKIN_ERR_NOMEM */
akin_status_t
akini_ep_piece_buffer_set(akini_ep_piece_buffer_t *buffer,
                          const akin_ep_piece_t *piece) AKIN_MUST_CHECK;

void akini_ep_piece_buffer_cleanup(akini_ep_piece_buffer_t *buffer);

#endif
