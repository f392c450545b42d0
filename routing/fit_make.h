/* Fit making: from calibration requests to a fit of one variant. */
#ifndef AKIN_ROUTING_FIT_MAKE_H
#define AKIN_ROUTING_FIT_MAKE_H

#include "routing/calibration.h"
#include "routing/decode_map_make.h"
#include "routing/fit.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct akin_fit_make_params {
    const akin_calibration_t *calibration; /* borrowed */
    uint32_t n_clusters; /* one per decode worker, at most the requests */
    akin_fit_variant_t variant;
    uint64_t seed;    /* of the pairs and the clusters; below 2^63, as a fit
                         file holds no more */
    uint32_t n_pairs; /* of requests to draw; 0: AKIN_LAYER_MASK_PAIRS */
    bool is_plain;    /* clusters of any size, to compare with */
} akin_fit_make_params_t;

/** How a fit went. Arrays are owned by the report. Zero is an empty one. */
typedef struct akin_fit_report {
    double rho; /* of the signatures; NaN: no pairs, or all equally far apart */
    uint32_t n_masked; /* layers kept */
    uint32_t n_rounds; /* of k-means */
    bool has_converged;
    double cost;       /* of the last assignment: sum of 1 - x . c */
    uint32_t *sizes;   /* [n_clusters] requests */
    uint32_t *cluster; /* [n_requests] of each request */
    double purity;     /* share of the requests with a domain that are in a
                          cluster where theirs is the most frequent; NaN: no
                          domains */
    akin_decode_map_report_t decode_map;
    double mask_seconds; /* of it for the layer mask or rho */
    double seconds;      /* of all */
} akin_fit_report_t;

/** Free what the report owns; NULL is allowed. The report is empty then. */
void akin_fit_report_cleanup(akin_fit_report_t *report);

/**
 * Fit one variant (ALGORITHMS.md 1 to 3): `count_idf` with the IDF of the
 * calibration and the layers that the greedy search keeps, `count` with all
 * layers; clusters of the signatures, balanced unless they are plain; per
 * cluster the mean chance that a decode token activates an expert, the overall
 * one for a cluster without requests; a decode map (akin_decode_map_make()).
 * The same input and seed give the same bits.
 *
 * \param[in]  params
 * \param[out] fit     the caller's to clean up; empty on failure.
 * \param[out] report  NULL is allowed; the caller's to clean up, empty on
 *                     failure.
 * \param[out] err     says what is wrong and the way out.
 * \return AKIN_OK
 * \return AKIN_ERR_INVALID: a size out of range, more clusters than requests,
 *         a request whose signature is zero, decode counts that tell no layer
 *         from another (count_idf alone).
 * \return AKIN_ERR_NOMEM
 */
akin_status_t akin_fit_make(const akin_fit_make_params_t *params,
                            akin_fit_t *fit, akin_fit_report_t *report,
                            akin_error_t *err) AKIN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
