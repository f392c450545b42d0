/* Piece buffer: grows to the longest piece it has held. */
#include "ep/piece_buffer.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN_BYTES ((size_t)64)

akin_status_t akini_ep_piece_buffer_reserve(akini_ep_piece_buffer_t *buffer,
                                            size_t bytes)
{
    buffer->piece = (akin_ep_piece_t){buffer->memory, bytes};
    if (bytes <= buffer->capacity_bytes)
        return AKIN_OK;
    /* Half as much again, so that slowly growing pieces do not each allocate.
     */
    size_t capacity = bytes + bytes / 2;
    capacity = (capacity + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    void *memory =
        capacity > bytes ? aligned_alloc(ALIGN_BYTES, capacity) : NULL;
    if (memory == NULL)
        return AKIN_ERR_NOMEM;
    free(buffer->memory);
    buffer->memory = memory;
    buffer->capacity_bytes = capacity;
    buffer->piece.data = memory;
    return AKIN_OK;
}

akin_status_t akini_ep_piece_buffer_set(akini_ep_piece_buffer_t *buffer,
                                        const akin_ep_piece_t *piece)
{
    akin_status_t status = akini_ep_piece_buffer_reserve(buffer, piece->bytes);
    if (status == AKIN_OK && piece->bytes > 0)
        memcpy(buffer->memory, piece->data, piece->bytes);
    return status;
}

void akini_ep_piece_buffer_cleanup(akini_ep_piece_buffer_t *buffer)
{
    free(buffer->memory);
    *buffer = (akini_ep_piece_buffer_t){0};
}
