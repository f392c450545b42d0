/* Placement change: what a new map of one layer is worth, and the best one. */
#include "ep/placement_change.h"

#include "ep/placement_load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Costs nearer than this, of one, differ by rounding alone. */
#define ROUNDING 1e-9

/* Layers that one proposal makes a map for. */
enum { MAX_LAYERS_TRIED = 8 };

akin_status_t akin_placement_check_layer(const akin_placement_t *placement,
                                         uint32_t layer,
                                         const uint64_t *holders,
                                         akin_error_t *err)
{
    const uint32_t n_ranks = placement->n_ranks;
    const uint32_t n_slots =
        (placement->n_experts + placement->n_replicas) / n_ranks;
    uint32_t counts[AKIN_PLACEMENT_MAX_RANKS] = {0};
    if (layer >= placement->n_layers)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "placement: a map of layer %u, but there are %u",
                              layer, placement->n_layers);
    for (uint32_t e = 0; e < placement->n_experts; e++) {
        if (holders[e] == 0)
            return akin_error_set(
                err, AKIN_ERR_INVALID,
                "placement: layer %u, expert %u: no rank holds it", layer, e);
        for (uint64_t held = holders[e]; held != 0; held &= held - 1)
            counts[__builtin_ctzll(held)]++;
    }
    for (uint32_t r = 0; r < AKIN_PLACEMENT_MAX_RANKS; r++)
        if (counts[r] != (r < n_ranks ? n_slots : 0))
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "placement: layer %u: rank %u of %u holds %u "
                                  "experts, every rank must hold %u",
                                  layer, r, n_ranks, counts[r], n_slots);
    return AKIN_OK;
}

uint32_t akin_placement_moves(const uint64_t *from, const uint64_t *to,
                              uint32_t n_experts)
{
    uint32_t n = 0;
    for (uint32_t e = 0; e < n_experts; e++)
        n += (uint32_t)__builtin_popcountll(to[e] & ~from[e]);
    return n;
}

/* Experts that rank `a` of one map and rank `b` of another one have in common:
 * common[a][b]. */
typedef uint32_t common_t[AKIN_PLACEMENT_MAX_RANKS][AKIN_PLACEMENT_MAX_RANKS];

static void count_common(const uint64_t *to, const uint64_t *from,
                         uint32_t n_experts, common_t common)
{
    for (uint32_t e = 0; e < n_experts; e++)
        for (uint64_t a = to[e]; a != 0; a &= a - 1)
            for (uint64_t b = from[e]; b != 0; b &= b - 1)
                common[__builtin_ctzll(a)][__builtin_ctzll(b)]++;
}

void akin_placement_relabel(const uint64_t *from, uint64_t *to,
                            uint32_t n_experts, uint32_t n_ranks)
{
    common_t common = {{0}};
    uint32_t name_of[AKIN_PLACEMENT_MAX_RANKS] = {0};
    uint64_t named = 0, taken = 0;
    count_common(to, from, n_experts, common);
    for (uint32_t i = 0; i < n_ranks; i++) {
        uint32_t best_a = n_ranks, best_b = n_ranks;
        for (uint32_t a = 0; a < n_ranks; a++)
            for (uint32_t b = 0; b < n_ranks; b++)
                if ((named >> a & 1) == 0 && (taken >> b & 1) == 0 &&
                    (best_a == n_ranks ||
                     common[a][b] > common[best_a][best_b])) {
                    best_a = a;
                    best_b = b;
                }
        name_of[best_a] = best_b;
        named |= UINT64_C(1) << best_a;
        taken |= UINT64_C(1) << best_b;
    }
    for (uint32_t e = 0; e < n_experts; e++) {
        uint64_t renamed = 0;
        for (uint64_t a = to[e]; a != 0; a &= a - 1)
            renamed |= UINT64_C(1) << name_of[__builtin_ctzll(a)];
        to[e] = renamed;
    }
}

static const float *rates_of(const akin_placement_change_params_t *params,
                             uint32_t layer)
{
    return params->rates + (size_t)layer * params->placement->n_experts;
}

static double seconds_of(const akin_placement_change_params_t *params,
                         double load, uint32_t n_moved)
{
    return load * params->seconds_per_expert * params->steps +
           n_moved * params->expert_bytes / params->bandwidth_bytes_per_s;
}

static int is_single(uint64_t held)
{
    return (held & (held - 1)) == 0;
}

/* Of the experts without replicas that have come to where expert e was, the one
 * most like it; n_experts: there is none. */
static uint32_t find_partner(const uint64_t *from, const uint64_t *to,
                             const float *idle, uint32_t e, uint32_t n_experts)
{
    uint32_t best = n_experts;
    float least = 0.0f;
    for (uint32_t f = 0; f < n_experts; f++) {
        const float distance = fabsf(idle[f] - idle[e]);
        if (to[f] == from[e] && (from[f] & to[f]) == 0 &&
            (best == n_experts || distance < least)) {
            best = f;
            least = distance;
        }
    }
    return best;
}

/* The rule places alike experts in any order: let those that moved for nothing
 * go back home, each for the most similar one that has come there. */
static void settle(const akin_placement_change_params_t *params,
                   const uint64_t *from, const float *idle, uint64_t *to)
{
    const uint32_t n = params->placement->n_experts;
    const uint32_t n_ranks = params->placement->n_ranks;
    double cost =
        seconds_of(params, akin_placement_load_layer(idle, to, n, n_ranks),
                   akin_placement_moves(from, to, n));
    for (uint32_t e = 0; e < n; e++) {
        if (!is_single(from[e]) || !is_single(to[e]) || to[e] == from[e])
            continue;
        const uint32_t f = find_partner(from, to, idle, e, n);
        if (f == n)
            continue;
        const uint64_t was = to[e];
        to[e] = from[e];
        to[f] = was;
        const double then =
            seconds_of(params, akin_placement_load_layer(idle, to, n, n_ranks),
                       akin_placement_moves(from, to, n));
        if (then <= cost * (1.0 + ROUNDING)) {
            cost = then;
        } else {
            to[f] = from[e];
            to[e] = was;
        }
    }
}

/* Make the map and rate it. */
static akin_status_t make(const akin_placement_change_params_t *params,
                          uint32_t layer, akin_placement_kind_t kind,
                          float *idle, uint64_t *holders,
                          akin_placement_change_t *change_p, akin_error_t *err)
{
    const akin_placement_t *now = params->placement;
    const uint64_t *from = akin_placement_layer(now, layer);
    const akin_placement_params_t one = {
        .kind = kind,
        .n_layers = 1,
        .n_experts = now->n_experts,
        .n_ranks = now->n_ranks,
        .n_replicas = now->n_replicas,
        .rates = rates_of(params, layer),
        .batch = params->batch,
    };
    akin_placement_t made;
    akin_status_t status = akin_placement_make(&one, &made, err);
    if (status != AKIN_OK)
        return status;
    memcpy(holders, made.holders, now->n_experts * sizeof(*holders));
    akin_placement_cleanup(&made);
    akin_placement_relabel(from, holders, now->n_experts, now->n_ranks);
    akin_placement_idle(one.rates, now->n_experts, params->batch, idle);
    if (kind == AKIN_PLACEMENT_ACTIVATION)
        settle(params, from, idle, holders);
    akin_placement_change_t change = {
        .layer = layer,
        .n_moved = akin_placement_moves(from, holders, now->n_experts),
        .load_now =
            akin_placement_load_layer(idle, from, now->n_experts, now->n_ranks),
        .load_then = akin_placement_load_layer(idle, holders, now->n_experts,
                                               now->n_ranks),
    };
    change.gain_s = seconds_of(params, change.load_now, 0) -
                    seconds_of(params, change.load_then, change.n_moved);
    *change_p = change;
    return AKIN_OK;
}

akin_status_t
akin_placement_change_make(const akin_placement_change_params_t *params,
                           uint32_t layer, akin_placement_kind_t kind,
                           uint64_t *holders, akin_placement_change_t *change_p,
                           akin_error_t *err)
{
    *change_p = (akin_placement_change_t){.layer = AKIN_PLACEMENT_NO_LAYER};
    float *idle = calloc(params->placement->n_experts, sizeof(*idle));
    if (idle == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM, "placement: out of memory");
    akin_status_t status =
        make(params, layer, kind, idle, holders, change_p, err);
    free(idle);
    return status;
}

/* How far the busiest rank of a layer is above an even share. */
static double slack(const akin_placement_change_params_t *params,
                    uint32_t layer, float *idle)
{
    const akin_placement_t *now = params->placement;
    double sum = 0.0;
    akin_placement_idle(rates_of(params, layer), now->n_experts, params->batch,
                        idle);
    for (uint32_t e = 0; e < now->n_experts; e++)
        sum += 1.0 - (double)idle[e];
    return akin_placement_load_layer(idle, akin_placement_layer(now, layer),
                                     now->n_experts, now->n_ranks) -
           sum / now->n_ranks;
}

/* Scratch of a proposal. */
typedef struct trial {
    float *idle;       /* [n_experts] */
    uint64_t *holders; /* [n_experts] */
    double *slack;     /* [n_layers]; below 0: tried */
} trial_t;

static akin_status_t try_layers(const akin_placement_change_params_t *params,
                                const trial_t *t, uint64_t *holders,
                                akin_placement_change_t *best,
                                akin_error_t *err)
{
    const akin_placement_t *now = params->placement;
    for (uint32_t l = 0; l < now->n_layers; l++)
        t->slack[l] = slack(params, l, t->idle);
    for (uint32_t i = 0; i < MAX_LAYERS_TRIED && i < now->n_layers; i++) {
        uint32_t layer = 0;
        for (uint32_t l = 1; l < now->n_layers; l++)
            if (t->slack[l] > t->slack[layer])
                layer = l;
        t->slack[layer] = -1.0;
        akin_placement_change_t change;
        akin_status_t status = make(params, layer, AKIN_PLACEMENT_ACTIVATION,
                                    t->idle, t->holders, &change, err);
        if (status != AKIN_OK)
            return status;
        if (change.n_moved == 0 || !(change.gain_s > best->gain_s))
            continue;
        *best = change;
        memcpy(holders, t->holders, now->n_experts * sizeof(*holders));
    }
    return AKIN_OK;
}

akin_status_t akin_placement_change_propose(
    const akin_placement_change_params_t *params, uint64_t *holders,
    akin_placement_change_t *change_p, akin_error_t *err)
{
    const akin_placement_t *now = params->placement;
    akin_placement_change_t best = {.layer = AKIN_PLACEMENT_NO_LAYER};
    const trial_t trial = {
        .idle = calloc(now->n_experts, sizeof(*trial.idle)),
        .holders = calloc(now->n_experts, sizeof(*trial.holders)),
        .slack = calloc(now->n_layers, sizeof(*trial.slack)),
    };
    akin_status_t status = AKIN_ERR_NOMEM;
    if (trial.idle != NULL && trial.holders != NULL && trial.slack != NULL)
        status = try_layers(params, &trial, holders, &best, err);
    else
        (void)akin_error_set(err, status, "placement: out of memory");
    free(trial.idle);
    free(trial.holders);
    free(trial.slack);
    if (status != AKIN_OK)
        best.layer = AKIN_PLACEMENT_NO_LAYER;
    *change_p = best;
    return status;
}
