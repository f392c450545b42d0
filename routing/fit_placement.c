/* Fit placement: a fit's maps of experts for workers of several ranks. */
#include "routing/fit_placement.h"

#include "ep/placement_json.h"
#include "routing/fit_placement_json.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME_BYTES 512

static void drop(akin_fit_t *fit)
{
    for (uint32_t k = 0; fit->placements != NULL && k < fit->n_clusters; k++)
        akin_placement_cleanup(&fit->placements[k]);
    free(fit->placements);
    fit->placements = NULL;
}

static akin_status_t take(akin_fit_t *fit, const char *name, akin_error_t *err)
{
    drop(fit);
    fit->placements = calloc(fit->n_clusters, sizeof(*fit->placements));
    if (fit->placements == NULL)
        return akin_error_set(err, AKIN_ERR_NOMEM,
                              "%s: out of memory for %u placements", name,
                              fit->n_clusters);
    return AKIN_OK;
}

akin_status_t akin_fit_place(akin_fit_t *fit,
                             const akin_fit_placement_params_t *params,
                             akin_error_t *err)
{
    const size_t cells = (size_t)fit->n_layers * fit->n_experts;
    if (fit->pbar == NULL)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "the fit has no decode rates (pbar) to place "
                              "experts by; make it anew from a trace");
    akin_status_t status = take(fit, "fit", err);
    for (uint32_t k = 0; k < fit->n_clusters && status == AKIN_OK; k++) {
        const akin_placement_params_t make = {
            .kind = params->kind,
            .n_layers = fit->n_layers,
            .n_experts = fit->n_experts,
            .n_ranks = params->n_ranks,
            .n_replicas = params->n_replicas,
            .rates = fit->pbar + k * cells,
            .batch = params->batch,
        };
        status = akin_placement_make(&make, &fit->placements[k], err);
    }
    if (status != AKIN_OK)
        drop(fit);
    return status;
}

static akin_status_t read_one(const akini_fit_json_t *json, const json_t *value,
                              uint32_t k, akin_fit_t *fit)
{
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof(name), "%s: placement[%u]", json->name, k);
    akin_status_t status =
        akin_placement_json_unpack(value, name, fit->n_layers, fit->n_experts,
                                   &fit->placements[k], json->err);
    if (status != AKIN_OK)
        return status;
    if (fit->placements[k].n_ranks != fit->placements[0].n_ranks ||
        fit->placements[k].n_replicas != fit->placements[0].n_replicas)
        return akin_error_set(
            json->err, AKIN_ERR_FORMAT,
            "%s has %u ranks and %u replicas, placement[0] "
            "%u and %u: all workers are alike",
            name, fit->placements[k].n_ranks, fit->placements[k].n_replicas,
            fit->placements[0].n_ranks, fit->placements[0].n_replicas);
    return AKIN_OK;
}

akin_status_t akini_fit_placement_read(const akini_fit_json_t *json,
                                       akin_fit_t *fit)
{
    const json_t *list = akini_fit_json_get(json, "placement");
    if (list == NULL)
        return AKIN_OK;
    if (json_array_size(list) != fit->n_clusters) {
        char expected[64];
        (void)snprintf(expected, sizeof(expected), "a list of %u placements",
                       fit->n_clusters);
        return akini_fit_json_wrong(json, "placement", list, expected);
    }
    akin_status_t status = take(fit, json->name, json->err);
    for (uint32_t k = 0; k < fit->n_clusters && status == AKIN_OK; k++)
        status = read_one(json, json_array_get(list, k), k, fit);
    if (status != AKIN_OK)
        drop(fit);
    return status;
}

json_t *akini_fit_placement_json(const akin_fit_t *fit)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < fit->n_clusters && list != NULL; k++) {
        json_t *one = NULL;
        if (akin_placement_json_pack(&fit->placements[k], &one) != AKIN_OK ||
            json_array_append_new(list, one) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}
