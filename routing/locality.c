/* Locality: how near a request's signature lies to every worker's centroid. */
#include "routing/locality.h"

#include "routing/dot.h"

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
    locality->scores = calloc(fit->n_clusters, sizeof(*locality->scores));
    if (locality->signature == NULL || locality->scores == NULL) {
        akini_locality_cleanup(locality);
        return AKIN_ERR_NOMEM;
    }
    return AKIN_OK;
}

void akini_locality_cleanup(akini_locality_t *locality)
{
    free(locality->signature);
    free(locality->scores);
    *locality = (akini_locality_t){0};
}

void akini_locality_score(akini_locality_t *locality, const uint16_t *counts)
{
    if (counts == NULL) {
        memset(locality->signature, 0, locality->dim * sizeof(float));
        memset(locality->scores, 0, locality->n_workers * sizeof(float));
        return;
    }
    akin_signature_compute(&locality->form, counts, locality->signature);
    for (uint32_t w = 0; w < locality->n_workers; w++)
        locality->scores[w] = (float)akini_dot(
            locality->signature, locality->centroids + w * locality->dim,
            locality->dim);
}
