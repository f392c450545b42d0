/* Placement making: the four kinds. */
#include "ep/placement.h"

#include "ep/placement_activation.h"
#include "ep/placement_eplb.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint64_t rank_bit(uint64_t rank)
{
    return UINT64_C(1) << rank;
}

/* Every rank has the window of n_slots that begins with its block of a map
 * without replicas: the windows reach into the blocks of the ranks that follow,
 * around the end, and cover all, for a block has at most n_slots experts. */
static void make_linear(const akin_placement_t *p, uint64_t *holders)
{
    const uint64_t n_slots =
        ((uint64_t)p->n_experts + p->n_replicas) / p->n_ranks;
    for (uint64_t r = 0; r < p->n_ranks; r++) {
        const uint64_t first = r * p->n_experts / p->n_ranks;
        for (uint64_t i = first; i < first + n_slots; i++)
            holders[i % p->n_experts] |= rank_bit(r);
    }
}

/* The list 0, 1, ... n_experts - 1, 0, 1, ... dealt out. After each common
 * multiple of ranks and experts the deal would repeat itself and goes on one
 * rank further. */
static void make_round_robin(const akin_placement_t *p, uint64_t *holders)
{
    const uint64_t slots = (uint64_t)p->n_experts + p->n_replicas;
    uint64_t period = p->n_experts;
    while (period % p->n_ranks != 0)
        period += p->n_experts;
    for (uint64_t i = 0; i < slots; i++)
        holders[i % p->n_experts] |= rank_bit((i + i / period) % p->n_ranks);
}

/* Of the experts that the rank lacks the one with the largest rate per
 * replica. There is one, for a rank has at most n_experts slots. */
static uint32_t most_wanted(const akin_placement_t *p, const float *rates,
                            const uint64_t *holders, uint64_t rank)
{
    uint32_t best = p->n_experts;
    float best_rate = 0.0f;
    for (uint32_t e = 0; e < p->n_experts; e++) {
        if ((holders[e] & rank_bit(rank)) != 0)
            continue;
        float rate = rates[e] / (float)__builtin_popcountll(holders[e]);
        if (best == p->n_experts || rate > best_rate) {
            best = e;
            best_rate = rate;
        }
    }
    return best;
}

/* Holders from EPLB's slots, second copies on a rank given away. */
static void make_eplb(const akin_placement_t *p, const float *rates,
                      const uint16_t *expert_of_slot, uint64_t *holders)
{
    const uint32_t slots = p->n_experts + p->n_replicas;
    const uint32_t n_slots = slots / p->n_ranks;
    uint32_t lacking[AKIN_PLACEMENT_MAX_RANKS] = {0};
    for (uint32_t s = 0; s < slots; s++) {
        uint64_t *held = &holders[expert_of_slot[s]];
        if ((*held & rank_bit(s / n_slots)) != 0)
            lacking[s / n_slots]++;
        *held |= rank_bit(s / n_slots);
    }
    for (uint32_t r = 0; r < p->n_ranks; r++)
        for (; lacking[r] > 0; lacking[r]--)
            holders[most_wanted(p, rates, holders, r)] |= rank_bit(r);
}

static akin_status_t make_by_tokens(const akin_placement_params_t *params,
                                    akin_placement_t *p, akin_error_t *err)
{
    const uint32_t slots = p->n_experts + p->n_replicas;
    uint16_t *expert_of_slot = calloc(slots, sizeof(*expert_of_slot));
    if (expert_of_slot == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM,
                              "placement: out of memory for %u slots", slots);
    akin_status_t status = AKIN_OK;
    for (uint32_t l = 0; status == AKIN_OK && l < p->n_layers; l++) {
        const size_t at = (size_t)l * p->n_experts;
        const akin_placement_eplb_params_t eplb = {
            .weights = params->rates + at,
            .n_layers = 1,
            .n_experts = p->n_experts,
            .n_slots = slots,
            .n_ranks = p->n_ranks,
        };
        status = akin_placement_eplb(&eplb, expert_of_slot, err);
        if (status == AKIN_OK)
            make_eplb(p, params->rates + at, expert_of_slot, p->holders + at);
    }
    free(expert_of_slot);
    return status;
}

static akin_status_t make_by_activation(const akin_placement_params_t *params,
                                        akin_placement_t *p, akin_error_t *err)
{
    akini_placement_activation_t activation;
    akin_status_t status = akini_placement_activation_init(&activation, params);
    if (status != AKIN_OK)
        (void)akin_error_set(err, status,
                             "placement: out of memory for %u experts",
                             p->n_experts);
    for (uint32_t l = 0; status == AKIN_OK && l < p->n_layers; l++) {
        const size_t at = (size_t)l * p->n_experts;
        akini_placement_activation_layer(&activation, params->rates + at,
                                         p->holders + at);
    }
    akini_placement_activation_cleanup(&activation);
    return status;
}

static akin_status_t check_rates(const akin_placement_params_t *params,
                                 akin_error_t *err)
{
    const char *kind = akin_placement_kind_name(params->kind);
    if (params->rates == NULL)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "placement %s needs the rates of the experts",
                              kind);
    const bool is_chance = params->kind == AKIN_PLACEMENT_ACTIVATION;
    if (is_chance && !(isfinite(params->batch) && params->batch > 0.0))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "placement %s for a batch of %g: must be more "
                              "than 0",
                              kind, params->batch);
    for (uint32_t l = 0; l < params->n_layers; l++)
        for (uint32_t e = 0; e < params->n_experts; e++) {
            float rate = params->rates[(size_t)l * params->n_experts + e];
            if (!isfinite(rate) || rate < 0.0f || (is_chance && rate > 1.0f))
                return akin_error_set(
                    err, AKIN_ERR_INVALID,
                    "placement %s: the rate of layer %u, expert %u is %g, must "
                    "be %s",
                    kind, l, e, (double)rate,
                    is_chance ? "from 0 to 1" : "0 or more");
        }
    return AKIN_OK;
}

static akin_status_t make(const akin_placement_params_t *params,
                          akin_placement_t *p, akin_error_t *err)
{
    switch (params->kind) {
    case AKIN_PLACEMENT_EPLB:
        return make_by_tokens(params, p, err);
    case AKIN_PLACEMENT_ACTIVATION:
        return make_by_activation(params, p, err);
    case AKIN_PLACEMENT_LINEAR:
    case AKIN_PLACEMENT_ROUND_ROBIN:
        break;
    }
    for (uint32_t l = 0; l < p->n_layers; l++) {
        uint64_t *holders = p->holders + (size_t)l * p->n_experts;
        if (params->kind == AKIN_PLACEMENT_LINEAR)
            make_linear(p, holders);
        else
            make_round_robin(p, holders);
    }
    return AKIN_OK;
}

akin_status_t akin_placement_make(const akin_placement_params_t *params,
                                  akin_placement_t *placement_p,
                                  akin_error_t *err)
{
    const akin_placement_sizes_t sizes = {
        .n_layers = params->n_layers,
        .n_experts = params->n_experts,
        .n_ranks = params->n_ranks,
        .n_replicas = params->n_replicas,
    };
    akin_status_t status = akin_placement_check_sizes(&sizes, err);
    if (status != AKIN_OK)
        return status;
    if (akin_placement_kind_name(params->kind) == NULL)
        return akin_error_set(err, AKIN_ERR_INVALID, "unknown placement %d",
                              (int)params->kind);
    if (params->kind == AKIN_PLACEMENT_EPLB ||
        params->kind == AKIN_PLACEMENT_ACTIVATION)
        status = check_rates(params, err);
    if (status != AKIN_OK)
        return status;
    akin_placement_t made = {
        .n_layers = params->n_layers,
        .n_experts = params->n_experts,
        .n_ranks = params->n_ranks,
        .n_replicas = params->n_replicas,
        .holders = calloc((size_t)params->n_layers * params->n_experts,
                          sizeof(*made.holders)),
    };
    if (made.holders == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM,
                              "placement: out of memory for %u layers with %u "
                              "experts",
                              params->n_layers, params->n_experts);
    status = make(params, &made, err);
    if (status != AKIN_OK) {
        akin_placement_cleanup(&made);
        return status;
    }
    *placement_p = made;
    return AKIN_OK;
}
