/* Replay placement: where the experts of a replay's expert-parallel workers
 * lie. */
#include "routing/replay_placement.h"

#include <stdlib.h>
#include <string.h>

const char *const akin_replay_placement_names[] = {
    "linear", "round-robin", "eplb", "activation-shared", "activation", NULL};

static const struct {
    akin_placement_kind_t kind;
    int needs_rates;
    int is_per_cluster;
} kinds[] = {
    {AKIN_PLACEMENT_LINEAR, 0, 0},     {AKIN_PLACEMENT_ROUND_ROBIN, 0, 0},
    {AKIN_PLACEMENT_EPLB, 1, 0},       {AKIN_PLACEMENT_ACTIVATION, 1, 0},
    {AKIN_PLACEMENT_ACTIVATION, 1, 1},
};

enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static int find(const char *name)
{
    for (int i = 0; i < N_KINDS; i++)
        if (strcmp(akin_replay_placement_names[i], name) == 0)
            return i;
    return -1;
}

int akin_replay_placement_needs_fit(const char *name)
{
    int i = find(name);
    return i >= 0 && kinds[i].needs_rates;
}

/* Clusters are of nearly one size, so their plain mean will do. */
static float *mean_rates(const akin_fit_t *fit, size_t cells)
{
    float *mean = calloc(cells, sizeof(*mean));
    if (mean == NULL)
        return NULL;
    for (uint32_t k = 0; k < fit->n_clusters; k++)
        for (size_t i = 0; i < cells; i++)
            mean[i] += fit->pbar[k * cells + i] / (float)fit->n_clusters;
    return mean;
}

akin_status_t
akin_replay_placement_create(const akin_replay_placement_params_t *params,
                             akin_placement_t **placements_p, akin_error_t *err)
{
    *placements_p = NULL;
    const int which = find(params->name);
    if (which < 0)
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "no placement \"%s\"; choose one of linear, "
                              "round-robin, eplb, activation-shared, "
                              "activation",
                              params->name);
    if (kinds[which].needs_rates &&
        (params->fit == NULL || params->fit->pbar == NULL))
        return akin_error_set(err, AKIN_ERR_INVALID,
                              "placement %s needs a fit with the clusters' "
                              "decode rates (pbar)",
                              params->name);
    const size_t cells = (size_t)params->n_layers * params->n_experts;
    float *shared = NULL;
    akin_placement_t *placements =
        calloc(params->n_workers, sizeof(*placements));
    akin_status_t status = placements != NULL ? AKIN_OK : AKIN_ERR_NOMEM;
    if (status == AKIN_OK && kinds[which].needs_rates) {
        shared = mean_rates(params->fit, cells);
        status = shared != NULL ? AKIN_OK : AKIN_ERR_NOMEM;
    }
    if (status != AKIN_OK)
        (void)akin_error_set(err, status, "placement: out of memory");
    for (uint32_t w = 0; w < params->n_workers && status == AKIN_OK; w++) {
        /* One map for all is made once and copied. */
        if (w > 0 && !kinds[which].is_per_cluster) {
            status = akin_placement_copy(&placements[0], &placements[w]);
            continue;
        }
        const akin_placement_params_t make = {
            .kind = kinds[which].kind,
            .n_layers = params->n_layers,
            .n_experts = params->n_experts,
            .n_ranks = params->n_ranks,
            .n_replicas = params->n_replicas,
            .rates = kinds[which].is_per_cluster ? params->fit->pbar + w * cells
                                                 : shared,
            .batch = params->batch,
        };
        status = akin_placement_make(&make, &placements[w], err);
    }
    free(shared);
    if (status != AKIN_OK) {
        akin_replay_placement_destroy(placements, params->n_workers);
        return status;
    }
    *placements_p = placements;
    return AKIN_OK;
}

void akin_replay_placement_destroy(akin_placement_t *placements,
                                   uint32_t n_workers)
{
    for (uint32_t w = 0; placements != NULL && w < n_workers; w++)
        akin_placement_cleanup(&placements[w]);
    free(placements);
}
