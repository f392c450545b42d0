/* Locality: how near a request's signature lies to every worker's centroid. */
#include "routing/locality.h"

#include "routing/signature_rows.h"

#include <stdlib.h>
#include <string.h>

akin_status_t akini_locality_init(akini_locality_t *locality,
                                  const akin_fit_t *fit)
{
    *locality = (akini_locality_t){
        .form = akin_fit_form(fit),
        .n_workers = fit->n_clusters,
        .dim = fit->dim,
        .centroids = fit->centroids,
    };
    locality->signature = calloc(fit->dim, sizeof(*locality->signature));
    locality->sums = calloc(fit->n_clusters, sizeof(*locality->sums));
    locality->scores = calloc(fit->n_clusters, sizeof(*locality->scores));
    if (locality->signature == NULL || locality->sums == NULL ||
        locality->scores == NULL) {
        akini_locality_cleanup(locality);
        return AKIN_ERR_NOMEM;
    }
    return AKIN_OK;
}

void akini_locality_cleanup(akini_locality_t *locality)
{
    free(locality->signature);
    free(locality->sums);
    free(locality->scores);
    *locality = (akini_locality_t){0};
}

/* The scores, and what scales the signature. */
static float score(akini_locality_t *locality, const uint16_t *counts,
                   int is_kept)
{
    if (counts == NULL) {
        memset(locality->signature, 0, locality->dim * sizeof(float));
        memset(locality->scores, 0, locality->n_workers * sizeof(float));
        return 1.0f;
    }
    float scale = akini_signature_dot_rows(
        &locality->form, counts, locality->signature, is_kept,
        locality->centroids, locality->n_workers, locality->sums);
    for (uint32_t w = 0; w < locality->n_workers; w++)
        locality->scores[w] = (float)(locality->sums[w] * (double)scale);
    return scale;
}

void akini_locality_score(akini_locality_t *locality, const uint16_t *counts)
{
    float scale = score(locality, counts, 1);
    akini_signature_scale(locality->signature, scale, locality->dim);
}

void akini_locality_scores(akini_locality_t *locality, const uint16_t *counts)
{
    (void)score(locality, counts, 0);
}
