/* Placement by tokens: DeepSeek's expert parallelism load balancer. */
#include "ep/placement_eplb.h"

#include "ep/placement_pack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_EXPERTS = 65536 };

/* One layer at work. */
typedef struct balancer {
    uint32_t n_experts;
    uint32_t n_groups;
    uint32_t n_nodes;
    uint32_t n_ranks; /* of a node */
    uint32_t n_slots; /* of a node */
    const float *weights;
    akini_placement_item_t *items; /* [n_items] */
    uint32_t *pack;                /* [n_items] */
    uint32_t *place;               /* [n_items] */
    uint32_t *counts;              /* [n_packs] */
    float *sums;                   /* [n_packs] */
    uint32_t *listed;              /* [n_experts] experts, node by node */
    uint32_t *copies;              /* [n_experts] as listed */
    uint32_t *copied;              /* [slots of a node] into listed */
} balancer_t;

/* Put n items, whose weights are set, into packs of equal number. One item
 * per pack keeps its index, whatever its weight. */
static void pack_evenly(balancer_t *b, uint32_t n_items, uint32_t n_packs)
{
    if (n_items == n_packs) {
        for (uint32_t i = 0; i < n_items; i++) {
            b->pack[i] = i;
            b->place[i] = 0;
        }
        return;
    }
    memset(b->counts, 0, n_packs * sizeof(*b->counts));
    for (uint32_t p = 0; p < n_packs; p++)
        b->sums[p] = 0.0f;
    akini_placement_packs_t packs = {
        .n_packs = n_packs,
        .capacity = n_items / n_packs,
        .weights = b->sums,
        .counts = b->counts,
    };
    akini_placement_sort(b->items, n_items);
    akini_placement_pack(&packs, b->items, n_items, b->pack, b->place);
}

/* List the experts by the node that their group goes to. */
static void pack_groups(balancer_t *b)
{
    const uint32_t group_size = b->n_experts / b->n_groups;
    const uint32_t node_groups = b->n_groups / b->n_nodes;
    for (uint32_t g = 0; g < b->n_groups; g++) {
        float sum = 0.0f;
        for (uint32_t i = 0; i < group_size; i++)
            sum += b->weights[g * group_size + i];
        b->items[g] = (akini_placement_item_t){.weight = sum, .index = g};
    }
    pack_evenly(b, b->n_groups, b->n_nodes);
    for (uint32_t g = 0; g < b->n_groups; g++) {
        uint32_t at = (b->pack[g] * node_groups + b->place[g]) * group_size;
        for (uint32_t i = 0; i < group_size; i++)
            b->listed[at + i] = g * group_size + i;
    }
}

static float weight_per_copy(const balancer_t *b, uint32_t listed)
{
    return b->weights[b->listed[listed]] / (float)b->copies[listed];
}

/* Every slot of a node beyond one per expert goes to the expert with the
 * largest weight per copy so far. */
static void replicate(balancer_t *b, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        b->copied[i] = first + i;
        b->copies[first + i] = 1;
    }
    for (uint32_t s = n; s < b->n_slots; s++) {
        uint32_t best = first;
        for (uint32_t i = first + 1; i < first + n; i++)
            if (weight_per_copy(b, i) > weight_per_copy(b, best))
                best = i;
        b->copied[s] = best;
        b->copies[best]++;
    }
}

static void balance(balancer_t *b, uint16_t *expert_of_slot)
{
    const uint32_t node_experts = b->n_experts / b->n_nodes;
    const uint32_t rank_slots = b->n_slots / b->n_ranks;
    pack_groups(b);
    for (uint32_t node = 0; node < b->n_nodes; node++) {
        replicate(b, node * node_experts, node_experts);
        for (uint32_t s = 0; s < b->n_slots; s++)
            b->items[s] = (akini_placement_item_t){
                .weight = weight_per_copy(b, b->copied[s]),
                .index = s,
            };
        pack_evenly(b, b->n_slots, b->n_ranks);
        for (uint32_t s = 0; s < b->n_slots; s++) {
            size_t slot = (size_t)node * b->n_slots +
                          (size_t)b->pack[s] * rank_slots + b->place[s];
            expert_of_slot[slot] = (uint16_t)b->listed[b->copied[s]];
        }
    }
}

static akin_status_t check_sizes(const akin_placement_eplb_params_t *params,
                                 uint32_t n_groups, uint32_t n_nodes,
                                 akin_error_t *err)
{
    if (params->n_layers == 0 || params->n_experts == 0 ||
        params->n_experts > MAX_EXPERTS || params->n_ranks == 0)
        return akin_error_set(
            err, AKIN_ERR_INVALID,
            "eplb: %u layers, %u experts and %u ranks; each must be at least "
            "1, the experts at most %d",
            params->n_layers, params->n_experts, params->n_ranks, MAX_EXPERTS);
    if (params->n_slots < params->n_experts)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "eplb: %u slots cannot hold %u experts",
                              params->n_slots, params->n_experts);
    if (params->n_slots % params->n_ranks != 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "eplb: %u ranks do not divide %u slots",
                              params->n_ranks, params->n_slots);
    if (params->n_ranks % n_nodes != 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "eplb: %u nodes do not divide %u ranks", n_nodes,
                              params->n_ranks);
    if (params->n_experts % n_groups != 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "eplb: %u groups do not divide %u experts",
                              n_groups, params->n_experts);
    return AKIN_OK;
}

static akin_status_t check_weights(const akin_placement_eplb_params_t *params,
                                   akin_error_t *err)
{
    for (uint32_t l = 0; l < params->n_layers; l++)
        for (uint32_t e = 0; e < params->n_experts; e++) {
            float weight = params->weights[(size_t)l * params->n_experts + e];
            if (!isfinite(weight) || weight < 0.0f)
                return akin_error_set(
                    err, AKIN_ERR_INVALID,
                    "eplb: the weight of layer %u, expert %u is %g, must be 0 "
                    "or more",
                    l, e, (double)weight);
        }
    return AKIN_OK;
}

static void cleanup(balancer_t *b)
{
    free(b->items);
    free(b->pack);
    free(b->place);
    free(b->counts);
    free(b->sums);
    free(b->listed);
    free(b->copies);
    free(b->copied);
}

/* A node has at least as many slots as experts, and more of both than ranks
 * and groups. */
static akin_status_t init(balancer_t *b,
                          const akin_placement_eplb_params_t *params)
{
    const size_t n = params->n_slots, n_experts = params->n_experts;
    b->items = calloc(n, sizeof(*b->items));
    b->pack = calloc(n, sizeof(*b->pack));
    b->place = calloc(n, sizeof(*b->place));
    b->counts = calloc(n, sizeof(*b->counts));
    b->sums = calloc(n, sizeof(*b->sums));
    b->listed = calloc(n_experts, sizeof(*b->listed));
    b->copies = calloc(n_experts, sizeof(*b->copies));
    b->copied = calloc(n, sizeof(*b->copied));
    if (b->items == NULL || b->pack == NULL || b->place == NULL ||
        b->counts == NULL || b->sums == NULL || b->listed == NULL ||
        b->copies == NULL || b->copied == NULL)
        return AKIN_ERR_NOMEM;
    return AKIN_OK;
}

akin_status_t akin_placement_eplb(const akin_placement_eplb_params_t *params,
                                  uint16_t *expert_of_slot, akin_error_t *err)
{
    uint32_t n_groups = params->n_groups > 0 ? params->n_groups : 1;
    uint32_t n_nodes = params->n_nodes > 0 ? params->n_nodes : 1;
    akin_status_t status = check_sizes(params, n_groups, n_nodes, err);
    if (status == AKIN_OK)
        status = check_weights(params, err);
    if (status != AKIN_OK)
        return status;
    if (n_groups % n_nodes != 0)
        n_groups = n_nodes = 1;
    balancer_t b = {
        .n_experts = params->n_experts,
        .n_groups = n_groups,
        .n_nodes = n_nodes,
        .n_ranks = params->n_ranks / n_nodes,
        .n_slots = params->n_slots / n_nodes,
    };
    status = init(&b, params);
    if (status == AKIN_OK)
        for (uint32_t l = 0; l < params->n_layers; l++) {
            b.weights = params->weights + (size_t)l * params->n_experts;
            balance(&b, expert_of_slot + (size_t)l * params->n_slots);
        }
    cleanup(&b);
    if (status != AKIN_OK)
        return akin_error_set(err, status,
                              "eplb: out of memory for %u experts in %u slots",
                              params->n_experts, params->n_slots);
    return AKIN_OK;
}
