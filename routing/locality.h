/* Locality: how near a request's signature lies to every worker's centroid. */
#ifndef AKIN_ROUTING_LOCALITY_H
#define AKIN_ROUTING_LOCALITY_H

#include "routing/fit.h"

/** Scratch of the decisions; one thread. */
typedef struct akini_locality {
    akin_signature_form_t form;
    uint32_t n_workers;
    size_t dim;
    const float *centroids; /* [n_workers][dim], borrowed */
    float *signature;       /* [dim] of the last request */
    double *sums;           /* [n_workers] its products before scaling */
    float *scores;          /* [n_workers] its cosines */
} akini_locality_t;

/**
 * \param[in] fit  borrowed; its clusters are the workers.
 * \return AKIN_OK, AKIN_ERR_NOMEM
 */
akin_status_t akini_locality_init(akini_locality_t *locality,
                                  const akin_fit_t *fit);

void akini_locality_cleanup(akini_locality_t *locality);

/**
 * Form the signature and score every worker; zero counts score 0 everywhere.
 *
 * \param[in] counts  [n_layers][n_experts], or NULL: as zeros.
 */
void akini_locality_score(akini_locality_t *locality, const uint16_t *counts);

/** The scores alone, the same to the bit; `signature` is scratch. */
void akini_locality_scores(akini_locality_t *locality, const uint16_t *counts);

#endif
