/* Group combine: the experts' outputs on their way back to the rows. */
#include "ep/group_state.h"

#include <string.h>

static akin_status_t accept_combine(akin_ep_group_t *g, uint32_t from,
                                    uint32_t layer)
{
    const size_t hidden = g->step.hidden;
    const akini_ep_link_t *link = &g->links[from];
    akini_ep_head_t head;
    akin_status_t status =
        akini_ep_head_get(g, from, AKINI_EP_COMBINE, layer, &head);
    if (status != AKIN_OK)
        return status;
    if (head.n_pairs != link->n_pairs ||
        g->in[from].bytes !=
            AKINI_EP_ALIGN + head.n_pairs * hidden * sizeof(float))
        return akin_error_set(
            &g->error, AKIN_ERR_FORMAT,
            "rank %u of the group: %zu bytes for %u pairs came back in layer "
            "%u, asked were %u",
            (unsigned)from, g->in[from].bytes, (unsigned)head.n_pairs,
            (unsigned)layer, (unsigned)link->n_pairs);
    const void *vectors =
        (const unsigned char *)g->in[from].data + AKINI_EP_ALIGN;
    const float *out = vectors;
    for (uint32_t p = 0; p < link->n_pairs; p++)
        g->terms[link->choices[p]] = out + p * hidden;
    return AKIN_OK;
}

akin_status_t akini_ep_combine(akin_ep_group_t *g, uint32_t layer)
{
    for (uint32_t r = 0; r < g->placement.n_ranks; r++) {
        akini_ep_link_t *link = &g->links[r];
        if (r == g->exchange->rank)
            continue;
        memset(link->combine, 0, AKINI_EP_ALIGN);
        akini_ep_head_put(g, link->combine, AKINI_EP_COMBINE, layer, 0,
                          link->n_served);
        g->out[r] = (akin_ep_piece_t){
            link->combine, AKINI_EP_ALIGN + (size_t)link->n_served *
                                                g->step.hidden * sizeof(float)};
    }
    akin_status_t status = akini_ep_swap(g, AKINI_EP_COMBINE, layer);
    for (uint32_t r = 0; status == AKIN_OK && r < g->placement.n_ranks; r++)
        if (r != g->exchange->rank)
            status = accept_combine(g, r, layer);
    return status;
}
