/* Placement as JSON. */
#include "ep/placement_json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* A value being read; everything is borrowed. */
typedef struct reader {
    const json_t *root;
    const char *name;
    akin_error_t *err;
} reader_t;

static json_t *ranks_of(uint64_t held)
{
    json_t *ranks = json_array();
    for (; held != 0; held &= held - 1)
        if (json_array_append_new(ranks, json_integer(__builtin_ctzll(held))) !=
            0) {
            json_decref(ranks);
            return NULL;
        }
    return ranks;
}

static json_t *layer_of(const akin_placement_t *placement, uint32_t layer)
{
    const uint64_t *holders = akin_placement_layer(placement, layer);
    json_t *experts = json_array();
    for (uint32_t e = 0; e < placement->n_experts; e++)
        if (json_array_append_new(experts, ranks_of(holders[e])) != 0) {
            json_decref(experts);
            return NULL;
        }
    return experts;
}

akin_status_t akin_placement_json_pack(const akin_placement_t *placement,
                                       struct json_t **json_p)
{
    *json_p = NULL;
    json_t *layers = json_array();
    for (uint32_t l = 0; l < placement->n_layers; l++)
        if (json_array_append_new(layers, layer_of(placement, l)) != 0) {
            json_decref(layers);
            return AKIN_ERR_NOMEM;
        }
    /* The pack takes the list over, whether it succeeds or not. */
    *json_p = json_pack("{s:I, s:I, s:I, s:o}", "ranks",
                        (json_int_t)placement->n_ranks, "replicas",
                        (json_int_t)placement->n_replicas, "epoch",
                        (json_int_t)placement->epoch, "holders", layers);
    return *json_p != NULL ? AKIN_OK : AKIN_ERR_NOMEM;
}

static akin_status_t read_whole(const reader_t *r, const char *key,
                                uint64_t max, uint64_t *value_p)
{
    const json_t *value = json_object_get(r->root, key);
    if (value == NULL)
        return akin_error_set(r->err, AKIN_ERR_FORMAT, "%s: %s is missing",
                              r->name, key);
    const json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || (uint64_t)number > max)
        return akin_error_set(r->err, AKIN_ERR_FORMAT,
                              "%s: %s must be a whole number from 0 to %llu",
                              r->name, key, (unsigned long long)max);
    *value_p = (uint64_t)number;
    return AKIN_OK;
}

/* The holders of one expert from a list of ranks. */
static akin_status_t read_ranks(const reader_t *r, const json_t *ranks,
                                uint32_t layer, uint32_t expert,
                                uint32_t n_ranks, uint64_t *held_p)
{
    uint64_t held = 0;
    if (!json_is_array(ranks) || json_array_size(ranks) == 0)
        return akin_error_set(r->err, AKIN_ERR_FORMAT,
                              "%s: layer %u, expert %u: must be a list of the "
                              "ranks that hold it, at least one",
                              r->name, layer, expert);
    for (size_t i = 0; i < json_array_size(ranks); i++) {
        const json_t *value = json_array_get(ranks, i);
        const json_int_t rank = json_integer_value(value);
        if (!json_is_integer(value) || rank < 0 || rank >= n_ranks)
            return akin_error_set(r->err, AKIN_ERR_FORMAT,
                                  "%s: layer %u, expert %u: holder %zu must be "
                                  "a rank from 0 to %u",
                                  r->name, layer, expert, i, n_ranks - 1);
        if ((held >> rank & 1) != 0)
            return akin_error_set(
                r->err, AKIN_ERR_FORMAT,
                "%s: layer %u, expert %u: rank %u stands there twice", r->name,
                layer, expert, (uint32_t)rank);
        held |= UINT64_C(1) << rank;
    }
    *held_p = held;
    return AKIN_OK;
}

static akin_status_t read_holders(const reader_t *r, const json_t *layers,
                                  akin_placement_t *p)
{
    for (uint32_t l = 0; l < p->n_layers; l++) {
        const json_t *experts = json_array_get(layers, l);
        if (!json_is_array(experts) || json_array_size(experts) != p->n_experts)
            return akin_error_set(
                r->err, AKIN_ERR_FORMAT,
                "%s: layer %u of holders must be a list of %u experts%s",
                r->name, l, p->n_experts,
                json_is_array(experts) &&
                        json_array_size(experts) < p->n_experts
                    ? ", some are missing"
                    : "");
        for (uint32_t e = 0; e < p->n_experts; e++) {
            akin_status_t status =
                read_ranks(r, json_array_get(experts, e), l, e, p->n_ranks,
                           &p->holders[(size_t)l * p->n_experts + e]);
            if (status != AKIN_OK)
                return status;
        }
    }
    return AKIN_OK;
}

/* Sizes first: no memory is taken for a map that cannot be. */
static akin_status_t read_sizes(const reader_t *r, akin_placement_t *p)
{
    uint64_t n_ranks = 0, n_replicas = 0;
    akin_status_t status =
        read_whole(r, "ranks", AKIN_PLACEMENT_MAX_RANKS, &n_ranks);
    if (status == AKIN_OK)
        status = read_whole(r, "replicas", INT32_MAX, &n_replicas);
    if (status == AKIN_OK)
        status = read_whole(r, "epoch", INT64_MAX, &p->epoch);
    if (status != AKIN_OK)
        return status;
    p->n_ranks = (uint32_t)n_ranks;
    p->n_replicas = (uint32_t)n_replicas;
    const akin_placement_sizes_t sizes = {
        .n_layers = p->n_layers,
        .n_experts = p->n_experts,
        .n_ranks = p->n_ranks,
        .n_replicas = p->n_replicas,
    };
    status = akin_placement_check_sizes(&sizes, r->err);
    if (status != AKIN_OK)
        return akin_error_prefix(r->err, AKIN_ERR_FORMAT, "%s: ", r->name);
    return AKIN_OK;
}

static akin_status_t read_map(const reader_t *r, akin_placement_t *p)
{
    const json_t *layers = json_object_get(r->root, "holders");
    if (!json_is_array(layers) || json_array_size(layers) != p->n_layers)
        return akin_error_set(r->err, AKIN_ERR_FORMAT,
                              "%s: holders must be a list of %u layers",
                              r->name, p->n_layers);
    p->holders =
        calloc((size_t)p->n_layers * p->n_experts, sizeof(*p->holders));
    if (p->holders == NULL)
        return akin_error_set(r->err, AKIN_ERR_NOMEM,
                              "%s: out of memory for %u layers with %u experts",
                              r->name, p->n_layers, p->n_experts);
    akin_status_t status = read_holders(r, layers, p);
    if (status != AKIN_OK)
        return status;
    if (akin_placement_check(p, r->err) != AKIN_OK)
        return akin_error_prefix(r->err, AKIN_ERR_FORMAT, "%s: ", r->name);
    return AKIN_OK;
}

akin_status_t akin_placement_json_unpack(const struct json_t *json,
                                         const char *name, uint32_t n_layers,
                                         uint32_t n_experts,
                                         akin_placement_t *placement_p,
                                         akin_error_t *err)
{
    const reader_t r = {.root = json, .name = name, .err = err};
    akin_placement_t p = {.n_layers = n_layers, .n_experts = n_experts};
    if (!json_is_object(json))
        return akin_error_set(err, AKIN_ERR_FORMAT,
                              "%s: must be an object with ranks, replicas, "
                              "epoch and holders",
                              name);
    akin_status_t status = read_sizes(&r, &p);
    if (status == AKIN_OK)
        status = read_map(&r, &p);
    if (status != AKIN_OK) {
        akin_placement_cleanup(&p);
        return status;
    }
    *placement_p = p;
    return AKIN_OK;
}
