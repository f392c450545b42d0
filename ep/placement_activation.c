/* Placement by activation: one layer. */
#include "ep/placement_activation.h"

#include "ep/placement_load.h"

#include <stdbool.h>
#include <stdlib.h>

/* A replica of an expert that is seldom active moves nothing, nor does one on a
 * busy rank: only the most active experts and the idlest ranks are tried. */
enum { MAX_EXPERTS_TRIED = 32, MAX_RANKS_TRIED = 3 };

akin_status_t
akini_placement_activation_init(akini_placement_activation_t *activation,
                                const akin_placement_params_t *params)
{
    const size_t n = params->n_experts;
    *activation = (akini_placement_activation_t){
        .sizes = {.n_layers = params->n_layers,
                  .n_experts = params->n_experts,
                  .n_ranks = params->n_ranks,
                  .n_replicas = params->n_replicas},
        .batch = params->batch,
        .items = calloc(n, sizeof(*activation->items)),
        .pack = calloc(n, sizeof(*activation->pack)),
        .idle = calloc(n, sizeof(*activation->idle)),
    };
    return activation->items != NULL && activation->pack != NULL &&
                   activation->idle != NULL
               ? AKIN_OK
               : AKIN_ERR_NOMEM;
}

void akini_placement_activation_cleanup(
    akini_placement_activation_t *activation)
{
    free(activation->items);
    free(activation->pack);
    free(activation->idle);
}

/* The open ranks that serve least, an expert being shared by its holders. */
static uint64_t idlest(const akini_placement_activation_t *a, uint64_t open,
                       const uint64_t *holders)
{
    float served[AKIN_PLACEMENT_MAX_RANKS] = {0};
    for (uint32_t e = 0; e < a->sizes.n_experts; e++) {
        const float share =
            (1.0f - a->idle[e]) / (float)__builtin_popcountll(holders[e]);
        for (uint64_t held = holders[e]; held != 0; held &= held - 1)
            served[__builtin_ctzll(held)] += share;
    }
    uint64_t chosen = 0;
    for (uint32_t i = 0; i < MAX_RANKS_TRIED && open != 0; i++) {
        uint32_t best = (uint32_t)__builtin_ctzll(open);
        for (uint64_t left = open & (open - 1); left != 0; left &= left - 1)
            if (served[__builtin_ctzll(left)] < served[best])
                best = (uint32_t)__builtin_ctzll(left);
        chosen |= UINT64_C(1) << best;
        open &= ~(UINT64_C(1) << best);
    }
    return chosen;
}

/* The expert and the rank with which the expected maximum is least, the most
 * active expert and the lowest rank on ties. Gives whether there is one. */
static bool find_replica(const akini_placement_activation_t *a, uint64_t open,
                         uint64_t *holders, uint32_t *expert_p,
                         uint32_t *rank_p)
{
    const uint32_t n_experts = a->sizes.n_experts;
    uint32_t n_tried = 0;
    bool is_found = false;
    double best = 0.0;
    for (uint32_t i = 0; i < n_experts && n_tried < MAX_EXPERTS_TRIED; i++) {
        const uint32_t e = a->items[i].index;
        const uint64_t held = holders[e];
        uint64_t ranks = open & ~held;
        n_tried += ranks != 0;
        for (; ranks != 0; ranks &= ranks - 1) {
            const uint32_t rank = (uint32_t)__builtin_ctzll(ranks);
            holders[e] = held | UINT64_C(1) << rank;
            const double load = akin_placement_load_layer(
                a->idle, holders, n_experts, a->sizes.n_ranks);
            if (!is_found || load < best) {
                is_found = true;
                best = load;
                *expert_p = e;
                *rank_p = rank;
            }
        }
        holders[e] = held;
    }
    return is_found;
}

/* A rank with room lacks some expert, so that there is always a replica. */
static void add_replica(const akini_placement_activation_t *a, uint32_t *counts,
                        uint32_t n_slots, uint64_t *holders)
{
    uint64_t open = 0;
    for (uint32_t r = 0; r < a->sizes.n_ranks; r++)
        if (counts[r] < n_slots)
            open |= UINT64_C(1) << r;
    uint32_t expert = 0, rank = 0;
    if (!find_replica(a, idlest(a, open, holders), holders, &expert, &rank))
        return;
    holders[expert] |= UINT64_C(1) << rank;
    counts[rank]++;
}

/* Give one of an expert's slots, of a rank that is full otherwise, to the
 * expert that lowers the expected maximum most, if that is another one. */
static void exchange(const akini_placement_activation_t *a, uint32_t e,
                     uint32_t rank, uint64_t *holders)
{
    const uint32_t n_experts = a->sizes.n_experts, n_ranks = a->sizes.n_ranks;
    const uint64_t bit = UINT64_C(1) << rank;
    const double load =
        akin_placement_load_layer(a->idle, holders, n_experts, n_ranks);
    uint32_t expert = e, same_rank = rank;
    holders[e] &= ~bit;
    const bool is_found = find_replica(a, bit, holders, &expert, &same_rank);
    holders[expert] |= bit;
    if (!is_found || akin_placement_load_layer(a->idle, holders, n_experts,
                                               n_ranks) >= load) {
        holders[expert] &= ~bit;
        holders[e] |= bit;
    }
}

/* The first replicas were placed without knowing the later ones: look once more
 * at every slot of an expert with several holders. */
static void refine(const akini_placement_activation_t *a, uint64_t *holders)
{
    for (uint32_t i = 0; i < a->sizes.n_experts; i++) {
        const uint32_t e = a->items[i].index;
        for (uint64_t left = holders[e]; left != 0; left &= left - 1)
            if ((holders[e] & (holders[e] - 1)) != 0)
                exchange(a, e, (uint32_t)__builtin_ctzll(left), holders);
    }
}

void akini_placement_activation_layer(akini_placement_activation_t *a,
                                      const float *rates, uint64_t *holders)
{
    const uint32_t n_experts = a->sizes.n_experts, n_ranks = a->sizes.n_ranks;
    const uint32_t n_slots = (n_experts + a->sizes.n_replicas) / n_ranks;
    uint32_t counts[AKIN_PLACEMENT_MAX_RANKS] = {0};
    float sums[AKIN_PLACEMENT_MAX_RANKS] = {0};
    akin_placement_idle(rates, n_experts, a->batch, a->idle);
    for (uint32_t e = 0; e < n_experts; e++)
        a->items[e] = (akini_placement_item_t){
            .weight = 1.0f - a->idle[e],
            .index = e,
        };
    akini_placement_packs_t packs = {
        .n_packs = n_ranks,
        .capacity = (n_experts + n_ranks - 1) / n_ranks,
        .weights = sums,
        .counts = counts,
    };
    akini_placement_sort(a->items, n_experts);
    akini_placement_pack(&packs, a->items, n_experts, a->pack, NULL);
    for (uint32_t e = 0; e < n_experts; e++)
        holders[e] = UINT64_C(1) << a->pack[e];
    for (uint32_t i = 0; i < a->sizes.n_replicas; i++)
        add_replica(a, counts, n_slots, holders);
    refine(a, holders);
}
