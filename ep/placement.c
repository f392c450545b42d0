/* Placement: which ranks of a worker hold which experts. */
#include "ep/placement.h"

#include "base/nearest.h"

#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {
    [AKIN_PLACEMENT_LINEAR] = "linear",
    [AKIN_PLACEMENT_ROUND_ROBIN] = "round-robin",
    [AKIN_PLACEMENT_EPLB] = "eplb",
    [AKIN_PLACEMENT_ACTIVATION] = "activation",
};

enum { N_KINDS = sizeof(kind_names) / sizeof(kind_names[0]) };

const char *akin_placement_kind_name(akin_placement_kind_t kind)
{
    return (unsigned)kind < N_KINDS ? kind_names[kind] : NULL;
}

akin_status_t akin_placement_kind_find(const char *name,
                                       akin_placement_kind_t *kind_p,
                                       akin_error_t *err)
{
    for (unsigned i = 0; i < N_KINDS; i++)
        if (strcmp(name, kind_names[i]) == 0) {
            *kind_p = (akin_placement_kind_t)i;
            return AKIN_OK;
        }
    const char *nearest = akin_nearest_name(name, kind_names, N_KINDS);
    return akin_error_set(
        err, AKIN_ERR_INVALID,
        "unknown placement \"%.80s\"%s%s%s; there are linear, "
        "round-robin, eplb and activation",
        name, nearest != NULL ? ", did you mean \"" : "",
        nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
}

void akin_placement_cleanup(akin_placement_t *placement)
{
    if (placement == NULL)
        return;
    free(placement->holders);
    *placement = (akin_placement_t){0};
}

akin_status_t akin_placement_copy(const akin_placement_t *from,
                                  akin_placement_t *to_p)
{
    const size_t n = (size_t)from->n_layers * from->n_experts;
    uint64_t *holders = calloc(n > 0 ? n : 1, sizeof(*holders));
    if (holders == NULL)
        return AKIN_ERR_NOMEM;
    if (n > 0)
        memcpy(holders, from->holders, n * sizeof(*holders));
    *to_p = *from;
    to_p->holders = holders;
    return AKIN_OK;
}

akin_status_t akin_placement_check_sizes(const akin_placement_sizes_t *sizes,
                                         akin_error_t *err)
{
    if (sizes->n_layers == 0 || sizes->n_experts == 0 || sizes->n_ranks == 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "placement of %u layers with %u experts on %u "
                              "ranks: each must be at least 1",
                              sizes->n_layers, sizes->n_experts,
                              sizes->n_ranks);
    if (sizes->n_ranks > AKIN_PLACEMENT_MAX_RANKS)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "placement on %u ranks: a worker has at most %u",
                              sizes->n_ranks, AKIN_PLACEMENT_MAX_RANKS);
    const uint64_t slots = (uint64_t)sizes->n_experts + sizes->n_replicas;
    if (slots % sizes->n_ranks != 0)
        return akin_error_set(
            err, AKIN_ERR_INVALID,
            "%u ranks do not divide %u experts + %u replicas; with %u replicas "
            "they do",
            sizes->n_ranks, sizes->n_experts, sizes->n_replicas,
            (uint32_t)(sizes->n_replicas + sizes->n_ranks -
                       slots % sizes->n_ranks));
    if (slots / sizes->n_ranks > sizes->n_experts)
        return akin_error_set(
            err, AKIN_ERR_INVALID,
            "%u replicas are too many for %u experts on %u ranks: with %llu "
            "every rank holds every expert",
            sizes->n_replicas, sizes->n_experts, sizes->n_ranks,
            (unsigned long long)sizes->n_experts * (sizes->n_ranks - 1));
    return AKIN_OK;
}

/* Every rank holds as many experts of the layer as any other. */
static akin_status_t check_slots(const akin_placement_t *placement,
                                 uint32_t layer, akin_error_t *err)
{
    const uint64_t *holders = akin_placement_layer(placement, layer);
    const uint32_t n_slots =
        (placement->n_experts + placement->n_replicas) / placement->n_ranks;
    uint32_t counts[AKIN_PLACEMENT_MAX_RANKS] = {0};
    for (uint32_t e = 0; e < placement->n_experts; e++)
        for (uint64_t held = holders[e]; held != 0; held &= held - 1)
            counts[__builtin_ctzll(held)]++;
    for (uint32_t r = 0; r < placement->n_ranks; r++)
        if (counts[r] != n_slots)
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "placement: layer %u: rank %u holds %u "
                                  "experts, every rank must hold %u",
                                  layer, r, counts[r], n_slots);
    return AKIN_OK;
}

akin_status_t akin_placement_check(const akin_placement_t *placement,
                                   akin_error_t *err)
{
    const akin_placement_sizes_t sizes = {
        .n_layers = placement->n_layers,
        .n_experts = placement->n_experts,
        .n_ranks = placement->n_ranks,
        .n_replicas = placement->n_replicas,
    };
    akin_status_t status = akin_placement_check_sizes(&sizes, err);
    for (uint32_t l = 0; status == AKIN_OK && l < placement->n_layers; l++) {
        const uint64_t *holders = akin_placement_layer(placement, l);
        for (uint32_t e = 0; e < placement->n_experts; e++) {
            if (holders[e] == 0)
                return akin_error_set(
                    err, AKIN_ERR_INVALID,
                    "placement: layer %u, expert %u: no rank holds it", l, e);
            uint32_t last = 63u - (uint32_t)__builtin_clzll(holders[e]);
            if (last >= placement->n_ranks)
                return akin_error_set(err, AKIN_ERR_INVALID,
                                      "placement: layer %u, expert %u: held by "
                                      "rank %u of %u ranks",
                                      l, e, last, placement->n_ranks);
        }
        status = check_slots(placement, l, err);
    }
    return status;
}

akin_status_t akin_placement_check_epoch(const akin_placement_t *current,
                                         const akin_placement_t *next,
                                         akin_error_t *err)
{
    if (next->n_layers != current->n_layers ||
        next->n_experts != current->n_experts ||
        next->n_ranks != current->n_ranks ||
        next->n_replicas != current->n_replicas)
        return akin_error_set(
            err, AKIN_ERR_INVALID,
            "placement: %u layers x %u experts on %u ranks with %u replicas "
            "cannot follow %u x %u on %u with %u",
            next->n_layers, next->n_experts, next->n_ranks, next->n_replicas,
            current->n_layers, current->n_experts, current->n_ranks,
            current->n_replicas);
    if (next->epoch <= current->epoch)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "placement: epoch %llu does not follow epoch "
                              "%llu: epochs must rise",
                              (unsigned long long)next->epoch,
                              (unsigned long long)current->epoch);
    return akin_placement_check(next, err);
}
