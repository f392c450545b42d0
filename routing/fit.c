/* Fit: its memory, its form, and whether it fits a job. */
#include "routing/fit.h"

#include <stdlib.h>
#include <string.h>

void akin_fit_cleanup(akin_fit_t *fit)
{
    if (fit == NULL)
        return;
    for (uint32_t i = 0; i < fit->n_domains; i++)
        free(fit->domains[i].name);
    free(fit->domains);
    free(fit->model);
    free(fit->layers);
    free(fit->idf);
    free(fit->centroids);
    free(fit->pbar);
    for (uint32_t k = 0; fit->placements != NULL && k < fit->n_clusters; k++)
        akin_placement_cleanup(&fit->placements[k]);
    free(fit->placements);
    akin_decode_map_cleanup(&fit->decode_map);
    memset(fit, 0, sizeof(*fit));
}

static int compare_domains(const void *left, const void *right)
{
    const akin_fit_domain_t *a = left;
    const akin_fit_domain_t *b = right;
    if (a->n_requests != b->n_requests)
        return a->n_requests < b->n_requests ? 1 : -1;
    return strcmp(a->name, b->name);
}

void akin_fit_sort_domains(akin_fit_t *fit)
{
    if (fit->n_domains > 0)
        qsort(fit->domains, fit->n_domains, sizeof(*fit->domains),
              compare_domains);
}

akin_signature_form_t akin_fit_form(const akin_fit_t *fit)
{
    return (akin_signature_form_t){
        .n_layers = fit->n_layers,
        .n_experts = fit->n_experts,
        .layers = fit->layers,
        .n_masked = fit->n_masked,
        .idf = fit->idf,
    };
}

akin_status_t akin_fit_match(const akin_fit_t *fit, uint32_t n_workers,
                             uint32_t n_layers, uint32_t n_experts,
                             uint32_t top_k, akin_error_t *err)
{
    const struct {
        const char *name;
        uint32_t in_fit;
        uint32_t wanted;
    } rows[] = {
        {"L (layers)", fit->n_layers, n_layers},
        {"e (experts)", fit->n_experts, n_experts},
        {"top_k", fit->top_k,
         fit->top_k != 0 && top_k != 0 ? top_k : fit->top_k},
        {"k (decode workers)", fit->n_clusters, n_workers},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].in_fit != rows[i].wanted)
            return akin_error_set(err, AKIN_ERR_INVALID,
                                  "the fit's %s is %u, this job has %u; make "
                                  "one for it with akin fit",
                                  rows[i].name, rows[i].in_fit, rows[i].wanted);
    return AKIN_OK;
}
