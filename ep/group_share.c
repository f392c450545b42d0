/* Group share: bytes from every rank of a group to every other one. */
#include "ep/group_state.h"

#include <stdlib.h>
#include <string.h>

/* Room for a message; a buffer that is too small has none to keep. */
static akin_status_t make_room(akin_ep_group_t *g, size_t bytes)
{
    if (bytes <= g->share_bytes)
        return AKIN_OK;
    free(g->share);
    g->share = malloc(bytes);
    g->share_bytes = g->share != NULL ? bytes : 0;
    return g->share != NULL
               ? AKIN_OK
               : akin_error_set(&g->error, AKIN_ERR_NOMEM,
                                "expert-parallel group: out of memory");
}

static akin_status_t take(akin_ep_group_t *g, size_t bytes,
                          akin_ep_piece_t *pieces)
{
    akin_status_t status = AKIN_OK;
    for (uint32_t r = 0; status == AKIN_OK && r < g->placement.n_ranks; r++) {
        akini_ep_head_t head;
        if (r == g->exchange->rank)
            continue;
        status = akini_ep_head_get(g, r, AKINI_EP_SHARE, 0, &head);
        if (status == AKIN_OK && g->in[r].bytes != sizeof(head) + bytes)
            status = akin_error_set(&g->error, AKIN_ERR_FORMAT,
                                    "rank %u of the group shares %zu bytes, "
                                    "this rank %zu",
                                    (unsigned)r, g->in[r].bytes - sizeof(head),
                                    bytes);
        pieces[r] = (akin_ep_piece_t){
            (const unsigned char *)g->in[r].data + sizeof(head), bytes};
    }
    return status;
}

akin_status_t akin_ep_group_share(akin_ep_group_t *g, const void *data,
                                  size_t bytes, akin_ep_piece_t *pieces)
{
    const size_t message_bytes = sizeof(akini_ep_head_t) + bytes;
    if (g->status == AKIN_OK)
        g->status = make_room(g, message_bytes);
    if (g->status != AKIN_OK)
        return g->status;
    akini_ep_head_put(g, g->share, AKINI_EP_SHARE, 0, 0, 0);
    memcpy(g->share + sizeof(akini_ep_head_t), data, bytes);
    for (uint32_t r = 0; r < g->placement.n_ranks; r++)
        g->out[r] = (akin_ep_piece_t){g->share, message_bytes};
    g->status = akini_ep_swap(g, AKINI_EP_SHARE, 0);
    if (g->status == AKIN_OK)
        g->status = take(g, bytes, pieces);
    pieces[g->exchange->rank] = (akin_ep_piece_t){data, bytes};
    return g->status;
}
