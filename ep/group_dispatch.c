/* Group dispatch: who serves which pair, and the vectors on their way there. */
#include "ep/group_state.h"

#include "ep/placement_choice.h"

#include <string.h>

static void set_bits(uint64_t *bits, const uint16_t *experts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bits[experts[i] / 64] |= UINT64_C(1) << experts[i] % 64;
}

/* Add what the others' rows chose to the own choices. */
static akin_status_t gather_active(akin_ep_group_t *g, uint32_t layer)
{
    const size_t bytes = g->n_words * sizeof(*g->active_of_all);
    const uint32_t n_left = g->step.n_experts % 64;
    akini_ep_head_put(g, g->active, AKINI_EP_ACTIVE, layer, 0, 0);
    memcpy((unsigned char *)g->active + sizeof(akini_ep_head_t),
           g->active_of_all, bytes);
    for (uint32_t r = 0; r < g->placement.n_ranks; r++)
        g->out[r] =
            (akin_ep_piece_t){g->active, sizeof(akini_ep_head_t) + bytes};
    akin_status_t status = akini_ep_swap(g, AKINI_EP_ACTIVE, layer);
    for (uint32_t r = 0; status == AKIN_OK && r < g->placement.n_ranks; r++) {
        akini_ep_head_t head;
        if (r == g->exchange->rank)
            continue;
        status = akini_ep_head_get(g, r, AKINI_EP_ACTIVE, layer, &head);
        if (status != AKIN_OK)
            break;
        uint64_t word = 0;
        const unsigned char *at =
            (const unsigned char *)g->in[r].data + sizeof(head);
        int fits = g->in[r].bytes == sizeof(head) + bytes;
        for (size_t w = 0; fits && w < g->n_words; w++) {
            memcpy(&word, at + w * sizeof(word), sizeof(word));
            g->active_of_all[w] |= word;
        }
        /* No expert beyond the last one. */
        if (!fits || (n_left != 0 && word >> n_left != 0))
            status = akin_error_set(&g->error, AKIN_ERR_FORMAT,
                                    "rank %u of the group: malformed set of "
                                    "experts in layer %u",
                                    (unsigned)r, (unsigned)layer);
    }
    return status;
}

akin_status_t akini_ep_choose(akin_ep_group_t *g, uint32_t layer,
                              const akin_expert_batch_t *batch)
{
    const uint64_t *holders = akin_placement_layer(&g->placement, layer);
    if (g->placement.n_replicas == 0) {
        for (uint32_t e = 0; e < g->step.n_experts; e++)
            g->rank_of[e] = (uint8_t)__builtin_ctzll(holders[e]);
        return AKIN_OK;
    }
    memset(g->active_of_all, 0, g->n_words * sizeof(*g->active_of_all));
    set_bits(g->active_of_all, batch->routes,
             (size_t)batch->n_rows * g->step.top_k);
    akin_status_t status = gather_active(g, layer);
    if (status == AKIN_OK)
        (void)akin_placement_choose(holders, g->active_of_all,
                                    g->step.n_experts, g->placement.n_ranks,
                                    g->rank_of, g->loads);
    return status;
}

void akini_ep_plan(akin_ep_group_t *g, uint32_t layer,
                   const akin_expert_batch_t *batch)
{
    const size_t hidden = g->step.hidden;
    const uint32_t k = g->step.top_k, own = g->exchange->rank;
    for (uint32_t r = 0; r < g->placement.n_ranks; r++) {
        akini_ep_link_t *link = &g->links[r];
        link->n_rows = link->n_pairs = 0;
        if (r != own)
            link->dispatch = akini_ep_place(
                g, r,
                akini_ep_dispatch_vectors((size_t)batch->n_rows * k) +
                    batch->n_rows * hidden * sizeof(float),
                link->own_dispatch);
    }
    g->n_list = 0;
    for (uint32_t i = 0; i < batch->n_rows * k; i++) {
        const uint32_t row = i / k, expert = batch->routes[i];
        const uint32_t rank = g->rank_of[expert];
        akini_ep_link_t *link = &g->links[rank];
        if (rank == own) {
            float *out = g->out_buffer + i * hidden;
            g->list[g->n_list++] = (akin_expert_pair_t){
                .x = batch->x + row * hidden, .out = out, .expert = expert};
            g->terms[i] = out;
            continue;
        }
        if (link->n_rows == 0 || link->rows[link->n_rows - 1] != row)
            link->rows[link->n_rows++] = row;
        const akini_ep_wish_t wish = {link->n_rows - 1, expert};
        memcpy(link->dispatch + sizeof(akini_ep_head_t) +
                   link->n_pairs * sizeof(wish),
               &wish, sizeof(wish));
        link->choices[link->n_pairs++] = i;
    }
    for (uint32_t r = 0; r < g->placement.n_ranks; r++) {
        akini_ep_link_t *link = &g->links[r];
        if (r == own)
            continue;
        size_t wishes =
            sizeof(akini_ep_head_t) + link->n_pairs * sizeof(akini_ep_wish_t);
        size_t vectors = akini_ep_dispatch_vectors(link->n_pairs);
        akini_ep_head_put(g, link->dispatch, AKINI_EP_DISPATCH, layer,
                          link->n_rows, link->n_pairs);
        memset(link->dispatch + wishes, 0, vectors - wishes);
        g->out[r] = (akin_ep_piece_t){
            link->dispatch, vectors + link->n_rows * hidden * sizeof(float)};
    }
}

void akini_ep_copy_row(akin_ep_group_t *g, const akin_expert_batch_t *batch,
                       uint32_t i)
{
    const akini_ep_link_t *link = &g->links[i / batch->n_rows];
    const size_t row = i % batch->n_rows;
    const size_t hidden = g->step.hidden, bytes = hidden * sizeof(float);
    if (row < link->n_rows)
        memcpy(link->dispatch + akini_ep_dispatch_vectors(link->n_pairs) +
                   row * bytes,
               batch->x + link->rows[row] * hidden, bytes);
}

/* Check a dispatch and list its pairs; their outputs go straight into the
 * combine message. */
static akin_status_t accept_dispatch(akin_ep_group_t *g, uint32_t from,
                                     uint32_t layer)
{
    const size_t hidden = g->step.hidden;
    const uint32_t own = g->exchange->rank;
    const unsigned char *message = g->in[from].data;
    akini_ep_link_t *link = &g->links[from];
    akini_ep_head_t head;
    akin_status_t status =
        akini_ep_head_get(g, from, AKINI_EP_DISPATCH, layer, &head);
    if (status != AKIN_OK)
        return status;
    if (head.n_rows > g->step.max_rows ||
        head.n_pairs > (size_t)head.n_rows * g->step.top_k ||
        g->in[from].bytes != akini_ep_dispatch_vectors(head.n_pairs) +
                                 head.n_rows * hidden * sizeof(float))
        return akin_error_set(
            &g->error, AKIN_ERR_FORMAT,
            "rank %u of the group: %zu bytes are no dispatch of %u rows and "
            "%u pairs in layer %u",
            (unsigned)from, g->in[from].bytes, (unsigned)head.n_rows,
            (unsigned)head.n_pairs, (unsigned)layer);
    const void *vectors = message + akini_ep_dispatch_vectors(head.n_pairs);
    const float *x = vectors;
    link->combine = akini_ep_place(
        g, from, AKINI_EP_ALIGN + head.n_pairs * hidden * sizeof(float),
        link->own_combine);
    void *answers = link->combine + AKINI_EP_ALIGN;
    float *out = answers;
    for (uint32_t p = 0; p < head.n_pairs; p++) {
        akini_ep_wish_t wish;
        memcpy(&wish, message + sizeof(head) + p * sizeof(wish), sizeof(wish));
        if (wish.row >= head.n_rows || wish.expert >= g->step.n_experts ||
            g->rank_of[wish.expert] != own)
            return akin_error_set(&g->error, AKIN_ERR_FORMAT,
                                  "rank %u of the group: wants row %u of "
                                  "expert %u in layer %u, which this rank does "
                                  "not serve",
                                  (unsigned)from, (unsigned)wish.row,
                                  (unsigned)wish.expert, (unsigned)layer);
        g->list[g->n_list++] = (akin_expert_pair_t){
            .x = x + wish.row * hidden,
            .out = out + p * hidden,
            .expert = wish.expert,
        };
    }
    link->n_served = head.n_pairs;
    return AKIN_OK;
}

akin_status_t akini_ep_dispatch(akin_ep_group_t *g, uint32_t layer)
{
    akin_status_t status = akini_ep_swap(g, AKINI_EP_DISPATCH, layer);
    for (uint32_t r = 0; status == AKIN_OK && r < g->placement.n_ranks; r++)
        if (r != g->exchange->rank)
            status = accept_dispatch(g, r, layer);
    if (status == AKIN_OK)
        akin_expert_pairs_sort(g->pairs, g->list, g->n_list);
    return status;
}
